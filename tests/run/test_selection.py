"""Which epoch is chosen, and the figures of a run."""

import random
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax.metrics import EvalMetrics
from comen_jax.run import selection


def _record(epoch, val, target=None, **more):
  record = {"epoch": epoch, "val_accuracy": val, **more}
  return (
    record
    if target is None
    else {**record, "candidate": True, "target_accuracy": target}
  )


RUN = [
  {"stage": "discover", "nmi_domain": 0.1, "domain_sizes": [9, 1]},
  _record(1, 0.99),  # The best of all, but not up for selection.
  {
    "stage": "encode",
    "nmi_domain": 0.8,
    "nmi_class": 0.2,
    "effective_domains": 1.9,
    "domain_sizes": [6, 4],
  },
  _record(2, 0.7, 0.5),
  _record(3, 0.8, 0.4),
  _record(4, 0.8, 0.3),
  _record(5, 0.6, 0.9),
  _record(6, 0.75, 0.6),
]


TESTED = {4: 0.3, 6: 0.6}


def test_without_the_oracle_only_two_epochs_are_tested():
  run = [dict(r) for r in RUN]
  for record in run:
    record.pop("target_accuracy", None)
  figures = selection.figures_of(run, TESTED)
  assert figures["target_accuracy"] == 0.3
  assert figures["target_accuracy_last"] == 0.6
  assert figures["target_accuracy_oracle"] is None


def test_the_best_validation_accuracy_is_chosen_and_of_equals_the_later():
  assert selection.best(RUN)["epoch"] == 4


def test_only_candidates_are_chosen():
  assert selection.best(RUN[:4])["epoch"] == 2


def test_the_target_has_no_say_in_what_is_chosen():
  rng = random.Random(0)
  for _ in range(20):
    run = [dict(r) for r in RUN]
    for record in run:
      if "target_accuracy" in record:
        record["target_accuracy"] = rng.random()
    assert selection.best(run)["epoch"] == 4
    assert selection.figures_of(run, TESTED)["selected_epoch"] == 4


def test_figures_under_each_rule():
  figures = selection.figures_of(RUN, TESTED)
  assert figures["selected_epoch"] == 4
  assert figures["val_accuracy"] == 0.8
  assert figures["val_accuracy_last"] == 0.75
  assert figures["target_accuracy"] == 0.3
  assert figures["target_accuracy_last"] == 0.6
  assert figures["target_accuracy_oracle"] == 0.9


def test_latent_figures_are_of_the_last_report():
  figures = selection.figures_of(RUN, TESTED)
  assert figures["nmi_domain"] == 0.8
  assert figures["nmi_class"] == 0.2
  assert figures["effective_domains"] == 1.9
  assert figures["domain_sizes"] == [6, 4]


def test_one_report_is_not_filled_up_from_an_earlier_one():
  later = {"nmi_class": 0.3, "effective_domains": 1.5, "domain_sizes": [5, 5]}
  figures = selection.figures_of([*RUN[:3], later, *RUN[3:]], TESTED)
  assert figures["nmi_class"] == 0.3
  assert figures["nmi_domain"] is None  # One true domain: it has none.


def test_without_a_report_there_are_no_latent_figures():
  figures = selection.figures_of(RUN[3:], TESTED)
  latent = ("nmi_domain", "nmi_class", "effective_domains", "domain_sizes")
  assert [figures[name] for name in latent] == [None] * 4


def test_ranks_order_epochs_as_best_does():
  rng = np.random.default_rng(0)
  count = 40
  for _ in range(50):
    correct = rng.integers(0, count + 1, 12)
    if rng.random() < 0.5:  # Ties.
      correct = np.minimum(correct, np.sort(correct)[6])
    ranks, records = [], []
    for epoch, right in enumerate(correct):
      accuracy = SimpleNamespace(
        total=np.float32(right), count=np.float32(count)
      )
      values = SimpleNamespace(accuracy=accuracy)
      ranks.append(selection.rank(values, epoch))
      records.append(_record(epoch + 1, selection.accuracy(values), 0.0))
    assert selection.best(records)["epoch"] == np.argmax(ranks) + 1
    assert len(set(ranks)) == len(ranks)


def test_one_more_right_answer_outweighs_any_number_of_epochs():
  values = lambda total: SimpleNamespace(accuracy=SimpleNamespace(total=total))
  assert selection.rank(values(11.0), 0) > selection.rank(values(10.0), 9999)
  assert selection.rank(values(10.0), 9999) > selection.rank(values(10.0), 9998)


def test_accuracy_is_of_the_answers_that_count():
  values = EvalMetrics.single_from_model_output(
    logits=jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]),
    labels=jnp.array([0, 0, 0, 1], jnp.int32),
    loss=jnp.zeros(4),
    mask=jnp.array([1.0, 1.0, 1.0, 0.0]),
  )
  assert selection.accuracy(values) == pytest.approx(2 / 3)
  assert selection.rank(values, 0) == 2
