"""Options of all methods but COMEN, as pure data: no jax is imported here.

A class has the documented settings of a method. Each field has its type, the
rule for its values and its default in one line:

  probability: Annotated[float, rules.PROBABILITY] = 0.5

Every config has a block of these defaults for each method, so they are flags:
`--config.mixstyle.probability=0.3`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_type_hints

from comen_jax.errors import UserError
from comen_jax.methods.options import label_free, labelled
from comen_jax.rules import Rule

LABEL_FREE: dict[str, type] = {
  "mixstyle": label_free.MixStyle,
  "rsc": label_free.Rsc,
  "sfa_s": label_free.SfaS,
  "sfa_a": label_free.SfaA,
  "mmld": label_free.Mmld,
  "fact": label_free.Fact,
  "sagnet": label_free.SagNet,
  "selfreg": label_free.SelfReg,
  "jigen": label_free.JiGen,
  "randconv": label_free.RandConv,
  "eisnet": label_free.EISNet,
}
LABELLED: dict[str, type] = {  # Methods that use domain labels.
  "vrex": labelled.Vrex,
  "irm": labelled.Irm,
  "groupdro": labelled.GroupDro,
  "coral": labelled.Coral,
  "mmd": labelled.Mmd,
  "dann": labelled.Dann,
  "mixstyle_crossdomain": label_free.MixStyle,
  "mldg": labelled.Mldg,
  "crossgrad": labelled.CrossGrad,
}
OPTIONS = LABEL_FREE | LABELLED
# COMEN with what another method does to pictures or feature maps. The options
# are those of both, in their own blocks.
COMBINATIONS = {
  "comen_mixstyle": ("comen", "mixstyle"),
  "comen_randconv": ("comen", "randconv"),
  "comen_fact": ("comen", "fact"),
}
_PLAIN = ("deepall", "deepall_bn")  # They have no options.
# What a combination reads of its other method's options. The rest belongs to
# what it leaves out: an agreement, a teacher.
_READ = {"randconv": ("mix", "keep"), "fact": ("strength",)}


def blocks() -> dict[str, dict[str, Any]]:
  """The defaults of all methods, one block for each; configs add them."""
  return {name: options()._asdict() for name, options in OPTIONS.items()}


def rules() -> Iterator[tuple[str, Rule]]:
  """Yields the dotted config key and the rule of every option."""
  for name, options in OPTIONS.items():
    for field, hint in get_type_hints(options, include_extras=True).items():
      yield f"{name}.{field}", hint.__metadata__[0]


def used_blocks(method: str) -> tuple[str, ...]:
  """Names of the config blocks that set options of `method`."""
  return COMBINATIONS.get(method, (method,))


def reads(method: str, key: str) -> bool:
  """Whether a method reads a config key, such as "fact.strength".

  Keys outside the blocks of methods are not judged, nor are methods that this
  file does not know.
  """
  block, _, name = key.partition(".")
  if not {block, method} <= {*OPTIONS, *COMBINATIONS, "comen", *_PLAIN}:
    return True
  part = _READ.get(block) if method in COMBINATIONS else None
  return block in used_blocks(method) and (part is None or name in part)


def check_read(given: Iterable[str], methods: Iterable[str]) -> None:
  """Raises UserError at a key that was given and that no method reads."""
  methods = tuple(dict.fromkeys(methods))
  for key in given:
    if not any(reads(method, key) for method in methods):
      raise UserError(
        f"config.{key} is not read by {', '.join(methods)}: leave it out"
      )


def recorded(config: Mapping[str, Any]) -> dict[str, Any]:
  """A run's config without the blocks of methods that it does not use.

  So a run's config.json says nothing of other methods, and does not change when
  a method is added.
  """
  used = used_blocks(config.get("method", ""))
  return {
    key: value
    for key, value in config.items()
    if key not in OPTIONS or key in used
  }
