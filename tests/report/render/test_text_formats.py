"""Markdown, LaTeX and terminal: whole tables, and no text that is a command."""

import re

import pytest

from comen_jax.report.document import (
  Cell,
  Document,
  Headline,
  Panel,
  Picture,
  Section,
  Table,
)
from comen_jax.report.render import latex, markdown, plain

TABLE = Table(
  "Accuracy (%) of a_b",
  ("", "mnist_m", "Average"),
  (
    (Cell("Ours"),),
    (
      Cell("a|b", bold=True),
      Cell("62.5 ± 0.4", bold=True, numeric=True),
      Cell("", numeric=True),
    ),
    (
      Cell("R&D_50%", muted=True),
      Cell("✓", numeric=True),
      Cell("82.3*", muted=True, numeric=True),
    ),
  ),
  ("* A note of 100 % with_underscore_", "1. no list"),
)


def document(folder, *tables, text=()):
  panels = tuple(Panel(folder / "figures" / n) for n in ("a b.png", "c.png"))
  pictures = (Picture(panels, "What #1 shows"),)
  section = Section("Digits & more", text, tables, pictures)
  return Document("Results_1", ("Lead $1.",), (section,))


def test_headlines_come_before_the_lead(tmp_path):
  whole = document(tmp_path, TABLE)._replace(
    headlines=(Headline("PACS_1", ("+1.0 points.", "One seed.")),)
  )
  text = markdown.render(whole, tmp_path)
  assert "**PACS_1**\n\n- \\+1.0 points.\n- One seed.\n\nLead" in text
  text = latex.render(whole, tmp_path)
  assert "\\paragraph{PACS\\_1} +1.0 points.\\par\nOne seed.\n\nLead" in text


def test_markdown_links_a_folder(tmp_path):
  table = Table("c", ("x", "y"), ((Cell("x"), Cell("../a b", link="../a b")),))
  found = markdown.render(document(tmp_path, table), tmp_path)
  assert rows_of(found)[-1][1] == "[../a b](../a%20b)"


def test_a_long_heading_of_latex_has_lines(tmp_path):
  row = (Cell("a"), Cell("b"))
  for text, lines in (("short", False), ("word " * 40, True)):
    table = Table("c", ("x", "y"), ((Cell(text),), row))
    (first, _) = body(latex.render(document(tmp_path, table), tmp_path))
    assert (r"p{0.7\linewidth}" in first) is lines


def rows_of(text):
  """The cells of a Markdown table's lines."""
  lines = [line for line in text.splitlines() if line.startswith("|")]
  return [[c.strip() for c in re.split(r"(?<!\\)\|", x)[1:-1]] for x in lines]


def test_markdown_in_full(tmp_path):
  assert markdown.render(document(tmp_path, TABLE), tmp_path) == (
    "# Results_1\n\n"
    "Lead \\$1.\n\n"
    "## Digits & more\n\n"
    "**Accuracy (%) of a_b**\n\n"
    "|            |        mnist_m |  Average |\n"
    "| ---------- | -------------: | -------: |\n"
    "| ***Ours*** |                |          |\n"
    "| **a\\|b**   | **62.5 ± 0.4** |          |\n"
    "| *R&D_50%*  |              ✓ | *82.3\\** |\n\n"
    "- \\* A note of 100 % with_underscore\\_\n"
    "- 1\\. no list\n\n"
    "![What \\#1 shows](figures/a%20b.png)\n"
    "![What \\#1 shows](figures/c.png)\n\n"
    "*What \\#1 shows*\n"
  )


@pytest.mark.parametrize(
  ("text", "escaped"),
  [
    ("a|b", r"a\|b"),
    ("mnist_m", "mnist_m"),
    ("_a_", r"\_a\_"),
    ("<b>*x*</b>", r"\<b\>\*x\*\</b\>"),
    ("two\nlines", "two lines"),
    ("&lt; & R&D", "&amp;lt; & R&D"),
    ("back\\slash", r"back\\slash"),
  ],
)
def test_markdown_takes_text_as_text(tmp_path, text, escaped):
  table = Table("c", ("x", "y"), ((Cell(text), Cell("1")),))
  found = markdown.render(document(tmp_path, table), tmp_path)
  assert rows_of(found)[-1] == [escaped, "1"]


def test_every_line_of_a_markdown_table_has_all_columns(tmp_path):
  found = markdown.render(document(tmp_path, TABLE), tmp_path)
  assert {len(cells) for cells in rows_of(found)} == {3}


def body(text):
  """Lines between \\midrule and \\bottomrule."""
  lines = text.splitlines()
  start, stop = lines.index(r"\midrule"), lines.index(r"\bottomrule")
  return lines[start + 1 : stop]


def test_latex_of_a_table(tmp_path):
  text = latex.render(document(tmp_path, TABLE), tmp_path)
  assert r"\begin{tabular}{lrr}" in text
  assert r"\caption{Accuracy (\%) of a\_b}" in text
  assert body(text) == [
    r"\multicolumn{3}{l}{\emph{Ours}} \\",
    r"\textbf{a\textbar{}b} & \textbf{62.5 $\pm$ 0.4} &  \\",
    r"\textcolor{gray}{R\&D\_50\%} & $\checkmark$ &"
    r" \textcolor{gray}{82.3*} \\",
  ]
  assert r"keepaspectratio]{figures/a b.png}" in text
  assert r"\section{Digits \& more}" in text
  assert "Lead \\$1." in text


@pytest.mark.parametrize(
  ("text", "escaped"),
  [
    (r"a\b{c}", r"a\textbackslash{}b\{c\}"),
    ("~^#", r"\textasciitilde{}\textasciicircum{}\#"),
    ("--config", "-{}-config"),
    ("[a]", "{}[a]"),
    ("*", "{}*"),
    ("naïve", "naïve"),
    ("数", r"\texttt{U+6570}"),
    ("a\n\nb", "a b"),
  ],
)
def test_latex_takes_text_as_text(tmp_path, text, escaped):
  table = Table("c", ("x", "y"), ((Cell(text), Cell("1")),))
  found = latex.render(document(tmp_path, table), tmp_path)
  assert body(found) == [rf"{escaped} & 1 \\"]


def test_latex_is_balanced_whatever_the_text(tmp_path):
  nasty = "\\ { } $ & # % _ ~ ^ < > | \" ` ' - -- ± ✓ † é 数 [x] *"
  row = (Cell(nasty, bold=True), Cell(nasty, muted=True))
  table = Table(nasty, (nasty, "y"), (row,), (nasty,))
  text = latex.render(document(tmp_path, table, text=(nasty,)), tmp_path)
  bare = re.sub(r"\\[\\{}$&#%_]", "", text)
  bare = re.sub(r"%\n", "\n", bare)  # The one comment sign that is ours.
  depth = 0
  for c in bare:
    depth += (c == "{") - (c == "}")
    assert depth >= 0
  assert depth == 0
  assert bare.count("$") % 2 == 0
  assert not re.search(r"[#%_~^<>|\"`]", bare.replace(r"\width>", ""))
  begun = re.findall(r"\\begin\{(\w+)\}", text)
  assert sorted(begun) == sorted(re.findall(r"\\end\{(\w+)\}", text))
  (line,) = body(text)
  assert len(re.findall(r"(?<!\\)&", line)) == 1


def test_hashes_can_break_across_lines_of_latex(tmp_path):
  table = Table("c", ("", "Value"), ((Cell("Manifest"), Cell("0123abcd" * 8)),))
  text = latex.render(document(tmp_path, table), tmp_path)
  assert text.count(r"0123abcd\allowbreak{}") == 8
  assert r"p{0.7\linewidth}" in text


def test_long_latex_tables_are_cut_before_a_heading(tmp_path):
  part = ((Cell("Heading"),), *[(Cell("a"), Cell("b"))] * 5)
  table = Table("Long", ("x", "y"), part * 15, ("note",))
  text = latex.render(document(tmp_path, table), tmp_path)
  floats = text.split(r"\begin{table}")[1:]
  assert [f.count(r"\multicolumn") for f in floats] == [6, 6, 3]
  assert [f.count("a & b") for f in floats] == [30, 30, 15]
  assert [r"\caption{Long (continued)}" in f for f in floats] == [
    False, True, True,
  ]  # fmt: skip
  assert [r"\par note" in f for f in floats] == [False, False, True]


def test_a_long_table_without_headings_loses_no_line(tmp_path):
  table = Table("Long", ("x", "y"), ((Cell("a"), Cell("b")),) * 95)
  text = latex.render(document(tmp_path, table), tmp_path)
  assert text.count("a & b") == 95
  assert text.count(r"\begin{table}") == 3


def test_a_table_for_the_terminal():
  assert plain.render(TABLE).splitlines() == [
    "Accuracy (%) of a_b",
    "-" * 28,
    "            mnist_m  Average",
    "-" * 28,
    "Ours",
    "a|b      62.5 ± 0.4",
    "R&D_50%           ✓    82.3*",
    "-" * 28,
    "* A note of 100 % with_underscore_",
    "1. no list",
  ]
