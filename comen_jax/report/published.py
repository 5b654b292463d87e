"""Published values of the other methods, each with its source, as data.

Accuracy in per cent, as printed there. `paper.TABLES` has what the paper prints
of other methods; this file says which of our rows they belong to, and adds
values from other places. Papers that copy a value from another paper, and runs
with another backbone, selection or tuning, are not comparable with our rows:
every value carries what is known to differ.
"""

from typing import NamedTuple

from comen_jax.report import paper

# Our row -> its name in the paper's tables.
IN_PAPER = {
  "deepall": "DeepAll",
  "jigen": "JiGen",
  "mmld": "MMLD",
  "rsc": "RSC",
  "eisnet": "EISNet",
  "sfa_a": "SFA-A",
  "sagnet": "SagNet",
  "selfreg": "SelfReg",
  "mixstyle_crossdomain": "MixStyle",
  "crossgrad": "CrossGrad",
  "mldg": "MLDG",
  "comen": "COMEN",
}


class Published(NamedTuple):
  """Published accuracies of a method on a data set.

  Attributes:
    source: who published them.
    values: a value per column of `paper.TABLES`; () if only the average is
      known.
    average: the average; None stands for the mean of `values`.
    remark: what differs from the paper's own protocol; "" if nothing is known.
    verified: whether somebody of this project has seen the source. Otherwise
      the values are from memory, and tables say so.
  """

  source: str
  values: tuple[float, ...] = ()
  average: float | None = None
  remark: str = ""
  verified: bool = True

  @property
  def mean(self) -> float:
    """The average as published, else of the columns."""
    if self.average is not None:
      return self.average
    return sum(self.values) / len(self.values)


_DEEPDG = "DeepDG of jindongwang/transferlearning"
_TUNED = "ResNet-18, tuned for each target"


def _deepdg(average: float) -> Published:
  return Published(_DEEPDG, average=average, remark=_TUNED)


def _domainbed(average: float) -> Published:
  return Published(
    "DomainBed", average=average, remark="ResNet-50, Adam, balanced batches"
  )


def _recalled(source: str, *values: float, average: float) -> Published:
  return Published(source, values, average, verified=False)


# (data set, our row) -> what others published.
OTHERS: dict[tuple[str, str], tuple[Published, ...]] = {
  ("digits_dg", "fact"): (
    _recalled("Xu et al., CVPR 2021", 97.9, 65.6, 72.4, 90.3, average=81.5),
  ),
  ("pacs", "deepall"): (
    Published(_DEEPDG, (81.1, 77.9, 95.0, 76.9), 82.8, _TUNED),
    _domainbed(85.5),
  ),
  ("pacs", "fact"): (
    _recalled("Xu et al., CVPR 2021", 85.4, 78.4, 95.2, 79.2, average=84.5),
  ),
  ("pacs", "mixstyle"): (
    _recalled("Zhou et al., ICLR 2021", 82.3, 79.0, 96.3, 73.8, average=82.8),
  ),
  ("pacs", "rsc"): (
    Published("README of DeLightCMU/RSC", (85.2, 81.6, 96.1, 82.7)),
    Published(
      "a user's five runs, issue 2 of DeLightCMU/RSC",
      (79.6, 77.8, 94.5, 77.7),
      82.4,
      "chosen by validation",
    ),
    Published(_DEEPDG, (82.1, 78.0, 94.4, 79.9), 83.6, _TUNED),
    _domainbed(85.2),
  ),
  ("pacs", "selfreg"): (
    Published(
      "README of dnap512/SelfReg",
      (83.2, 79.6, 96.8, 78.9),
      remark="with domain curriculum and averaged weights, which ours lacks",
    ),
  ),
  ("pacs", "sagnet"): (_domainbed(86.3),),
  ("pacs", "vrex"): (_deepdg(83.9), _domainbed(84.9)),
  ("pacs", "groupdro"): (_deepdg(82.2), _domainbed(84.4)),
  ("pacs", "irm"): (_domainbed(83.5),),
  ("pacs", "coral"): (_deepdg(82.8), _domainbed(86.2)),
  ("pacs", "mmd"): (_deepdg(83.2), _domainbed(84.6)),
  ("pacs", "dann"): (_deepdg(83.6), _domainbed(83.6)),
  ("pacs", "mldg"): (
    _recalled(
      "Li et al., ICCV 2019 (Epi-FCR)", 79.5, 77.3, 94.3, 71.5, average=80.7
    ),
    _domainbed(84.9),
  ),
}
NORM_NOTE = (
  "Our rows with BatchNorm stand beside values published with the norm that the"
  " method comes with."
)
UNVERIFIED_NOTE = (
  "Values marked as not verified are from memory: nobody here has seen their"
  " source."
)


def method_of(row: str) -> str:
  """Returns the row whose published values a row of ours stands beside.

  It is the row itself, or the same method without the BatchNorm of ours.
  """
  return row.removesuffix("_bn")


def in_paper(dataset: str, rows: list[str]) -> list[paper.PaperRow]:
  """Returns the paper's rows of DeepAll, of `rows` and of COMEN, in order.

  A method that the paper has in both groups is returned once.
  """
  table = paper.TABLES[dataset]
  methods = {method_of(row) for row in rows}
  wanted = {IN_PAPER[m] for m in methods if m in IN_PAPER}
  wanted |= {paper.DEEPALL, paper.COMEN}
  found = {r.method: r for r in (*table.supervised, *table.unsupervised)}
  # DeepAll first, COMEN last, as the paper has them.
  order = lambda r: (r.method != paper.DEEPALL, r.method == paper.COMEN)
  return sorted((r for n, r in found.items() if n in wanted), key=order)


def others(dataset: str, rows: list[str]) -> list[tuple[str, Published]]:
  """Returns (method, value) of all that others published of `rows`."""
  methods = dict.fromkeys(method_of(row) for row in rows)
  return [(m, value) for m in methods for value in OTHERS.get((dataset, m), ())]
