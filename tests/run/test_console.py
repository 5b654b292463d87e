"""What a run says beside its progress."""

import pathlib
import sys

import pytest
import terminals

from comen_jax.run import console, next_commands

FOUND = {
  "domain_sizes": [1704, 1756, 1640], "effective_domains": 3.0,
  "nmi_domain": 0.936, "nmi_class": 0.0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_explained(monkeypatch):
  monkeypatch.setattr(console, "_explained", set())


def test_nmi_is_explained_once_before_it_appears(capsys):
  console.latent_domains(FOUND)
  console.latent_domains(FOUND)
  first, second, third = capsys.readouterr().out.splitlines()
  assert first.startswith("  NMI: ")
  assert second == third == (
    "latent domains: sizes 1704, 1756, 1640; effective number 3.00;"
    " NMI: true domain 0.94, class 0.00"
  )  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_terminal_wraps_between_words(width, monkeypatch):
  terminal = terminals.use(monkeypatch, width)
  path = "/a/" + "long_name/" * 20
  console.latent_domains(FOUND)
  console.warn("something " * 30)
  console.say(console.fields({"a": "short", "name": "text " * 40 + path}))
  lines = terminal.lines()
  assert path in [line.strip() for line in lines]  # A copy of it works.
  assert all(len(line) <= width for line in lines if path not in line)
  words = " ".join(lines).split()
  assert words.count("something") == 30 and words.count("text") == 40


def test_the_commands_name_this_python_and_short_paths(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "executable", f"{tmp_path}/.venv/bin/python")
  run = pathlib.Path("runs") / "it's here"
  (run / "examples").mkdir(parents=True)
  assert next_commands.of(run) == {
    "page": """.venv/bin/python -m comen_jax.report 'runs/it'"'"'s here'""",
    "predict": ".venv/bin/python -m comen_jax.predict --run"
    """ 'runs/it'"'"'s here' 'runs/it'"'"'s here/examples'""",
  }
  assert next_commands.of(tmp_path / run) == next_commands.of(run)


def test_a_page_that_was_made_is_named(tmp_path):
  page = tmp_path / "report" / "index.html"
  page.parent.mkdir()
  page.touch()
  assert next_commands.of(tmp_path) == {"page": str(page)}
