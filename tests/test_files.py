"""Files written by rename, and files of JSON lines."""

import json

import pytest

from comen_jax import files
from comen_jax.errors import UserError

A, B, C = ({"name": n, "text": "é\u2028 {"} for n in "abc")


def lines(*values):
  return "".join(json.dumps(v, ensure_ascii=False) + "\n" for v in values)


def write(folder, text):
  place = folder / "log.jsonl"
  place.write_bytes(text if isinstance(text, bytes) else text.encode())
  return place


def names(folder):
  return [path.name for path in folder.iterdir()]


def test_a_draft_becomes_the_file_when_it_is_complete(tmp_path):
  place = tmp_path / "a.png"
  place.write_text("old")
  with files.draft(place) as path:
    path.write_text("new")
    assert place.read_text() == "old"
    assert path.parent == tmp_path and path.suffix == ".png"
  assert place.read_text() == "new"
  assert names(tmp_path) == ["a.png"]


def test_a_draft_that_fails_leaves_the_old_file(tmp_path):
  place = tmp_path / "a.txt"
  place.write_text("old")
  with pytest.raises(RuntimeError), files.draft(place) as path:
    path.write_text("half")
    raise RuntimeError
  assert place.read_text() == "old"
  assert names(tmp_path) == ["a.txt"]


def test_what_is_written_is_read_and_no_draft_is_left(tmp_path):
  files.write_json(tmp_path / "a.json", {"b": 1, "a": [2]})
  files.write_text(tmp_path / "a.txt", "±")
  text = (tmp_path / "a.json").read_text()
  assert text == '{\n  "a": [\n    2\n  ],\n  "b": 1\n}\n'
  assert (tmp_path / "a.txt").read_text("utf-8") == "±"
  assert sorted(names(tmp_path)) == ["a.json", "a.txt"]


@pytest.mark.parametrize("text", ["", '{"a', "[1]"])
def test_a_file_that_is_no_json_object_is_an_error(tmp_path, text):
  with pytest.raises(UserError, match=r"log\.jsonl is not"):
    files.read_json(write(tmp_path, text))
  assert files.read_json(write(tmp_path, json.dumps(A))) == A


def test_lines_are_read_in_order_and_empty_ones_skipped(tmp_path):
  place = write(tmp_path, "\n" + lines(A) + "\n\n" + lines(B) + "\n")
  assert files.read_jsonl(place) == [A, B]
  assert files.numbered_jsonl(place) == [(2, A), (5, B)]
  assert files.read_jsonl(write(tmp_path, "")) == []


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_last_line_that_was_cut_off_is_skipped(tmp_path, end):
  whole = lines(A).encode()
  for left in range(1, len(whole) - 1):  # Also in the middle of a letter.
    place = write(tmp_path, lines(B).encode() + whole[:left] + end.encode())
    assert files.read_jsonl(place) == [B]


def test_a_last_line_that_lacks_only_its_line_break_is_read(tmp_path):
  assert files.read_jsonl(write(tmp_path, lines(A, B)[:-1])) == [A, B]


@pytest.mark.parametrize("bad", ['{"a', "\x00\x00", "[1, 2]", "3"])
def test_a_bad_line_before_the_last_is_an_error_with_its_number(tmp_path, bad):
  place = write(tmp_path, lines(A) + bad + "\n" + lines(C))
  with pytest.raises(UserError, match=r"log\.jsonl:2 is not") as error:
    files.read_jsonl(place)
  assert "\n" not in str(error.value)


def test_a_last_line_that_is_no_object_is_an_error(tmp_path):
  with pytest.raises(UserError, match=r"log\.jsonl:2 is not a JSON object"):
    files.read_jsonl(write(tmp_path, lines(A) + "[1]\n"))


@pytest.mark.parametrize(
  ("before", "after"),
  [
    ("", lines(C)),
    (lines(A, B), lines(A, B, C)),
    (lines(A, B)[:-1], lines(A, B, C)),  # Only the line's end is missing.
    (lines(A, B)[:-5], lines(A, C)),  # The last line is cut off.
    (lines(A)[:4], lines(C)),
  ],
)
def test_a_record_is_appended_after_the_last_complete_line(
  tmp_path, before, after
):
  place = write(tmp_path, before)
  files.append_jsonl(place, C)
  want = [json.loads(line) for line in after.split("\n") if line]
  assert files.read_jsonl(place) == want
  assert place.read_bytes().endswith(b"\n")


def test_the_first_record_makes_the_file(tmp_path):
  files.append_jsonl(tmp_path / "new.jsonl", A)
  assert files.read_jsonl(tmp_path / "new.jsonl") == [A]
