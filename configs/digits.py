"""COMEN on Digits-DG, or on mini digits if `data_dir` is empty.

  python -m comen_jax.main --config configs/digits.py --workdir runs/digits \\
    --config.data_dir=D --config.target=mnist_m

Time per epoch on two CPU cores: 7 to 8 s on mini digits (docs/performance.md).
Score: README, "Results".

The recipe is the paper's: four 3x3 convolutions of 64 channels, SGD with
momentum 0.9 and weight decay 5e-4, batch size 128, 50 epochs, learning rate
0.05, multiplied by 0.1 every 20 epochs, no augmentation.

`--config configs/digits.py:paper` follows the print where the default does
not: Eq. 8 and Eq. 14 compare raw prototypes, both layers of ProtoGR share their
parameters, F_d reads the style of the layer that is trained, and discover has
no loss but L_cls and L_d. Where the paper prints nothing, and in the weights of
Eq. 4, which do not sum to 1 as printed, docs/choices.md says what we do.
"""

from ml_collections import ConfigDict

from comen_jax.methods import options


def get_config(variant: str = "") -> ConfigDict:
  if variant not in ("", "paper"):
    raise ValueError(f"unknown variant {variant!r}; choose paper")
  config = ConfigDict()

  # Method
  config.method = "comen"  # docs/methods.md lists all.
  config.norm = ""  # none, batch or sdnorm; "" takes the method's default.

  # Network
  config.backbone = "digits_cnn"
  config.pretrained = ""  # Trained from scratch.
  config.style_at = "stem"  # The style comes from the first convolution.
  config.sdnorm_stem = True
  config.remat = False
  config.dtype = "float32"

  # Data
  config.dataset = "digits_dg"
  # Folder with digits_dg/ or digits_dg.zip; "" takes mini digits.
  config.data_dir = ""
  # "" takes mnist_m for Digits-DG and pasted for mini digits.
  config.target = ""
  config.store_size = 32  # Pixels of the stored square image.
  config.image_size = 32  # Pixels of the network's input.
  config.normalise = "half"  # (x - .5) / .5
  config.augment = "none"

  # Training
  config.seed = 0
  config.num_domains = 3  # Number of latent domains, M.
  config.batch_size = 128
  config.eval_batch_size = 512
  config.epochs = 50
  config.stage_shares = (0.1, 0.2, 0.7)  # Warm-up, discover, encode.
  config.oracle = False  # True also tests the target at every epoch.

  # Optimiser
  config.learning_rate = 0.05
  config.lr_drops = (0.4, 0.8)  # Fractions of all epochs.
  config.lr_factor = 0.1
  config.momentum = 0.9
  config.weight_decay = 5e-4

  # SDNorm
  config.sdnorm = ConfigDict()
  config.sdnorm.momentum = 0.9
  config.sdnorm.epsilon = 1e-5
  config.sdnorm.per_domain_affine = True
  config.sdnorm.min_mass = 2.0  # Images that a domain needs in a batch.
  config.sdnorm.prior_mass = 0.0  # Images that running statistics count for.

  # COMEN
  config.comen = ConfigDict()
  config.comen.protogr = True
  config.comen.protoccl = True
  config.comen.protogr_weight = 0.1  # lambda
  config.comen.protoccl_weight = 0.1  # gamma
  config.comen.prototype_decay = 0.7  # rho
  config.comen.affinity_threshold = 0.5  # delta
  config.comen.temperature = 0.5  # tau
  config.comen.prototype_form = "centred"  # raw, unit or centred
  config.comen.straight_through = False
  config.comen.shared_attention = False
  config.comen.entropy_weight = 1.0
  config.comen.balance_weight = 1.0
  config.comen.anchor_weight = 1.0
  config.comen.clustering = "gmm"  # gmm or kmeans
  config.comen.portion = 0.3  # Share of the images that is clustered.
  config.comen.pretrain_steps = 1000
  config.comen.pretrain_views = 2
  config.comen.pretrain_noise = 0.3
  config.comen.style_from = "copy"  # copy, start, pixels, live
  config.comen.style_view = "picture"  # picture, training
  config.comen.test_temperature = 1.0
  config.comen.style_gradient = False
  config.comen.freeze_style_layer = False
  config.comen.true_domains = False  # True uses domain labels, to compare.

  # Other methods: their options, as --help lists them.
  config.update(options.blocks())

  # Logging: these keys may change when a run is resumed.
  config.logging = ConfigDict()
  config.logging.tensorboard = True
  config.logging.every = 10  # Steps between updates of the progress bar.

  if variant == "paper":
    config.comen.prototype_form = "raw"
    config.comen.shared_attention = True
    config.comen.style_from = "live"
    config.comen.style_gradient = True
    config.comen.balance_weight = 0.0
    config.comen.anchor_weight = 0.0

  return config.lock()
