"""The public VQA metric against cases worked by hand."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.evaluation.vqa_metric import CONTRACTIONS, normalize_answer, vqa_accuracy


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("The Dog", "dog"),
        ("a", ""),
        ("an apple a day", "apple day"),
        ("two", "2"),
        ("None", "0"),
        ("ten", "10"),
        ("eleven", "eleven"),
        ("twenty two", "twenty 2"),
        ("dont", "don't"),
        ("don't", "don't"),
        ("wouldnt've", "wouldn't've"),
        ("wouldn'tve", "wouldn't've"),
        ("wouldntve", "wouldntve"),
        ("twas", "'twas"),
        ("somebody'd", "somebodyd"),
        ("yall'd've", "y'all'd've"),
        ("let's", "let's"),
        ("black/white", "black white"),
        ("black/ white", "black white"),
        ("black /white", "black white"),
        ("t-shirt", "t shirt"),
        ("yes!", "yes"),
        ("yes, it is", "yes it is"),
        ("1,000", "1000"),
        ("1,000-2", "10002"),
        ("a.m.", "am"),
        ("3.5", "3.5"),
        ("3.", "3"),
        (".5 a", ".5"),
        ("(red)", "red"),
        ("  two   the  dogs ", "2 dogs"),
        ("dog's", "dog's"),
        ("it's: here", "it's: here"),
        ("." * 33 + "x", ".x"),
    ],
)
def test_an_answer_is_made_alike_as_worked_by_hand(written, compared):
    assert normalize_answer(written) == compared


def test_contractions_lack_one_apostrophe_each():
    assert len(CONTRACTIONS) == 114
    odd = {short for short, form in CONTRACTIONS.items() if len(form) != len(short) + 1}
    assert odd == {"somebody'd"}
    assert CONTRACTIONS["ow's'at"] == CONTRACTIONS["'ows'at"] == CONTRACTIONS["'ow'sat"]
    assert not {"wed", "shed", "ill", "well", "were", "im", "ive"} & set(CONTRACTIONS)


@pytest.mark.parametrize(
    ("said", "humans", "wanted"),
    [
        # n of ten agree: n subsets have n - 1 of them, the other 10 - n have n.
        ("red", ["blue"] * 10, 0.0),
        ("red", ["red"] + ["blue"] * 9, (0 + 9 * 1 / 3) / 10),
        ("red", ["red"] * 2 + ["blue"] * 8, (2 * 1 / 3 + 8 * 2 / 3) / 10),
        ("red", ["red"] * 3 + ["blue"] * 7, (3 * 2 / 3 + 7) / 10),
        ("red", ["red"] * 4 + ["blue"] * 6, 1.0),
        ("red", ["red"] * 5 + ["blue"] * 5, 1.0),  # a tie: both are right
        ("blue", ["red"] * 5 + ["blue"] * 5, 1.0),
        ("red", ["red"] * 10, 1.0),
        ("2", ["two"] * 3 + ["3"] * 7, 0.9),
        ("two", ["2"] * 2 + ["two", "the two"] + ["3"] * 6, 1.0),
        ("the dog", ["dog"] * 3 + ["a dog"] + ["cat"] * 6, 1.0),
        ("dont walk", ["don't walk"] * 3 + ["stop"] * 7, 0.9),
        ("yes.", ["Yes"] * 9 + ["no"], 1.0),
        ("red\n", ["red"] * 10, 1.0),
        # Where all humans say the same nothing is made alike.
        ("2", ["two"] * 10, 0.0),
        ("Red", ["red"] * 10, 0.0),
    ],
)
def test_accuracy_as_worked_by_hand(said, humans, wanted):
    assert vqa_accuracy(said, humans) == pytest.approx(wanted, abs=1e-12)


@given(
    st.lists(st.sampled_from(["a red", "red", "2", "two", "dont", "no"]), min_size=2, max_size=10),
    st.sampled_from(["red", "2", "don't", "no"]),
)
def test_accuracy_is_the_mean_over_subsets(humans, said):
    """Eq. 23 of DAN in a loop over the subsets that lack one human."""
    alike = normalize_answer if len(set(humans)) > 1 else str
    total = 0.0
    for rest in combinations(range(len(humans)), len(humans) - 1):
        same = sum(alike(humans[n]) == alike(said) for n in rest)
        total += min(same / 3, 1)
    assert vqa_accuracy(said, humans) == pytest.approx(total / len(humans))
