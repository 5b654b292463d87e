"""The drawn images are balanced and repeatable, and share nothing."""

import hashlib
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.ft2font import FT2Font
from sklearn import datasets

from comen_jax.data import mini_digits
from comen_jax.data.mini_digits import generator, glyphs
from data.helpers import start_python

GLYPH = re.compile(r"glyph(\d{4})")
CROP = re.compile(r"glyph\d{4}-(china|flower)-x(\d{3})-y(\d{3})-\d{3}\.png")
TYPE = re.compile(r"/([A-Za-z0-9-]+)-\d{3}\.png")


@pytest.fixture(scope="module")
def pictures():
  return generator.generate()


def test_every_class_has_equally_many_images_in_every_domain(pictures):
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


def test_another_call_and_another_process_give_the_same_bytes(
  pictures, monkeypatch
):
  code = (
    "import hashlib, sys\n"
    "from comen_jax.data.mini_digits import generator\n"
    "made = generator.generate()\n"
    "digest = hashlib.sha256('\\n'.join(made.names).encode())\n"
    "for array in made[:4]: digest.update(array.tobytes())\n"
    "print(digest.hexdigest())\n"
  )
  other = start_python(["-c", code], PYTHONHASHSEED="1")
  # The other process draws all images again. For a second call in this process
  # a part of them is enough: each image has its own random stream.
  monkeypatch.setitem(mini_digits.COUNTS, "train", 10)
  again = generator.generate()
  assert len(again.names) == 4 * 10 * (10 + 20)
  known = dict(zip(pictures.names, pictures.images))
  for name, image in zip(again.names, again.images):
    np.testing.assert_array_equal(image, known[name])
  out, err = other.communicate(timeout=120)
  assert (out.strip(), err) == (_digest(pictures), "")


def test_no_two_images_are_equal(pictures):
  # So no validation image is among the training images.
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


def test_written_images_show_the_glyph_in_their_name(pictures):
  small = datasets.load_digits().images.reshape(1797, 64)
  chosen = [n.startswith("written/") for n in pictures.names]
  images = pictures.images[chosen]
  np.testing.assert_array_equal(images, images[..., :1].repeat(3, -1))
  # Back to 8 x 8: 24 pixels hold nearly all of the glyph's 26.
  shrunk = images[:, 4:28, 4:28, 0].reshape(-1, 8, 3, 8, 3).mean((2, 4))
  likeness = _unit(shrunk.reshape(-1, 64)) @ _unit(small).T
  named = [_glyph(n) for n in _names(pictures, "written")]
  own = likeness[np.arange(len(named)), named]
  more_alike = (likeness > own[:, None]).sum(1)
  # About 90 glyphs would be more alike than a wrong glyph of the right class.
  assert np.median(more_alike[:1500]) < 20  # Changed at random.
  assert more_alike[1500:].max() < 10


def test_pasted_images_show_the_crop_in_their_name(pictures):
  for name, image in zip(pictures.names, pictures.images):
    if name.startswith("pasted/"):
      photo, x, y = _crop(name)
      crop = glyphs.photograph(photo)[y : y + 32, x : x + 32]
      untouched = (image == crop).all(-1)
      assert untouched.mean() > 0.4, name
      assert untouched.mean() < 0.95, name


def test_validation_images_are_the_plain_glyphs(pictures):
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


def test_street_and_printed_share_no_family_of_type(pictures):
  street, printed = (
    {FT2Font(path).family_name for path in _font_paths(pictures, domain)}
    for domain in ("street", "printed")
  )
  assert len(street) >= 3 and len(printed) >= 3
  assert not street & printed
  # One family may have several names, for its regular, bold and italic fonts.
  assert {family.split()[0] for family in street} == {"DejaVu"}
  assert not any("DejaVu" in family for family in printed)


def test_every_font_has_ten_different_digits(pictures):
  fonts = _font_paths(pictures, "street") | _font_paths(pictures, "printed")
  for font in fonts:
    charmap = FT2Font(font).get_charmap()
    # LastResort has one sign for all ten.
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


def _font_paths(pictures, domain):
  fonts = Path(matplotlib.get_data_path(), "fonts", "ttf")
  used = {TYPE.search(name)[1] for name in _names(pictures, domain)}
  return {str(fonts / f"{font}.ttf") for font in used}


def _unit(rows):
  rows = rows - rows.mean(1, keepdims=True)
  return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _means(values, groups):
  return [values[groups == g].mean() for g in range(4)]
