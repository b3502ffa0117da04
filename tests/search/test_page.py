"""The HTML report: self-contained, escaped, regions where they are."""

import re
from html.parser import HTMLParser

import pytest

import search_parts
from crossgaze.errors import InputError
from crossgaze.search.page import _card, page, write_page
from crossgaze.search.results import Hit, Look, Region

pytest.importorskip("lancedb", reason="needs crossgaze[search]")


class Tags(HTMLParser):
    """Collects tags and their attributes, and complains about what is left open."""

    def __init__(self):
        super().__init__()
        self.seen, self.open, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def index(tmp_path):
    search_parts.save_models(tmp_path)
    for number in range(3):
        search_parts.make_photo(tmp_path / "<img src=x onerror=alert(1)>" / f"{number}.png", number)
    made = search_parts.create(tmp_path)
    made.add(tmp_path / "<img src=x onerror=alert(1)>")
    return made


def read(text):
    tags = Tags()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    return tags


def test_nothing_of_a_user_is_taken_as_html_and_nothing_comes_from_elsewhere(index):
    query = "a red dog <script>alert(1)</script> </style> \" ' &"
    text = page(index, index.search(query))
    tags = read(text)
    kinds = {tag for tag, _ in tags.seen}
    assert "script" not in kinds
    assert all(not any(name.startswith("on") for name in attrs) for _, attrs in tags.seen)
    pictures = [attrs["src"] for tag, attrs in tags.seen if tag == "img"]
    assert len(pictures) == 3
    assert all(src.startswith("data:image/jpeg;base64,") for src in pictures)
    assert "http" not in re.sub('http-equiv="Content-Security-Policy"', "", text)
    assert query in "".join(tags.text)


def test_the_strongest_region_of_a_word_is_where_the_model_looked(index):
    found = index.search("red dog", k=1)
    hit = found.hits[0]
    looks = {look.word: look for look in index.look("red dog", hit)}
    tags = read(page(index, found))
    boxes = [attrs for tag, attrs in tags.seen if tag == "div" and "box" in attrs.get("class", "")]
    first = next(box for box in boxes if box["class"] == "box hover h0")
    x1, y1, x2, _ = hit.regions[looks["red"].strongest].box
    wanted = f"left:{x1 / 0.16:.2f}%;top:{y1 / 0.16:.2f}%;width:{(x2 - x1) / 0.16:.2f}%"
    assert first["style"].startswith(wanted)
    assert [attrs["class"] for tag, attrs in tags.seen if tag == "button"] == ["w0", "w1"]


def looked(word, strongest, regions=4):
    return Look(word, tuple(float(place == strongest) for place in range(regions)), strongest)


def test_labels_at_rest_are_not_cut_off_nor_over_each_other_and_no_unknown_word_has_one(tmp_path):
    boxes = ((0, 0, 50, 50), (5, 2, 60, 60), (90, 50, 100, 60), (0, 40, 20, 60))
    regions = tuple(Region(box) for box in boxes)
    photo = search_parts.make_photo(tmp_path / "x.png", 1)
    hit = Hit(1, 0.5, str(photo), 1, (), 100, 100, regions)
    looks = [looked("red", 0), looked("dog", 1), looked("runs", 2), looked("xyzzy", 3)]
    card = _card(hit, looks, ("xyzzy",))
    shown = re.findall(r'class="box (shown[^"]*)"[^>]*><b>([^<]+)</b>', card)
    assert shown == [("shown", "red"), ("shown low", "dog"), ("shown end", "runs")]
    assert "<b>xyzzy</b>" in card  # where it is pointed at
    assert _card(hit, looks[3:], ()).count("<b>xyzzy</b>") == 2
    photo.unlink()  # nothing is framed where there is no picture
    assert 'class="box' not in _card(hit, looks, ())


def test_sentences_and_a_photograph_that_is_gone(index, tmp_path):
    (tmp_path / "lines.txt").write_text("a dog <b>runs</b>\n")
    index.add_sentences(tmp_path / "lines.txt")
    picture = search_parts.make_photo(tmp_path / "query.png", 1)
    found = index.search(picture)
    next((tmp_path / "<img src=x onerror=alert(1)>").iterdir()).unlink()
    tags = read(page(index, found))
    assert "a dog <b>runs</b> " in tags.text
    assert any("no such file" in text for text in tags.text)
    assert "button" not in {tag for tag, _ in tags.seen}


def test_writing(index, tmp_path):
    found = index.search("red dog")
    write_page(index, found, tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text("utf-8") == page(index, found)
    with pytest.raises(InputError, match="is a folder"):
        write_page(index, found, tmp_path)
    with pytest.raises(InputError, match="its folder is not there"):
        write_page(index, found, tmp_path / "no" / "r.html")
