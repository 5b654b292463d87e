"""report.tex as pdfLaTeX sees it."""

import shutil
import subprocess

import pytest

from comen_jax.report import __main__ as report
from comen_jax.report.document import Document
from comen_jax.report.plots.sections import draw
from comen_jax.report.render import latex

from ..helpers import ALL, LOWER, arrays, drawable, grid, line, log

pytestmark = [
  pytest.mark.slow,
  pytest.mark.skipif(
    shutil.which("pdflatex") is None,
    reason="pdflatex is absent (Debian: texlive-latex-recommended)",
  ),
]


def compiled(folder):
  """Compiles report.tex twice, for its labels, and returns the log."""
  for _ in range(2):
    done = subprocess.run(
      ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"],
      cwd=folder, capture_output=True, text=True, errors="replace",
      timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
  assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")
  return done.stdout


def test_tables_of_a_whole_sweep_compile(tmp_path):
  names = ("comen", "deepall", "deepall_bn", "sdnorm", "odd_$&%#~^\\{}'数é")
  records = [r for n in names for r in grid(n, ALL)]
  records += grid("comen", LOWER, num_domains=4)
  records += grid("comen", {"photo": (0.7,)}, dataset="pacs", epochs=3)
  (tmp_path / "results.jsonl").write_text("".join(map(line, records)))
  report.main([str(tmp_path)])
  said = compiled(tmp_path / "report")
  assert "Undefined" not in said


def test_figures_compile(tmp_path):
  run = drawable(tmp_path, analysis=arrays(), metrics=log(4, 3, 2, 1))
  sections = draw([run], tmp_path / "figures")
  text = latex.render(Document("Figures", (), sections), tmp_path)
  (tmp_path / "report.tex").write_text(text, "utf-8")
  said = compiled(tmp_path)
  assert said.count(".png") >= sum(
    len(p.panels) for s in sections for p in s.pictures
  )
