"""Office-Home: 65 classes as art, clip art, product image and photo.

The original release and DomainBed's copy have no split. Dassl's copy
(office_home_dg) has train/ and val/.
"""

import re

from comen_jax.data.benchmarks.layout import Benchmark
from comen_jax.data.dataset import TRAIN, VAL
from comen_jax.data.ingest.archive import Archive
from comen_jax.data.ingest.contents import Contents, Entry
from comen_jax.data.ingest.problems import BadFilesError
from comen_jax.errors import UserError

_DOMAINS = ("art", "clipart", "product", "real_world")
_CLASSES = (
  "Alarm_Clock", "Backpack", "Batteries", "Bed", "Bike", "Bottle", "Bucket",
  "Calculator", "Calendar", "Candles", "Chair", "Clipboards", "Computer",
  "Couch", "Curtains", "Desk_Lamp", "Drill", "Eraser", "Exit_Sign", "Fan",
  "File_Cabinet", "Flipflops", "Flowers", "Folder", "Fork", "Glasses",
  "Hammer", "Helmet", "Kettle", "Keyboard", "Knives", "Lamp_Shade", "Laptop",
  "Marker", "Monitor", "Mop", "Mouse", "Mug", "Notebook", "Oven", "Pan",
  "Paper_Clip", "Pen", "Pencil", "Postit_Notes", "Printer", "Push_Pin",
  "Radio", "Refrigerator", "Ruler", "Scissors", "Screwdriver", "Shelf",
  "Sink", "Sneakers", "Soda", "Speaker", "Spoon", "TV", "Table", "Telephone",
  "ToothBrush", "Toys", "Trash_Can", "Webcam",
)  # fmt: skip
_LABELS = {name.lower(): i for i, name in enumerate(_CLASSES)}
_SPLITS = {"train": TRAIN, "val": VAL}
_MEMBER = re.compile(
  r"(?:.*/)?((art|clipart|product|real[ _]?world)/(?:(train|val)/)?"
  r"([^/]+)/[^/]+)",
  re.IGNORECASE,
)


def _scan(source: Archive) -> Contents:
  entries, misplaced = [], []
  for m in map(_MEMBER.fullmatch, source.pictures):
    if not m:
      continue
    folder = re.sub("[ -]", "_", m[4].lower())
    if folder not in _LABELS:
      misplaced.append(
        f"{source.path}: {m[0]} is in the folder {m[4]!r}, which is not one of"
        " Office-Home's 65 classes: remove or rename it"
      )
      continue
    domain = m[2].lower()
    entries.append(
      Entry(
        path=m[0],
        name=m[1],
        label=_LABELS[folder],
        domain=3 if domain.startswith("real") else _DOMAINS.index(domain),
        split=_SPLITS[m[3].lower()] if m[3] else None,
      )
    )
  if misplaced:
    raise BadFilesError(misplaced)
  drawn = [e for e in entries if e.split is None]
  if drawn and len(drawn) < len(entries):
    raise UserError(
      f"{source.path} mixes two layouts: {drawn[0].path} is not in a train or"
      " val folder, but other images are: keep one layout"
    )
  if not drawn:
    return BENCHMARK.contents(entries)
  notice = (
    f"{source.path} has no published split: 10 % of each class and domain are"
    " drawn for validation"
  )
  return BENCHMARK.contents(entries, notices=[notice])


BENCHMARK = Benchmark(
  name="office_home",
  archives=("office_home", "office_home_dg", "OfficeHomeDataset_10072016"),
  domains=_DOMAINS,
  classes=_CLASSES,
  default_target="art",
  layout="{Art,Clipart,Product,Real World}/{train,val or none}/{class}/*.jpg",
  source=(
    "its authors (hemanthdv.org/OfficeHome-Dataset), DomainBed's download"
    " script or Dassl (github.com/KaiyangZhou/Dassl.pytorch, DATASETS.md)"
  ),
  scan=_scan,
  store_size=256,
  published_domains={
    "art": 2427,
    "clipart": 4365,
    "product": 4439,
    "real_world": 4357,
  },
  published_cells={},
)
