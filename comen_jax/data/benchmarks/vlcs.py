"""VLCS: Caltech, LabelMe, Pascal VOC and SUN, with a drawn 70/30 split.

The original release and Dassl's copy number the classes. Their parts (train,
crossval, test, full) overlap under different file names, so an image is
identified by its bytes. DomainBed's copy names the classes and has no parts.
"""

import hashlib
import re

from comen_jax.data.benchmarks.layout import Benchmark
from comen_jax.data.ingest.archive import Archive
from comen_jax.data.ingest.contents import Contents, Entry

_DOMAINS = ("caltech", "labelme", "pascal", "sun")
_CLASSES = ("bird", "car", "chair", "dog", "person")
_ALIASES = {
  "caltech": "caltech",
  "caltech101": "caltech",
  "labelme": "labelme",
  "pascal": "pascal",
  "voc2007": "pascal",
  "sun": "sun",
  "sun09": "sun",
}
_MEMBER = re.compile(
  rf"(?:.*/)?(({'|'.join(_ALIASES)})/(?:(full|train|crossval|val|test)/)?"
  rf"([0-4]|{'|'.join(_CLASSES)})/[^/]+)",
  re.IGNORECASE,
)
_PARTS = ("", "full", "train", "crossval", "val", "test")


def _scan(source: Archive) -> Contents:
  by_part: dict[str, list[Entry]] = {part: [] for part in _PARTS}
  for m in map(_MEMBER.fullmatch, source.pictures):
    if m:
      folder = m[4].lower()
      by_part[(m[3] or "").lower()].append(
        Entry(
          path=m[0],
          name=m[1],
          label=int(folder) if folder.isdigit() else _CLASSES.index(folder),
          domain=_DOMAINS.index(_ALIASES[m[2].lower()]),
          split=None,
        )
      )
  return BENCHMARK.contents(_each_once(source, by_part), val_share=0.3)


def _each_once(source: Archive, by_part: dict[str, list[Entry]]) -> list[Entry]:
  """Drops the images that an earlier part already contains.

  Equal images within one part are kept, as published.
  """
  parts = [entries for entries in by_part.values() if entries]
  if len(parts) == 1:
    return parts[0]
  kept, seen = [], set()
  for entries in parts:
    keys = [
      (e.domain, e.label, hashlib.sha256(source.read(e.path)).digest())
      for e in entries
    ]
    kept += [e for e, key in zip(entries, keys) if key not in seen]
    seen.update(keys)
  return kept


_COUNTS = {
  "caltech": (237, 123, 118, 67, 870),
  "labelme": (80, 1209, 89, 43, 1235),
  "pascal": (330, 699, 428, 420, 1499),
  "sun": (21, 933, 1036, 31, 1261),
}

BENCHMARK = Benchmark(
  name="vlcs",
  archives=("vlcs",),
  domains=_DOMAINS,
  classes=_CLASSES,
  default_target="caltech",
  layout=(
    "{CALTECH,LABELME,PASCAL,SUN}/{train,test,...}/{0..4}/*.jpg or"
    " {Caltech101,LabelMe,SUN09,VOC2007}/{bird,...,person}/*.jpg"
  ),
  source=(
    "Dassl (github.com/KaiyangZhou/Dassl.pytorch, DATASETS.md) or DomainBed's"
    " download script"
  ),
  scan=_scan,
  store_size=256,
  published_domains={d: sum(counts) for d, counts in _COUNTS.items()},
  published_cells={
    (domain, name): count
    for domain, counts in _COUNTS.items()
    for name, count in zip(_CLASSES, counts)
  },
)
