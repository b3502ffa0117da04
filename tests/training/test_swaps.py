"""Swapped words: of the same kind, and truly different; drawn the same way again."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.captions.flickr8k import read_flickr8k
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.text import TextConfig, build_text
from crossgaze.training.swaps import SwapSampler, word_list
from crossgaze.training.word_kinds import COLOURS, PERSONS, stem
from model_parts import save_bert
from support import SHARED, needs_shared

# Two captions an image. bike and bicycle are said of the same image; snow has a compound.
IMAGES = [
    ["a red bike in the street .", "the bicycle in a road ."],
    ["a bike near the car .", "two bicycles ."],
    ["a dog in the snow .", "a wet animal ."],
    ["the man in a grey car .", "a person in the car ."],
    ["a snowboard .", "the silver ball in the house ."],
    ["a dirty ball on the wet grass .", "a green field with the ball ."],
    ["two dogs in the grass .", "the cats in a field ."],
    ["a woman with a cat .", "the blue house ."],
    ["a tall house .", "the tall tree ."],
]
CAPTIONS = [caption for captions in IMAGES for caption in captions]
OWNERS = [image for image, captions in enumerate(IMAGES) for _ in captions]


def sampler(captions=CAPTIONS, owners=OWNERS, least=1):
    vocabulary = Vocabulary.build(captions, min_count=1)
    return vocabulary, SwapSampler(
        [vocabulary.encode(caption) for caption in captions], owners, vocabulary.words, least
    )


def batch(vocabulary, captions):
    rows = [vocabulary.encode(caption) for caption in captions]
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.zeros(len(rows), int(lengths.max()) + 2, dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
    return ids, lengths


def options(made, word, image):
    return {w for w, p in zip(made.words, made.replacements(word, image), strict=True) if p > 0}


# What may replace what ------------------------------------------------------------------------


def test_a_replacement_is_of_the_same_kind():
    _, made = sampler()
    assert options(made, "red", 0) == {"grey", "silver", "green", "blue"}
    assert options(made, "dogs", 6) == {"bicycles"}
    assert options(made, "wet", 2) == {"tall"}  # not dirty: they keep company in image 5


def test_no_word_of_any_caption_of_the_image():
    _, made = sampler()
    found = options(made, "dog", 2)
    assert "bike" in found
    assert not found & {"dog", "snow", "animal"}


def test_no_plural_and_no_compound_of_the_images_words():
    _, made = sampler()
    assert "snowboard" not in options(made, "dog", 2)  # snow is in the image's captions
    assert "dog" not in options(made, "cats", 6)
    assert "bicycles" not in options(made, "dogs", 1)


def test_no_synonym_that_the_corpus_knows():
    _, made = sampler()
    found = options(made, "bike", 4)  # an image that has neither
    assert "bicycle" not in found
    assert "dog" in found


def test_no_colour_of_the_same_family():
    _, made = sampler()
    assert options(made, "grey", 3) == {"red", "green", "blue"}


def test_no_person_for_a_person_and_none_where_there_is_one():
    _, made = sampler()
    assert "dog" in options(made, "man", 3)
    for image in range(len(IMAGES)):
        assert not options(made, "man", image) & PERSONS
    assert not options(made, "car", 3) & PERSONS
    assert {"man", "woman"} <= options(made, "dog", 2)


def test_replacements_are_drawn_as_often_as_they_occur():
    captions = ["a dog ."] + ["a car ."] * 30 + ["a tree ."] * 10
    vocabulary, made = sampler(captions, list(range(len(captions))))
    chances = dict(zip(made.words, made.replacements("dog", 0), strict=True))
    assert chances == pytest.approx({"car": 0.75, "tree": 0.25, "dog": 0.0})
    ids, lengths = batch(vocabulary, ["a dog ."] * 800)
    swaps = made.sample(ids, lengths, [0] * 800, np.random.default_rng(0))
    drawn = Counter(vocabulary.words[i] for i in swaps.ids[:, 2].tolist())
    assert set(drawn) == {"car", "tree"}
    assert 550 < drawn["car"] < 650  # 600 expected, a spread of 12


# Sentences ------------------------------------------------------------------------------------


def test_one_word_changes_and_its_place_is_told():
    vocabulary, made = sampler()
    ids, lengths = batch(vocabulary, CAPTIONS)
    before = ids.clone()
    swaps = made.sample(ids, lengths, OWNERS, np.random.default_rng(1))
    assert torch.equal(ids, before)  # the caller's own stay
    assert torch.equal(swaps.lengths, lengths)
    assert swaps.found.any()
    for row in range(len(ids)):
        changed = (swaps.ids[row] != ids[row]).nonzero().flatten().tolist()
        assert changed == ([int(swaps.places[row])] if swaps.found[row] else [])


def test_a_sentence_without_a_word_to_swap_stays():
    vocabulary, made = sampler()
    ids, lengths = batch(vocabulary, ["in the .", "two dogs"])
    swaps = made.sample(ids, lengths, [0, 6], np.random.default_rng(0))
    assert swaps.found.tolist() == [False, True]
    assert swaps.places.tolist() == [0, 2]


def test_every_word_of_a_sentence_gets_its_turn():
    vocabulary, made = sampler()
    ids, lengths = batch(vocabulary, ["a red bike in the street ."] * 200)
    swaps = made.sample(ids, lengths, [0] * 200, np.random.default_rng(0))
    turns = Counter(swaps.places.tolist())
    assert set(turns) == {2, 3, 6}
    assert min(turns.values()) > 40


def test_words_past_the_end_are_left_alone():
    vocabulary, made = sampler()
    ids, lengths = batch(vocabulary, ["in the ."])
    ids[0, int(lengths[0]) :] = vocabulary.encode("dog")[1]
    assert not made.sample(ids, lengths, [0], np.random.default_rng(0)).found.any()


@given(st.integers(0, 2**32 - 1), st.permutations(range(len(CAPTIONS))))
@settings(max_examples=20, deadline=None)
def test_the_same_generator_draws_the_same(seed, order):
    vocabulary, made = sampler()
    ids, lengths = batch(vocabulary, [CAPTIONS[i] for i in order])
    owners = [OWNERS[i] for i in order]
    one, two = (made.sample(ids, lengths, owners, np.random.default_rng(seed)) for _ in range(2))
    assert torch.equal(one.ids, two.ids)
    assert torch.equal(one.places, two.places)


def test_images_may_be_a_tensor_and_any_numbers():
    vocabulary, made = sampler(owners=[100 + 7 * owner for owner in OWNERS])
    ids, lengths = batch(vocabulary, CAPTIONS[:1])
    assert made.sample(ids, lengths, torch.tensor([100]), np.random.default_rng(0)).found.all()
    with pytest.raises(InputError, match="images: 3 has no caption"):
        made.sample(ids, lengths, [3], np.random.default_rng(0))


def test_no_captions_no_swaps():
    made = SwapSampler([], [], ["<pad>", "a"])
    assert made.words == ()


def test_a_word_without_a_kind_is_refused():
    with pytest.raises(InputError, match=r"word: 'snaw' has no kind \(did you mean 'snow'\?\)"):
        sampler()[1].replacements("snaw", 0)


def test_owners_must_fit():
    with pytest.raises(InputError, match=r"image_of: got shape \(1,\), wanted \(2,\)"):
        SwapSampler([[1], [1]], [0], ["<pad>", "a"])


# Word pieces ----------------------------------------------------------------------------------


def test_a_word_of_several_pieces_is_not_torn():
    words = ["[CLS]", "[SEP]", "a", "dog", "##gy", "car", "."]
    captions = [[0, 2, 3, 6, 1], [0, 2, 5, 6, 1], [0, 2, 3, 4, 6, 1]]
    made = SwapSampler(captions, [0, 1, 2], words, least=1)
    ids = torch.tensor([[0, 2, 3, 6, 1], [0, 2, 3, 4, 6]])
    swaps = made.sample(ids, torch.tensor([5, 5]), [0, 2], np.random.default_rng(0))
    assert swaps.found.tolist() == [True, False]
    assert swaps.ids[0].tolist() == [0, 2, 5, 6, 1]


def test_the_words_of_a_text_encoder(tmp_path):
    vocabulary = Vocabulary.build(["a dog"], min_count=1)
    config = TextConfig(kind="gru", word_size=2)
    assert word_list(build_text(config, 4, vocabulary)) == vocabulary.words
    with pytest.raises(InputError, match="text: has numbers of words only"):
        word_list(build_text(config, 4, 5))
    save_bert(tmp_path)
    bert = build_text(TextConfig(kind="bert", bert=str(tmp_path)), 4, None)
    words = word_list(bert)
    assert [words[i] for i in bert.tokenize("a dogs")] == bert.tokens("a dogs")


# Real captions --------------------------------------------------------------------------------


@needs_shared
def test_on_flickr8k_nearly_every_caption_has_a_sound_swap():
    data = read_flickr8k(SHARED / "data" / "flickr8k").split("dev")
    vocabulary, made = sampler(data.captions, data.image_of, least=5)
    ids, lengths = batch(vocabulary, data.captions)
    swaps = made.sample(ids, lengths, data.image_of, np.random.default_rng(0))
    assert swaps.found.float().mean() > 0.97
    for row in range(0, len(ids), 7):
        if not swaps.found[row]:
            continue
        place = int(swaps.places[row])
        old, new = (vocabulary.words[int(x[row, place])] for x in (ids, swaps.ids))
        said = {
            word
            for caption in data.captions_of(int(data.image_of[row]))
            for word in vocabulary.decode(vocabulary.encode(caption))
        }
        assert made.kinds[old] == made.kinds[new]
        assert stem(new) not in {stem(word) for word in said}
        if new in PERSONS:
            assert not said & PERSONS
        if old in COLOURS:
            assert COLOURS[old] != COLOURS[new]
