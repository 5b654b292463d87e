"""The page: escaped, complete in itself, a picture for light and for dark."""

import base64
import html.parser
import re

import numpy as np
import pytest
from PIL import Image

from comen_jax.report.document import (
  Cell,
  Document,
  Headline,
  Panel,
  Picture,
  Section,
  Table,
)
from comen_jax.report.palette import DARK, LIGHT
from comen_jax.report.render import html as page


def _png(path, colour, size=(40, 20), **info):
  Image.fromarray(np.full((*size[::-1], 3), colour, np.uint8)).save(
    path, **info
  )
  return path


def _render(*sections, title="A report", lead=("What it is.",), **more):
  return page.render(Document(title, lead, sections, **more))


def _picture(light, caption, dark=None):
  return Picture((Panel(light, dark),), caption)


def _table(*rows, header=("", "mnist"), notes=()):
  return Section("T", tables=(Table("Accuracies", header, rows, notes),))


class _Tags(html.parser.HTMLParser):
  """All start tags with their attributes; fails where tags do not nest."""

  def __init__(self, text):
    super().__init__()
    self.found, self._open = [], []
    self.feed(text)
    assert not self._open

  def handle_starttag(self, tag, attrs):
    self.found.append((tag, dict(attrs)))
    if tag not in {"meta", "img", "source", "input", "wbr"}:
      self._open.append(tag)

  def handle_endtag(self, tag):
    assert self._open.pop() == tag

  def all(self, tag):
    return [attrs for name, attrs in self.found if name == tag]


def test_whatever_is_written_is_text(tmp_path):
  evil = "<script>alert('1 & 2')</script> \"</style>"
  cells = (Cell(evil), Cell(evil, numeric=True))
  text = _render(
    Section(
      evil,
      (evil,),
      (Table(evil, ("", evil), ((Cell(evil),), cells), (evil,)),),
      (_picture(_png(tmp_path / "a.png", 0), evil),),
    ),
    title=evil,
    lead=(evil,),
  )
  tags = _Tags(text)
  assert not tags.all("script")
  assert len(tags.all("style")) == 1
  assert tags.all("img")[0]["alt"] == evil  # Unescaped by the parser: whole.
  assert text.count("&lt;script&gt;") >= 9


def test_the_page_loads_nothing_from_elsewhere(tmp_path):
  path = _png(tmp_path / "a.png", 0)
  text = _render(
    Section("One", ("See https://example.org.",), (), (_picture(path, "p"),)),
    _table((Cell("x"), Cell("1"))),
  )
  for _, attrs in _Tags(text).found:
    for key in ("src", "href", "srcset"):
      if key in attrs:
        assert attrs[key].startswith(("#", "data:image/png;base64,"))
  assert not re.search(r"@import|url\(", text)
  assert "https://example.org" in text


def test_both_pictures_are_embedded_byte_for_byte(tmp_path):
  light, dark = _png(tmp_path / "a.png", 255), _png(tmp_path / "b.png", 0)
  alone = _png(tmp_path / "c.png", 9)
  pictures = _picture(light, "two", dark), _picture(alone, "one")
  tags = _Tags(_render(Section("P", pictures=pictures)))
  decode = lambda data: base64.b64decode(data.split(",", 1)[1])
  images, sources = tags.all("img"), tags.all("source")
  assert [decode(i["src"]) for i in images] == [
    light.read_bytes(),
    alone.read_bytes(),
  ]
  assert [decode(s["srcset"]) for s in sources] == [dark.read_bytes()]
  assert "prefers-color-scheme: dark" in sources[0]["media"]
  assert [i["alt"] for i in images] == ["two", "one"]


@pytest.mark.parametrize(
  ("dpi", "size"), [({}, ("40", "20")), ({"dpi": (200, 200)}, ("20", "10"))]
)
def test_a_picture_has_its_size_on_the_page(tmp_path, dpi, size):
  path = _png(tmp_path / "a.png", 0, **dpi)
  (image,) = _Tags(_render(Section("P", pictures=(_picture(path, ""),)))).all(
    "img"
  )
  assert (image["width"], image["height"]) == size


def test_panels_stand_in_one_box_that_wraps(tmp_path):
  panels = tuple(Panel(_png(tmp_path / f"{n}.png", n)) for n in range(3))
  text = _render(Section("P", pictures=(Picture(panels, "Three."),)))
  tags = _Tags(text)
  assert [d["class"] for d in tags.all("div")] == ["panels"]
  assert [i["alt"] for i in tags.all("img")] == [
    f"Three. Panel {n} of 3." for n in (1, 2, 3)
  ]
  assert text.count("<figcaption>Three.</figcaption>") == 1
  assert re.search(r"\.panels \{[^}]*flex-wrap: wrap", text)


def test_headlines_come_first_and_files_are_linked():
  text = _render(
    headlines=(Headline("PACS <1>", ("COMEN minus DeepAll: +1.0.",)),),
    files=("report.md", "report.tex"),
  )
  parts = ("<h1>", "PACS &lt;1&gt;", "+1.0.", "What it is.", "report.md")
  places = [text.index(part) for part in parts]
  assert places == sorted(places)
  links = [a["href"] for a in _Tags(text).all("a")]
  assert links == ["./report.md", "./report.tex"]


def test_a_link_is_a_path_whatever_it_is_called():
  place = 'javascript:x"><b>/a b'
  text = _render(_table((Cell("x"), Cell(place, link=place))))
  (link,) = [a for a in _Tags(text).all("a") if not a["href"].startswith("#")]
  assert link["href"].startswith("./javascript%3Ax%22%3E%3Cb%3E/a%20b")


def test_every_section_is_in_the_contents_under_an_anchor_of_its_own():
  titles = ("PACS", "PACS", "Digits-DG", "§")
  tags = _Tags(_render(*(Section(title) for title in titles)))
  anchors = [s["id"] for s in tags.all("section")]
  assert anchors == ["pacs", "pacs-2", "digits-dg", "section"]
  links = [a["href"] for a in tags.all("a")]
  assert links[: len(titles)] == [f"#{a}" for a in anchors]


def test_cells_look_as_they_should():
  text = _render(
    _table(
      (Cell("Ours"),),
      (Cell("COMEN", bold=True), Cell("62.5 ± 0.4", bold=True, numeric=True)),
      (Cell("the paper's", muted=True), Cell("67.6", muted=True, numeric=True)),
      (Cell("no run"), Cell(numeric=True)),
      notes=("A note.",),
    )
  )
  assert '<th scope="rowgroup" colspan="2"><span>Ours</span></th>' in text
  assert '<th scope="row" class="bold">COMEN</th>' in text
  assert '<td class="bold numeric">62.5 ± 0.4</td>' in text
  assert '<td class="muted numeric">67.6</td>' in text
  assert '<td class="numeric"></td>' in text
  assert '<th scope="col" class="numeric">mnist</th>' in text
  assert '<p class="note">A note.</p>' in text


def test_a_hash_can_be_broken_and_is_still_whole():
  manifest = "71c3b8cc663141352d7c1a295aa5db06622ebe0c1bc183417d4b3935e5513220"
  command = (
    "python -m x --config.target=mnist_m --workdir ../runs/of/mine/first"
  )
  text = _render(_table((Cell(manifest), Cell(command))))
  assert manifest not in text
  plain = re.sub(r"<wbr>|</?span[^>]*>", "", text)
  assert manifest in plain
  assert command in plain
  pieces = re.findall(r"[0-9a-f]+(?=<wbr>|</th>)", text)
  assert max(map(len, pieces)) <= 10


def test_a_path_has_room_and_a_per_cent_sign_its_number():
  place = "../runs/mini_digits-pasted-comen-m3-seed0"
  text = _render(_table((Cell("12.5 %"), Cell(place, link=place))))
  assert {"class": "path"} in _Tags(text).all("td")
  assert re.search(r"\.path \{ min-width: \d+rem; \}", text)
  assert "12.5&nbsp;%" in text


def test_an_empty_report_is_a_page():
  tags = _Tags(_render(lead=()))
  assert tags.all("h1")
  assert not tags.all("nav")


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize("ground", ["background", "raised"])
@pytest.mark.parametrize("text", ["ink", "muted", "accent"])
def test_text_has_contrast(palette, ground, text):
  one, other = (_luminance(getattr(palette, n)) for n in (ground, text))
  lighter, darker = max(one, other), min(one, other)
  assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def _luminance(colour):
  """WCAG 2's relative luminance of "#rrggbb"."""
  values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
  linear = [
    v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values
  ]
  return np.dot(linear, [0.2126, 0.7152, 0.0722])
