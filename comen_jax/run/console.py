"""What a run says: a header, latent domains, warnings, a table at the end."""

import pathlib
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import clu.parameter_overview
import jax

from comen_jax.experiment import Experiment
from comen_jax.terminal import screen

# Is called with (kind, text, done): "warning", "epoch" or "step", what to show,
# and the share of the run's epochs that are done.
Listener = Callable[[str, str, float], None]
_listeners: list[Listener] = []
_explained: set[str] = set()  # Words that this process has explained.


def listen(listener: Listener) -> None:
  """Has `listener` called with all warnings and progress of this process."""
  _listeners.append(listener)


def is_heard() -> bool:
  """Whether there is a listener."""
  return bool(_listeners)


def tell(kind: str, text: str, done: float) -> None:
  """Calls the listeners of this process."""
  for listener in _listeners:
    listener(kind, text, done)


def say(text: str, style: str = "") -> None:
  """Prints a line for the user, from process 0, above any bar.

  Args:
    text: the line, or lines.
    style: how a terminal shows it, in the words of `rich`, such as "dim".
  """
  if jax.process_index() == 0:
    screen.write(text, style=style)


def warn(text: str) -> None:
  say(_hanging("WARNING: ", text, 2), style="bold")
  tell("warning", text, 0.0)


def explain(word: str, meaning: str) -> None:
  """Says what a word means, the first time that this process shows it."""
  if word not in _explained:
    _explained.add(word)
    say(_hanging(f"  {word}: ", meaning, 4), style="dim")


def introduce(
  experiment: Experiment,
  params: Any,
  workdir: pathlib.Path,
  units_done: int,
  units: int,
) -> None:
  """Says what is about to be trained, on what data and devices."""
  split, dataset = experiment.split, experiment.dataset
  setting, weights = experiment.setting, experiment.weights
  for notice in filter(None, (dataset.notice, experiment.sizes.notice)):
    say(_hanging("", notice, 2))
  counts = f"{len(split.train_rows):,} training, {len(split.val_rows):,} val"
  stages = ", ".join(f"{s.name} {s.epochs}" for s in experiment.method.stages)
  devices = jax.devices()
  lines = {
    "devices": f"{len(devices)} x {devices[0].device_kind}"
    f" ({devices[0].platform}), {jax.process_count()} process(es)",
    "data set": f"{dataset.name} (manifest {dataset.manifest[:12]})",
    "sources": f"{', '.join(split.sources)} ({counts} images, mixed)",
    "target": f"{split.target} ({len(split.target_rows):,} images, unseen)",
    "method": f"{setting['method']}, norm {setting['norm']},"
    f" seed {setting['seed']}; epochs: {stages}",
    "weights": weights.summary() if weights else "none: a random start",
    "workdir": str(workdir),
    "parameters": f"{clu.parameter_overview.count_parameters(params):,}",
  }
  say(fields(lines))
  if experiment.method.domain_labels:
    warn(
      "domain labels are used: compare this run only with others that use them"
    )
  if weights and weights.warning():
    warn(weights.warning())
  if units_done:
    say(f"resuming after {units_done} of {units} units of work")


def latent_domains(found: dict[str, Any]) -> None:
  """Prints one line on the discovered domains."""
  sizes = ", ".join(map(str, found["domain_sizes"]))
  nmi = found.get("nmi_domain")
  with_domain = "" if nmi is None else f"true domain {nmi:.2f}, "
  explain(
    "NMI",
    "how much the latent domains agree with another way to sort the images,"
    " from 0 (as by chance) to 1 (the same); training does not use it",
  )
  say(
    _hanging(
      "latent domains: ",
      f"sizes {sizes}; effective number {found['effective_domains']:.2f};"
      f" NMI: {with_domain}class {found['nmi_class']:.2f}",
      2,
    )
  )


def results(measured: dict[str, Any]) -> None:
  """Prints the short table at the end of a run."""
  percent = lambda name: f"{100 * measured[name]:.2f} %"
  rows = {
    "data set": f"{measured['dataset']}, target {measured['target']}",
    "source validation": f"{percent('val_accuracy')}"
    f" (epoch {measured['selected_epoch']})",
    "target": percent("target_accuracy"),
    "target, last epoch": percent("target_accuracy_last"),
  }
  if measured["target_accuracy_oracle"] is not None:
    rows["target, oracle"] = (
      f"{percent('target_accuracy_oracle')} (chosen by looking at the target)"
    )
  if measured["domain_sizes"]:
    sizes = ", ".join(map(str, measured["domain_sizes"]))
    effective = f"{measured['effective_domains']:.2f}"
    rows["latent domains"] = f"{sizes} images (effective number {effective})"
  if measured["nmi_domain"] is not None:
    rows["NMI, true domain"] = f"{measured['nmi_domain']:.3f}"
  text = fields(rows)
  rule = "-" * max(map(len, text.split("\n")))
  say("\n".join([rule, text, rule]))


def fields(rows: Mapping[str, str]) -> str:
  """Writes names and texts in two columns; long texts go on below."""
  indent = max(map(len, rows)) + 2
  return "\n".join(
    _hanging(f"{name:<{indent}}", text, indent) for name, text in rows.items()
  )


def _hanging(start: str, text: str, indent: int) -> str:
  """Wraps a text at the terminal's width; a path or command stays whole."""
  width = screen.width()
  if not width:
    return start + text
  return textwrap.fill(
    text,
    width,
    initial_indent=start,
    subsequent_indent=" " * indent,
    break_long_words=False,
    break_on_hyphens=False,
  )
