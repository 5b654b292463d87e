"""Methods by name. A new method is a file here and a line in `METHODS`."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from comen_jax.errors import UserError
from comen_jax.methods import (
  comen,
  crossgrad,
  dann,
  deepall,
  eisnet,
  fact,
  groupdro,
  jigen,
  mixstyle,
  mldg,
  mmld,
  penalties,
  randconv,
  rsc,
  sagnet,
  selfreg,
  sfa,
)
from comen_jax.methods.base import Method, Setup, Task, check_layers
from comen_jax.methods.comen import combined
from comen_jax.methods.options import label_free, labelled, used_blocks


class Entry(NamedTuple):
  """How a method is made.

  Attributes:
    create: (task, options) -> the method.
    options: NamedTuple class of the method's settings, with defaults; that of
      a combination is a tuple of its methods' options.
    norm: normalisation that the method comes with; "own" is the backbone's own
      (none for digits, batch for ResNet).
    norms: normalisations that the method supports.
    backbones: names of the backbones that the method supports; () is all.
    domain_labels: whether training reads true domains; results say so.
    check: (options, setup) raises UserError at what cannot be right. It is
      called before data are read.
    check_images: (options, norm, num_domains, images) raises UserError if the
      number of source images for training is too small. It is called before
      anything is trained.
  """

  create: Callable[[Task, Any], Method]
  options: type
  norm: str = "own"
  norms: tuple[str, ...] = ("none", "batch")
  backbones: tuple[str, ...] = ()
  domain_labels: bool = False
  check: Callable[[Any, Setup], None] = lambda *_: None
  check_images: Callable[[Any, str, int, int], None] = lambda *_: None


_ALL = ("none", "batch", "sdnorm")
_labelled = partial(Entry, domain_labels=True)
_combined = partial(
  Entry,
  options=tuple,
  norm="sdnorm",
  norms=_ALL,
  check=combined.check,
  check_images=combined.check_images,
)
METHODS = {
  "comen": Entry(
    comen.create,
    comen.Options,
    "sdnorm",
    _ALL,
    check=comen.check,
    check_images=comen.check_images,
  ),
  "deepall": Entry(deepall.create, deepall.Options, "own", _ALL),
  "deepall_bn": Entry(deepall.create, deepall.Options, "batch", _ALL),
  "mixstyle": Entry(mixstyle.create, label_free.MixStyle, check=check_layers),
  # After AlexNet's last feature map come hidden layers, not the head.
  "rsc": Entry(
    rsc.create,
    label_free.Rsc,
    backbones=("digits_cnn", "resnet18", "resnet34", "resnet50"),
  ),
  "sfa_s": Entry(sfa.create_s, label_free.SfaS),
  "sfa_a": Entry(sfa.create_a, label_free.SfaA),
  "mmld": Entry(
    mmld.create,
    label_free.Mmld,
    check=check_layers,
    check_images=mmld.check_images,
  ),
  "fact": Entry(fact.create, label_free.Fact),
  "sagnet": Entry(
    sagnet.create,
    label_free.SagNet,
    "batch",
    norms=("batch",),
    backbones=("digits_cnn", "resnet18", "resnet34", "resnet50"),
  ),
  "selfreg": Entry(selfreg.create, label_free.SelfReg),
  "jigen": Entry(jigen.create, label_free.JiGen, check=jigen.check),
  "randconv": Entry(randconv.create, label_free.RandConv),
  "eisnet": Entry(eisnet.create, label_free.EISNet, check=jigen.check),
  "comen_mixstyle": _combined(combined.create_mixstyle),
  "comen_randconv": _combined(combined.create_randconv),
  "comen_fact": _combined(combined.create_fact),
  "vrex": _labelled(penalties.create_vrex, labelled.Vrex),
  "irm": _labelled(penalties.create_irm, labelled.Irm),
  "groupdro": _labelled(groupdro.create, labelled.GroupDro),
  "coral": _labelled(penalties.create_coral, labelled.Coral),
  "mmd": _labelled(penalties.create_mmd, labelled.Mmd),
  "dann": _labelled(dann.create, labelled.Dann),
  "mixstyle_crossdomain": _labelled(
    mixstyle.create_crossdomain, label_free.MixStyle, check=check_layers
  ),
  "mldg": _labelled(mldg.create, labelled.Mldg),
  "crossgrad": _labelled(crossgrad.create, labelled.CrossGrad),
}


Settings = Mapping[str, Mapping[str, Any]]  # Of each block of the method.


def create(name: str, task: Task, settings: Settings) -> Method:
  """Makes the method `name`.

  Args:
    name: a key of `METHODS`.
    task: what the method is built for.
    settings: values of the method's options, by block; the others keep their
      defaults.
  """
  entry = METHODS[name]
  method = entry.create(task, options(name, settings))
  labels = entry.domain_labels or method.domain_labels
  return method._replace(domain_labels=labels)


def options(name: str, settings: Settings) -> Any:
  """Makes the options of the method `name` from their values.

  A combination has a tuple of the options of its methods.
  """
  made = [_options(b, settings.get(b, {})) for b in used_blocks(name)]
  return made[0] if len(made) == 1 else tuple(made)


def _options(block: str, settings: Mapping[str, Any]) -> Any:
  fields = METHODS[block].options._fields
  if unknown := [key for key in settings if key not in fields]:
    raise UserError(
      f"config.{block}.{unknown[0]}: {block} has no such option; it has"
      f" {', '.join(fields) or 'none'}"
    )
  return METHODS[block].options(**settings)
