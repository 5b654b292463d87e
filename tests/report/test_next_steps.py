"""The commands that a report proposes."""

import pytest

from comen_jax.report import next_steps

from .helpers import record


def commands(*records):
  (table,) = next_steps.of(list(records)).tables
  return [row[1].text for row in table.rows]


def test_one_run_is_compared_by_a_sweep_of_the_same_settings():
  command = (
    "python -m comen_jax.main --config configs/digits.py --config.epochs=10"
    " '--config.stage_shares=(0.2, 0.3, 0.5)' --config.seed=4 --config.data_dir"
    " 'my data' --config.target=svhn --workdir runs/x"
  )
  found = commands(record(provenance={"command": command}))
  assert found[0] == (
    "python -m comen_jax.sweep --config configs/digits.py --config.epochs=10"
    " '--config.stage_shares=(0.2, 0.3, 0.5)' --config.data_dir 'my data'"
    " --workdir W --targets=all --seeds=0,1,2"
    " --methods=deepall,deepall_bn,comen"
  )


@pytest.mark.parametrize(
  ("row", "flags", "kept", "proposed"),
  [
    ("mixstyle_bn", "--config.norm=batch", "", "mixstyle_bn"),
    (
      "mixstyle (norm=batch, alpha=0.4)",
      "--config.norm=batch --config.mixstyle.alpha=0.4",
      "--config.mixstyle.alpha=0.4 ",
      "mixstyle_bn",
    ),
    ("deepall_bn_randconv", "--config.augment=randconv", "", None),
    ("fact", "--config.augment=jigen", "--config.augment=jigen ", "fact"),
    ("mine", "", "", "mine"),
  ],
)
def test_the_proposed_row_has_the_norm_and_pictures_of_the_run(
  row, flags, kept, proposed
):
  command = f"python -m comen_jax.main --config C {flags} --config.method=x"
  found = commands(record(row, provenance={"command": command}))
  assert found[0] == (
    f"python -m comen_jax.sweep --config C {kept}--workdir W --targets=all"
    f" --seeds=0,1,2 --methods=deepall,deepall_bn,comen,{proposed or row}"
  )


@pytest.mark.parametrize(
  ("row", "has_row"),
  [
    ("comen", True),
    ("fact (strength=0.5)", True),
    ("mixstyle (norm=batch, alpha=0.4)", True),
    ("fact (norm=none)", False),
    ("comen (norm=batch, protogr=False)", False),
    ("deepall (norm=sdnorm)", False),
  ],
)
def test_a_run_that_no_row_describes_is_said_to_have_none(row, has_row):
  (table,) = next_steps.of([record(row)]).tables
  assert ("(no row of a sweep" in table.rows[0][0].text) != has_row


def test_the_network_of_best_source_validation_is_proposed(tmp_path):
  made = []
  for seed, accuracy in enumerate((0.5, 0.9, 0.7)):
    folder = tmp_path / str(seed)
    (folder / "checkpoints").mkdir(parents=True)
    made.append(
      record(seed=seed, val_accuracy=accuracy)._replace(folder=folder)
    )
  (found,) = [c for c in commands(*made) if "predict" in c]
  assert str(tmp_path / "1") in found


def test_a_command_that_cannot_be_read_is_left_to_the_reader():
  for command in ("", "python -c 'unclosed"):
    found = commands(record(provenance={"command": command}))
    assert "comen_jax.sweep --config CONFIG --workdir W" in found[0]


def test_more_seeds_are_proposed_only_where_there_is_one():
  one = commands(record(seed=0), record("deepall", seed=0))
  assert any("comen_jax.sweep" in command for command in one)
  two = commands(record(seed=0), record(seed=1))
  assert not any("comen_jax.sweep" in command for command in two)


def test_a_run_with_checkpoints_can_predict(tmp_path):
  run = record()._replace(folder=tmp_path / "a run")
  assert not any("predict" in command for command in commands(run))
  (tmp_path / "a run" / "checkpoints").mkdir(parents=True)
  (found,) = [c for c in commands(run) if "predict" in c]
  assert found == (
    f"python -m comen_jax.predict --run '{tmp_path}/a run' IMAGES"
  )
