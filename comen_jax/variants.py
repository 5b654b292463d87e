"""Named variants of the methods: the rows of the tables, as pure data.

A variant sets the keys that it names and nothing else, so all variants of a
sweep have the same epochs, seeds and batches. Variants without SDNorm use the
backbone's own normalisation (`norm` "own"). Variants named `_bn` have
BatchNorm: they show what it gives alone, and on digits, whose backbone has no
norm, they are the fair rivals of a method that normalises.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from comen_jax.methods.options import OPTIONS, reads, used_blocks

LABELS_MARK = " (uses domain labels)"


class Variant(NamedTuple):
  """One row of a table.

  Attributes:
    title: name that a table prints.
    settings: values of the config, by dotted key.
    latent: whether the number of latent domains M matters.
  """

  title: str
  settings: Mapping[str, Any]
  latent: bool = True


def _comen(title: str, norm: str, protogr: bool, protoccl: bool) -> Variant:
  return Variant(
    title,
    {
      "method": "comen",
      "norm": norm,
      "comen.protogr": protogr,
      "comen.protoccl": protoccl,
    },
  )


def _rival(title: str, method: str) -> Variant:
  """A published method as it comes, with its own norm and options."""
  return Variant(title, {"method": method, "norm": ""}, latent=False)


def _labelled(title: str, method: str) -> Variant:
  """A rival that uses domain labels, which its title says."""
  return _rival(f"{title}{LABELS_MARK}", method)


_COMBINATIONS = {
  "comen_mixstyle": "COMEN + MixStyle",
  "comen_randconv": "COMEN + RandConv's pictures",
  "comen_fact": "COMEN + FACT's pictures",
}
_AUGMENTED = {
  "deepall": "DeepAll",
  "deepall_bn": "DeepAll + BatchNorm",
  "comen": "COMEN",
}
# What FACT and RandConv do to images, as augmentations (`data/recipes.py`).
_AUGMENTATIONS = {
  "amplitude": "amplitude mix",
  "randconv": "random convolutions",
}
VARIANTS = {
  "deepall": Variant("DeepAll", {"method": "deepall", "norm": ""}, False),
  "deepall_bn": Variant(
    "DeepAll + BatchNorm", {"method": "deepall_bn", "norm": ""}, False
  ),
  "sdnorm": _comen("SDNorm", "sdnorm", False, False),
  "protogr": _comen("ProtoGR", "own", True, False),
  "protoccl": _comen("ProtoCCL", "own", False, True),
  "protogr_protoccl": _comen("ProtoGR + ProtoCCL", "own", True, True),
  "sdnorm_protogr": _comen("SDNorm + ProtoGR", "sdnorm", True, False),
  "sdnorm_protoccl": _comen("SDNorm + ProtoCCL", "sdnorm", False, True),
  "comen": _comen("COMEN", "sdnorm", True, True),
  "protogr_protoccl_bn": _comen(
    "ProtoGR + ProtoCCL + BatchNorm", "batch", True, True
  ),
  "comen_true_domains": Variant(
    f"COMEN with true domains{LABELS_MARK}",
    {**_comen("", "sdnorm", True, True).settings, "comen.true_domains": True},
  ),
  # COMEN with what another method does to pictures or feature maps.
  **{
    name: Variant(title, {"method": name, "norm": ""})
    for name, title in _COMBINATIONS.items()
  },
  **{
    f"{method}_{augment}": Variant(
      f"{title} + {change}",
      {"method": method, "norm": "", "augment": augment},
      latent=method == "comen",
    )
    for augment, change in _AUGMENTATIONS.items()
    for method, title in _AUGMENTED.items()
    if f"{method}_{augment}" not in _COMBINATIONS
  },
  # Rivals without domain labels.
  "mixstyle": _rival("MixStyle", "mixstyle"),
  "mmld": Variant("MMLD", {"method": "mmld", "norm": ""}),
  "rsc": _rival("RSC", "rsc"),
  "sfa_s": _rival("SFA-S (our reading)", "sfa_s"),
  "sfa_a": _rival("SFA-A (our reading)", "sfa_a"),
  "fact": _rival("FACT", "fact"),
  "sagnet": _rival("SagNet", "sagnet"),
  "selfreg": _rival("SelfReg", "selfreg"),
  "jigen": _rival("JiGen", "jigen"),
  "randconv": _rival("RandConv", "randconv"),
  "eisnet": _rival("EISNet", "eisnet"),
  # Rivals with domain labels.
  "mixstyle_crossdomain": _labelled(
    "MixStyle across domains", "mixstyle_crossdomain"
  ),
  "vrex": _labelled("VREx", "vrex"),
  "irm": _labelled("IRM", "irm"),
  "groupdro": _labelled("GroupDRO", "groupdro"),
  "coral": _labelled("CORAL", "coral"),
  "mmd": _labelled("MMD", "mmd"),
  "dann": _labelled("DANN", "dann"),
  "mldg": _labelled("MLDG", "mldg"),
  "crossgrad": _labelled("CrossGrad", "crossgrad"),
}

# The norm that an empty `norm` stands for, if it is not the backbone's own;
# METHODS has the same values.
_PRESET_NORMS = {
  **dict.fromkeys(("comen", *_COMBINATIONS), "sdnorm"),
  **dict.fromkeys(("deepall_bn", "sagnet"), "batch"),
}


def _with_batch_norm(variant: Variant) -> Variant:
  title, mark, _ = variant.title.partition(LABELS_MARK)
  settings = {**variant.settings, "norm": "batch"}
  return variant._replace(title=f"{title} + BatchNorm{mark}", settings=settings)


VARIANTS |= {
  f"{name}_bn": _with_batch_norm(variant)
  for name, variant in VARIANTS.items()
  if name in OPTIONS and name not in _PRESET_NORMS
}

# Table 5 of the paper from its first row to its last, then our controls.
ABLATION = (
  "deepall", "sdnorm", "protogr", "protoccl", "protogr_protoccl",
  "sdnorm_protogr", "sdnorm_protoccl", "comen",
  "deepall_bn", "protogr_protoccl_bn", "comen_true_domains",
)  # fmt: skip

_COMEN_DEFAULTS = {"protogr": True, "protoccl": True, "true_domains": False}


def name_of(config: Mapping[str, Any]) -> str:
  """Returns the name of the variant that a run's config describes.

  A config that is no variant is named by its method and the settings that
  differ, such as "comen (norm=batch, protogr=False)". It then has a row of its
  own and is never averaged with a variant.

  Args:
    config: nested settings of a run, as in its config.json. The block of a
      method that the run does not use may be absent.
  """
  settings = _relevant(config)
  for name, variant in VARIANTS.items():
    if settings == _relevant(_nested(variant.settings)):
      return name
  method = settings["method"]
  usual = _relevant({"method": method, "norm": ""})
  differing = ", ".join(
    f"{key}={value}"
    for key, value in settings.items()
    if value != usual.get(key)
  )
  return f"{method} ({differing})" if differing else method


def title_of(row: str) -> str:
  """Returns the title of a row, which may be no variant: see `name_of`."""
  name, settings = nearest(row)
  title = VARIANTS[name].title if name in VARIANTS else name
  return f"{title} ({settings})" if settings else title


def nearest(row: str) -> tuple[str, str]:
  """Returns the variant nearest to a row, and the settings that differ.

  "fact (norm=batch, alpha=0.2)" gives ("fact_bn", "alpha=0.2"). A method that
  has no variant keeps its name.
  """
  name, _, settings = row.partition(" ")
  settings = settings.removeprefix("(").removesuffix(")")
  first, _, others = settings.partition(", ")
  normed = VARIANTS.get(f"{name}_bn")
  if first == "norm=batch" and normed and normed.settings["method"] == name:
    return f"{name}_bn", others
  return name, settings


def _relevant(config: Mapping[str, Any]) -> dict[str, Any]:
  """The settings that tell variants apart; what is absent has its default."""
  method = config["method"]
  found = {
    "method": method,
    "norm": config["norm"] or _PRESET_NORMS.get(method, "own"),
  }
  augment = config.get("augment")  # Maybe a mapping: then it has no hash.
  if isinstance(augment, str) and augment in _AUGMENTATIONS:
    found["augment"] = augment
  for block, defaults in _defaults(method).items():
    given = config.get(block, {})
    prefix = "" if block == method else f"{block}."
    found |= {
      prefix + key: _same(given.get(key, value))
      for key, value in defaults.items()
      if reads(method, f"{block}.{key}")
    }
  return found


def _defaults(method: str) -> dict[str, Mapping[str, Any]]:
  """The options that tell runs of a method apart, by block of the config."""
  known = {"comen": _COMEN_DEFAULTS}
  for block in used_blocks(method):
    if block in OPTIONS:
      known[block] = OPTIONS[block]()._asdict()
  return {
    block: known[block] for block in used_blocks(method) if block in known
  }


def _same(value: Any) -> Any:
  """A config.json has lists where a config has tuples."""
  return tuple(value) if isinstance(value, list) else value


def _nested(settings: Mapping[str, Any]) -> dict[str, Any]:
  """Dotted keys become nested dicts."""
  nested: dict[str, Any] = {}
  for key, value in settings.items():
    *blocks, last = key.split(".")
    place = nested
    for block in blocks:
      place = place.setdefault(block, {})
    place[last] = value
  return nested
