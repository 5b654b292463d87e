"""The built-in pictures: balanced, repeatable, and nothing shared."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.ft2font import FT2Font
from sklearn import datasets

from comen_jax.data import mini_digits
from comen_jax.data.mini_digits import generator, glyphs

GLYPH = re.compile(r"glyph(\d{4})")
CROP = re.compile(r"glyph\d{4}-(china|flower)-x(\d{3})-y(\d{3})-\d{3}\.png")
TYPE = re.compile(r"/([A-Za-z0-9-]+)-\d{3}\.png")


@pytest.fixture(scope="module")
def pictures():
  return generator.generate()


def test_every_class_has_as_many_pictures_in_every_domain(pictures):
  cells = np.zeros((4, 2, 10), int)
  np.add.at(cells, (pictures.domains, pictures.splits, pictures.labels), 1)
  np.testing.assert_array_equal(cells[:, 0], 150)
  np.testing.assert_array_equal(cells[:, 1], 20)


def test_arrays_have_the_promised_types_and_shapes(pictures):
  assert pictures.images.shape == (6800, 32, 32, 3)
  types = [a.dtype for a in pictures[:4]]
  assert types == [np.uint8, np.int32, np.int32, np.uint8]
  assert [len(a) for a in pictures] == [6800] * 5


def test_names_are_unique_and_agree_with_the_arrays(pictures):
  assert len(set(pictures.names)) == len(pictures.names)
  for name, label, domain, split in zip(
    pictures.names, pictures.labels, pictures.domains, pictures.splits
  ):
    expected = (
      mini_digits.DOMAINS[domain],
      ("train", "val")[split],
      mini_digits.CLASSES[label],
    )
    assert tuple(name.split("/")[:3]) == expected


def test_another_call_and_another_process_give_the_same_bytes(pictures):
  code = (
    "import hashlib, sys\n"
    "from comen_jax.data.mini_digits import generator\n"
    "made = generator.generate()\n"
    "digest = hashlib.sha256('\\n'.join(made.names).encode())\n"
    "for array in made[:4]: digest.update(array.tobytes())\n"
    "print(digest.hexdigest())\n"
  )
  other = subprocess.Popen(
    [sys.executable, "-c", code],
    cwd=Path(__file__).parents[3],
    env=os.environ | {"PYTHONHASHSEED": "1"},
    stdout=subprocess.PIPE,
    text=True,
  )
  # Both at once, for time.
  assert _digest(generator.generate()) == _digest(pictures)
  assert other.communicate()[0].strip() == _digest(pictures)


def test_no_two_pictures_are_equal(pictures):
  # So neither is a validation picture found among the training pictures.
  assert len({image.tobytes() for image in pictures.images}) == 6800


def test_a_glyph_belongs_to_one_domain_and_one_split(pictures):
  homes = {}
  for name in _names(pictures, "written") + _names(pictures, "pasted"):
    domain, split, label, _ = name.split("/")
    homes.setdefault(_glyph(name), set()).add((domain, split, label))
  assert all(len(home) == 1 for home in homes.values())
  target = datasets.load_digits().target
  for glyph, ((_, _, label),) in homes.items():
    assert target[glyph] == int(label)


@pytest.mark.parametrize("domain", ["written", "pasted"])
def test_a_validation_glyph_is_used_once(pictures, domain):
  used = [_glyph(name) for name in _names(pictures, f"{domain}/val")]
  assert len(set(used)) == len(used) == 200


def test_written_pictures_show_the_glyph_they_name(pictures):
  small = datasets.load_digits().images.reshape(1797, 64)
  chosen = [n.startswith("written/") for n in pictures.names]
  images = pictures.images[chosen]
  np.testing.assert_array_equal(images, images[..., :1].repeat(3, -1))
  # Back to 8 x 8: 24 pixels are nearly all of the glyph's 26.
  shrunk = images[:, 4:28, 4:28, 0].reshape(-1, 8, 3, 8, 3).mean((2, 4))
  likeness = _unit(shrunk.reshape(-1, 64)) @ _unit(small).T
  named = [_glyph(n) for n in _names(pictures, "written")]
  own = likeness[np.arange(len(named)), named]
  more_alike = (likeness > own[:, None]).sum(1)
  # A wrong glyph of the right class has some 90 others before it.
  assert np.median(more_alike[:1500]) < 20  # Changed by the random affine.
  assert more_alike[1500:].max() < 10


def test_pasted_pictures_show_the_crop_they_name(pictures):
  for name, image in zip(pictures.names, pictures.images):
    if name.startswith("pasted/"):
      photo, x, y = _crop(name)
      crop = glyphs.photograph(photo)[y : y + 32, x : x + 32]
      untouched = (image == crop).all(-1)
      assert untouched.mean() > 0.4, name
      assert untouched.mean() < 0.95, name


def test_validation_pictures_are_the_plain_glyphs(pictures):
  for name, image in zip(pictures.names, pictures.images):
    if name.startswith("written/val/"):
      np.testing.assert_array_equal(image[..., 0], glyphs.plain(_glyph(name)))
    if name.startswith("pasted/val/"):
      expected = glyphs.paste(glyphs.plain(_glyph(name)), *_crop(name))
      np.testing.assert_array_equal(image, expected)


def test_no_pixel_of_a_photograph_is_in_both_splits(pictures):
  seen = {
    (photo, split): np.zeros((427, 640), bool)
    for photo in ("china", "flower")
    for split in ("train", "val")
  }
  for name in _names(pictures, "pasted"):
    photo, x, y = _crop(name)
    assert x + 32 <= 640 and y + 32 <= 427
    seen[photo, name.split("/")[1]][y : y + 32, x : x + 32] = True
  for photo in ("china", "flower"):
    train, val = seen[photo, "train"], seen[photo, "val"]
    assert train.any() and val.any()
    assert not (train & val).any()


def test_street_and_printed_share_no_type_family(pictures):
  street, printed = (
    {_font(name).family_name for name in _names(pictures, domain)}
    for domain in ("street", "printed")
  )
  assert len(street) >= 3 and len(printed) >= 3
  assert not street & printed
  # Nor regular, bold and italic of one family under several family names.
  assert {family.split()[0] for family in street} == {"DejaVu"}
  assert not any("DejaVu" in family for family in printed)


def test_every_font_has_ten_different_digits(pictures):
  names = _names(pictures, "street") + _names(pictures, "printed")
  for font in {_font_path(name) for name in names}:
    charmap = FT2Font(font).get_charmap()
    # LastResort has one and the same sign for all ten.
    assert len({charmap[ord(digit)] for digit in "0123456789"}) == 10, font


def test_domains_differ_in_colour_and_contrast(pictures):
  spread = np.ptp(pictures.images, axis=-1).mean((1, 2))
  deviation = pictures.images.mean(-1).std((1, 2))
  colour, contrast = (
    dict(zip(mini_digits.DOMAINS, _means(values, pictures.domains)))
    for values in (spread, deviation)
  )
  assert colour["written"] == 0
  assert 10 < colour["street"] < 35 < colour["pasted"] < 70 < colour["printed"]
  assert contrast["street"] < 40 < contrast["pasted"] < 75 < contrast["written"]


def _digest(pictures):
  digest = hashlib.sha256("\n".join(pictures.names).encode())
  for array in pictures[:4]:
    digest.update(array.tobytes())
  return digest.hexdigest()


def _names(pictures, folder):
  return [n for n in pictures.names if n.startswith(f"{folder}/")]


def _glyph(name):
  return int(GLYPH.search(name)[1])


def _crop(name):
  photo, x, y = CROP.search(name).groups()
  return photo, int(x), int(y)


def _font_path(name):
  fonts = Path(matplotlib.get_data_path(), "fonts", "ttf")
  return str(fonts / f"{TYPE.search(name)[1]}.ttf")


def _font(name):
  return FT2Font(_font_path(name))


def _unit(rows):
  rows = rows - rows.mean(1, keepdims=True)
  return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _means(values, groups):
  return [values[groups == g].mean() for g in range(4)]
