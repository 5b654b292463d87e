"""PACS: photo, art painting, cartoon and sketch, with the official lists.

Dassl's copy has images/ and splits/. The original release and DomainBed's copy
have the domains' folders in kfold/ or at the top, with or without the lists.
The labels in a list start at 1.
"""

import re

from comen_jax.data.benchmarks.layout import Benchmark
from comen_jax.data.dataset import TRAIN, VAL
from comen_jax.data.ingest import pictures
from comen_jax.data.ingest.archive import Archive
from comen_jax.data.ingest.contents import Contents, Entry
from comen_jax.errors import UserError

_DOMAINS = ("art_painting", "cartoon", "photo", "sketch")
_CLASSES = (
  "dog", "elephant", "giraffe", "guitar", "horse", "house", "person",
)  # fmt: skip
_MEMBER = re.compile(
  rf"(?:.*/)?(({'|'.join(_DOMAINS)})/({'|'.join(_CLASSES)})/[^/]+)"
)
_LIST = re.compile(
  rf"(?:.*/)?({'|'.join(_DOMAINS)})_(train|crossval)_kfold\.txt"
)
_SPLITS = {"train": TRAIN, "crossval": VAL}
# Dassl leaves it out ("contains errors"). It decodes in some copies only.
_DOUBTFUL = "sketch/dog/n02103406_4068-1.png"


def _scan(source: Archive) -> Contents:
  found = {
    m[0]: Entry(
      path=m[0],
      name=m[1],
      label=_CLASSES.index(m[3]),
      domain=_DOMAINS.index(m[2]),
      split=None,
    )
    for m in map(_MEMBER.fullmatch, source.pictures)
    if m
  }
  notices = []
  for path in [p for p, e in found.items() if e.name == _DOUBTFUL]:
    notices.append(f"{_DOUBTFUL} is used, although Dassl leaves it out")
    try:
      pictures.decode(source.read(path), 8, path)
    except UserError:
      del found[path]
      notices[-1] = f"{_DOUBTFUL} does not decode and is left out, as in Dassl"
  lists = [m for m in map(_LIST.fullmatch, source.names) if m]
  if not lists:
    notices.append(
      f"{source.path} has no *_kfold.txt lists: 10 % of each class and domain"
      " are drawn for validation, which is not the official split"
    )
    return BENCHMARK.contents(list(found.values()), notices=notices)
  splits = _read_lists(source, lists, {e.name for e in found.values()})
  entries = [
    e._replace(split=splits[e.name]) for e in found.values() if e.name in splits
  ]
  if unlisted := [e.path for e in found.values() if e.name not in splits]:
    notices.append(
      f"{len(unlisted)} images are in no list and are left out, such as"
      f" {unlisted[0]}"
    )
  return BENCHMARK.contents(entries, notices=notices)


def _read_lists(
  source: Archive, lists: list[re.Match], known: set[str]
) -> dict[str, int]:
  """Returns the split of each name, from all lists."""
  by_kind: dict[tuple[str, str], str] = {}
  for m in lists:
    other = by_kind.setdefault((m[1], m[2]), m[0])
    if other != m[0] and source.read(other) != source.read(m[0]):
      raise UserError(
        f"{source.path}: {other} and {m[0]} differ: keep only the official one"
      )
  splits: dict[str, int] = {}
  for domain in _DOMAINS:
    for kind, split in _SPLITS.items():
      if (domain, kind) not in by_kind:
        raise UserError(
          f"{source.path} has lists, but no {domain}_{kind}_kfold.txt: add it,"
          " or remove all lists"
        )
      path = by_kind[domain, kind]
      lines = source.read(path).decode("utf-8", "replace").splitlines()
      for number, line in enumerate(lines, 1):
        if not line.strip():
          continue
        name = _check_line(f"{source.path}: {path}:{number}", line, domain)
        if name == _DOUBTFUL and name not in known:
          continue
        if name not in known:
          raise UserError(
            f"{source.path}: {path}:{number} names {name}, which is missing:"
            " get the published file again, or remove the line"
          )
        if name in splits:
          raise UserError(
            f"{source.path}: {path}:{number} names {name} a second time:"
            " remove one line"
          )
        splits[name] = split
  return splits


def _check_line(where: str, line: str, domain: str) -> str:
  """Returns the name in a line of a list; its label must match its folder."""
  name, _, label = line.strip().rpartition(" ")
  m = _MEMBER.fullmatch(name)
  if not m or m[2] != domain or not label.isdigit():
    raise UserError(
      f"{where} is {line.strip()!r}: expected {domain}/<class>/<file> <label>"
    )
  if not 1 <= int(label) <= len(_CLASSES):
    raise UserError(
      f"{where} has label {label}: the labels of PACS are 1 to {len(_CLASSES)}"
    )
  if _CLASSES[int(label) - 1] != m[3]:
    raise UserError(
      f"{where} has label {label} ({_CLASSES[int(label) - 1]}) for an image of"
      f" {m[3]}, whose label is {_CLASSES.index(m[3]) + 1}"
    )
  return m[1]


_COUNTS = {
  "art_painting": (379, 255, 285, 184, 201, 295, 449),
  "cartoon": (389, 457, 346, 135, 324, 288, 405),
  "photo": (189, 202, 182, 186, 199, 280, 432),
  "sketch": (772, 740, 753, 608, 816, 80, 160),
}

BENCHMARK = Benchmark(
  name="pacs",
  archives=("pacs", "kfold"),
  domains=_DOMAINS,
  classes=_CLASSES,
  default_target="sketch",
  layout=(
    "{art_painting,cartoon,photo,sketch}/{dog,...,person}/* and"
    " {domain}_{train,crossval}_kfold.txt"
  ),
  source=(
    "Dassl (github.com/KaiyangZhou/Dassl.pytorch, DATASETS.md), which has the"
    " official lists, or DomainBed's download script (without lists)"
  ),
  scan=_scan,
  store_size=256,
  published_domains={
    "art_painting": (1840, 208),
    "cartoon": (2107, 237),
    "photo": (1499, 171),
    "sketch": (3531, 398),
  },
  published_cells={
    (domain, name): count
    for domain, counts in _COUNTS.items()
    for name, count in zip(_CLASSES, counts)
  },
)
