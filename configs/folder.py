"""COMEN on your own pictures, in folders.

  python -m comen_jax.main --config configs/folder.py --workdir runs/mine \\
    --config.data_dir=ROOT --config.target=sketches

ROOT holds <domain>/<class>/<picture>, and target names the domain to test on;
or, where nobody knows the domains, train/<class>/<picture> and
test/<class>/<picture>: target is then test, and may be left out. Classes are
the folders' names.

The network is the small one of Digits-DG at 32 pixels, so that a first run
takes minutes.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
  config = ConfigDict()

  config.method = "comen"  # comen, deepall, deepall_bn
  config.norm = ""  # "" is the method's preset; none, batch, sdnorm
  config.backbone = "digits_cnn"
  config.pretrained = ""
  config.style_at = "stem"  # The first conv.
  config.sdnorm_stem = True
  config.remat = False
  config.dtype = "float32"

  config.dataset = "folder"
  config.data_dir = ""  # ROOT, which holds the folders.
  config.target = ""  # A domain's folder; "": test, if there are no domains.
  config.store_size = 32
  config.image_size = 32
  config.normalise = "half"  # (x - .5) / .5
  config.augment = "none"

  config.seed = 0
  config.num_domains = 3
  config.batch_size = 128
  config.eval_batch_size = 512
  config.epochs = 50
  config.stage_shares = (0.1, 0.3, 0.6)  # Warm-up, discover, encode.

  config.learning_rate = 0.05
  config.lr_drops = (0.4, 0.8)  # Fractions of all epochs.
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

  return config.lock()
