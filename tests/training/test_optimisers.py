"""Rates, clipping and averaged weights against the same by hand."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from crossgaze.training.config import OptimiserConfig, ScheduleConfig
from crossgaze.training.optimisers import (
    AveragedWeights,
    clip,
    make_optimiser,
    rate_factor,
    set_rate,
)


def test_dans_rate_drops_after_thirty_epochs():
    schedule = ScheduleConfig(kind="drop", after=(30,), factor=0.1)
    rates = [0.1 * rate_factor(schedule, epoch * 7 + 6, 7, 60) for epoch in range(60)]
    assert rates[:30] == pytest.approx([0.1] * 30)
    assert rates[30:] == pytest.approx([0.01] * 30)


def test_two_drops_multiply():
    schedule = ScheduleConfig(kind="drop", after=(1, 3), factor=0.5)
    factors = [rate_factor(schedule, step, 2, 4) for step in range(8)]
    assert factors == [1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]


def test_a_cosine_falls_from_the_rate_to_its_floor_after_warming_up():
    schedule = ScheduleConfig(kind="cosine", warmup=10, floor=0.1)
    factors = [rate_factor(schedule, step, 50, 2) for step in range(101)]
    assert factors[0] == pytest.approx(0.1)
    assert factors[9] > factors[8] > factors[0]
    assert factors[50] == pytest.approx(0.1 + 0.9 * 0.5)
    assert factors[100] == pytest.approx(0.1)
    assert all(a > b for a, b in pairwise(factors[10:]))


def test_a_constant_rate_stays():
    assert {rate_factor(ScheduleConfig(kind="constant"), s, 5, 9) for s in (0, 44)} == {1.0}


@pytest.mark.parametrize(
    ("by", "wanted"), [("norm", [0.06, 0.08]), ("value", [0.1, 0.1]), ("none", [3.0, 4.0])]
)
def test_clipping(by, wanted):
    p = nn.Parameter(torch.zeros(2))
    p.grad = torch.tensor([3.0, 4.0])
    config = OptimiserConfig(clip=0.1, clip_by=by) if by != "none" else OptimiserConfig(clip=0)
    assert float(clip(config, [p])) == pytest.approx(5.0)
    assert p.grad.tolist() == pytest.approx(wanted, abs=1e-6)


def test_sgd_with_momentum_and_decay_by_hand():
    p = nn.Parameter(torch.tensor([2.0]))
    config = OptimiserConfig(kind="sgd", rate=0.1, momentum=0.9, weight_decay=0.5)
    optimiser = make_optimiser(config, [p])
    weight, speed = 2.0, 0.0
    for gradient in (1.0, -3.0, 0.5):
        p.grad = torch.tensor([gradient])
        optimiser.step()
        speed = 0.9 * speed + gradient + 0.5 * weight
        weight -= 0.1 * speed
    assert p.item() == pytest.approx(weight, rel=1e-6)


def test_only_what_is_trained_goes_to_the_optimiser():
    frozen, free = nn.Parameter(torch.zeros(1), requires_grad=False), nn.Parameter(torch.zeros(1))
    for kind, wanted in (("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)):
        optimiser = make_optimiser(OptimiserConfig(kind=kind), [frozen, free])
        assert type(optimiser) is wanted
        assert optimiser.param_groups[0]["params"] == [free]


def test_averaged_weights_by_hand():
    layer = nn.Linear(1, 1, bias=False)
    layer.weight.data.fill_(5.0)
    average = AveragedWeights(layer, 0.9)
    mean = 5.0
    for step, value in enumerate((1.0, 2.0, -4.0)):
        layer.weight.data.fill_(value)
        average.update()
        keep = min(0.9, (1 + step) / (10 + step))
        mean = keep * mean + (1 - keep) * value
    with average.in_place():
        assert layer.weight.item() == pytest.approx(mean, rel=1e-6)
    assert layer.weight.item() == -4.0
    fresh = AveragedWeights(nn.Linear(1, 1, bias=False), 0.9)
    fresh.load_state_dict(average.state_dict())
    assert fresh.steps == 3
    assert math.isclose(fresh.mean["weight"].item(), mean, rel_tol=1e-6)


@pytest.mark.parametrize("kind", ["sgd", "adam", "adamw"])
def test_what_was_trained_before_has_a_share_of_the_rate(kind):
    """Twice the same weight and gradient: the first step's lengths are as the rates are."""
    fresh, old, fixed = (torch.nn.Parameter(torch.ones(3)) for _ in range(3))
    fixed.requires_grad_(False)
    config = OptimiserConfig(kind=kind, rate=1.0, pretrained=0.25)
    optimiser = make_optimiser(config, [fresh, old, fixed], pretrained=[old])
    set_rate(optimiser, 0.1)
    for parameter in (fresh, old):
        parameter.grad = torch.tensor([1.0, -2.0, 0.5])
    optimiser.step()
    torch.testing.assert_close(1 - old, (1 - fresh) * 0.25)
    assert (fresh != 1).all()
    assert (fixed == 1).all()
    assert [group["lr"] for group in optimiser.param_groups] == pytest.approx([0.1, 0.025])
