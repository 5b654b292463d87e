"""Tables 1 to 5 of the paper, as data.

Source: Chen, Li, Han, Liu, Yu, "Compound Domain Generalization via
Meta-Knowledge Encoding", CVPR 2022. Every value is as printed: accuracy in per
cent, one decimal, no deviations. `MISPRINTS` lists printed averages that differ
from the average of their columns. Its DeepAll rows are from other papers.
"""

from collections.abc import Mapping
from typing import NamedTuple

SOURCE = "Chen et al., CVPR 2022"
EPOCHS = 50
COMEN = "COMEN"
DEEPALL = "DeepAll"


class PaperRow(NamedTuple):
  """A printed row: the method, a value per column, the printed average."""

  method: str
  values: tuple[float, ...]
  average: float


class PaperTable(NamedTuple):
  """A printed table.

  Attributes:
    title: name of the data set in the paper.
    number: number of the table.
    columns: our name of each target -> the paper's, in the paper's order.
    supervised: rows "w/ Domain Supervision".
    unsupervised: rows "w/o Domain Supervision", COMEN last.
  """

  title: str
  number: int
  columns: Mapping[str, str]
  supervised: tuple[PaperRow, ...]
  unsupervised: tuple[PaperRow, ...]

  def row(self, method: str) -> PaperRow:
    """Returns the row of a method without domain supervision."""
    return next(r for r in self.unsupervised if r.method == method)


def _rows(*lines: tuple) -> tuple[PaperRow, ...]:
  return tuple(PaperRow(name, tuple(fs), avg) for name, *fs, avg in lines)


TABLES = {
  "pacs": PaperTable(
    "PACS",
    1,
    {
      "art_painting": "Art",
      "cartoon": "Cartoon",
      "photo": "Photo",
      "sketch": "Sketch",
    },
    supervised=_rows(
      ("CCSA", 80.5, 76.9, 93.6, 66.8, 79.4),
      ("MMD-AAE", 75.2, 72.7, 96.0, 64.2, 77.0),
      ("CrossGrad", 79.8, 76.8, 96.0, 70.2, 80.7),
      ("Metareg", 83.7, 77.2, 95.5, 70.3, 81.7),
      ("MASF", 80.3, 77.2, 95.0, 71.7, 81.1),
      ("Epi-FCR", 82.1, 77.0, 93.9, 73.0, 81.5),
      ("L2A-OT", 83.3, 78.2, 96.2, 73.6, 82.8),
      ("SagNet", 83.6, 77.7, 95.5, 76.3, 83.3),
      ("SelfReg", 82.3, 78.4, 96.2, 77.5, 83.6),
      ("MixStyle", 84.1, 78.8, 96.1, 75.9, 83.7),
    ),
    unsupervised=_rows(
      ("DeepAll", 77.6, 73.9, 94.4, 70.3, 79.1),
      ("JiGen", 79.4, 75.3, 96.0, 71.6, 80.5),
      ("MMLD", 81.3, 77.2, 96.1, 72.3, 81.7),
      ("RSC", 79.9, 76.9, 94.6, 77.1, 81.1),
      ("EISNet", 81.9, 76.4, 96.0, 74.3, 82.2),
      ("SFA-A", 81.2, 77.8, 93.9, 73.7, 81.7),
      ("SagNet", 83.6, 77.7, 95.5, 76.3, 83.3),
      ("COMEN", 82.6, 81.0, 94.6, 84.5, 85.7),
    ),
  ),
  "digits_dg": PaperTable(
    "Digits-DG",
    2,
    {"mnist": "MNIST", "mnist_m": "MNIST-M", "svhn": "SVHN", "syn": "SYN"},
    supervised=_rows(
      ("CCSA", 95.2, 58.2, 65.5, 79.1, 74.5),
      ("MMD-AAE", 96.5, 58.4, 65.0, 78.4, 74.6),
      ("CrossGrad", 96.7, 61.1, 65.3, 80.2, 75.8),
      ("DDAIG", 96.6, 64.1, 68.6, 81.0, 77.6),
      ("L2A-OT", 96.7, 63.9, 68.6, 83.2, 78.1),
      ("MixStyle", 96.5, 63.5, 64.7, 81.2, 76.5),
    ),
    unsupervised=_rows(
      ("DeepAll", 95.8, 58.8, 61.7, 78.6, 73.7),
      ("JiGen", 96.5, 61.4, 63.7, 74.0, 73.9),
      ("SFA-A", 96.5, 66.5, 70.3, 85.0, 79.6),
      ("COMEN", 97.1, 67.6, 75.1, 91.3, 82.3),
    ),
  ),
  "vlcs": PaperTable(
    "VLCS",
    3,
    {"pascal": "V", "labelme": "L", "caltech": "C", "sun": "S"},
    supervised=_rows(
      ("D-MTAE", 63.9, 60.1, 89.1, 61.3, 68.6),
      ("CCSA", 67.1, 62.1, 92.3, 59.1, 70.2),
      ("DBA-DG", 70.0, 63.5, 93.6, 61.3, 72.1),
      ("CIDDG", 64.4, 63.1, 88.8, 62.1, 69.6),
      ("MMD-AAE", 67.7, 62.6, 94.4, 64.4, 72.3),
      ("MLDG", 67.7, 61.3, 94.4, 65.9, 72.3),
      ("Epi-FCR", 67.1, 64.3, 94.1, 65.9, 72.9),
      ("MASF", 69.1, 64.9, 94.8, 67.6, 74.1),
    ),
    unsupervised=_rows(
      ("DeepAll", 71.9, 59.2, 96.9, 62.6, 72.7),
      ("JiGen", 70.6, 60.9, 96.9, 64.3, 73.2),
      ("MMLD", 72.0, 58.8, 96.7, 68.1, 73.9),
      ("SFA-A", 70.4, 62.0, 97.2, 66.2, 74.0),
      ("COMEN", 72.8, 62.6, 97.0, 67.6, 75.0),
    ),
  ),
  "office_home": PaperTable(
    "Office-Home",
    4,
    {
      "art": "Art",
      "clipart": "Clipart",
      "product": "Product",
      "real_world": "Real",
    },
    supervised=_rows(
      ("CCSA", 59.9, 49.9, 74.1, 75.7, 64.9),
      ("MMD-AAE", 56.5, 47.3, 72.1, 74.8, 62.7),
      ("CrossGrad", 58.4, 49.4, 73.9, 75.8, 64.4),
      ("DDAIG", 59.2, 52.3, 74.6, 76.0, 65.5),
      ("DOSN", 59.4, 45.7, 71.8, 74.7, 62.9),
      ("L2A-OT", 60.6, 50.1, 74.8, 77.0, 65.6),
      ("MixStyle", 58.7, 53.4, 74.2, 75.9, 65.5),
    ),
    unsupervised=_rows(
      ("DeepAll", 58.9, 49.4, 74.3, 76.2, 64.7),
      ("JiGen", 53.0, 47.5, 71.5, 72.8, 61.2),
      ("RSC", 58.4, 47.9, 71.6, 74.5, 63.1),
      ("SagNet", 60.2, 45.4, 70.4, 73.4, 62.4),
      ("COMEN", 57.6, 55.8, 75.5, 76.9, 66.5),
    ),
  ),
}

# (data set, method) -> the true average of the printed columns.
MISPRINTS = {
  ("digits_dg", "COMEN"): 82.775,
  ("pacs", "RSC"): 82.125,
  ("pacs", "JiGen"): 80.575,
}

# Other remarks for readers of the tables, by data set.
REMARKS = {
  "pacs": ("The paper lists SagNet in both groups, with the same values.",),
}

ABLATION_NUMBER = 5
ABLATION_REMARK = 'The paper\'s ablation writes "DSNorm" for SDNorm.'
ABLATION_COLUMNS = ("pacs", "digits_dg", "vlcs", "office_home")


class PaperAblation(NamedTuple):
  """A printed row of Table 5: the parts that are on, averages by data set."""

  sdnorm: bool
  protogr: bool
  protoccl: bool
  values: tuple[float, float, float, float]
  average: float


# By the names of our variants (`variants.VARIANTS`).
ABLATION = {
  "deepall": PaperAblation(False, False, False, (79.1, 73.7, 72.7, 64.7), 72.6),
  "sdnorm": PaperAblation(True, False, False, (81.3, 75.4, 73.4, 65.0), 73.8),
  "protogr": PaperAblation(False, True, False, (82.0, 75.6, 74.1, 65.4), 74.3),
  "protoccl": PaperAblation(False, False, True, (81.3, 76.1, 73.5, 65.1), 74.0),
  "protogr_protoccl": PaperAblation(
    False, True, True, (82.6, 77.8, 74.4, 65.6), 75.1
  ),
  "sdnorm_protogr": PaperAblation(
    True, True, False, (83.5, 79.0, 74.3, 65.8), 75.7
  ),
  "sdnorm_protoccl": PaperAblation(
    True, False, True, (84.0, 79.3, 74.2, 66.3), 76.0
  ),
  "comen": PaperAblation(True, True, True, (85.7, 82.3, 75.0, 66.5), 77.4),
}


def misprint(dataset: str, row: PaperRow) -> str:
  """Says what is wrong with the printed average of a row; "" if nothing."""
  true = MISPRINTS.get((dataset, row.method))
  if true is None:
    return ""
  return (
    f"The paper prints {row.average:.1f} as the average of {row.method}; its"
    f" columns average {true:g}."
  )


def ablation_average(dataset: str, row: str) -> float | None:
  """Returns the average of a variant in Table 5, None if it is not there."""
  if dataset not in ABLATION_COLUMNS or row not in ABLATION:
    return None
  return ABLATION[row].values[ABLATION_COLUMNS.index(dataset)]
