"""The choice of regions."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.vision.objects.boxes import iou
from crossgaze.vision.objects.selection import (
    SelectionConfig,
    blended,
    choose,
    evidence,
    fit_blend,
    fit_shared,
)


def some(seed, count):
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(0, 1, (1, count, 2, 2)), axis=2).reshape(1, count, 4)
    return torch.from_numpy(corners), torch.from_numpy(rng.uniform(0, 1, (1, count, 3)))


def loop_choose(boxes, quality, config):
    """By the formula: each gain from scratch, as a product over the chosen."""
    overlap = iou(boxes, boxes)
    w50, w70, named = config.weights
    chosen = []
    while len(chosen) < min(config.count, len(boxes)):
        gains = {}
        for i in range(len(boxes)):
            left = {}
            for t, (middle, width) in ((50, config.shared_50), (70, config.shared_70)):
                left[t] = 1.0
                for j in chosen:
                    left[t] *= 1 - 1 / (1 + np.exp(-(overlap[j, i].item() - middle) / width))
            p50, p70, name = quality[i].tolist()
            gains[i] = (w50 * p50 + named * name) * left[50] + w70 * p70 * left[70]
        best = max((i for i in gains if i not in chosen), key=lambda i: gains[i])
        chosen.append(best)
    return chosen


@given(seed=st.integers(0, 10_000), count=st.integers(1, 15))
def test_it_is_the_loop(seed, count):
    boxes, quality = some(seed, count)
    config = SelectionConfig(count=6)
    number, gain, valid = choose(boxes, quality, torch.ones(1, count, dtype=torch.bool), config)
    assert number[0].tolist() == loop_choose(boxes[0], quality[0], config)
    assert valid.all()
    assert (gain.diff() <= 1e-9).all()
    assert gain.min() >= 0
    assert gain.max() <= 1


def test_it_covers_and_does_not_repeat():
    """Two copies of the best box and a worse one elsewhere: the copy comes last."""
    boxes = torch.tensor([[[0.0, 0, 0.5, 0.5], [0.0, 0, 0.5, 0.5], [0.6, 0.6, 1, 1]]])
    quality = torch.tensor([[[0.9] * 3, [0.8] * 3, [0.2] * 3]])
    number, _, _ = choose(boxes, quality, torch.ones(1, 3, dtype=torch.bool), SelectionConfig())
    assert number[0].tolist() == [0, 2, 1]


def test_what_is_not_valid_comes_last():
    boxes, quality = some(1, 5)
    valid = torch.tensor([[False, True, False, True, True]])
    number, _, real = choose(boxes, quality, valid, SelectionConfig())
    assert sorted(number[0, :3].tolist()) == [1, 3, 4]
    assert real[0].tolist() == [True] * 3 + [False] * 2


def test_a_batch_is_chosen_one_by_one():
    pairs = [some(seed, 12) for seed in range(3)]
    boxes, quality = (torch.cat(part) for part in zip(*pairs, strict=True))
    live = torch.ones(3, 12, dtype=torch.bool)
    together, _, _ = choose(boxes, quality, live, SelectionConfig(count=5))
    for row, (box, values) in enumerate(pairs):
        alone, _, _ = choose(box, values, live[:1], SelectionConfig(count=5))
        assert torch.equal(together[row], alone[0])


def test_the_fitted_curve_rises_with_the_threshold():
    """Boxes shaken around a thing: sharing it at IoU 0.7 needs them closer than at 0.5."""
    generator = torch.Generator().manual_seed(0)
    thing = torch.tensor([[0.3, 0.3, 0.7, 0.7]])
    boxes = [
        thing + 0.09 * torch.randn(60, 4, generator=generator).clamp(-1.5, 1.5) for _ in range(20)
    ]
    (low, _), (high, width) = (fit_shared(boxes, [thing] * 20, t) for t in (0.5, 0.7))
    assert 0 < low < high < 1
    assert width >= 0.01


def test_without_a_fit_the_second_stage_is_taken_at_its_word():
    boxes, quality = some(2, 4)
    logits = quality.logit()
    scores, around = (torch.randn(*of, dtype=torch.float64) for of in ((1, 4), (1, 4, 5)))
    known = evidence(logits, scores, around, boxes)
    assert known.shape == (1, 4, 11)
    found = blended(known, SelectionConfig())
    torch.testing.assert_close(found, quality)


def test_the_blend_is_found_again():
    """Truth drawn from a known blend: the fit gives its probabilities back."""
    torch.manual_seed(0)
    known = torch.randn(20_000, 6)
    known[:, -1] = 1
    matrix = torch.tensor([[1.0, 0, 0, 0.5, 0, -1], [0, 0.5, 0, 0, 1, 0], [0, 0, 2, 0, 0, 1]])
    chance = (known @ matrix.T).sigmoid()
    found = torch.tensor(fit_blend(known, (torch.rand_like(chance) < chance).float()))
    assert ((known @ found.T).sigmoid() - chance).abs().mean() < 0.02
