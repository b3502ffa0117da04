"""From a photograph and a sentence to weights, for every family of models."""

import numpy as np
import pytest
import torch

from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError
from crossgaze.explain import explain
from crossgaze.explain.explaining import load_matchers, together
from crossgaze.explain.page import page
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.families import family
from crossgaze.models.text import TextConfig
from crossgaze.vision.photos import read_photo
from explain_parts import FAMILIES, SENTENCE, explained, matcher
from model_parts import save_bert
from search_parts import WIDTH, CellSource, make_photo

KINDS = {"vse++": "none", "vsrn": "regions", "m-dan": "steps"}


@pytest.fixture
def photo(tmp_path):
    return make_photo(tmp_path / "dog.png", 1)


def test_what_a_vse_without_attention_reads_is_said_as_it_is_configured(tmp_path):
    plain, both = (explained(tmp_path, "vse++", whole=whole) for whole in (False, True))
    assert "every region counts the same" in plain.meaning
    assert "half of what it reads is the whole image" in both.meaning
    assert "every region counts the same" not in both.meaning


@pytest.mark.parametrize("kind", FAMILIES)
def test_it_is_what_the_model_says_of_the_photographs_regions(photo, kind):
    model, source = matcher(kind), CellSource()
    seen = explain(model, photo, SENTENCE, source=source)
    small = read_photo(photo, source.size)
    (found,) = source([small], ["x"], lambda: None)
    with torch.inference_mode():
        images, texts = model.encode_images(found.features[None]), model.encode_texts([SENTENCE])
        wanted = model.attention(images, texts)
        assert seen.score == pytest.approx(float(model.similarity(images, texts)[0, 0]))
    assert seen.kind == KINDS.get(kind, "words")
    assert seen.names == wanted.names
    for mine, its in (
        (seen.weights, wanted.weights),
        (seen.region_weights, wanted.regions),
        (seen.word_weights, wanted.words),
    ):
        assert (mine is None) == (its is None)
        if its is not None:
            np.testing.assert_array_equal(mine, its[0].numpy())
    assert seen.words == ("<start>", "a", "red", "dog", "runs", ".", "<end>")
    assert [seen.words[number] for number in seen.shown] == ["a", "red", "dog", "runs"]
    assert seen.size == (16, 16)
    np.testing.assert_array_equal(seen.boxes, found.boxes)
    assert seen.labels[:2] == ("top left", "top right")
    assert seen.meaning
    assert ("no attention" in seen.meaning) == (seen.kind == "none")
    told = seen.to_dict()
    assert told["regions"][0] == {"box": [0, 0, 8, 8], "label": "top left"}
    assert [entry["name"] for entry in told["maps"]] == list(seen.names)
    if seen.weights is not None:
        np.testing.assert_allclose(told["maps"][0]["weights"], seen.weights[0], atol=1e-6)


@pytest.mark.parametrize("kind", ["bfan", "m-dan"])
def test_word_pieces_are_whole_words(photo, tmp_path, kind):
    save_bert(tmp_path, ("a", "red", "snow", "##board", "##er", "runs"))
    torch.manual_seed(0)
    made, config = family(kind)
    text = TextConfig(kind="bert", bert=str(tmp_path))
    model = made(config(region_width=WIDTH, size=8, text=text)).eval()
    source, sentence = CellSource(), "a red snowboarder runs"
    seen = explain(model, photo, sentence, source=source)
    (found,) = source([read_photo(photo, source.size)], ["x"], lambda: None)
    with torch.inference_mode():
        images, texts = model.encode_images(found.features[None]), model.encode_texts([sentence])
        pieces = model.attention(images, texts)
    assert seen.words == ("[CLS]", "a", "red", "snowboarder", "runs", "[SEP]")
    if kind == "m-dan":
        wanted = pieces.words[0].numpy()
        np.testing.assert_allclose(seen.word_weights[:, 3], wanted[:, 3:6].sum(1), rtol=1e-5)
        np.testing.assert_allclose(seen.word_weights.sum(1), 1, rtol=1e-5)
        return
    words, regions = pieces.weights[0].numpy()  # t-i and i-t, (pieces, k)
    np.testing.assert_allclose(seen.weights[0, 3], words[3:6].mean(0), rtol=1e-5)
    np.testing.assert_allclose(seen.weights[1, 3], regions[3:6].sum(0), rtol=1e-5)
    np.testing.assert_array_equal(seen.weights[:, 4], pieces.weights[0, :, 6].numpy())
    assert "##" not in page(seen)


def test_words_that_a_bert_was_never_taught_are_told(photo, tmp_path):
    save_bert(tmp_path, ("a", "red", "xy", "##zzy", "runs"))
    made, config = family("bfan")
    text = TextConfig(kind="bert", bert=str(tmp_path))
    model = made(config(region_width=WIDTH, size=8, text=text)).eval()
    model.text.seen = frozenset({"a", "red"})
    seen = explain(model, photo, "a red xyzzy runs", source=CellSource())
    assert seen.unknown == ("xyzzy",)
    assert "words that the model does not know: xyzzy" in seen.notes
    assert 'class="unknown"' in page(seen)
    with pytest.raises(InputError, match="sentence: the model knows no word of 'xyzzy'"):
        explain(model, photo, "xyzzy", source=CellSource())


def test_directions_and_heads_are_views(tmp_path):
    assert explained(tmp_path, "bfan").views == ("t-i", "i-t")
    seen = explained(tmp_path, "mmca")
    assert seen.views == ("mean of the heads", "head 1", "head 2")
    np.testing.assert_allclose(seen.view(), seen.weights.mean(0))
    np.testing.assert_array_equal(seen.view("head 2"), seen.weights[1])
    with pytest.raises(InputError, match=r"map: got 'head 3' \(did you mean 'head 2'\?\)"):
        seen.view("head 3")
    self_only = explained(tmp_path, "mmca", modules="self")
    assert self_only.kind == "none"
    assert "never meet" in self_only.meaning
    with pytest.raises(InputError, match="vse"):
        explained(tmp_path, "vse++").view()


def test_unknown_words_are_told_and_a_sentence_of_them_alone_is_refused(photo):
    seen = explain(matcher(), photo, "a zork runs", source=CellSource())
    assert seen.unknown == ("zork",)
    assert seen.words == ("<start>", "a", "zork", "runs", "<end>")
    assert seen.notes == ("words that the model does not know: zork",)
    with pytest.raises(InputError, match="sentence: the model knows no word of 'zork'"):
        explain(matcher(), photo, "zork", source=CellSource())
    with pytest.raises(InputError, match="sentence: '' has no word in it"):
        explain(matcher(), photo, "", source=CellSource())


def test_of_several_models_in_one_each_looks_for_itself(photo, tmp_path):
    both = Ensemble([matcher(), matcher("bfan")])
    both.save_pretrained(tmp_path / "both")
    with pytest.raises(InputError, match=r"explain them one by one \(both/0 and both/1\)"):
        explain(tmp_path / "both", photo, SENTENCE)
    source, pairs = CellSource(), load_matchers(tmp_path / "both")
    seen = [explain(one, photo, SENTENCE, source=source, name=name) for name, one in pairs]
    assert [(one.model, one.family) for one in seen] == [("both/0", "scan"), ("both/1", "bfan")]
    (found,) = source([read_photo(photo, source.size)], ["x"], lambda: None)
    with torch.inference_mode():
        sides = both.encode_images(found.features[None]), both.encode_texts([SENTENCE])
        score, looks = float(both.similarity(*sides)[0, 0]), both.attention(*sides)
    for one, its in zip(together(seen), looks, strict=True):
        np.testing.assert_allclose(one.weights, its.weights[0].numpy(), atol=1e-6)
        assert one.notes == (
            f"one of 2 models that score together: {score:.3f}, the mean of theirs",
        )
    assert together(seen[:1]) == (seen[0],)
    assert load_matchers(both)[0] == ("ensemble/0", both.matchers[0])
    seen = explain(tmp_path / "both" / "1", photo, SENTENCE, source=CellSource(), name="mine")
    assert (seen.family, seen.model) == ("bfan", "mine")


def test_regions_of_another_width_are_refused(photo):
    model = matcher()
    source = CellSource()
    (found,) = source([read_photo(photo, 8)], ["x"], lambda: None)
    narrow = type("Narrow", (CellSource,), {"width": 5})()
    narrow.__class__.__call__ = lambda *_: [
        type(found)(found.features[:, :5], found.boxes, found.fields)
    ]
    with pytest.raises(InputError, match="regions: have width 5, the model takes 6"):
        explain(model, photo, SENTENCE, source=narrow)


def test_regions_may_come_from_a_store(photo, tmp_path):
    rng = np.random.default_rng(0)
    boxes = np.array([[[0, 0, 8, 16], [8, 0, 16, 16], [0, 0, 0, 0]]], np.float32)
    features = rng.normal(size=(1, 3, 6)).astype(np.float32)
    fields = ["counts", "boxes", "sizes", "classes", "attributes"]
    labels = {"classes": ["cat", "dog"], "attributes": ["red"]}
    with RegionWriter(
        tmp_path / "store", 3, 6, dtype="float32", fields=fields, labels=labels
    ) as writer:
        writer.append(
            ["dog.png"],
            features,
            counts=np.array([2]),
            boxes=boxes,
            sizes=np.array([[16, 16]]),
            classes=np.array([[1, 0, -1]]),
            attributes=np.array([[0, -1, -1]]),
        )
    seen = explain(matcher(), photo, SENTENCE, store=tmp_path / "store")
    np.testing.assert_array_equal(seen.boxes, [[0, 0, 0.5, 1], [0.5, 0, 1, 1]])
    assert seen.labels == ("red dog", "cat")
    model = matcher()
    with torch.inference_mode():
        wanted = model.attention(
            model.encode_images(features[:, :2]), model.encode_texts([SENTENCE])
        )
    np.testing.assert_allclose(seen.weights, wanted.weights[0].numpy(), atol=1e-6)
    other = make_photo(tmp_path / "other.png", 2)
    with pytest.raises(InputError, match=r"has no image 'other\.png'"):
        explain(matcher(), other, SENTENCE, store=tmp_path / "store")


def test_a_store_without_places_is_refused(photo, tmp_path):
    with RegionWriter(tmp_path / "store", 2, 6, fields=[]) as writer:
        writer.append(["dog.png"], np.ones((1, 2, 6)))
    with pytest.raises(InputError, match="has no boxes or no sizes"):
        explain(matcher(), photo, SENTENCE, store=tmp_path / "store")
