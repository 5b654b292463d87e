"""What a person sees: a header, a bar per stage, a table at the end.

Where there is no terminal, a bar is one plain line per epoch.
"""

import sys
import time
from typing import Any

import clu.parameter_overview
import jax
from tqdm import tqdm


def say(text: str) -> None:
  """A line for the user, from process 0, never through a bar."""
  if jax.process_index() == 0:
    tqdm.write(text, file=sys.stdout)
    sys.stdout.flush()


def warn(text: str) -> None:
  say(f"WARNING: {text}")


def header(params: Any, lines: dict[str, str]) -> None:
  """Devices, data and parameters, before anything takes long."""
  devices = jax.devices()
  lines = {
    "devices": f"{len(devices)} x {devices[0].device_kind}"
    f" ({devices[0].platform}), {jax.process_count()} process(es)",
    **lines,
    "parameters": f"{clu.parameter_overview.count_parameters(params):,}",
  }
  say("\n".join(f"{name:>11}  {text}" for name, text in lines.items()))


class StageBar:
  """Progress of one stage, in steps, with ETA and losses."""

  def __init__(self, name: str, epochs: int, done: int, steps_per_epoch: int):
    self._name, self._epochs = name, epochs
    self._shown = jax.process_index() == 0 and sys.stderr.isatty()
    self._bar = tqdm(
      total=epochs * steps_per_epoch,
      initial=done * steps_per_epoch,
      desc=f"{name:9}",
      unit="step",
      disable=not self._shown,
      dynamic_ncols=True,
    )

  def step(self) -> None:
    self._bar.update()

  def losses(self, metrics: dict[str, Any]) -> None:
    if self._shown:
      self._bar.set_postfix_str(_short(metrics), refresh=False)

  def epoch(self, epoch: int, record: dict[str, Any], eta: float) -> None:
    """One epoch is over; says so in a line if there is no terminal."""
    self.losses(record)
    if not self._shown:
      say(
        f"{self._name} epoch {epoch + 1}/{self._epochs}  {_short(record)}"
        f"  {record['seconds']:.1f} s, ETA {clock(eta)}"
      )

  def close(self) -> None:
    self._bar.close()


def latent_domains(found: dict[str, Any]) -> None:
  """One line on discovered domains."""
  sizes = ", ".join(map(str, found["domain_sizes"]))
  nmi = found.get("nmi_domain")
  with_domain = "" if nmi is None else f" true domain {nmi:.3f},"
  say(
    f"latent domains: sizes {sizes}; effective"
    f" {found['effective_domains']:.2f}; NMI with{with_domain} class"
    f" {found['nmi_class']:.3f} (evaluation only)"
  )


def results(measured: dict[str, Any]) -> None:
  """The short table at the end."""
  percent = lambda name: f"{100 * measured[name]:.2f} %"
  rows = {
    "data set": f"{measured['dataset']}, target {measured['target']}",
    "source validation": f"{percent('val_accuracy')}"
    f" (epoch {measured['selected_epoch']})",
    "target": percent("target_accuracy"),
    "target, last epoch": percent("target_accuracy_last"),
    "target, oracle": f"{percent('target_accuracy_oracle')}"
    " (chosen by looking at the target)",
  }
  if measured["domain_sizes"]:
    sizes = ", ".join(map(str, measured["domain_sizes"]))
    effective = f"{measured['effective_domains']:.2f}"
    rows["latent domains"] = f"{sizes} images (effective number {effective})"
  if measured["nmi_domain"] is not None:
    rows["NMI, true domain"] = f"{measured['nmi_domain']:.3f}"
  width = max(map(len, rows))
  rule = "-" * (width + 2 + max(map(len, rows.values())))
  lines = (f"{name:<{width}}  {text}" for name, text in rows.items())
  say("\n".join([rule, *lines, rule]))


class Eta:
  """Seconds left, from the epochs of this start."""

  def __init__(self, epochs_left: int):
    self._left, self._done, self._start = epochs_left, 0, time.monotonic()

  def tick(self) -> float:
    self._done += 1
    each = (time.monotonic() - self._start) / self._done
    return each * (self._left - self._done)


def clock(seconds: float) -> str:
  minutes, seconds = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  text = f"{minutes:02}:{seconds:02}"
  return f"{hours}:{text}" if hours else text


def _short(metrics: dict[str, Any]) -> str:
  shown = (n for n in metrics if n.startswith("loss") or n in _SHOWN)
  return "  ".join(f"{_SHOWN.get(n, n)} {float(metrics[n]):.3f}" for n in shown)


_SHOWN = {
  "effective_domains": "domains",
  "domain_agreement": "agree",
  "val_accuracy": "val",
}
