"""Kinds of words, found in captions alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.training.word_kinds import COLOURS, PERSONS, find_kinds, stem


def kinds(*captions, least=1):
    return find_kinds([caption.split() for caption in captions], least)


def test_a_noun_stands_between_a_determiner_and_the_end_of_its_phrase():
    found = kinds("a dog in the snow .", "two dogs run .", "the dogs .", "a cat")
    assert found == {"dogs": "things", "dog": "thing", "snow": "thing", "cat": "thing"}


def test_an_attribute_stands_before_a_noun_and_a_colour_is_one_of_a_list():
    found = kinds("a wet dog .", "the wet street .", "a dog .", "the street in a red town .")
    assert found["wet"] == "attribute"
    assert found["red"] == "colour"
    assert (found["dog"], found["street"], found["town"]) == ("thing", "thing", "thing")


def test_a_noun_behind_attributes_is_found():
    found = kinds("a wet dog .", "a dog .", "a wet red shirt .", "the wet shirt .", "a wet dog in")
    assert found["shirt"] == "thing"


def test_verbs_are_no_nouns_though_they_are_now_and_then():
    captions = ["a man stands in the street ."] * 30 + ["a man in the stands ."]
    assert "stands" not in kinds(*captions)
    assert kinds(*captions)["street"] == "thing"


@pytest.mark.parametrize("word", ["background", "group", "head", "eyes", "that", "the", "two"])
def test_words_that_name_nothing_to_point_at_have_no_kind(word):
    assert word not in kinds(f"a {word} .", f"the {word} in a {word} .", f"{word}")


def test_rare_words_have_no_kind():
    captions = ["a dog ."] * 3 + ["a cat ."] * 2
    assert kinds(*captions, least=3) == {"dog": "thing"}


def test_signs_end_a_phrase():
    assert kinds("<start> a dog <end>") == {"dog": "thing"}
    assert kinds("a dog <unk>") == {"dog": "thing"}


def test_a_plural_is_known_by_its_singular_or_its_end():
    found = kinds("the bus .", "the men .", "the spectators .", "the glass .", "the jeans .")
    assert [found[w] for w in ("bus", "men", "spectators", "glass", "jeans")] == [
        "thing",
        "things",
        "things",
        "thing",
        "things",
    ]


@pytest.mark.parametrize(
    "family",
    [
        ("dog", "dogs"),
        ("run", "runs", "running", "runner", "runners"),
        ("ride", "rider", "riding", "rides"),
        ("snow", "snowy"),
        ("woman", "women"),
        ("puppy", "puppies"),
        ("grey",),
        ("grass",),
    ],
)
def test_words_of_one_family_share_a_stem(family):
    assert len({stem(word) for word in family}) == 1


def test_words_of_different_families_do_not():
    words = [
        "dog",
        "run",
        "ride",
        "snow",
        "woman",
        "man",
        "puppy",
        "grass",
        "glass",
        "bus",
        "red",
        "grey",
        "green",
    ]
    assert len({stem(word) for word in words}) == len(words)


@given(st.text(alphabet="abcdefginrsy", min_size=1, max_size=12))
def test_a_stem_begins_its_word_and_is_not_empty(word):
    root = stem(word)
    assert root
    assert word.startswith(root)


def test_lists_are_clean():
    assert not set(COLOURS) & PERSONS
    assert {"man", "women", "child", "people"} <= PERSONS
    assert COLOURS["grey"] == COLOURS["silver"] != COLOURS["black"]


SOME = st.sampled_from(["a", "the", "dog", "dogs", "red", "wet", "runs", "in", "."])


@given(st.lists(st.lists(SOME, max_size=8)))
def test_any_captions_give_kinds_of_their_own_words(captions):
    found = find_kinds(captions, least=1)
    assert set(found) <= {word for caption in captions for word in caption}
    assert not set(found) & {"a", "the", "in", "."}
