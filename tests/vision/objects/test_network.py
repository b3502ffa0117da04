"""The two stages: shapes, what they promise, that they learn."""

import math
from dataclasses import replace

import torch

from crossgaze.vision.backbones.efficientnet_lite import EfficientNetLite
from crossgaze.vision.objects.boxes import iou, mirror
from crossgaze.vision.objects.losses import judge_loss, proposal_loss
from crossgaze.vision.objects.network import NetworkConfig, RegionNetwork, place
from crossgaze.vision.objects.taps import CHANNELS, STRIDES, Taps
from crossgaze.vision.objects.targets import Target

SMALL = NetworkConfig(size=64, width=8, first=60, proposals=20, hidden=16, nouns=3, attributes=2)


def maps(batch=2, size=64):
    torch.manual_seed(0)
    return tuple(
        torch.randn(batch, c, size // s, size // s) for c, s in zip(CHANNELS, STRIDES, strict=True)
    )


def test_the_taps_are_where_the_widths_and_strides_say():
    """And the head on the last of them is the backbone's own map."""
    backbone = EfficientNetLite("efficientnet-lite2").eval()
    pixels = torch.randint(0, 256, (1, 64, 64, 3), dtype=torch.uint8)
    taps = Taps(backbone)
    with torch.inference_mode():
        found = taps(pixels)
        torch.testing.assert_close(taps.head(found[-1]), backbone(pixels))
    assert [level.shape for level in found] == [
        (1, c, 64 // s, 64 // s) for c, s in zip(CHANNELS, STRIDES, strict=True)
    ]


def test_proposals_are_inside_and_best_first():
    model = RegionNetwork(SMALL).eval()
    found = model.propose(maps())
    count = sum((64 // s) ** 2 for s in STRIDES) * 9
    assert found.logits.shape == (2, count)
    assert found.decoded.shape == (2, count, 4)
    assert found.boxes.shape == (2, 20, 4)
    assert found.valid[:, 0].all()
    assert found.boxes.min() >= 0
    assert found.boxes.max() <= 1
    for boxes, scores, valid in zip(found.boxes, found.scores, found.valid, strict=True):
        assert (scores[valid].diff() <= 0).all()
        assert len(boxes[valid]) > 1


def test_proposals_are_the_mean_of_those_they_stand_for():
    """By loops: suppression at 0.7, then votes of all from IoU 0.6 on, by objectness."""
    torch.manual_seed(0)
    model = RegionNetwork(replace(SMALL, first=40, proposals=40))
    corner = torch.rand(60, 2) * 0.6
    boxes = torch.cat([corner, corner + 0.1 + 0.3 * torch.rand(60, 2)], 1)
    boxes = torch.cat([boxes[:20] + 0.03 * torch.rand(20, 4) for _ in range(3)])
    logits = torch.randn(60)
    voted, scores, around, keep = model._best(logits[None], boxes[None], 40, 40)
    order = logits.argsort(descending=True)[:40].tolist()
    kept = []
    for one in order:
        if all(float(iou(boxes[one : one + 1], boxes[k : k + 1])) <= 0.7 for k in kept):
            kept.append(one)
    assert int(keep.sum()) == len(kept) < 40
    for row, one in enumerate(kept):
        total, where, sums, most, all_of_them = 0.0, torch.zeros(4), [0.0] * 3, 0.0, 0.0
        for other in order:
            overlap = float(iou(boxes[one : one + 1], boxes[other : other + 1]))
            weight = 1 / (1 + math.exp(-float(logits[other])))
            all_of_them += overlap * weight
            if overlap >= 0.6:
                total, where = total + weight, where + weight * boxes[other]
            if overlap >= 0.5:
                most = max(most, weight)
            for n, edge in enumerate((0.5, 0.7, 0.8)):
                sums[n] += weight * (overlap >= edge)
        torch.testing.assert_close(voted[0, row], where / total)
        assert scores[0, row] == logits[one]
        wanted = torch.tensor([*sums, most, all_of_them]).log()
        torch.testing.assert_close(around[0, row], wanted)


def test_the_second_stage_sees_each_photograph_alone():
    model = RegionNetwork(SMALL).eval()
    head = torch.randn(2, 1280, 2, 2).relu()
    finest = torch.randn(2, 8, 8, 8)
    boxes = torch.tensor([[[0.1, 0.1, 0.5, 0.5]], [[0.0, 0.2, 1.0, 1.0]]])
    both = model.judge(finest, head, boxes)
    alone = model.judge(finest[1:], head[1:], boxes[1:])
    torch.testing.assert_close(both.features[1:], alone.features)
    torch.testing.assert_close(both.quality[1:], alone.quality)
    assert both.features.shape == (2, 1, 1280 + 16)
    # Nothing is moved before anything is learnt.
    torch.testing.assert_close(both.boxes, boxes)


def test_place_by_hand():
    found = place(torch.tensor([0.0, 0.5, 1.0, 1.0]))
    expected = torch.tensor([-1.0, 0, 1, 1, 1, 0, 1, 1 + torch.log(torch.tensor(0.5)) / 2])
    torch.testing.assert_close(found, expected)


def test_it_learns_one_photograph_by_heart():
    """Every part gets a gradient, and after a while the best proposal is the box."""
    torch.manual_seed(0)
    model = RegionNetwork(SMALL).train()
    box = torch.tensor([[0.2, 0.3, 0.6, 0.8]])
    target = Target(
        boxes=box,
        own=1,
        phrases=box,
        named=torch.tensor([1.0]),
        nouns=torch.tensor([[0.0, 1.0, 0.0]]),
        attributes=torch.tensor([[1.0, 0.0]]),
        setting=torch.zeros(3),
    )
    taps, head = maps(1), torch.randn(1, 1280, 2, 2).relu()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(80):
        found = model.propose(taps)
        score, shift = proposal_loss(found, model.anchors, [target])
        boxes = torch.cat([found.boxes, torch.tensor([[[0.0, 0, 1, 1]]])], 1)
        valid = torch.cat([found.valid, torch.ones(1, 1, dtype=torch.bool)], 1)
        judged = model.judge(found.finest, head, boxes)
        second = judge_loss(judged, boxes, valid, [target])
        optimizer.zero_grad()
        (score + shift + torch.stack(list(second.values())).sum()).backward()
        if step == 0:
            silent = [name for name, p in model.named_parameters() if p.grad is None]
            assert silent == []
        optimizer.step()
    model.eval()
    found = model.propose(taps)
    assert iou(found.boxes[0, :1], box).item() > 0.7
    far = torch.tensor([[[0.8, 0.0, 1.0, 0.1]]])
    judged = model.judge(found.finest, head, torch.cat([found.boxes[:, :1], far], 1))
    assert judged.nouns[0, 0].argmax() == 1
    assert judged.attributes[0, 0].argmax() == 0
    assert judged.quality[0, 0, 0] > judged.quality[0, 1, 0]


def test_every_anchor_has_a_mirror_image():
    network = RegionNetwork(NetworkConfig(size=64))
    torch.testing.assert_close(mirror(network.anchors[network.turned]), network.anchors)
