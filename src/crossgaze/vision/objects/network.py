"""Regions in two stages, after bottom-up attention, on a frozen EfficientNet-Lite2.

S. Ren et al. Faster R-CNN. NIPS 2015 (proposals over anchors, then a second look at each).
T.-Y. Lin et al. Feature Pyramid Networks. CVPR 2017 (the top-down path).
P. Anderson et al. Bottom-Up and Top-Down Attention. CVPR 2018 (heads for nouns and attributes).

Stage 1. The backbone's levels at strides 8, 16 and 32 are brought to one width; coarser levels are
added to finer ones; each gives every anchor an objectness and a shift. The best boxes that do not
repeat one another go on, each moved to the mean of those that it stands for, weighted by objectness
(S. Gidaris, N. Komodakis. Object detection via a multi-region ... model. ICCV 2015: box voting).

Stage 2. A proposal is seen as x = ReLU(A r + B h + C g + D b): r, bins x bins samples of the
finest level; h, the mean of 4 x 4 samples of ImageNet's 1,280-wide map in the box; g, that map's
mean over the photograph;
b, the box's place. From t = ReLU(E x) come a better box, nouns, attributes, and three qualities:
the probabilities that the box covers an annotated box at IoU 0.5 and at 0.7, and how often what it
covers is named (phrases over the five captions, at most 1). The selection works with those (see
`selection`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from crossgaze.errors import InputError
from crossgaze.models.checks import require_whole
from crossgaze.vision.objects.anchors import level_anchors
from crossgaze.vision.objects.boxes import decode, greedy_keep, inside, iou, mirror
from crossgaze.vision.objects.roi_align import roi_align
from crossgaze.vision.objects.taps import CHANNELS, STRIDES

QUALITIES = ("covers_50", "covers_70", "named")
VOTE = 0.6  # IoU from which a box has a say in where a proposal lies
HEAD = 1280


@dataclass(frozen=True)
class NetworkConfig:
    """The region network.

    Args:
        size: input pixels, a multiple of 32.
        width: channels of every level of the top-down path.
        sides: of the square anchors of each level, as shares of the photograph.
        ratios: height over width of the anchors.
        first: best anchors that enter suppression.
        overlap: IoU above which a proposal suppresses a worse one.
        proposals: most that enter the second stage.
        bins: along the side of a proposal on the finest level.
        margin: how far the bins reach beyond a proposal, as a share of its sides: what lies around
            a box tells how well it fits.
        hidden: width of the second stage.
        nouns: how many.
        attributes: how many.
        dropout: in the second stage, in training.
    """

    size: int = 320
    width: int = 96
    sides: tuple[tuple[float, ...], ...] = (
        (0.05, 0.085, 0.13),
        (0.18, 0.25, 0.34),
        (0.46, 0.63, 0.86),
    )
    ratios: tuple[float, ...] = (0.5, 1.0, 2.0)
    first: int = 2000
    overlap: float = 0.7
    proposals: int = 300
    bins: int = 5
    margin: float = 0.2
    hidden: int = 512
    nouns: int = 1
    attributes: int = 1
    dropout: float = 0.2

    def __post_init__(self) -> None:
        if self.size < 32 or self.size % 32:
            raise InputError(f"size: got {self.size}, wanted a multiple of 32")
        most = {"size": 4096, "width": 4096, "bins": 64, "hidden": 1 << 16, "nouns": 1 << 16}
        most |= {"attributes": 1 << 16, "proposals": 1 << 16, "first": 1 << 20}
        for name, largest in most.items():
            require_whole(name, getattr(self, name), most=largest)
        if len(self.sides) != len(STRIDES) or not all(self.sides) or not self.ratios:
            raise InputError(f"sides: got {self.sides}, wanted some for {len(STRIDES)} levels")
        if not all(0 < x < 1e3 for x in (*self.ratios, *(x for some in self.sides for x in some))):
            raise InputError(f"sides: got {self.sides}, ratios {self.ratios}, wanted all above 0")


@dataclass(frozen=True)
class Guesses:
    """What the first stage says of every anchor."""

    logits: Tensor  # (B, A)
    decoded: Tensor  # (B, A, 4), not cut to the photograph
    finest: Tensor  # (B, width, h, w)


@dataclass(frozen=True)
class Proposals(Guesses):
    """And the best of them."""

    boxes: Tensor  # (B, n, 4), best first
    scores: Tensor  # (B, n) logits
    support: Tensor  # (B, n, 5), what the anchors around say, see `support`
    valid: Tensor  # (B, n) bool; the rest fills up


@dataclass(frozen=True)
class Judged:
    """What the second stage says of n boxes a photograph."""

    boxes: Tensor  # (B, n, 4)
    quality: Tensor  # (B, n, 3) logits of QUALITIES
    nouns: Tensor  # (B, n, nouns) logits
    attributes: Tensor  # (B, n, attributes) logits
    features: Tensor  # (B, n, 1280 + hidden)


class RegionNetwork(nn.Module):
    """The trained parts: everything but the frozen backbone."""

    anchors: Tensor
    turned: Tensor  # (A,) the number of each anchor's mirror image

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        wide = config.width
        for number, channels in enumerate(CHANNELS):
            # The backbone's maps are linear and of very different scales; training sets these.
            self.register_buffer(f"mean{number}", torch.zeros(channels))
            self.register_buffer(f"scale{number}", torch.ones(channels))
        self.lateral = nn.ModuleList(nn.Conv2d(c, wide, 1) for c in CHANNELS)
        self.smooth = nn.ModuleList(nn.Conv2d(wide, wide, 3, padding=1) for _ in CHANNELS)
        self.tower = nn.ModuleList(nn.Conv2d(wide, wide, 3, padding=1) for _ in CHANNELS)
        each = [len(sides) * len(config.ratios) for sides in config.sides]
        self.predict = nn.ModuleList(nn.Conv2d(wide, 5 * count, 1) for count in each)
        found = [
            level_anchors(config.size // stride, sides, config.ratios)
            for stride, sides in zip(STRIDES, config.sides, strict=True)
        ]
        self.register_buffer("anchors", torch.cat(found), persistent=False)
        self.register_buffer("turned", _turned(config), persistent=False)
        hidden = config.hidden
        self.from_bins = nn.Linear(wide * config.bins**2, hidden)
        self.from_head = nn.Linear(HEAD, hidden)
        self.from_whole = nn.Linear(HEAD, hidden)
        self.from_place = nn.Linear(8, hidden)
        self.trunk = nn.Linear(hidden, hidden)
        self.refine = nn.Linear(hidden, 4)
        self.quality = nn.Linear(hidden, len(QUALITIES))
        self.nouns = nn.Linear(hidden, config.nouns)
        self.attributes = nn.Linear(hidden, config.attributes)
        self._start()

    def _start(self) -> None:
        """Start from no shift, and from the belief that a box is hardly ever right."""
        for conv in self.predict:
            for name, weight in conv.named_parameters():
                if name == "weight":
                    nn.init.normal_(weight, std=0.01)
                else:
                    start = weight.new_tensor([-4.0, 0, 0, 0, 0])  # objectness, then the shift
                    weight.data.copy_(start.repeat(len(weight) // 5))
        nn.init.zeros_(self.refine.weight)
        nn.init.zeros_(self.refine.bias)
        nn.init.constant_(self.quality.bias, -2.0)

    def pyramid(self, taps: tuple[Tensor, ...]) -> list[Tensor]:
        """Bring the backbone's maps to one width, coarse added to fine: (B, width, h_l, w_l)."""
        maps: list[Tensor] = []
        above: Tensor | None = None
        for number in (2, 1, 0):
            mean, scale = self.get_buffer(f"mean{number}"), self.get_buffer(f"scale{number}")
            x = (taps[number] - mean.view(1, -1, 1, 1)) / scale.view(1, -1, 1, 1)
            x = self.lateral[number](x)
            if above is not None:
                x = x + F.interpolate(above, size=x.shape[2:], mode="nearest")
            above = x
            maps.append(F.relu(self.smooth[number](F.relu(x))))
        return maps[::-1]

    def guess(self, taps: tuple[Tensor, ...]) -> Guesses:
        """Score and shift every anchor."""
        maps, found = self.pyramid(taps), []
        for level, tower, predict in zip(maps, self.tower, self.predict, strict=True):
            out = predict(F.relu(tower(level)))  # (B, 5 A, h, w)
            found.append(out.permute(0, 2, 3, 1).reshape(len(out), -1, 5))  # (B, h w A, 5)
        raw = torch.cat(found, 1)
        return Guesses(raw[..., 0], decode(self.anchors, raw[..., 1:]), maps[0])

    def propose(
        self,
        taps: tuple[Tensor, ...],
        *,
        mirrored: Guesses | None = None,
        first: int | None = None,
        proposals: int | None = None,
    ) -> Proposals:
        """First stage: score and shift every anchor, keep the best that do not repeat.

        Args:
            taps: the backbone's maps, finest first.
            mirrored: what `guess` said of the mirror images; the mean of both is taken then.
            first: instead of the configuration's.
            proposals: instead of the configuration's.
        """
        config, guesses = self.config, self.guess(taps)
        logits, decoded = guesses.logits, guesses.decoded
        if mirrored is not None:
            logits = (logits + mirrored.logits[:, self.turned]) / 2
            decoded = (decoded + mirror(mirrored.decoded[:, self.turned])) / 2
        with torch.no_grad():
            best = self._best(
                logits, inside(decoded), first or config.first, proposals or config.proposals
            )
        return Proposals(logits, decoded, guesses.finest, *best)

    def _best(
        self, logits: Tensor, decoded: Tensor, first: int, proposals: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Keep the best that do not repeat, each moved to the mean of those that it stands for."""
        scores, order = logits.topk(min(first, logits.shape[1]), 1)  # (B, k)
        boxes = decoded.gather(1, order.unsqueeze(-1).expand(-1, -1, 4))  # (B, k, 4)
        keep = greedy_keep(boxes, self.config.overlap, wanted=proposals)
        # Kept ones first, in their order, then the others to fill up to one length.
        place = (~keep).to(torch.uint8).argsort(dim=1, stable=True)[:, :proposals]
        picked = boxes.gather(1, place.unsqueeze(-1).expand(-1, -1, 4))
        overlap, weights = iou(picked, boxes), scores.sigmoid()  # (B, n, k), (B, k)
        near = (overlap >= VOTE) * weights[:, None]
        voted = (near @ boxes) / near.sum(2, keepdim=True)  # every box stands for itself
        around = support(overlap, weights)
        return voted, scores.gather(1, place), around, keep.gather(1, place)

    def judge(self, finest: Tensor, head: Tensor, boxes: Tensor) -> Judged:
        """Second stage.

        Args:
            finest: (B, width, h, w), from `propose`.
            head: (B, 1280, h', w'), the backbone's last map.
            boxes: (B, n, 4), inside the photograph.
        """
        seen = _wider(boxes, self.config.margin)
        near = roi_align(finest, seen, self.config.bins).flatten(2)  # (B, n, bins^2 width)
        pooled = roi_align(head, boxes, 1, samples=4).squeeze(2)  # (B, n, 1280)
        whole = head.mean((2, 3)).unsqueeze(1)  # (B, 1, 1280)
        drop = self.config.dropout if self.training else 0.0
        x = self.from_bins(near) + self.from_head(F.dropout(pooled, drop, self.training))
        x = x + self.from_whole(F.dropout(whole, drop, self.training))
        x = F.relu(x + self.from_place(place(boxes)))
        x = F.relu(self.trunk(F.dropout(x, drop, self.training)))  # (B, n, hidden)
        shown = F.dropout(x, drop, self.training)
        return Judged(
            boxes=inside(decode(boxes, self.refine(x))),
            quality=self.quality(shown),
            nouns=self.nouns(shown),
            attributes=self.attributes(shown),
            features=torch.cat([pooled, x], -1),
        )


def support(overlap: Tensor, weights: Tensor) -> Tensor:
    """Say how much the anchors around a proposal agree with it, logarithms, (B, n, 5).

    The summed objectness of boxes from an IoU of 0.5, 0.7 and 0.8 on, the largest from 0.5 on, and
    the sum weighted by IoU.

    Args:
        overlap: (B, n, k) IoU of n proposals with k boxes.
        weights: (B, k) objectness, 0 to 1.
    """
    each = weights.unsqueeze(-1)  # (B, k, 1)
    half = (overlap >= 0.5).to(weights.dtype)
    parts = [half @ each]
    parts += [(overlap >= edge).to(weights.dtype) @ each for edge in (0.7, 0.8)]
    parts += [(half * weights[:, None]).amax(2, keepdim=True), overlap @ each]
    return torch.cat(parts, -1).clamp(min=1e-4).log()


def _turned(config: NetworkConfig) -> Tensor:
    """Return the number of each anchor's mirror image, in the order of `level_anchors`."""
    parts, start = [], 0
    for stride, sides in zip(STRIDES, config.sides, strict=True):
        cells, each = config.size // stride, len(sides) * len(config.ratios)
        count = cells * cells * each
        number = torch.arange(start, start + count).view(cells, cells, each)
        parts.append(number.flip(1).flatten())
        start += count
    return torch.cat(parts)


def _wider(boxes: Tensor, margin: float) -> Tensor:
    """Move every edge outwards by a share of the box's side, but not out of the photograph."""
    if not margin:
        return boxes
    more = (boxes[..., 2:] - boxes[..., :2]) * margin
    return torch.cat([boxes[..., :2] - more, boxes[..., 2:] + more], -1).clamp(0, 1)


def place(boxes: Tensor) -> Tensor:
    """A box's place as numbers near 1, (..., 4) -> (..., 8): edges, sides, their logarithms."""
    side = boxes[..., 2:] - boxes[..., :2]
    return torch.cat([boxes * 2 - 1, side * 2 - 1, side.log() / 2 + 1], -1)
