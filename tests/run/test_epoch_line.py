"""The line of an epoch at any width, for any method."""

import pytest

from comen_jax.run import epoch_line

RECORD = {
  "unit": 7, "stage": "encode", "kind": "epoch", "step": 480, "epoch": 7,
  "loss": 0.5123, "loss_cls": 0.4, "loss_protogr": 2.345,
  "domain_agreement": 0.951, "strange_new_metric": 1234.5, "edge_share": 0.25,
  "val_accuracy": 0.982, "val_loss": 0.00004, "candidate": True,
  "seconds": 24.1,
}  # fmt: skip
TAIL = "24 s, 12 min left"


def line(width):
  found = epoch_line.metrics(RECORD)
  return epoch_line.make("encode  7/30", found, TAIL, width)


def test_a_wide_line_has_every_metric_and_the_most_important_first():
  text, shown = line(None)
  assert text == (
    "encode  7/30  val 98.2 %  loss .512  agree 95.1 %  loss_cls .400"
    "  loss_protogr 2.35  strange_new_metric 1234  edge_share 25.0 %"
    f"  val_loss 4.0e-05  {TAIL}"
  )
  assert shown[:2] == ["val_accuracy", "loss"]
  assert set(shown) == {
    n for n, v in RECORD.items() if isinstance(v, float)
  } - {"seconds"}


@pytest.mark.parametrize("width", [45, 60, 80, 100, 120, 160, 200])
def test_a_line_is_cut_to_the_width_from_the_least_important(width):
  text, shown = line(width)
  assert len(text) <= width
  assert text.startswith("encode  7/30") and text.endswith(TAIL)
  assert shown == line(None)[1][: len(shown)]  # A part from the beginning.
  if width >= 60:
    assert "val 98.2 %  loss .512" in text
  if len(shown) < len(line(None)[1]):  # The next one would not have fitted.
    name = line(None)[1][len(shown)]
    short = epoch_line.MEANINGS.get(name, (name,))[0]
    assert width - len(text) < len(f"  {short} 98.2 %")


def test_a_terminal_narrower_than_the_line_cuts_it():
  assert line(20) == ("encode  7/30  24 s, ", [])


@pytest.mark.parametrize(
  ("value", "text"),
  [(0.0, ".000"), (0.5123, ".512"), (0.0004, "4.0e-04"), (-0.25, "-.250"),
   (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (2e6, "2.0e+06"),
   (float("nan"), "nan"), (float("inf"), "inf")],
)  # fmt: skip
def test_numbers_have_three_digits(value, text):
  assert epoch_line.number(value) == text
