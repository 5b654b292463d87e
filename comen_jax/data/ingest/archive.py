"""Reads image files from a zip, or from the folder that it unpacks to."""

import contextlib
import hashlib
import os
import pathlib
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence

from comen_jax.data import disk
from comen_jax.errors import UserError

SUFFIXES = (
  ".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm",
  ".pgm",
)  # fmt: skip
MAX_BYTES = 1 << 28  # Of one file: 256 MiB.
_PART = 1 << 16
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_TAR = re.compile(r"(.+)\.(tar(\..+)?|tgz)")
_UNREADABLE = (
  zipfile.BadZipFile,
  zlib.error,
  OSError,
  EOFError,
  RuntimeError,  # The file is encrypted.
  NotImplementedError,  # Python does not know the compression.
  ValueError,  # A name is not valid in its own encoding.
)


class Archive:
  """A read-only view of a folder or zip; nothing is unpacked.

  It skips hidden files and the files that macOS adds to a zip. Several threads
  may call `read` and `parts`.

  Attributes:
    path: path of the folder or zip.
    names: paths of its files, relative to it, with slashes, sorted.
    folders: relative paths of its folders, empty ones included.
    problems: one line for each file or folder that cannot be used, such as a
      link that leads nowhere; `names` does not have it.
    fingerprint: hash that changes when a file is added, removed or written, or
      when there is a new problem.
  """

  def __init__(self, path: pathlib.Path):
    self.path = path
    self.folders: set[str] = set()
    self.problems: list[str] = []
    self._zip = None
    if path.is_dir():
      self._members, stamp = {}, []
      for name, file, stat in self._walk(path, "", ()):
        self._members[name] = file
        stamp.append((name, *_stamp(stat)))
    else:
      try:
        self._zip = zipfile.ZipFile(path)
        stat = path.stat()
      except _UNREADABLE as e:
        raise UserError(
          f"{path} is not a complete zip file ({e}): get it again"
        ) from e
      self._members = dict(self._entries())
      stamp = [(path.name, *_stamp(stat))]
    for name in sorted(filter(_is_unfit, self._members)):
      del self._members[name]
      self.problems.append(
        f"{path}: the name {name!a} has a control character or is not UTF-8:"
        " rename it"
      )
    self.names = sorted(self._members)
    stamp += [(problem,) for problem in self.problems]
    self.fingerprint = hashlib.sha256(repr(sorted(stamp)).encode()).hexdigest()

  @property
  def pictures(self) -> list[str]:
    """Names of the image files, recognised by their suffix, sorted."""
    return [n for n in self.names if n.lower().endswith(SUFFIXES)]

  def read(self, name: str) -> bytes:
    """Returns the bytes of a file."""
    return b"".join(self.parts(name))

  def parts(self, name: str) -> Iterator[bytes]:
    """Yields the bytes of a file in small parts.

    The size is counted while it is read: what a zip says about it may be wrong.
    """
    size = 0
    for part in self._parts(name):
      size += len(part)
      if size > MAX_BYTES:
        raise UserError(
          f"{self.path}: {name} has more than {MAX_BYTES >> 20} MiB, too much"
          " for an image: make it smaller or remove it"
        )
      yield part

  def _parts(self, name: str) -> Iterator[bytes]:
    member = self._members[name]
    # zipfile unpacks other methods without a limit, whatever the part's size.
    if self._zip and member.compress_type not in _BOUNDED:
      raise UserError(
        f"{self.path}: {name} is packed with a method other than deflate:"
        " unpack the zip and give the folder"
      )
    try:
      with self._zip.open(member) if self._zip else open(member, "rb") as file:
        while part := file.read(_PART):
          yield part
    except _UNREADABLE as e:
      reason = e.strerror if isinstance(e, OSError) else e
      kind = "is damaged" if self._zip else "cannot be read"
      raise UserError(f"{self.path}: {name} {kind}: {reason}") from e

  def _walk(
    self, folder: pathlib.Path, prefix: str, above: tuple[str, ...]
  ) -> Iterator[tuple[str, pathlib.Path, os.stat_result]]:
    """Yields the files below `folder`. Follows links, but not in circles."""
    real = os.path.realpath(folder)
    # A cache inside the data folder would change the data at every start.
    if real in above or real == os.path.realpath(disk.cache_dir()):
      return
    if prefix:
      self.folders.add(prefix[:-1])
    try:
      entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError as e:
      self._add_problem(folder, e)
      return
    for entry in entries:
      name = prefix + entry.name
      if is_hidden(entry.name):
        continue
      try:
        if entry.is_dir():
          yield from self._walk(folder / entry.name, f"{name}/", (*above, real))
        elif entry.is_file():
          yield name, folder / entry.name, entry.stat()
        elif entry.is_symlink():
          raise FileNotFoundError(0, "the link leads nowhere")
      except OSError as e:
        self._add_problem(folder / entry.name, e)

  def _add_problem(self, path: pathlib.Path, error: OSError) -> None:
    text = str(path)
    shown = text if text.isprintable() else ascii(text)
    self.problems.append(f"{shown} cannot be read: {error.strerror}")

  def _entries(self) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """Yields the files of the zip by their cleaned names."""
    for info in self._zip.infolist():
      name = _entry_name(info)
      parts = name.rstrip("/").split("/")
      if name.startswith("/") or ".." in parts or ":" in parts[0]:
        raise UserError(
          f"{self.path}: its entry {info.filename!r} points outside the zip:"
          " get the published file again"
        )
      parts = [p for p in parts if p not in ("", ".")]
      if any(map(is_hidden, parts)):
        continue
      parents = parts if name.endswith("/") else parts[:-1]
      if "/".join(parents) not in self.folders:
        self.folders.update(
          "/".join(parents[: i + 1]) for i in range(len(parents))
        )
      if not name.endswith("/"):
        yield "/".join(parts), info


def find(data_dir: str, names: Sequence[str], advice: str) -> Archive:
  """Finds the folder or zip of a data set.

  Args:
    data_dir: folder that holds the data set's folder or zip, or the data set's
      folder or zip itself.
    names: accepted names, in order of preference; case does not matter.
    advice: what is expected and where to get it, for the error message.
  """
  root = pathlib.Path(data_dir).expanduser()
  if not os.path.exists(root):
    raise UserError(f"data_dir={data_dir} does not exist: {advice}")
  wanted = [n.lower() for n in names]
  if root.is_dir():
    try:
      inside = sorted(root.iterdir())
    except OSError as e:
      raise UserError(f"{data_dir} cannot be read: {e.strerror}") from e
    for name in wanted:
      folders = [p for p in inside if p.name.lower() == name and p.is_dir()]
      zips = [p for p in inside if p.name.lower() == f"{name}.zip"]
      for path in folders + zips:
        return Archive(path)
    if root.absolute().name.lower() in wanted:
      return Archive(root)
    for path in inside:
      tar = _TAR.fullmatch(path.name.lower())
      if tar and tar[1] in wanted:
        raise UserError(f"{path} must be unpacked first: run tar xf {path}")
  elif root.is_file() and root.stem.lower() in wanted:
    return Archive(root)
  raise UserError(f"data_dir={data_dir} holds no {names[0]}: {advice}")


def _stamp(stat: os.stat_result) -> tuple[int, int, int]:
  """Returns size, mtime and ctime. Unpacking may set back mtime, not ctime."""
  return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _is_unfit(name: str) -> bool:
  """Whether a name does not fit on one line of a UTF-8 manifest."""
  if name.isprintable():  # The usual case; the rest is slow.
    return False
  try:
    name.encode()
  except UnicodeEncodeError:
    return True
  return any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in name)


def is_hidden(name: str) -> bool:
  """Whether a file or folder is hidden, and so not part of the data."""
  return name.startswith(".") or name == "__MACOSX"


def _entry_name(info: zipfile.ZipInfo) -> str:
  """Repairs names: some packers omit the UTF-8 flag or write backslashes."""
  name = info.filename
  if not info.flag_bits & 0x800:
    with contextlib.suppress(UnicodeError):
      name = name.encode("cp437").decode("utf-8")
  return name.replace("\\", "/")
