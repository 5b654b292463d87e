"""The whole story on tiny pictures, on a mesh of eight CPU devices."""

import collections
import json
import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from conftest import make_tiny_config

from comen_jax import metrics, sharding, steps, train
from comen_jax.errors import UserError
from comen_jax.experiment import build
from comen_jax.predict import __main__ as predict
from comen_jax.run.checkpointing import Checkpoints
from comen_jax.run.workdir import Workdir
from comen_jax.train_state import TrainState

FILES = ("config.json", "metrics.jsonl", "result.json", "analysis.npz")
KEYS = (
  "target_accuracy", "target_accuracy_last", "target_accuracy_oracle",
  "val_accuracy", "selected_epoch", "nmi_domain", "nmi_class",
  "effective_domains",
)  # fmt: skip


class KilledError(Exception):
  pass


def make_experiment(config, devices=None):
  return build(config, shardings=sharding.make(devices))


def read_log(path):
  lines = (path / "metrics.jsonl").read_text().splitlines()
  records = [json.loads(line) for line in lines]
  for record in records:
    del record["seconds"]
  return records


class Finished(NamedTuple):
  """A run that was never stopped.

  Attributes:
    config: config of the run.
    path: folder of the run.
    measured: figures that the run returned.
    states: state after each number of units of work, as numpy arrays.
  """

  config: Any
  path: pathlib.Path
  measured: dict[str, Any]
  states: dict[int, TrainState]


@pytest.fixture(scope="module")
def finished(tiny_digits_dg, tmp_path_factory):
  config = make_tiny_config(tiny_digits_dg)
  config.logging.tensorboard = config.oracle = True
  path = tmp_path_factory.mktemp("finished") / "run"
  states = {}
  save = Checkpoints.save

  def keep(self, units, state, rank):
    # Copies: the next step reuses the memory of this state.
    states[units] = jax.tree.map(np.array, state)
    save(self, units, state, rank)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(Checkpoints, "save", keep)
    measured = train.train_and_evaluate(config, str(path))
  return Finished(config, path, measured, states)


def test_run_writes_its_files_and_returns_what_it_measured(finished):
  _, path, measured, _ = finished
  for name in (*FILES, "confusion.png", "latent_domains.png"):
    assert (path / name).stat().st_size > 0, name
  assert list(path.glob("events.out.tfevents*"))
  result = json.loads((path / "result.json").read_text())
  assert result["measured"] == measured
  assert all(measured[key] is not None for key in KEYS)
  assert measured["dataset"] == "digits_dg"
  assert measured["target_images"] == 160
  stages = [(r["stage"], r["kind"]) for r in read_log(path)]
  assert stages == [
    *[("warmup", "epoch")] * 2,
    ("discover", "prepare"),
    *[("discover", "epoch")] * 2,
    ("encode", "prepare"),
    *[("encode", "epoch")] * 2,
  ]


def test_it_learns_the_classes_and_finds_the_domains(finished):
  measured = finished.measured
  assert measured["val_accuracy"] > 0.9
  assert measured["effective_domains"] > 2
  assert measured["nmi_domain"] > 0.5 > measured["nmi_class"]


def test_the_oracle_tests_every_candidate_and_agrees_with_the_final_test(
  finished,
):
  _, path, measured, _ = finished
  found = {
    r["epoch"]: r["target_accuracy"]
    for r in read_log(path)
    if r.get("candidate")
  }
  assert len(found) > 1
  assert found[measured["selected_epoch"]] == measured["target_accuracy"]
  assert found[max(found)] == measured["target_accuracy_last"]
  assert max(found.values()) == measured["target_accuracy_oracle"]


def test_analysis_agrees_with_the_result(finished):
  _, path, measured, _ = finished
  with np.load(path / "analysis.npz") as arrays:
    confusion = arrays["confusion"]
    assert np.trace(confusion) / confusion.sum() == pytest.approx(
      measured["target_accuracy"]
    )
    assert arrays["prototypes"].shape == (3, 10, 64)
    assert len(arrays["features"]) == len(arrays["class"]) <= 2000
    # Both count all source images, by the domains that were trained with.
    counts = arrays["contingency"]
    assert counts.sum() == 480
    assert counts.sum(axis=1).tolist() == measured["domain_sizes"]
    np.testing.assert_allclose(arrays["probs"].sum(axis=1), 1, atol=1e-6)


def test_predict_is_right_as_often_as_the_run_says(
  finished, tiny_digits_dg, capsys
):
  _, path, measured, _ = finished
  target = tiny_digits_dg / "digits_dg" / "mnist_m"
  assert predict.main(["--run", str(path), "--json", str(target)]) == 0
  found = json.loads(capsys.readouterr().out)
  right = [f["class"] == f["picture"].split("/")[-2] for f in found]
  assert len(right) == 160
  assert np.mean(right) == pytest.approx(measured["target_accuracy"])


def test_finished_run_says_so_and_changes_nothing(finished, capsys):
  config, path, measured, _ = finished
  before = {f: (path / f).read_bytes() for f in FILES}
  assert train.train_and_evaluate(config, str(path)) == measured
  assert "is finished" in capsys.readouterr().out
  assert before == {f: (path / f).read_bytes() for f in FILES}


def test_cut_off_run_resumes_to_the_same_result(
  finished, tmp_path, monkeypatch
):
  """Stops five starts of a run: in each stage and in both prepares.

  Each stop comes after a unit was logged and before its checkpoint is saved,
  so the next start does that unit again: 1 and 7 are the second epoch of a
  stage, 3 is a first one, 2 and 5 are prepares.
  """
  config, path, measured, _ = finished
  save = Checkpoints.save
  for unit in (1, 2, 3, 5, 7):

    def killed(self, units, state, rank, last=unit + 1):
      if units == last:
        self.wait()
        raise KilledError
      save(self, units, state, rank)

    with monkeypatch.context() as patch:
      patch.setattr(Checkpoints, "save", killed)
      with pytest.raises(KilledError):
        train.train_and_evaluate(config, str(tmp_path / "run"))
    assert read_log(tmp_path / "run") == read_log(path)[: unit + 1]
  assert train.train_and_evaluate(config, str(tmp_path / "run")) == measured
  assert read_log(tmp_path / "run") == read_log(path)


def test_other_config_is_refused_and_nothing_is_touched(finished):
  config, path, *_ = finished
  before = {f: (path / f).read_bytes() for f in FILES}
  other = config.copy_and_resolve_references()
  other.num_domains = 4
  with pytest.raises(UserError, match="num_domains was 3, now 4"):
    train.train_and_evaluate(other, str(path))
  assert before == {f: (path / f).read_bytes() for f in FILES}


def test_one_and_eight_devices_compute_the_same_losses(
  finished, tiny_config, monkeypatch
):
  """Compares four steps of each stage from one state; each is traced once."""
  traces = collections.Counter()
  original = steps.train_step

  def counted(state, batch, key, *, loss, tx, scales, views):
    traces[loss] += 1
    return original(
      state, batch, key, loss=loss, tx=tx, scales=scales, views=views
    )

  monkeypatch.setattr(steps, "train_step", counted)
  # A ReLU whose input is within rounding of 0 may flip, and with it one of 48
  # images' gradients; at the full rate four steps blow that up past 1e-4.
  tiny_config.learning_rate = 0.01
  one = make_experiment(tiny_config, jax.devices()[:1])
  eight = make_experiment(tiny_config, jax.devices())
  assert eight.shardings.mesh.size == 8
  # The states before the first epoch of each stage.
  starts = (
    jax.device_get(eight.init()),
    finished.states[3],
    finished.states[6],
  )
  for number, start in enumerate(starts):
    losses = []
    for experiment in (one, eight):
      now = jax.device_put(start, experiment.shardings.replicated)
      step = experiment.train_steps[number]
      batches = list(experiment.train_batches(number))[:4]
      values = []
      for batch in batches:
        now, metrics = step(now, batch, experiment.key)
        values.append(jax.device_get(metrics))
      assert traces[experiment.method.stages[number].loss] == 1
      losses.append(values)
    for a, b in zip(*losses):
      assert a.keys() == b.keys()
      for name in a:
        # An entropy near 0 is a sum of rounding errors: it has no digits to
        # agree in.
        np.testing.assert_allclose(
          b[name], a[name], rtol=1e-4, atol=1e-6, err_msg=name
        )


def test_branches_are_equal_in_warmup(finished):
  state = finished.states[2]
  norm = state.params["backbone"]["norm2"]
  stats = state.batch_stats["norm2"]
  for branches in (*norm.values(), *stats.values()):
    assert np.abs(branches[0]).max() > 0
    np.testing.assert_array_equal(branches[0], branches[1])
    np.testing.assert_array_equal(branches[0], branches[2])


def test_predictor_and_latent_domains_are_frozen_in_encode(finished):
  experiment = make_experiment(finished.config)
  discovered = jax.device_put(
    finished.states[5], experiment.shardings.replicated
  )
  prepared, report = experiment.prepare(discovered, 2)
  jax.tree.map(
    np.testing.assert_array_equal, jax.device_get(prepared), finished.states[6]
  )
  before = finished.states[6].params["backbone"]
  after = finished.states[8].params["backbone"]
  jax.tree.map(
    np.testing.assert_array_equal,
    before["domain_predictor"],
    after["domain_predictor"],
  )
  assert (before["conv1"]["kernel"] != after["conv1"]["kernel"]).any()
  domains = finished.states[6].memory.domains
  np.testing.assert_array_equal(domains, finished.states[8].memory.domains)
  # Every source image is labelled, no target image is.
  sources = experiment.sources.rows
  assert (domains[sources] >= 0).all()
  assert (domains[experiment.split.target_rows] == -1).all()
  np.testing.assert_array_equal(
    domains[sources], report.latent.probs.argmax(axis=1)
  )


@pytest.mark.parametrize("norm", ["none", "batch", "sdnorm"])
@pytest.mark.parametrize("protogr", [False, True])
@pytest.mark.parametrize("protoccl", [False, True])
def test_every_ablation_builds_and_steps(tiny_config, norm, protogr, protoccl):
  """Shapes only: each stage's step under `eval_shape`, state in = state out."""
  tiny_config.norm = norm
  tiny_config.comen.protogr, tiny_config.comen.protoccl = protogr, protoccl
  experiment = make_experiment(tiny_config)
  state = jax.eval_shape(experiment.init)
  batch = jax.eval_shape(lambda b: b, next(experiment.train_batches(0)))
  names = [stage.name for stage in experiment.method.stages]
  if norm == "sdnorm":
    assert names == ["warmup", "discover", "encode"]
  else:
    assert names == (["warmup", "encode"] if protogr or protoccl else ["train"])
  assert sum(s.epochs for s in experiment.method.stages) == tiny_config.epochs
  # Without a part only the last stage differs.
  pairs = list(zip(experiment.method.stages, experiment.train_steps))
  for stage, step in pairs if protogr and protoccl else pairs[-1:]:
    after, metrics = jax.eval_shape(step, state, batch, experiment.key)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    jax.tree.map(lambda a, b: (a.shape, a.dtype) == (b.shape, b.dtype) or
                 pytest.fail(f"{a} is not {b}"), after, state)  # fmt: skip
    if stage.name == "encode":
      assert ("loss_protogr" in metrics) == protogr
      assert ("loss_protoccl" in metrics) == protoccl


def test_random_domains_are_uniform_without_sdnorm(tiny_config):
  tiny_config.norm = "none"
  experiment = make_experiment(tiny_config)
  state, report = experiment.prepare(experiment.init(), 1)
  counts = report.latent.probs.sum(axis=0)
  assert counts.sum() == len(experiment.sources.rows)
  assert (counts > 0.25 * counts.sum()).all()
  assert bool(state.memory.prototypes.seen.all())


@pytest.mark.parametrize("norm", ["sdnorm", "none"])
def test_true_domains_label_the_prototypes_and_teach_the_predictor(
  norm, tiny_config
):
  tiny_config.norm, tiny_config.comen.true_domains = norm, True
  experiment = make_experiment(tiny_config)
  assert experiment.method.domain_labels
  state = experiment.init()
  for number, stage in enumerate(experiment.method.stages):
    if stage.prepare:
      state, _ = experiment.prepare(state, number)
  if norm == "sdnorm":
    probs = experiment.outputs(state, experiment.sources.rows).domain_logits
    found = metrics.latent_domains(
      metrics.probabilities(probs),
      experiment.dataset.domains[experiment.sources.rows],
      experiment.dataset.labels[experiment.sources.rows],
    )
    assert found["nmi_domain"] > 0.95
  rows = experiment.sources.rows
  names = np.array(experiment.dataset.domain_names)
  true = names[experiment.dataset.domains[rows]]
  latent = np.array(experiment.split.sources)[state.memory.domains[rows]]
  np.testing.assert_array_equal(latent, true)
  assert (state.memory.domains[experiment.split.target_rows] == -1).all()


def test_domain_labels_are_out_of_reach_unless_declared(tiny_config):
  experiment = make_experiment(tiny_config)
  assert not experiment.method.domain_labels
  with pytest.raises(ValueError, match="does not declare"):
    experiment.sources.true_domains(experiment.sources.rows)


def test_true_domains_need_as_many_latent_ones(tiny_config):
  tiny_config.comen.true_domains, tiny_config.num_domains = True, 2
  with pytest.raises(UserError, match=r"num_domains=2.*num_domains=3"):
    make_experiment(tiny_config)


@pytest.mark.parametrize(
  "method", [pytest.param("deepall", marks=pytest.mark.slow), "deepall_bn"]
)
def test_deepall_chooses_among_as_many_epochs_as_comen(
  method, tiny_config, tmp_path
):
  tiny_config.method, tiny_config.epochs = method, 3
  tiny_config.batch_size = 120  # Three steps in an epoch.
  measured = train.train_and_evaluate(tiny_config, str(tmp_path / "run"))
  assert measured["norm"] == {"deepall": "none", "deepall_bn": "batch"}[method]
  assert measured["nmi_domain"] is None
  records = read_log(tmp_path / "run")
  assert [r["epoch"] for r in records if r.get("candidate")] == [3]
  assert not any("target_accuracy" in r for r in records)
  assert measured["target_accuracy_oracle"] is None


BAD = {
  "target": ("written", "mnist, mnist_m, svhn, syn"),
  "num_domains": (0, "num_domains=0"),
  "batch_size": (100, "100 does not divide over 8 devices"),
  "method": ("comon", "comen, deepall"),
  "norm": ("layer", "none, batch, sdnorm"),
  "stage_shares": ((0.5, 0.5), "sum to 1"),
  "epochs": (2, "epochs=2"),
  "dataset": ("mnist", "digits_dg"),
}


@pytest.mark.parametrize("key", BAD)
def test_bad_value_is_one_line_and_makes_nothing(key, tiny_config, tmp_path):
  value, text = BAD[key]
  with tiny_config.unlocked():
    tiny_config[key] = value
  with pytest.raises(UserError, match=text) as caught:
    train.train_and_evaluate(tiny_config, str(tmp_path / "run"))
  assert "\n" not in str(caught.value)
  assert not (tmp_path / "run").exists()


def test_loss_that_is_not_finite_stops_the_run(tiny_config, tmp_path):
  tiny_config.method, tiny_config.learning_rate = "deepall", 1e30
  named = r"loss is (nan|inf) at step \d \(train, epoch 1\)"
  with pytest.raises(UserError, match=named):
    train.train_and_evaluate(tiny_config, str(tmp_path / "run"))
  run = Workdir(str(tmp_path / "run"), *_identity(tmp_path / "run"))
  assert run.result() is None


def _identity(path):
  config = json.loads((path / "config.json").read_text())
  return config, config.pop("resolved")
