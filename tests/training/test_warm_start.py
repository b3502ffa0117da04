"""The start under hardest negatives, and how a collapse is known."""

import pytest
import torch

from crossgaze.training.losses import Blend, Hardest, LossConfig, MeanViolation, Violations
from crossgaze.training.warm_start import WarmStart, collapsed
from model_parts import draw


def value(loss, scores):
    images = torch.arange(len(scores))
    return float(loss(scores, images, images))


def test_blend_moves_in_a_straight_line():
    scores = draw(6, 6)
    start = WarmStart(LossConfig(margin=0.3, warm_steps=10))
    soft, hard = value(MeanViolation(0.3), scores), value(Hardest(0.3), scores)
    assert soft < hard
    for step in range(13):
        share = min(step / 10, 1)
        assert value(start.at(step), scores) == pytest.approx((1 - share) * soft + share * hard)


def test_switch_moves_at_once():
    start = WarmStart(LossConfig(warm_steps=3, warm="switch"))
    kinds = [type(start.at(step)) for step in range(5)]
    assert kinds == [MeanViolation] * 3 + [Hardest] * 2


def test_without_steps_and_for_other_kinds_there_is_no_warm_start():
    assert type(WarmStart(LossConfig(warm_steps=0), 9).at(0)) is Hardest
    assert type(WarmStart(LossConfig(kind="violations", warm_steps=9)).at(0)) is Violations
    assert type(WarmStart(LossConfig(kind="violations"), 9).at(0)) is Violations


def test_where_nothing_is_said_the_start_is_warm_for_an_epoch():
    start = WarmStart(LossConfig(), per_epoch=7)
    kinds = [type(start.at(step)) for step in range(9)]
    assert kinds == [MeanViolation] + [Blend] * 6 + [Hardest] * 2


def test_mean_and_margin_are_kept():
    scores = draw(4, 4)
    for step in (0, 1, 2):
        total = WarmStart(LossConfig(margin=0.7, warm_steps=2)).at(step)
        mean = WarmStart(LossConfig(margin=0.7, warm_steps=2, mean=True)).at(step)
        assert value(mean, scores) == pytest.approx(value(total, scores) / 4)


def test_equal_scores_are_a_collapse_whatever_the_loss():
    start = WarmStart(LossConfig(margin=0.2, warm_steps=4))
    equal, apart = torch.full((8, 8), 0.4), torch.eye(8) * 0.1
    for step in range(6):
        assert value(start.at(step), equal) == pytest.approx(2 * 8 * 0.2)
    assert collapsed(equal.std().item())
    assert not collapsed(apart.std().item())
    # The hardest negative is as good as the right one, and yet the scores are not equal.
    passing = torch.zeros(8, 8)
    passing[:, :2] = 0.5
    passing.fill_diagonal_(0.5)
    assert not collapsed(passing.std().item())
