"""COMEN on Office-Home with a ResNet-18 pretrained on ImageNet.

  python -m comen_jax.main --config configs/office_home.py \\
    --workdir runs/office_home --config.data_dir=D --config.target=clipart

Time and score: not measured yet.

The recipe is the paper's: SGD with momentum 0.9 and weight decay 5e-4, batch
size 128, 50 epochs, learning rate 0.001, multiplied by 0.1 after 20 epochs.
"""

from ml_collections import ConfigDict

from comen_jax.methods import options


def get_config() -> ConfigDict:
  config = ConfigDict()

  # Method
  config.method = "comen"  # docs/methods.md lists all.
  config.norm = ""  # batch or sdnorm; "" takes the method's default.

  # Network
  config.backbone = "resnet18"  # resnet18, resnet34, resnet50 or alexnet
  # A path, hf://owner/repository/file, or "" to start from random weights.
  config.pretrained = "hf://timm/resnet18.tv_in1k/model.safetensors"
  config.style_at = "stem"  # stem, layer1, layer2, layer3 or layer4
  config.sdnorm_stem = True  # Whether the stem's own norm is SDNorm too.
  config.remat = False  # Saves memory by computing blocks twice; not on CPU.
  # With bfloat16, parameters and losses stay float32.
  config.dtype = "float32"

  # Data
  config.dataset = "office_home"
  config.data_dir = ""  # Folder with the data set or its zip (docs/data.md).
  config.target = ""  # "" takes the default of the data set.
  config.store_size = 256  # Pixels of the stored square image.
  config.image_size = 224  # Pixels of the network's input.
  config.normalise = "imagenet"
  config.augment = "jigen"  # none, digits, amplitude, randconv, jigen, mmld

  # Training
  config.seed = 0
  config.num_domains = 3  # Number of latent domains, M.
  config.batch_size = 128
  config.eval_batch_size = 256
  config.epochs = 50
  config.stage_shares = (0.0, 0.2, 0.8)  # Warm-up, discover, encode.
  config.oracle = False  # True also tests the target at every epoch.

  # Optimiser
  config.learning_rate = 0.001
  config.lr_drops = (0.4,)  # Fractions of all epochs.
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
