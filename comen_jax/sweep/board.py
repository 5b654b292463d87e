"""Shows the runs that are trained at a time.

On a terminal there is a bar for each job and one for all runs. Without one, a
line per epoch begins with the name of its run.
"""

import sys

from tqdm import tqdm

from comen_jax.run import console

_WIDTH = 40  # Of a run's name; bars of one width stand below each other.


class Board:
  """The bars of a sweep; use it as a context, so that they are closed."""

  def __init__(self, jobs: int, runs: int):
    self._shown = sys.stderr.isatty()
    make = lambda place, **options: tqdm(
      position=place, dynamic_ncols=True, leave=False,
      disable=not self._shown, **options,
    )  # fmt: skip
    self._all = make(jobs, total=runs, desc=f"{'all runs':{_WIDTH}}")
    self._bars = [
      make(job, total=1.0, bar_format="{l_bar}{bar:20}|{postfix}")
      for job in range(jobs)
    ]

  def __enter__(self) -> "Board":
    return self

  def __exit__(self, *_: object) -> None:
    for bar in (*self._bars, self._all):
      bar.close()

  def begin(self, job: int, name: str) -> None:
    """Shows that a job begins a run."""
    if not self._shown:
      return
    bar = self._bars[job]
    bar.reset(total=1.0)
    bar.set_description_str(f"{name[-_WIDTH:]:{_WIDTH}}", refresh=False)
    bar.set_postfix_str("", refresh=True)

  def news(
    self, job: int, name: str, kind: str, text: str, done: float
  ) -> None:
    """Shows what a worker tells; see `console.listen`."""
    if kind == "warning":
      console.warn(f"{name}: {text}")
    elif self._shown:
      bar = self._bars[job]
      bar.n = done
      bar.set_postfix_str(text, refresh=True)
    elif kind == "epoch":
      console.say(f"{name}: {text}")

  def end(self, job: int) -> None:
    """Counts a run that has ended."""
    self._bars[job].set_postfix_str("", refresh=False)
    self._all.update()
    self._all.refresh()
