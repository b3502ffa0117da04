"""Nouns and attributes from phrases."""

import numpy as np
import pytest

from crossgaze.data.entities.annotations import EntityImage, parse_sentence
from crossgaze.vision.objects.words import Words, collect_words, phrase_words, singular


def image(*lines, boxed=("1",)):
    boxes = {name: np.array([[0, 0, 5, 5]], np.float32) for name in boxed}
    sentences = tuple(parse_sentence(line) for line in lines)
    return EntityImage("1", 10, 10, sentences, boxes, frozenset(), frozenset())


def test_words_are_lower_case_and_without_punctuation():
    assert phrase_words("A 2-year-old , Black dog 's") == ["a", "black", "dog"]


@pytest.mark.parametrize(
    ("word", "one"),
    [
        ("dogs", "dog"),
        ("boxes", "box"),
        ("puppies", "puppy"),
        ("men", "man"),
        ("grass", "grass"),
        ("shorts", "shorts"),
        ("lens", "lens"),
    ],
)
def test_singular(word, one):
    assert singular(word, {"dog", "box", "puppy", "man", "gras", "short"}) == one


def test_last_word_is_the_noun_and_the_words_before_describe_it():
    lines = ["[/EN#1/animals Two black dogs] run .", "[/EN#1/animals the wet dog] in it ."] * 2
    found = collect_words([image(*lines)], least=2)
    assert found == Words(nouns=("dog",), attributes=("black", "wet"))
    assert found.parse("a wet , wet , black Dog") == (0, (1, 0))
    assert found.parse("a zebra") == (None, ())
    assert found.parse("!") == (None, ())


def test_a_word_is_a_noun_or_an_attribute_as_it_is_used_more_often():
    lines = ["[/EN#1/people a black dog] .", "[/EN#1/people black dogs] .", "[/EN#1/x black] ."]
    assert collect_words([image(*lines)], least=1) == Words(("dog",), ("black",))


def test_phrases_without_a_box_and_rare_words_count_for_nothing():
    lines = ["[/EN#1/x a dog] on [/EN#2/scene a beach] .", "[/EN#1/x a dog] , [/EN#1/x a pup] ."]
    assert collect_words([image(*lines)], least=2) == Words(("dog",), ())
