"""Losses: by hand where that is possible, else that they fall to 0 where they should."""

import math

import pytest
import torch

from crossgaze.vision.objects.anchors import level_anchors
from crossgaze.vision.objects.losses import assign, judge_loss, proposal_loss, quality_focal
from crossgaze.vision.objects.network import Guesses, Judged
from crossgaze.vision.objects.targets import Target

BOX = [0.1, 0.1, 0.5, 0.5]


def asked(boxes=(BOX,), own=1):
    return Target(
        boxes=torch.tensor(boxes).view(-1, 4),
        own=own,
        phrases=torch.tensor(boxes).view(-1, 4)[:own],
        named=torch.full((own,), 0.6),
        nouns=torch.eye(3)[:own],
        attributes=torch.zeros(own, 2),
        setting=torch.zeros(3),
    )


def test_quality_focal_by_hand():
    """p = 0.5, q = 0.8: 0.09 ln 2, whatever q is in the cross entropy of one half."""
    found = quality_focal(torch.tensor([0.0]), torch.tensor([0.8]))
    torch.testing.assert_close(found, torch.tensor([0.09 * math.log(2)]))


def test_every_box_has_anchors_and_no_anchor_two():
    anchors = level_anchors(8, [0.2], [1.0])
    boxes = torch.tensor([[0.4, 0.4, 0.6, 0.6], [0.0, 0.0, 0.02, 0.02]])  # one far too small
    number = assign(anchors, boxes)
    assert number.shape == (64,)
    assert (number == 0).sum() >= 4
    assert (number == 1).sum() == 6
    assert number.min() == -1


def test_two_boxes_in_one_place_share_its_anchors():
    anchors = level_anchors(8, [0.2], [1.0])
    boxes = torch.tensor([[0.5, 0.5, 0.53, 0.53], [0.5, 0.5, 0.53, 0.54]])  # both too small
    number = assign(anchors, boxes)
    assert [(number == one).sum().item() for one in (0, 1)] == [6, 6]
    few = assign(anchors[:3], boxes)  # fewer anchors than the boxes want: in turn
    assert sorted(few.tolist()) == [0, 0, 1]


def guesses(logits, decoded):
    return Guesses(logits, decoded, torch.zeros(1, 1, 1, 1))


def test_right_boxes_with_right_scores_cost_nothing():
    anchors = level_anchors(8, [0.4], [1.0])
    number = assign(anchors, torch.tensor([BOX]))
    decoded = torch.where(
        (number == 0).unsqueeze(-1), torch.tensor(BOX), torch.tensor([0.8, 0.8, 0.9, 0.9])
    ).unsqueeze(0)
    logits = torch.where(number == 0, 12.0, -12.0).unsqueeze(0)
    score, box = proposal_loss(guesses(logits, decoded), anchors, [asked()])
    assert score.item() == pytest.approx(0, abs=1e-4)
    assert box.item() == pytest.approx(0, abs=1e-4)
    worse, _ = proposal_loss(guesses(-logits, decoded), anchors, [asked()])
    assert worse > 10


def test_the_first_stage_by_hand():
    """Two anchors are asked, a third finds the box unasked; all say one half."""
    anchors = torch.tensor([BOX, [0.1, 0.1, 0.5, 0.6], [0.6, 0.6, 0.9, 0.9], [0.0, 0.8, 0.1, 0.9]])
    boxes = torch.cat([torch.tensor([BOX]), anchors[1:2], torch.tensor([BOX]), anchors[3:]])
    # Fewer anchors than BEST: all are the box's own, so that none is left to find it unasked.
    score, box = proposal_loss(guesses(torch.zeros(1, 4), boxes[None]), anchors, [asked()])
    shares = 8 / 4
    qualities = [1.0, 0.8, 1.0, 0.0]  # IoU: 0.16 / 0.2 for the second
    log2 = math.log(2)
    assert score.item() == pytest.approx(sum(shares * (q - 0.5) ** 2 * log2 for q in qualities))
    far = 1 - (0 - (0.5 * 0.8 - 0.17) / (0.5 * 0.8))  # GIoU with a hull of 0.5 x 0.8
    assert box.item() == pytest.approx((0 + 0.2 + 0 + far) / 4, abs=1e-5)


def test_an_anchor_that_found_a_box_unasked_is_taught_to_be_silent():
    anchors = level_anchors(4, [0.1], [1.0])  # 16, of which 6 are the box's own
    number = assign(anchors, torch.tensor([BOX]))
    decoded = torch.tensor(BOX).expand(1, 16, 4)
    asked_only = torch.where(number == 0, 12.0, -12.0).unsqueeze(0)
    score, _ = proposal_loss(guesses(asked_only, decoded), anchors, [asked()])
    assert score.item() == pytest.approx(0, abs=1e-4)


def test_a_box_around_several_is_not_asked_for():
    anchors = level_anchors(4, [0.4], [1.0])
    found = guesses(torch.zeros(1, 16), anchors.unsqueeze(0))
    alone = proposal_loss(found, anchors, [asked()])
    around = proposal_loss(found, anchors, [asked(boxes=(BOX, [0.0, 0.0, 1.0, 1.0]))])
    assert alone == around


def test_a_photograph_without_boxes_teaches_only_that():
    anchors = level_anchors(4, [0.4], [1.0])
    found = guesses(torch.full((1, 16), -12.0), anchors.unsqueeze(0))
    score, box = proposal_loss(found, anchors, [asked(boxes=(), own=0)])
    assert score.item() == pytest.approx(0, abs=1e-4)
    assert box.item() == 0


def judged(boxes, quality, nouns):
    count = boxes.shape[1]
    return Judged(boxes, quality, nouns, torch.zeros(1, count, 2), torch.zeros(1, count, 4))


def test_the_second_stage_by_hand():
    """One proposal on the box, one elsewhere, and the whole photograph."""
    boxes = torch.tensor([[BOX, [0.7, 0.7, 0.9, 0.9], [0.0, 0.0, 1.0, 1.0]]])
    sure = torch.tensor([[[20.0, 20.0, math.log(0.6 / 0.4)], [-20.0] * 3, [-20.0] * 3]])
    nouns = torch.tensor([[[20.0, 0, 0], [0.0, 0, 0], [0.0, 0, 0]]])
    valid = torch.ones(1, 3, dtype=torch.bool)
    found = judge_loss(judged(boxes, sure, nouns), boxes, valid, [asked()])
    entropy = -(0.6 * math.log(0.6) + 0.4 * math.log(0.4))  # the least that 0.6 can cost
    assert found["quality"].item() == pytest.approx(entropy / 3, abs=1e-4)
    assert found["box"].item() == pytest.approx(0, abs=1e-5)
    assert found["noun"].item() == pytest.approx(0, abs=1e-5)
    assert found["attribute"].item() == 0


def test_the_whole_photograph_learns_the_setting():
    boxes = torch.tensor([[[0.0, 0.0, 1.0, 1.0]]])
    target = asked(boxes=(), own=0)
    target.setting[1] = 1
    for noun, loss in ((1, 0.0), (2, 20.0)):
        logits = torch.zeros(1, 1, 3)
        logits[0, 0, noun] = 20
        found = judge_loss(
            judged(boxes, torch.full((1, 1, 3), -20.0), logits), boxes, boxes[..., 0] < 1, [target]
        )
        assert found["noun"].item() == pytest.approx(loss, abs=1e-3)


def test_what_is_not_valid_costs_nothing():
    boxes = torch.tensor([[[0.7, 0.7, 0.9, 0.9]] * 2])
    wrong = torch.tensor([[[-20.0] * 3, [20.0] * 3]])
    valid = torch.tensor([[True, False]])
    found = judge_loss(judged(boxes, wrong, torch.zeros(1, 2, 3)), boxes, valid, [asked()])
    assert found["quality"].item() == pytest.approx(0, abs=1e-4)
