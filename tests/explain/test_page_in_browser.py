"""The page of an explanation in a real browser: point, tap and keys, with nobody asked."""

import numpy as np
import pytest

from browser_parts import chromium, expect, needs_chromium, page_of
from crossgaze.explain.page import page as written
from explain_parts import explained, made_up

pytestmark = needs_chromium
EVIL = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


@pytest.fixture
def opened(browser, tmp_path):
    """Open explanations as a file, as a person would; at the end nothing may have gone wrong."""
    pages = []

    def open_file(seen, view=None, **how):
        file = tmp_path / "seen.html"
        file.write_text(written(seen, view), "utf-8")
        context = page_of(browser, **({"viewport": {"width": 1000, "height": 800}} | how))
        page = context.__enter__()
        pages.append((context, page))
        page.goto(file.as_uri())
        return page

    yield open_file
    for context, page in pages:
        assert page.complaints == []
        assert all(url.startswith(("file:", "data:")) for url in page.asked)
        context.__exit__(None, None, None)


def chip(page, word):
    return page.get_by_role("button", name=word, exact=True)


def test_pointing_at_a_word_lights_and_frames_its_strongest_region(opened):
    page = opened(made_up())
    chip(page, "red").hover()
    expect(page.locator(".told")).to_have_text(
        "“red” looks at region 2 (90\u00a0%), red cat (10\u00a0%)."
    )
    expect(page.locator(".veil")).to_be_visible()
    frame, stage = (page.locator(name).bounding_box() for name in (".frame", ".stage"))
    assert frame["x"] == pytest.approx(stage["x"] + stage["width"] / 2, abs=3)
    assert frame["width"] == pytest.approx(stage["width"] / 2, abs=6)
    first = page.locator(".veil").get_attribute("src")
    chip(page, "dog").hover()
    expect(page.locator(".told")).to_contain_text("“dog” looks at")
    assert page.locator(".veil").get_attribute("src") != first


def test_the_veil_darkens_what_a_word_does_not_look_at(opened):
    page = opened(made_up(weights=((0.0, 1.0), (1.0, 0.0))))
    for word, bright in (("red", 1), ("dog", 0)):
        chip(page, word).hover()
        expect(page.locator(".told")).to_contain_text(f"“{word}”")
        dark = page.evaluate(
            """async () => {
              const veil = document.querySelector(".veil"); await veil.decode();
              const canvas = document.createElement("canvas");
              canvas.width = veil.naturalWidth; canvas.height = veil.naturalHeight;
              const pen = canvas.getContext("2d"); pen.drawImage(veil, 0, 0);
              const row = canvas.height >> 1;
              return [0.2, 0.8].map((x) => pen.getImageData(x * canvas.width, row, 1, 1).data[3]);
            }"""
        )
        assert dark[bright] < dark[1 - bright] - 60


def test_pointing_at_a_region_tells_its_words(opened):
    page = opened(made_up())
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    told = page.locator(".told")
    expect(told).to_have_text(
        "red cat (1 of 2) is looked at by “dog” (50\u00a0%), “red” (10\u00a0%)."
    )
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + box["height"] / 2)
    expect(told).to_contain_text("(2 of 2)")


def test_a_click_holds_a_word_also_where_another_was_held(opened):
    page = opened(made_up())
    chip(page, "red").click()
    chip(page, "dog").click()
    chip(page, "red").hover()  # changes nothing, as "dog" is held
    expect(page.locator(".told")).to_contain_text("“dog” looks at")
    chip(page, "dog").click()  # lets it go
    chip(page, "red").hover()
    expect(page.locator(".told")).to_contain_text("“red” looks at")


def test_keys_alone_are_enough(opened):
    page = opened(made_up())
    page.keyboard.press("Tab")  # the photograph
    page.keyboard.press("ArrowRight")
    expect(page.locator(".told")).to_contain_text("(1 of 2)")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".told")).to_contain_text("(2 of 2)")
    page.keyboard.press("Tab")
    expect(page.locator(".told")).to_contain_text("“red” looks at")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".told")).to_contain_text("“dog” looks at")
    expect(chip(page, "dog")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(page.locator(".told")).to_have_text("Point at a word or a region.")
    expect(page.locator(".veil")).to_be_hidden()


def test_a_tap_on_a_phone_lights_and_nothing_is_wider_than_it(opened):
    page = opened(made_up(), viewport={"width": 360, "height": 700}, has_touch=True)
    chip(page, "red").tap()
    expect(page.locator(".told")).to_contain_text("“red” looks at")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


PHONE = {"viewport": {"width": 390, "height": 780}}
LONG = "donaudampfschifffahrtsgesellschaftskapitaenswitwenundwaisenversorgungskasse"


def test_a_word_that_is_longer_than_a_phone_is_wide_is_broken(opened):
    page = opened(made_up(words=(LONG, "dog"), labels=("red cat", LONG)), **PHONE)
    for word in (LONG, "dog"):
        chip(page, word).click()
        expect(page.locator(".told")).to_contain_text(f"“{word}” looks at")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        for place in ("h1", ".words", ".words > *", ".frame b"):
            box = page.locator(place).first.bounding_box()
            assert 0 <= box["x"] <= box["x"] + box["width"] <= 390, place


@pytest.mark.parametrize("size", [(80, 16), (80, 80)])
def test_a_label_is_seen_whole(opened, size):
    boxes = [[0.5, 0.1, 0.7, 1], [0.9, 0.3, 1, 0.5], [0, 0, 1, 1], [0, 0, 0.1, 0.3]]
    words = ("one", "two", "three", "four")
    seen = made_up(
        weights=np.eye(4, dtype=np.float32),
        words=words,
        boxes=np.array(boxes, np.float32),
        labels=("a large striped umbrella",) * 4,
        size=size,
    )
    page = opened(seen, reduced_motion="reduce", **PHONE)
    for word in words:
        chip(page, word).click()
        expect(chip(page, word)).to_have_attribute("aria-pressed", "true")
        stage, label = (page.locator(place).bounding_box() for place in (".stage", ".frame b"))
        assert label["x"] >= stage["x"] - 0.1
        assert label["y"] >= stage["y"] - 0.1
        assert label["x"] + label["width"] <= stage["x"] + stage["width"] + 0.1
        assert label["y"] + label["height"] <= stage["y"] + stage["height"] + 0.1


def test_the_step_that_is_pressed_is_shown(opened, tmp_path):
    seen = explained(tmp_path, "m-dan")
    page = opened(seen)
    veils = []
    for step, word_weights in enumerate(seen.word_weights):
        tab = page.get_by_role("button", name=f"step {step + 1}", exact=True)
        if step:
            tab.click()
        expect(tab).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".views [aria-pressed=true]")).to_have_count(1)
        expect(page.locator(".veil")).to_be_visible()
        veils.append(page.locator(".veil").get_attribute("src"))
        shares = page.locator(".words > *").evaluate_all(
            "all => all.map((one) => +one.style.getPropertyValue('--share'))"
        )
        read = word_weights[1:-1]  # without <start>, <end>
        assert shares == pytest.approx(read / read.max(), abs=2e-3)
    assert len(set(veils)) == len(veils) == 2
    chip(page, "dog").hover()
    expect(page.locator(".told")).to_contain_text("of step 1, ")


def test_a_region_tells_its_rank_by_agreement_with_the_image(opened, tmp_path):
    seen = explained(tmp_path, "vsrn")
    page = opened(seen)
    expect(page.locator(".veil")).to_be_visible()
    place = page.locator(".stage").bounding_box()
    order = (-seen.region_weights[0]).argsort().tolist()
    for region, (x1, y1, x2, y2) in enumerate(seen.boxes.tolist()):
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        page.mouse.move(place["x"] + x * place["width"], place["y"] + y * place["height"])
        rank = order.index(region) + 1
        expect(page.locator(".told")).to_have_text(
            f"{seen.labels[region]} ({region + 1} of {len(seen.boxes)}) is number {rank} by "
            "agreement with the whole image."
        )
        expect(page.locator(".frame")).to_be_visible()
    page.mouse.move(1, 1)
    expect(page.locator(".told")).to_contain_text("Bright regions agree most")


def test_the_other_direction_is_pressed_or_opened_with(opened, tmp_path):
    seen = explained(tmp_path, "bfan")
    weights, there = seen.view("i-t"), seen.view("t-i")
    # The word whose two maps differ most, each as a share of its largest: so must its veils.
    shares = [one / one.max(axis=1, keepdims=True) for one in (weights, there)]
    word = max(seen.shown, key=lambda number: abs(shares[0][number] - shares[1][number]).max())
    told, begins = (
        f"“{seen.words[number]}” is looked at by {seen.labels[weights[number].argmax()]} "
        for number in (word, max(seen.shown, key=lambda number: weights[number].max()))
    )
    page = opened(seen)
    chip(page, seen.words[word]).hover()
    expect(page.locator(".told")).to_contain_text(f"“{seen.words[word]}” looks at ")
    ahead = page.locator(".veil").get_attribute("src")
    tab = page.get_by_role("button", name="i-t", exact=True)
    expect(tab).to_have_attribute("aria-pressed", "false")
    tab.click()
    expect(tab).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".told")).to_contain_text(told)
    assert page.locator(".veil").get_attribute("src") != ahead
    page = opened(seen, view="i-t")
    tab = page.get_by_role("button", name="i-t", exact=True)
    expect(tab).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".told")).to_contain_text(begins)  # with the word that it begins with


def test_models_side_by_side_light_the_same_word(opened, tmp_path):
    pair = [explained(tmp_path, name="one"), explained(tmp_path, "bfan", name="other")]
    page = opened(pair)
    page.locator(".model").first.get_by_role("button", name="dog", exact=True).hover()
    for told in page.locator(".told").all():
        expect(told).to_contain_text("“dog”")


def test_markup_in_a_sentence_is_shown_and_not_run(opened):
    page = opened(made_up(words=(EVIL, "dog"), labels=(EVIL, "")))
    chip(page, EVIL).hover()
    expect(page.locator(".told")).to_contain_text(EVIL)
    assert page.title() != "1"
    assert page.locator("img[src=x]").count() == 0
