"""Images of every kind become squares of RGB, or an error names them."""

import warnings

import numpy as np
import pytest
from PIL import Image

from comen_jax.data.ingest import pictures
from comen_jax.data.ingest.pictures import decode, decode_all
from comen_jax.data.ingest.problems import BadFilesError
from comen_jax.errors import UserError
from data.helpers import encoded

RNG = np.random.default_rng(0)


def pixels(*shape, dtype=np.uint8):
  return RNG.integers(0, np.iinfo(dtype).max + 1, shape, dtype)


def test_rgb_keeps_its_pixels():
  array = pixels(8, 8, 3)
  got = decode(encoded(Image.fromarray(array)), 8, "x")
  np.testing.assert_array_equal(got, array)


def test_grey_has_three_equal_channels():
  array = pixels(8, 8)
  got = decode(encoded(Image.fromarray(array)), 8, "x")
  np.testing.assert_array_equal(got, np.repeat(array[..., None], 3, axis=2))


def test_one_bit_pixels_become_black_and_white():
  array = pixels(8, 8) > 127
  got = decode(encoded(Image.fromarray(array)), 8, "x")
  np.testing.assert_array_equal(got[..., 1], array * np.uint8(255))


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_16_bits_are_scaled_not_clipped(form):
  array = pixels(8, 8, dtype=np.uint16)
  got = decode(encoded(Image.fromarray(array), form), 8, "x")
  np.testing.assert_array_equal(got[..., 2], array // 256)


def test_a_transparent_image_has_a_white_background():
  array = np.zeros((8, 8, 4), np.uint8)
  array[:4] = (200, 0, 0, 255)
  array[4:, :4] = (0, 0, 0, 128)
  got = decode(encoded(Image.fromarray(array)), 8, "x")
  np.testing.assert_array_equal(got[0, 0], (200, 0, 0))
  np.testing.assert_allclose(got[4, 0], 127, atol=1)
  np.testing.assert_array_equal(got[4, 4], (255, 255, 255))


def test_a_transparent_grey_image_has_a_white_background():
  array = np.zeros((8, 8, 2), np.uint8)
  array[:4, :, 1] = 255
  got = decode(encoded(Image.fromarray(array, "LA")), 8, "x")
  assert (got[:4] == 0).all()
  assert (got[4:] == 255).all()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "RGB"])
def test_a_transparent_image_is_the_same_in_strips(mode, monkeypatch):
  options = {}
  if mode == "P":
    image = Image.fromarray(pixels(9, 7, 3)).quantize(8)
    options = {"transparency": bytes([0, 60, 120, 255])}
  elif mode == "RGB":
    image = Image.fromarray(pixels(9, 7, 3))
    options = {"transparency": image.getpixel((3, 4))}
  else:
    image = Image.fromarray(pixels(9, 7, len(mode)), mode)
  data = encoded(image, **options)
  whole = decode(data, 16, "x")
  monkeypatch.setattr(pictures, "_STRIP", 14)  # Two rows.
  np.testing.assert_array_equal(decode(data, 16, "x"), whole)


def test_a_palette_is_looked_up():
  image = Image.fromarray(pixels(8, 8, 3)).quantize(16)
  want = np.asarray(image.convert("RGB"))
  np.testing.assert_array_equal(decode(encoded(image), 8, "x"), want)
  clear = encoded(image, transparency=image.getpixel((0, 0)))
  np.testing.assert_array_equal(decode(clear, 8, "x")[0, 0], (255, 255, 255))


def test_a_palette_with_transparency_gives_no_warning():
  image = Image.fromarray(pixels(8, 8, 3)).quantize(4)
  clear = encoded(image, transparency=bytes([0, 255, 255, 255]))
  assert decode(clear, 8, "x").shape == (8, 8, 3)


def test_cmyk_is_converted():
  image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
  got = decode(encoded(image, "JPEG"), 8, "x")
  assert got[..., 0].min() > 200
  assert got[..., 1].max() < 60


def test_the_first_frame_of_an_animation_is_used():
  frames = [Image.new("RGB", (8, 8), c) for c in ("red", "blue", "lime")]
  data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
  np.testing.assert_array_equal(decode(data, 8, "x")[3, 3], (255, 0, 0))


@pytest.mark.parametrize("form", ["JPEG", "BMP", "WEBP", "PPM", "GIF"])
def test_other_formats_decode(form):
  data = encoded(Image.new("RGB", (9, 5), (250, 10, 10)), form)
  got = decode(data, 8, "x")
  assert got.shape == (8, 8, 3)
  assert abs(int(got[4, 4, 0]) - 250) < 12


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (300, 1), (3, 5), (33, 31)])
def test_any_size_is_squeezed_to_a_square(shape):
  array = np.full((*shape, 3), 77, np.uint8)
  got = decode(encoded(Image.fromarray(array)), 8, "x")
  assert got.shape == (8, 8, 3)
  assert (got == 77).all()


def test_exif_orientation_is_applied():
  array = np.zeros((8, 8, 3), np.uint8)
  array[0] = 255  # The top row; the file stores it turned by 90 degrees.
  image = Image.fromarray(array).transpose(Image.Transpose.ROTATE_90)
  exif = Image.Exif()
  exif[0x0112] = 6  # Viewers turn it clockwise.
  got = decode(encoded(image, "PNG", exif=exif), 8, "x")
  np.testing.assert_array_equal(got, array)


def test_an_image_with_broken_exif_data_decodes():
  exif = b"Exif\0\0II*\0garbage"
  data = {"x": encoded(Image.new("RGB", (8, 8)), "PNG", exif=exif)}
  (got,) = decode_all(["x"], data.get, 8, "here")  # Pillow would warn.
  assert got.shape == (8, 8, 3)


WHOLE = encoded(Image.fromarray(pixels(64, 64, 3)))
JPEG = encoded(Image.fromarray(pixels(64, 64, 3)), "JPEG")
BAD = {
  "empty": b"",
  "text": b"<html>Not found</html>",
  "cut png": WHOLE[: len(WHOLE) // 2],
  "cut jpeg": JPEG[: len(JPEG) // 2],
  "only a header": WHOLE[:20],
  "a program for printers": encoded(Image.new("RGB", (4, 4)), "EPS"),
  "float pixels": encoded(Image.fromarray(np.ones((4, 4), np.float32)), "TIFF"),
}


@pytest.mark.parametrize("case", BAD)
def test_the_error_for_a_bad_image_is_one_line_with_its_name(case):
  with pytest.raises(UserError, match=r"^photo/ü 1\.jpg does not") as error:
    decode(BAD[case], 8, "photo/ü 1.jpg")
  assert "\n" not in str(error.value)
  assert "0x" not in str(error.value)


def test_a_far_too_large_image_is_an_error_but_a_large_one_is_not(monkeypatch):
  monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 63)
  data = {"64 pixels": encoded(Image.new("RGB", (8, 8)))}
  (got,) = decode_all(list(data), data.get, 8, "here")  # Pillow would warn.
  assert got.shape == (8, 8, 3)
  monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 31)
  with pytest.raises(
    UserError, match=r"here: 64 pixels does not decode.*more than 62 pixels"
  ):
    list(decode_all(list(data), data.get, 8, "here"))


def test_one_error_reports_all_bad_images():
  good = encoded(Image.fromarray(pixels(8, 8, 3)))
  data = {"a": good, "b": b"", "c": good, "d": b"text"}
  images = decode_all(list(data), data.get, 8, "here")
  assert next(images).shape == (8, 8, 3)
  with pytest.raises(BadFilesError, match="b does not decode") as error:
    next(images)
  assert [p.split()[1] for p in error.value.problems] == ["b", "d"]


def test_images_are_decoded_in_order_and_warning_filters_are_restored():
  arrays = {str(i): pixels(8, 8, 3) for i in range(50)}
  data = {k: encoded(Image.fromarray(a)) for k, a in arrays.items()}
  before = list(warnings.filters)
  got = list(decode_all(list(data), data.get, 8, "here"))
  np.testing.assert_array_equal(got, list(arrays.values()))
  assert warnings.filters == before
