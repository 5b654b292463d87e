"""What imports what: the order in data/__init__.py, and light packages."""

import ast
import pathlib
import re

import comen_jax.data
from data.helpers import start_python

DATA = pathlib.Path(comen_jax.data.__file__).parent
LIGHT = """
import sys
from comen_jax.data.benchmarks import BENCHMARKS
from comen_jax.data.mini_digits import CLASSES, DEFAULT_TARGET, DOMAINS
assert "pacs" in BENCHMARKS and DEFAULT_TARGET in DOMAINS and CLASSES
heavy = "jax", "flax", "tensorflow_datasets", "sklearn", "matplotlib"
print(*(name for name in heavy if name in sys.modules))
from comen_jax.data import registry
print(*(name for name in heavy if name in sys.modules))
"""


def order(folder):
  """Names of the files and folders that a folder's docstring lists."""
  text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
  return re.findall(r"^  (\w+)(?:\.py|/) ", text, re.MULTILINE)


def imported(file):
  """Full names of all that a file imports from comen_jax."""
  for node in ast.walk(ast.parse(file.read_text())):
    if isinstance(node, ast.ImportFrom) and node.module.startswith("comen_jax"):
      for alias in node.names:
        yield f"{node.module}.{alias.name}."


def check(folder, package):
  names = order(folder)
  for above, name in enumerate(names):
    place = folder / name
    files = place.rglob("*.py") if place.is_dir() else [folder / f"{name}.py"]
    for file in files:
      for target in imported(file):
        for upper in names[:above]:
          assert not target.startswith(f"{package}.{upper}."), (file, target)
  return names


def test_imports_flow_down_the_lists_of_the_docstrings():
  names = check(DATA, "comen_jax.data")
  there = {p.stem for p in DATA.glob("*.py")} - {"__init__"}
  folders = {p.parent.name for p in DATA.glob("*/__init__.py")}
  assert set(names) == there | folders
  names = check(DATA / "ingest", "comen_jax.data.ingest")
  assert {*names, "__init__"} == {p.stem for p in DATA.glob("ingest/*.py")}


def test_names_of_data_sets_import_no_heavy_library():
  out, err = start_python(["-c", LIGHT]).communicate(timeout=60)
  assert (out, err) == ("\n\n", "")
