"""Full and forbidden disks are one line; other errors stay what they are."""

import errno
import os

import pytest

from comen_jax.errors import UserError
from comen_jax.run import disk_errors

# As Orbax raises it, shortened.
ORBAX = (
  "RESOURCE_EXHAUSTED: Error opening \"zarr\" driver: Error writing\n"
  "\"d/1\": [fd: 5] No space left on device [os_error_code='{}']"
  " [source locations='...']"
)  # fmt: skip


def _caught(error, folder="runs/a"):
  with pytest.raises(UserError) as caught, disk_errors.in_one_line(folder):
    raise error
  text = str(caught.value)
  assert "\n" not in text
  assert caught.value.__cause__ is error
  return text


@pytest.mark.parametrize(
  "error",
  [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EDQUOT, "Disk quota exceeded", "runs/a/metrics.jsonl"),
    ValueError(ORBAX.format(errno.ENOSPC)),
    RuntimeError(ORBAX.format(errno.EDQUOT)),
  ],
)
def test_a_full_disk_is_one_line_that_says_how_to_go_on(error):
  text = _caught(error)
  assert text.startswith("the disk of runs/a")
  assert "is full" in text and "same command goes on" in text


@pytest.mark.parametrize(
  "error",
  [
    OSError(errno.EROFS, "Read-only file system", "runs/a/.lock"),
    PermissionError(errno.EACCES, "Permission denied", "runs"),
    NotADirectoryError(errno.ENOTDIR, "Not a directory", "runs/a/config.json"),
    ValueError(ORBAX.format(errno.EROFS)),
  ],
)
def test_a_folder_that_cannot_be_written_is_one_line(error):
  text = _caught(error)
  assert "cannot be written" in text and "another --workdir" in text
  assert os.strerror(disk_errors._code(error)) in text


@pytest.mark.parametrize(
  "error",
  [
    ValueError("a bug"),
    # A device's memory, not a disk.
    RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes"),
    FileNotFoundError(errno.ENOENT, "No such file", "runs/a/x"),
    PermissionError(errno.EACCES, "Permission denied", "/data/pacs.zip"),
    UserError("the user's"),
  ],
)
def test_other_errors_stay_what_they_are(error):
  with pytest.raises(type(error)) as caught, disk_errors.in_one_line("runs/a"):
    raise error
  assert caught.value is error


def test_a_workdir_that_is_a_file_is_one_line(tmp_path):
  place = tmp_path / "file"
  place.write_text("")

  @disk_errors.reported
  def train(config, workdir):
    os.makedirs(os.path.join(workdir, config), exist_ok=True)

  for workdir, config in ((place, ""), (place / "run", "")):
    with pytest.raises(UserError, match=f"{place}.*cannot be written"):
      train(config, str(workdir))
