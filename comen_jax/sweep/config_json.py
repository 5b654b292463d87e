"""Writes a config as JSON and reads it back, tuples included.

A worker gets its config in this form. A pickle could run code.
"""

from typing import Any

from ml_collections import ConfigDict


def encode(config: ConfigDict) -> dict[str, Any]:
  """Returns values that JSON can hold; `decode` gives the config back."""
  return _encode(config.to_dict())


def decode(value: dict[str, Any]) -> ConfigDict:
  """Returns the config that `encode` was given, locked."""
  return ConfigDict(_decode(value)).lock()


def _encode(value: Any) -> Any:
  """JSON has no tuples, so that dicts and tuples say what they are."""
  if isinstance(value, dict):
    return {"dict": {name: _encode(v) for name, v in value.items()}}
  if isinstance(value, tuple):
    return {"tuple": [_encode(v) for v in value]}
  if isinstance(value, list):
    return [_encode(v) for v in value]
  return value


def _decode(value: Any) -> Any:
  if isinstance(value, list):
    return [_decode(v) for v in value]
  if not isinstance(value, dict):
    return value
  ((kind, content),) = value.items()
  if kind == "tuple":
    return tuple(_decode(v) for v in content)
  return {name: _decode(v) for name, v in content.items()}
