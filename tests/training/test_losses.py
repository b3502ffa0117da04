"""Ranking losses against plain loops, and who gets a gradient."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.training.losses import (
    Blend,
    Hardest,
    LossConfig,
    MeanViolation,
    Sampled,
    Softmax,
    Violations,
    make_loss,
)
from model_parts import draw
from scoring_parts import scan, sides

# Images of the pairs of a batch: all different, one twice, all the same, a single pair.
BATCHES = [[0, 1, 2, 3], [7, 3, 7, 5, 3, 1], [2, 2, 2], [4]]


def numbers(images):
    return torch.tensor(images)


def hinges(scores, images, margin):
    """Every hinge of eqs. 11, 12 and 20 by its query: (way, query) -> its negatives' hinges."""
    found = {}
    for i in range(len(images)):
        for way in ("image", "text"):
            found[way, i] = []
            for j in range(len(images)):
                if images[j] == images[i]:
                    continue
                wrong = scores[i][j] if way == "image" else scores[j][i]
                found[way, i].append(max(0.0, margin - scores[i][i] + wrong))
    return found


@pytest.mark.parametrize("images", BATCHES)
def test_violations_are_the_sum_over_all_negatives(images):
    scores = draw(len(images), len(images))
    wanted = sum(map(sum, hinges(scores.tolist(), images, 0.3).values()))
    found = Violations(0.3)(scores, numbers(images), numbers(images))
    assert float(found) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("images", BATCHES)
def test_hardest_is_the_largest_hinge_of_each_query(images):
    scores = draw(len(images), len(images), seed=1)
    each = hinges(scores.tolist(), images, 0.3).values()
    wanted = sum(max(found, default=0.0) for found in each)
    found = Hardest(0.3)(scores, numbers(images), numbers(images))
    assert float(found) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("images", BATCHES)
def test_mean_violation_averages_those_above_zero(images):
    scores = draw(len(images), len(images), seed=2)
    wanted = 0.0
    for found in hinges(scores.tolist(), images, 0.3).values():
        above = [value for value in found if value > 0]
        wanted += sum(above) / len(above) if above else 0.0
    found = MeanViolation(0.3)(scores, numbers(images), numbers(images))
    assert float(found) == pytest.approx(wanted, abs=1e-12)


def test_a_case_by_hand():
    scores = torch.tensor([[0.9, 0.5, 0.8], [0.1, 0.6, 0.7], [0.2, 0.3, 0.4]], dtype=torch.float64)
    images = numbers([0, 1, 2])
    # rows: 0.1 | 0.3 | 0, 0.1; columns: 0 | 0.1 | 0.6, 0.5
    assert float(Violations(0.2)(scores, images, images)) == pytest.approx(
        0.1 + 0.3 + 0.1 + 0.1 + 1.1
    )
    assert float(Hardest(0.2)(scores, images, images)) == pytest.approx(0.1 + 0.3 + 0.1 + 0.1 + 0.6)


@pytest.mark.parametrize("kind", ["violations", "hardest", "sampled", "softmax"])
def test_mean_divides_by_the_pairs(kind):
    scores, images = draw(5, 5), numbers([0, 1, 1, 2, 3])
    total, mean = (
        make_loss(LossConfig(kind=kind, mean=mean), torch.Generator().manual_seed(3))(
            scores, images, images
        )
        for mean in (False, True)
    )
    assert float(total) > 0
    assert float(mean) == pytest.approx(float(total) / 5)


@pytest.mark.parametrize("images", BATCHES)
@pytest.mark.parametrize("negatives", [1, 2, 99])
def test_softmax_is_the_right_ones_share_among_the_hardest(images, negatives):
    scores = draw(len(images), len(images))
    table, wanted = scores.tolist(), 0.0
    for i, own in enumerate(images):
        for row in (table[i], [line[i] for line in table]):
            wrong = sorted(row[j] for j, other in enumerate(images) if other != own)
            weights = [math.exp(one / 0.25) for one in wrong[::-1][:negatives]]
            right = math.exp(table[i][i] / 0.25)
            wanted -= math.log(right / (right + sum(weights)))
    found = Softmax(0.25, negatives)(scores, numbers(images), numbers(images))
    assert float(found) == pytest.approx(wanted, rel=1e-5, abs=1e-6)


# Drawn negatives ------------------------------------------------------------------------------


def test_one_drawn_negative_is_one_of_the_hinges():
    images = [7, 3, 7, 5, 3, 1]
    scores = draw(6, 6, seed=4)
    each = hinges(scores.tolist(), images, 2.0)
    loss = Sampled(2.0, generator=torch.Generator().manual_seed(0))
    for way, matrix in (("image", scores), ("text", scores.T)):
        for i in range(6):
            row = loss.one_way(
                matrix[i : i + 1], numbers(images[i : i + 1]), numbers(images), numbers([i])
            )
            assert min(abs(float(row) - value) for value in each[way, i]) < 1e-12


def test_all_negatives_drawn_are_the_sum_of_violations():
    images = numbers([7, 3, 7, 5, 3, 1])
    scores = draw(6, 6, seed=5)
    found = Sampled(0.5, negatives=100)(scores, images, images)
    assert float(found) == pytest.approx(float(Violations(0.5)(scores, images, images)), abs=1e-12)


def test_draws_reach_every_negative_equally_and_no_right_answer():
    images = numbers([0, 1, 2, 0])
    scores = torch.zeros(4, 4, dtype=torch.float64, requires_grad=True)
    loss = Sampled(1.0, generator=torch.Generator().manual_seed(1))
    for _ in range(400):
        loss.one_way(scores, images, images).backward()
    counts = scores.grad.clone()
    assert counts[0, 3] == 0
    assert counts[3, 0] == 0
    assert counts.diag().tolist() == [-400.0] * 4  # one negative each time
    for i, j in ((0, 1), (0, 2), (3, 1), (3, 2)):
        assert 140 < counts[i, j] < 260  # 200 expected, a spread of 10
    for i, j in ((1, 0), (1, 2), (1, 3)):
        assert 85 < counts[i, j] < 185


def test_a_generator_repeats_its_draws():
    scores, images = draw(6, 6), torch.arange(6)
    found = [
        float(Sampled(2.0, generator=torch.Generator().manual_seed(s))(scores, images, images))
        for s in (5, 5, 6)
    ]
    assert found[0] == found[1] != found[2]


# Gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss", [Violations(0.3), Hardest(0.3), MeanViolation(0.3), Softmax(0.5, 2)]
)
def test_gradients_are_those_of_differences(loss):
    images = numbers([7, 3, 7, 5, 3, 1])
    scores = draw(6, 6, seed=6).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: loss(s, images, images), (scores,))


def test_hardest_touches_the_right_pair_and_the_hardest_alone():
    images = numbers([0, 1, 2, 3])
    scores = torch.zeros(4, 4, dtype=torch.float64)
    scores[0] = torch.tensor([0.5, 0.9, 0.9, 0.1])  # two equally hard: one of them counts
    scores.fill_diagonal_(0.5)
    scores.requires_grad_()
    Hardest(0.2).one_way(scores, images, images).backward()
    assert scores.grad[0].tolist() in ([-1.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 1.0, 0.0])
    assert not scores.grad[1:].any()  # 0.2 - 0.5 + 0 is below zero


@pytest.mark.parametrize("loss", [Violations(0.5), Hardest(0.5), MeanViolation(0.5), Sampled(0.5)])
def test_a_hinge_at_exactly_zero_has_no_gradient(loss):
    scores = torch.tensor([[1.0, 0.5], [0.5, 1.0]], requires_grad=True)
    loss(scores, numbers([0, 1]), numbers([0, 1])).backward()
    assert not scores.grad.any()


def test_the_same_image_twice_is_no_negative_and_gets_no_gradient():
    images = numbers([4, 4, 9])
    scores = draw(3, 3, seed=8).requires_grad_()
    Violations(50.0)(scores, images, images).backward()
    assert scores.grad[0, 1] == scores.grad[1, 0] == 0
    assert (scores.grad[0, 2], scores.grad[2, 0]) == (2, 2)  # asked from both sides


@pytest.mark.parametrize(
    "loss", [Violations(0.2), Hardest(0.2), MeanViolation(0.2), Sampled(0.2), Softmax(0.1, 2)]
)
def test_a_batch_without_negatives_is_zero_with_zero_gradient(loss):
    scores = draw(3, 3).requires_grad_()
    found = loss(scores, numbers([1, 1, 1]), numbers([1, 1, 1]))
    found.backward()
    assert found.item() == 0
    assert not scores.grad.any()


@pytest.mark.parametrize("loss", [Violations(0.2), Hardest(0.2)])
def test_the_gradient_reaches_a_models_fragments_as_in_plain_loops(loss):
    model = scan(direction="t-i", pooling="AVG")
    images, texts = sides([3, 2, 4, 3], [2, 5, 1, 3], padding=0.0)
    found = []
    for fast in (True, False):
        regions = images.fragments.clone().requires_grad_()
        words = texts.fragments.clone().requires_grad_()
        left = type(images)(None, regions, images.counts)
        right = type(texts)(None, words, texts.counts)
        if fast:
            scores = model.similarity(left, right)
        else:
            scores = torch.stack(
                [
                    torch.cat([model.pair_similarity(left[i], right[j]) for j in range(4)])
                    for i in range(4)
                ]
            )
        loss(scores, numbers([0, 1, 2, 0]), numbers([0, 1, 2, 0])).backward()
        found.append((regions.grad, words.grad))
    for fast, slow in zip(*found, strict=True):
        assert slow.abs().max() > 0.01
        torch.testing.assert_close(fast, slow)


def test_nan_scores_are_not_hidden():
    scores = draw(3, 3)
    scores[0, 1] = torch.nan
    images = numbers([0, 1, 2])
    for loss in (Violations(0.2), Hardest(0.2)):
        assert loss(scores, images, images).isnan()


# Parts of a larger batch ----------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=9),
    st.integers(1, 8),
    st.sampled_from(["violations", "hardest", "sampled", "softmax"]),
)
@settings(max_examples=60, deadline=None)
def test_parts_of_a_batch_sum_to_the_whole(images, cut, kind):
    size, cut = len(images), min(cut, len(images))
    scores, images = draw(size, size, seed=size), numbers(images)
    config = LossConfig(kind=kind, margin=1.0, negatives=2)
    whole = make_loss(config, torch.Generator().manual_seed(9))(scores, images, images)
    total = 0.0
    for own in (torch.arange(cut), torch.arange(cut, size)):
        loss = make_loss(config, torch.Generator().manual_seed(9))  # each process has its own
        total += float(loss.one_way(scores[own], images[own], images, own))
        total += float(loss.one_way(scores.T[own], images[own], images, own))
    assert total == pytest.approx(float(whole), abs=1e-9)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.integers(0, 99), st.randoms())
@settings(max_examples=40, deadline=None)
def test_the_order_of_a_batch_does_not_matter(images, seed, random):
    size = len(images)
    scores, images = draw(size, size, seed=seed), numbers(images)
    order = list(range(size))
    random.shuffle(order)
    for loss in (Violations(0.4), Hardest(0.4)):
        before = loss(scores, images, images)
        after = loss(scores[order][:, order], images[order], images[order])
        assert float(after) == pytest.approx(float(before), abs=1e-12)


def test_an_empty_part_is_zero():
    scores = torch.zeros(0, 3, requires_grad=True)
    none = torch.zeros(0, dtype=torch.long)
    for loss in (Hardest(0.2), Violations(0.2, mean=True)):
        assert loss.one_way(scores, none, numbers([0, 1, 2]), none).item() == 0


def test_blend_weighs_two_losses():
    scores, images = draw(4, 4), torch.arange(4)
    one, two = Violations(0.5), Hardest(0.5)
    found = Blend(one, two, 0.25)(scores, images, images)
    wanted = 0.75 * one(scores, images, images) + 0.25 * two(scores, images, images)
    assert float(found) == pytest.approx(float(wanted))


# Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "hardets"}, "loss.kind: got 'hardets' (did you mean 'hardest'?)"),
        ({"margin": 0.0}, "loss.margin: got 0.0, wanted a number above 0"),
        ({"negatives": 0}, "loss.negatives: got 0"),
        ({"warm_steps": -1}, "loss.warm_steps: got -1"),
        ({"warm": "slow"}, "loss.warm: got 'slow'"),
        ({"mean": 1}, "loss.mean: got 1"),
    ],
)
def test_bad_configurations_are_refused(options, message):
    with pytest.raises(InputError) as error:
        LossConfig(**options)
    assert message in str(error.value)


def test_scores_that_do_not_fit_are_refused():
    images = numbers([0, 1, 2])
    with pytest.raises(InputError, match=r"scores: got shape \(3, 2\), wanted \(N, N\)"):
        Hardest(0.2)(torch.zeros(3, 2), images, images[:2])
    with pytest.raises(
        InputError, match=r"scores: got shape \(3, 3\) with 3 queries and 2 answers"
    ):
        Hardest(0.2)(torch.zeros(3, 3), images, images[:2])
    with pytest.raises(InputError, match="own: got none for 3 queries and 2 answers"):
        Hardest(0.2).one_way(torch.zeros(3, 2), images, images[:2])
    with pytest.raises(InputError, match=r"own: got shape \(2,\), wanted \(3,\)"):
        Hardest(0.2).one_way(torch.zeros(3, 3), images, images, numbers([0, 1]))


@pytest.mark.parametrize("own", [[0, 1, 1], [0, 1, 3], [0, 1, -1]])
def test_an_own_answer_of_another_image_is_refused(own):
    images = numbers([0, 1, 2])
    with pytest.raises(InputError, match="own: got an answer of another image"):
        Hardest(0.2).one_way(torch.zeros(3, 3), images, images, numbers(own))
