"""Linking the words of two spellings of one sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.data.entities.word_links import fold, link_words


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("T-Shirt", "tshirt"), ("Café", "cafe"), ("Straße", "strasse"), ("#33", "33"), ("_.", "")],
)
def test_fold(word, wanted):
    assert fold(word) == wanted


def test_links_and_similarity_by_hand():
    # One change of 1 in 5 letters, one word left out: cost 1.2 of 4 words.
    links, similarity = link_words(["the", "small", "gray", "cat"], ["the", "smale", "cat"])
    assert links == [(0, 1), (1, 2), None, (2, 3)]
    assert similarity == pytest.approx(1 - 1.2 / 4)
    # 'blondehair' is 1 in 10 letters from 'blondhair', counted for two words.
    links, similarity = link_words(["blonde", "hair", "now"], ["blondhair", "now"])
    assert links == [(0, 1), (0, 1), (1, 2)]
    assert similarity == pytest.approx(1 - 0.2 / 3)
    # An article is missing, not swallowed.
    assert link_words(["a", "woman", "sits"], ["woman", "sits"])[0] == [None, (0, 1), (1, 2)]
    assert link_words([], ["a"]) == ([], 0.0)
    assert link_words(["", "a"], [""]) == ([None, None], 0.0)


def test_what_nobody_wrote_is_not_compared_letter_by_letter():
    long = "ab" * 5000
    assert link_words(["a", long], ["a", long + "c"]) == ([(0, 1), (1, 2)], 0.5)
    many = ["a"] * 1001
    assert link_words(many, many)[1] == 1
    assert link_words(many, [*many, "b"]) == ([None] * 1001, 0.0)


@given(st.lists(st.sampled_from(["ab", "abc", "b", "cab"]), min_size=1, max_size=5), st.data())
def test_similarity_is_at_least_that_of_the_best_one_to_one_links(left, data):
    right = data.draw(st.lists(st.sampled_from(["ab", "ac", "bc", "cab"]), min_size=1, max_size=5))

    def plain(a, b):
        """Word edits without joins, straight from the definition."""
        if not a or not b:
            return len(a) + len(b)
        change = edits(a[0], b[0]) / max(len(a[0]), len(b[0]))
        return min(change + plain(a[1:], b[1:]), 1 + plain(a[1:], b), 1 + plain(a, b[1:]))

    def edits(a, b):
        if not a or not b:
            return len(a) + len(b)
        return min((a[0] != b[0]) + edits(a[1:], b[1:]), 1 + edits(a[1:], b), 1 + edits(a, b[1:]))

    bound = 1 - plain(left, right) / max(len(left), len(right))
    assert link_words(left, right)[1] >= bound - 1e-9
