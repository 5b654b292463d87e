"""COMEN on your own images, in folders.

  python -m comen_jax.main --config configs/folder.py --workdir runs/mine \\
    --config.data_dir=ROOT --config.target=sketches

ROOT contains <domain>/<class>/<image>, and `target` names the domain to test
on. If the domains are unknown, ROOT contains train/<class>/<image> and
test/<class>/<image>; `target` is then test and may be left out. The names of
the folders are the names of the classes.

Try random convolutions of the training images first. Of all methods they gained
most on mini digits, our development set, and they gained on Digits-DG too
(docs/methods.md). They change colours and fine texture, so they do not suit
classes that differ in these alone:

  --config.method=deepall_bn --config.augment=randconv

The network is the small one for Digits-DG at 32 pixels, so that a first run
takes minutes. Time and score: not measured yet.
"""

from ml_collections import ConfigDict

from comen_jax.methods import options


def get_config() -> ConfigDict:
  config = ConfigDict()

  # Method
  config.method = "comen"  # docs/methods.md lists all.
  config.norm = ""  # none, batch or sdnorm; "" takes the method's default.

  # Network
  config.backbone = "digits_cnn"
  config.pretrained = ""
  config.style_at = "stem"  # The style comes from the first convolution.
  config.sdnorm_stem = True
  config.remat = False
  config.dtype = "float32"

  # Data
  config.dataset = "folder"
  config.data_dir = ""  # ROOT, the folder with your images.
  config.target = ""  # Name of a domain; "" if ROOT has train/ and test/.
  config.store_size = 32  # Pixels of the stored square image.
  config.image_size = 32  # Pixels of the network's input.
  config.normalise = "half"  # (x - .5) / .5
  config.augment = "none"  # none, digits, amplitude, randconv, jigen, mmld

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

  return config.lock()
