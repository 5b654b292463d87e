"""Writes predictions as a table, JSON or CSV, one by one."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from comen_jax.errors import printable


class Prediction(NamedTuple):
  """The probabilities of one image."""

  picture: str
  probabilities: np.ndarray  # [K]
  domain_probabilities: np.ndarray  # [M]; M = 0 without SDNorm


class Header(NamedTuple):
  """What is known before the first prediction: names and columns."""

  pictures: Sequence[str]
  class_names: Sequence[str]
  num_domains: int

  @property
  def columns(self) -> list[str]:
    domains = [f"d{m}" for m in range(self.num_domains)]
    return ["picture", "class", "probability", *domains]


def as_table(header: Header, rows: Iterable[Prediction]) -> Iterator[str]:
  """Writes aligned columns; probabilities have four digits.

  Control characters in names are escaped. CSV and JSON have ways of their own.
  """
  wide = lambda names, title: max(len(printable(n)) for n in [*names, title])
  widths = (
    wide(header.pictures, "picture"),
    wide(header.class_names, "class"),
    len("probability"),
    *[6] * header.num_domains,
  )
  sides = "<<" + ">" * (1 + header.num_domains)
  formats = [f"{side}{width}" for side, width in zip(sides, widths)]
  line = lambda cells: "  ".join(map(format, cells, formats)) + "\n"
  yield line(header.columns)
  for row in rows:
    picture, name, *numbers = _cells(header, row)
    names = printable(picture), printable(name)
    yield line([*names, *(f"{x:.4f}" for x in numbers)])


def as_csv(header: Header, rows: Iterable[Prediction]) -> Iterator[str]:
  """Writes the same columns with a header line and all digits."""
  yield _csv_line(header.columns)
  for row in rows:
    yield _csv_line(_cells(header, row))


def as_json(header: Header, rows: Iterable[Prediction]) -> Iterator[str]:
  """Writes one array with an object for each image.

  It has the table's columns and the probabilities of all classes. Without
  SDNorm there are no probabilities of latent domains.
  """
  before = "[\n"
  for row in rows:
    picture, best, probability, *domains = _cells(header, row)
    value = {
      "picture": picture,
      "class": best,
      "probability": probability,
      "probabilities": dict(
        zip(header.class_names, _numbers(row.probabilities))
      ),
    }
    if header.num_domains:
      value["domain_probabilities"] = domains
    yield before + json.dumps(value)
    before = ",\n"
  yield "[]\n" if before == "[\n" else "\n]\n"


FORMATS = {"table": as_table, "csv": as_csv, "json": as_json}


def _cells(header: Header, row: Prediction) -> list:
  """The cells of a prediction's line."""
  best = int(row.probabilities.argmax())
  numbers = _numbers(row.probabilities)
  return [
    row.picture,
    header.class_names[best],
    numbers[best],
    *_numbers(row.domain_probabilities),
  ]


def _numbers(values: np.ndarray) -> list[float]:
  """Numbers with the digits of float32; float64 would add false ones."""
  return [float(str(value)) for value in np.float32(values)]


def _csv_line(cells: Sequence) -> str:
  out = io.StringIO()
  csv.writer(out, lineterminator="\n").writerow(cells)
  return out.getvalue()
