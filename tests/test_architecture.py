"""The house is what docs/architecture.md says: order, sizes, light imports."""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "comen_jax"
# A module or folder imports only from its own folder and from those below it.
ORDER = (
  "main", "sweep", "report", "predict", "config_flag", "train",
  "run", "experiment", "config", "ranges", "variants", "methods", "steps",
  "gradients", "optimizer", "train_state", "losses", "prototypes", "metrics",
  "nn", "process", "data", "sharding", "stopping", "rules", "terminal",
  "files", "errors",
)  # fmt: skip
MAX_PARAMETERS = 7


def module_name(path: pathlib.Path) -> str:
  parts = path.relative_to(ROOT).with_suffix("").parts
  return ".".join(p for p in parts if p != "__init__")


FILES = {module_name(p): p for p in sorted(PACKAGE.rglob("*.py"))}


def imports(name: str) -> set[str]:
  """Modules of ours that a module imports, also inside functions."""
  found = set()
  for node in ast.walk(ast.parse(FILES[name].read_text())):
    if isinstance(node, ast.Import):
      found.update(a.name for a in node.names)
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f"{name} has a relative import"
      for alias in node.names:
        inner = f"{node.module}.{alias.name}"
        found.add(inner if inner in FILES else node.module)
  return {m for m in found if m in FILES and m != "comen_jax"}


GRAPH = {name: imports(name) for name in FILES}


def part(name: str) -> str:
  """The module or folder at the top that a module belongs to."""
  return name.split(".")[1]


def test_every_part_has_its_place_in_the_order():
  assert {part(n) for n in FILES if n != "comen_jax"} == set(ORDER)


def test_nothing_is_imported_upwards():
  wrong = [
    f"{name} imports {other}"
    for name, others in GRAPH.items()
    for other in others
    if ORDER.index(part(name)) > ORDER.index(part(other))
  ]
  assert not wrong


def test_no_module_imports_itself_through_others():
  """A package's `__init__` may import its own modules, which name it."""
  done: set[str] = set()

  def visit(name: str, path: tuple[str, ...]) -> None:
    assert name not in path, " -> ".join([*path, name])
    if name not in done:
      for other in GRAPH[name]:
        visit(other, (*path, name))
      done.add(name)

  for name in GRAPH:
    visit(name, ())


def test_the_architecture_page_has_the_same_order():
  text = (ROOT / "docs" / "architecture.md").read_text()
  block = text.split("```")[1]
  listed = [
    line.split()[0].removesuffix("/").removesuffix(".py")
    for line in block.splitlines()
    if line.strip() and not line.startswith(" ")
  ]
  assert tuple(listed) == ORDER


def test_files_are_short():
  lengths = {n: len(p.read_text().splitlines()) for n, p in FILES.items()}
  assert {n: k for n, k in lengths.items() if k > 300} == {}
  assert lengths["comen_jax.train"] <= 250
  assert len(list(PACKAGE.glob("*.py"))) <= 20


@pytest.mark.parametrize("folder", ["comen_jax", "benchmarks"])
def test_no_function_has_too_many_parameters(folder):
  found = []
  for path in (ROOT / folder).rglob("*.py"):
    for node in ast.walk(ast.parse(path.read_text())):
      if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        a = node.args
        names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
        count = len([n for n in names if n not in ("self", "cls")])
        if count > MAX_PARAMETERS:
          found.append(f"{path.name}: {node.name} has {count}")
  assert not found


@pytest.mark.parametrize(
  ("module", "absent"),
  [
    ("comen_jax.report.page", ("jax", "flax", "sklearn", "comen_jax.nn")),
    ("comen_jax.predict.answers", ("sklearn", "tensorflow_datasets")),
    ("comen_jax.train", ("sklearn", "tensorflow_datasets", "matplotlib")),
  ],
)
def test_command_stays_without(module, absent):
  code = (
    f"import sys, {module}; print([m for m in {absent!r} if m in sys.modules])"
  )
  found = subprocess.run(
    [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
  )
  assert found.stdout.strip() == "[]", found.stdout + found.stderr
