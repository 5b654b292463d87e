"""COMEN on PACS, ResNet-18 pretrained on ImageNet.

  python -m comen_jax.main --config configs/pacs.py --workdir runs/pacs \\
    --config.data_dir=D --config.target=sketch

The paper's recipe: SGD .9, 5e-4, batch 128, 50 epochs, learning rate .001 times
.1 at 20. Time and score: not measured yet.

  python -m comen_jax.main --config configs/pacs.py:quick ...

is for machines without an accelerator: pictures of 112, batch 32, three epochs.
On the PACS subset (910 images per domain), target sketch, seed 0: DeepAll 54.0,
COMEN 55.3, 4 and 7 minutes on two CPU cores (results/pacs_quick).
"""

from ml_collections import ConfigDict


def get_config(variant: str = "") -> ConfigDict:
  if variant not in ("", "quick"):
    raise ValueError(f"no variant {variant!r}; there is quick")
  config = ConfigDict()

  config.method = "comen"  # comen, deepall, deepall_bn
  config.norm = ""  # "" is the method's preset; batch, sdnorm
  config.backbone = "resnet18"  # resnet18, resnet34, resnet50, alexnet
  # A path, hf://owner/repository/file, or "" for a random start. Torchvision's:
  config.pretrained = "hf://timm/resnet18.tv_in1k/model.safetensors"
  config.style_at = "stem"  # stem, layer1, layer2, layer3, layer4
  config.sdnorm_stem = True  # The stem's own norm is SDNorm too.
  config.remat = False  # Blocks computed twice, for memory; no use on CPU.
  config.dtype = "float32"  # bfloat16: parameters and losses stay float32.

  config.dataset = "pacs"
  config.data_dir = ""  # Holds pacs/ or pacs.zip.
  config.target = ""  # art_painting, cartoon, photo, sketch
  config.store_size = 256
  config.image_size = 224
  config.normalise = "imagenet"
  config.augment = "jigen"  # none, jigen, mmld

  config.seed = 0
  config.num_domains = 3
  config.batch_size = 128
  config.eval_batch_size = 256
  config.epochs = 50
  config.stage_shares = (0.0, 0.4, 0.6)  # Warm-up, discover, encode.

  config.learning_rate = 0.001
  config.lr_drops = (0.4,)  # Fractions of all epochs.
  config.lr_factor = 0.1
  config.momentum = 0.9
  config.weight_decay = 5e-4

  config.sdnorm = ConfigDict()
  config.sdnorm.momentum = 0.9
  config.sdnorm.epsilon = 1e-5
  config.sdnorm.per_domain_affine = True
  config.sdnorm.min_mass = 2.0

  config.comen = ConfigDict()
  config.comen.protogr = True
  config.comen.protoccl = True
  config.comen.protogr_weight = 0.1  # lambda
  config.comen.protoccl_weight = 0.1  # gamma
  config.comen.prototype_decay = 0.7  # rho
  config.comen.affinity_threshold = 0.5  # delta
  config.comen.temperature = 0.5  # tau
  config.comen.protoccl_normalize = True
  config.comen.entropy_weight = 1.0
  config.comen.balance_weight = 1.0
  config.comen.clustering = "gmm"  # gmm, kmeans
  config.comen.portion = 0.3
  config.comen.pretrain_steps = 1000
  config.comen.style_gradient = False
  config.comen.freeze_style_layer = False
  config.comen.true_domains = False  # True: uses domain labels, a bound.

  config.logging = ConfigDict()  # Free to change in a resumed run.
  config.logging.tensorboard = True
  config.logging.every = 10  # Steps between losses on the progress bar.

  if variant == "quick":
    config.store_size = 128
    config.image_size = 112
    config.batch_size = 32
    config.eval_batch_size = 128
    config.epochs = 3
    config.lr_drops = (0.8,)  # At .4 three epochs would end far from converged.

  return config.lock()
