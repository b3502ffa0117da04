"""The page: self-contained, escaped, with the weights that the model gave."""

import base64
import hashlib
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from crossgaze.explain.drawing import DARK
from crossgaze.explain.maps import soft_map
from crossgaze.explain.page import page
from explain_parts import FAMILIES, explained, made_up


class Tags(HTMLParser):
    """Collects tags and texts, and complains about what is left open."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.open, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["script"]:
            self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.seen if name == tag]


def data_of(text):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(found)


def test_nothing_of_a_user_is_taken_as_html_and_nothing_comes_from_elsewhere():
    bad = "</script><script>alert(1)</script>"
    seen = made_up(
        sentence=f"{bad} & \" '",
        words=(bad, "dog"),
        model=bad,
        labels=(bad, "</style>"),
        notes=(bad,),
        meaning=bad,
        unknown=(bad,),
    )
    text = page(seen)
    tags = Tags(text)
    assert len(tags.all("script")) == 2
    assert not [name for _, attrs in tags.seen for name in attrs if name.startswith("on")]
    assert f"{bad} & \" '" in tags.text
    assert "http" not in text.replace("http-equiv", "")
    for attrs in tags.all("img"):
        assert attrs.get("src", "data:").startswith("data:")
    (data,) = data_of(text)
    assert (data["words"][0], data["labels"][0]) == (bad, bad)


def test_the_policy_lets_only_this_script_run():
    text = page(made_up())
    policy = Tags(text).all("meta")[1]["content"]
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "innerHTML" not in script


def test_the_script_gets_weights_boxes_and_veils():
    seen = made_up(((0.1, 0.9), (0.5, 0.5), (0, 0)), ("the", "dog", "."))
    (data,) = data_of(page(seen))
    assert data["boxes"] == [[0, 0, 50, 100], [50, 0, 50, 100]]
    assert data["labels"] == ["red cat", "region 2"]
    (view,) = data["views"]
    assert view["weights"] == {"0": [0.1, 0.9], "1": [0.5, 0.5]}
    assert data["start"] == 1  # "the" looked more decidedly, but says little
    veil = base64.b64decode(view["veils"]["0"].split(",")[1])
    with Image.open(io.BytesIO(veil)) as picture:
        alpha = np.asarray(picture)[..., 1] / 255
    lit = soft_map(seen.boxes, seen.weights[0, 0], *alpha.shape[::-1])
    np.testing.assert_allclose(alpha, (1 - DARK) * (1 - lit), atol=3 / 255)


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_family_has_a_page(tmp_path, kind):
    seen = explained(tmp_path, kind)
    text = page(seen)
    tags, (data,) = Tags(text), data_of(text)
    chips = [attrs["data-word"] for attrs in tags.all("button") if "data-word" in attrs]
    assert chips == ([str(n) for n in seen.shown] if seen.kind in ("words", "steps") else [])
    assert [view["name"] for view in data["views"]] == list(seen.views)
    assert len(data["boxes"]) == len(seen.boxes)
    assert bool(tags.all("table")) == (seen.kind == "words")
    if kind == "bfan":
        assert [view["back"] for view in data["views"]] == [False, True]
    if kind == "m-dan":
        words = [view["words"] for view in data["views"]]
        np.testing.assert_allclose(  # without <start> and <end>
            [list(row.values()) for row in words], seen.word_weights[:, 1:-1], rtol=1e-3
        )
        every = [attrs for tag in ("button", "span") for attrs in tags.all(tag)]
        shown = sorted(int(attrs["data-word"]) for attrs in every if "data-word" in attrs)
        assert shown == list(range(1, len(seen.words) - 1))


def test_a_regions_number_and_its_share_are_told_apart():
    assert "<td>region 2 (90.0 %)</td><td>red cat (10.0 %)</td>" in page(made_up())


def test_it_opens_with_the_map_that_was_chosen(tmp_path):
    # By the first map "dog" looked most decidedly somewhere, by the second "red" was.
    ahead, back = ((0.5, 0.5), (0.1, 0.9)), ((0.7, 0.3), (0.2, 0.2))
    weights = np.array([ahead, back], np.float32)
    seen = replace(made_up(), names=("t-i", "i-t"), weights=weights)
    for view, opened, word in ((None, 0, 1), ("t-i", 0, 1), ("i-t", 1, 0)):
        text = page(seen, view)
        (data,) = data_of(text)
        assert (data["view"], data["start"]) == (opened, word)
        assert [one["name"] for one in data["views"]] == ["t-i", "i-t"]
        assert f"of every word ({seen.names[opened]})" in text
    # One of two models may have no such map.
    assert [data["view"] for data in data_of(page([seen, made_up()], "i-t"))] == [1, 0]
    assert [data["view"] for data in data_of(page(explained(tmp_path, "vse++"), "i-t"))] == [0]
    assert data_of(page(explained(tmp_path, "m-dan"), "step 2"))[0]["view"] == 1


def test_two_models_are_two_sections(tmp_path):
    both = [explained(tmp_path, "scan", name="one"), explained(tmp_path, "bfan", name="two")]
    text = page(both)
    tags = Tags(text)
    assert len(tags.all("section")) == len(data_of(text)) == 2
    assert {"one ", "two "} <= set(tags.text)
