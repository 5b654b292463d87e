"""Published pictures, in a zip or in the folder it unpacks to: same names."""

import hashlib
import pathlib
import zipfile
import zlib
from collections.abc import Iterator

from comen_jax.errors import UserError


class Archive:
  """Read-only view of `<data_dir>/<name>/` or `<data_dir>/<name>.zip`.

  Names are posix paths relative to the folder, sorted; `read` may be called
  from several threads.
  """

  def __init__(self, path: pathlib.Path):
    self.path = path
    self._zip = None
    if path.is_dir():
      files = (p for p in path.rglob("*") if p.is_file())
      self._members = {p.relative_to(path).as_posix(): p for p in files}
      stamps = ((n, p.stat()) for n, p in self._members.items())
      stamp = [(n, s.st_size, s.st_mtime_ns) for n, s in stamps]
    else:
      try:
        self._zip = zipfile.ZipFile(path)
      except (zipfile.BadZipFile, OSError) as e:
        raise UserError(f"{path} is not a whole zip file: {e}") from e
      self._members = dict(self._inside_top_folder(path.stem))
      stat = path.stat()
      stamp = [(str(path.name), stat.st_size, stat.st_mtime_ns)]
    self.names = sorted(self._members)
    self.fingerprint = hashlib.sha256(repr(sorted(stamp)).encode()).hexdigest()

  def read(self, name: str) -> bytes:
    member = self._members[name]
    if self._zip is None:
      return member.read_bytes()
    try:
      return self._zip.read(member)
    except (zipfile.BadZipFile, zlib.error, EOFError) as e:
      raise UserError(f"{self.path}: {name} is damaged: {e}") from e

  def _inside_top_folder(self, top: str) -> Iterator[tuple[str, str]]:
    for info in self._zip.infolist():
      if not info.is_dir() and not info.filename.startswith("__MACOSX/"):
        yield info.filename.removeprefix(f"{top}/"), info.filename


def find(data_dir: str, name: str, layout: str) -> Archive:
  """The archive `name` in `data_dir`: a folder first, then a zip.

  Args:
    data_dir: what the user gave.
    name: "digits_dg", ...
    layout: what is expected, for the error message.
  """
  root = pathlib.Path(data_dir).expanduser()
  for path in (root / name, root / f"{name}.zip"):
    if path.exists():
      return Archive(path)
  if root.name == name and root.is_dir():
    return Archive(root)
  raise UserError(
    f"data_dir={data_dir} holds no {name}: expected"
    f" {root / name}/{layout} or {root / name}.zip with the same inside"
  )
