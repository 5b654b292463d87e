"""Mini digits: ten classes in four domains, drawn in seconds, no download.

They are a small stand-in for Digits-DG (MNIST, MNIST-M, SVHN, SYN), drawn from
what scikit-learn and matplotlib contain:

  written: real handwritten digits in grey, white on black.
  pasted: other handwritten digits, blended with real photographs.
  street: house numbers in blurred, dull, tilted type, with cut-off neighbours.
  printed: clean type in vivid colours.

Domains and splits share nothing that would leak: each handwritten glyph belongs
to one domain and one split, `street` and `printed` use different families of
type, and train and val use different parts of the photographs. The name of an
image says where it came from.

This file imports nothing, so that a report can read the names cheaply.
"""

DOMAINS = ("written", "pasted", "street", "printed")
CLASSES = tuple("0123456789")
SPLITS = ("train", "val")
DEFAULT_TARGET = "pasted"
SIDE = 32  # Pixels.
COUNTS = {"train": 150, "val": 20}  # Images of each class in each domain.
VERSION = "1"  # Increase when the images change.
