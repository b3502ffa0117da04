"""Word pieces put together again, beside loops over the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.models.pieces import join_pieces, mean_of_pieces, sum_of_pieces

CUT = st.lists(st.integers(1, 4), min_size=1, max_size=6)  # pieces of each word


def pieces_of(cut):
    return [f"{'##' if n else ''}{word}{n}" for word, count in enumerate(cut) for n in range(count)]


def test_words_are_joined_and_marks_stay():
    pieces = ["[CLS]", "a", "snow", "##board", "##er", ",", "dog", "##s", "[SEP]"]
    words, starts = join_pieces(pieces)
    assert words == ("[CLS]", "a", "snowboarder", ",", "dogs", "[SEP]")
    assert starts == (0, 1, 2, 5, 6, 8)


@pytest.mark.parametrize("pieces", [["##", "a"], ["##a", "b"], ["<start>", "a", "<end>"], ["a"]])
def test_what_goes_on_with_nothing_is_a_word_itself(pieces):
    assert join_pieces(pieces) == (tuple(pieces), tuple(range(len(pieces))))


@given(CUT, st.integers(1, 3), st.integers(1, 5))
def test_mean_over_regions_and_sum_over_words(cut, maps, regions):
    words, starts = join_pieces(pieces_of(cut))
    assert len(words) == len(cut)
    weights = np.random.default_rng(0).random((maps, sum(cut), regions)).astype(np.float32)
    mean, total = mean_of_pieces(weights, starts), sum_of_pieces(weights[..., 0], starts)
    first = 0
    for word, count in enumerate(cut):
        rows = [weights[:, first + n] for n in range(count)]
        np.testing.assert_allclose(mean[:, word], sum(rows) / count, rtol=1e-5)
        np.testing.assert_allclose(total[:, word], sum(row[:, 0] for row in rows), rtol=1e-5)
        first += count
