"""What the tests of scoring need: random sides, small models, and their scores by plain loops.

The loops take one image and one sentence, in float64, and share nothing with the package.
"""

import math
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from crossgaze.models.bfan import Bfan, BfanConfig
from crossgaze.models.encoded import Encoded
from crossgaze.models.mmca import Mmca, MmcaConfig
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.summax import SumMax, SumMaxConfig
from crossgaze.models.text import TextConfig
from crossgaze.scoring import every_pair, fragments, pairs, stacks
from crossgaze.scoring.every_pair import score_into
from crossgaze.scoring.kernel import InnerProducts
from crossgaze.scoring.sinks import ScoreMatrix
from model_parts import draw

SIZE, HEADS, FILTERS, ALPHA = 6, 2, 3, 0.7
NORMS = ("softmax", "l2norm", "clipped_l2norm", "l1norm", "clipped_l1norm", "clipped", "no_norm")
NORMS += ("paper",)
POOLINGS = ("LSE", "AVG", "SUM", "MAX")
DIRECTIONS = ("t-i", "i-t")
# Regions of each image, words of each sentence: one of everything, then uneven ones.
SHAPES = [
    ([1], [1]),
    ([3], [2, 5, 1]),
    ([4, 1, 3], [2]),
    ([1, 1, 1], [3, 1]),
    ([3, 2], [1, 1, 1]),
    ([4, 1, 3, 4, 2], [2, 5, 1, 5, 2, 3, 5]),
]
COUNTS, LENGTHS = SHAPES[-1]


# Sides and models -----------------------------------------------------------------------------


def side(counts, *, seed=0, dtype=torch.float64, padding=torch.nan, more=1):
    """Encode so many fragments of unit length each, with `padding` where there are none."""
    width = max(counts, default=1) + more
    x = draw(len(counts), width, SIZE, seed=seed)
    x = x / x.norm(dim=-1, keepdim=True)
    for row, count in enumerate(counts):
        x[row, count:] = padding
    vectors = draw(len(counts), SIZE, seed=seed + 500)
    vectors = vectors / vectors.norm(dim=-1, keepdim=True)
    return Encoded(vectors.to(dtype), x.to(dtype), torch.tensor(counts, dtype=torch.long))


def sides(counts=COUNTS, lengths=LENGTHS, *, seed=0, **options):
    return side(counts, seed=seed, **options), side(lengths, seed=seed + 100, **options)


def _make(family, config, **options):
    torch.manual_seed(4)
    text = TextConfig(kind="gru", word_size=2)
    return family(config(region_width=4, size=SIZE, text=text, **options), 5).double()


def scan(**options):
    return _make(Scan, ScanConfig, **options)


def bfan(**options):
    return _make(Bfan, BfanConfig, **options)


def sum_max(**options):
    return _make(SumMax, SumMaxConfig, **options)


def mmca(**options):
    options = {"heads": HEADS, "filters": FILTERS, "alpha": ALPHA, **options}
    model = _make(Mmca, MmcaConfig, **options).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    return model


MODELS = {
    "scan t-i": lambda: scan(direction="t-i", pooling="AVG"),
    "scan i-t": lambda: scan(direction="i-t", pooling="LSE"),
    "bfan equal": lambda: bfan(focal="equal"),
    "bfan prob": lambda: bfan(focal="prob"),
    "sum-max t-i": lambda: sum_max(direction="t-i"),
    "sum-max i-t": lambda: sum_max(direction="i-t"),
    "mmca both": lambda: mmca(modules="both"),
    "mmca self": lambda: mmca(modules="self"),
}


# Running --------------------------------------------------------------------------------------


@contextmanager
def cut(*, regions=None, words=None, block=None, piece=None, small=None, stack=None, pair=None):
    """Let tiles, blocks and slices have other sizes than the package's."""
    places = [
        (every_pair, "BLOCK", block),
        (every_pair, "SMALL", small),
        (fragments, "SLICE", piece),
        (stacks, "NUMBERS", stack),
        (pairs, "CACHED", pair),
    ]
    with pytest.MonkeyPatch.context() as patch:
        for kernel in (fragments.FragmentKernel, stacks.StackKernel, InnerProducts):
            patch.setattr(kernel, "tile", (regions or kernel.tile[0], words or kernel.tile[1]))
        for module, name, value in places:
            if value is not None:
                patch.setattr(module, name, value)
        yield


def score(model, images, texts, out=torch.float64, **options):
    """Score all pairs into a matrix of type `out` that holds NaN before."""
    out = torch.full((len(images), len(texts)), torch.nan, dtype=out)
    assert score_into(model, images, texts, [ScoreMatrix(out)], **options) == tuple(out.shape)
    return out


def table(one, images, texts):
    """Score pair by pair, `one` taking the real regions and words as arrays."""
    rows = [[one(x, y) for y in _real(texts)] for x in _real(images)]
    return torch.tensor(rows, dtype=torch.float64).view(len(images), len(texts))


def _real(encoded):
    parts = encoded.fragments.double().numpy(force=True)
    return [part[:count] for part, count in zip(parts, encoded.counts.tolist(), strict=True)]


def gap(found, wanted):
    """Return the largest difference; NaN where one is, so that no comparison holds."""
    assert found.shape == wanted.shape
    return float((found.detach().double() - wanted.double()).abs().max())


# SCAN, BFAN and Sum-Max by their equations ----------------------------------------------------


def cosine(a, b):
    return a @ b / max(math.sqrt(a @ a) * math.sqrt(b @ b), 1e-8)


def normalised(row, norm):
    """s-bar of one context fragment with all query fragments, below eq. 1 of SCAN."""
    row = [float(s) for s in row]
    if norm == "softmax":
        powers = [math.exp(s - max(row)) for s in row]
        return [power / sum(powers) for power in powers]
    if norm == "paper":
        row = [max(s, 0.0) for s in row]
        below = math.sqrt(sum(s * s for s in row))
        return [s / below if below else 0.0 for s in row]
    if norm.startswith("clipped"):
        row = [s if s > 0 else 0.1 * s for s in row]
    if norm.endswith("l2norm"):
        return [s / (math.sqrt(sum(x * x for x in row)) + 1e-8) for s in row]
    if norm.endswith("l1norm"):
        return [s / (sum(abs(x) for x in row) + 1e-8) for s in row]
    return row


def kept(alphas, focal):
    """Which fragments BFAN keeps: F_i > 0, and all where attention is uniform."""
    trust = [1.0 if focal == "equal" else math.sqrt(a) for a in alphas]
    gains = [sum((a - b) * w for b, w in zip(alphas, trust, strict=True)) for a in alphas]
    base = sum(b * w for b, w in zip(alphas, trust, strict=True))
    if max(gains) <= 1e-5 * base:
        return [True] * len(alphas)
    return [gain > 0 for gain in gains]


def relevances(context, query, norm, sharpness, focal=None):
    """R of every query fragment: eqs. 1-4 of SCAN, BFAN's choice between 3 and 4."""
    compare = cosine if norm == "paper" else np.dot
    bars = [normalised([compare(c, q) for q in query], norm) for c in context]
    found = []
    for i, fragment in enumerate(query):
        logits = [sharpness * bar[i] for bar in bars]
        powers = [math.exp(x - max(logits)) for x in logits]
        alphas = [power / sum(powers) for power in powers]
        if focal:
            keep = kept(alphas, focal)
            alphas = [a if stays else 0.0 for a, stays in zip(alphas, keep, strict=True)]
            alphas = [a / sum(alphas) for a in alphas]
        attended = sum(a * c for a, c in zip(alphas, context, strict=True))
        found.append(cosine(fragment, attended))
    return found


def pooled(found, pooling, factor):
    """Eqs. 5-8 of SCAN, and its Table 4."""
    if pooling == "LSE":
        top = max(found)
        return top + math.log(sum(math.exp(factor * (r - top)) for r in found)) / factor
    return {"AVG": sum(found) / len(found), "SUM": sum(found), "MAX": max(found)}[pooling]


def scan_loops(model):
    c = model.config

    def one(v, e):
        context, query = (v, e) if c.direction == "t-i" else (e, v)
        found = relevances(context, query, c.feature_norm, c.lambda1)
        return pooled(found, c.pooling, c.lambda2)

    return one


def bfan_loops(model):
    how = ("clipped_l2norm", model.config.lambda1, model.config.focal)

    def one(v, e):
        ahead, back = relevances(v, e, *how), relevances(e, v, *how)
        return sum(ahead) / len(e) + sum(back) / len(v)

    return one


def sum_max_loops(model):
    def one(v, e):
        context, query = (v, e) if model.config.direction == "t-i" else (e, v)
        return sum(max(float(c @ q) for c in context) for q in query)

    return one


# MMCA by its equations ------------------------------------------------------------------------


def mmca_loops(model):
    """i_1 . c_1 of eqs. 8-14 and 5-7 times alpha, without i_0 . c_0."""
    p = {name: part.detach().numpy() for name, part in model.named_parameters()}

    def layer(name, x):
        return p[f"{name}.weight"] @ x + p[f"{name}.bias"]

    def norm(name, x):
        spread = math.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)
        return (x - x.mean()) / spread * p[f"{name}.weight"] + p[f"{name}.bias"]

    def unit(x):
        return x / (math.sqrt(x @ x) + 1e-8)

    def head(stack, number):
        rows = slice(number * SIZE // HEADS, (number + 1) * SIZE // HEADS)
        q, k, v = (
            [p[f"cross.{part}.weight"][rows] @ y for y in stack]
            for part in ("query", "key", "value")
        )
        powers = [[math.exp(a @ b / math.sqrt(SIZE / HEADS)) for b in k] for a in q]
        return [sum(w * x for w, x in zip(row, v, strict=True)) / sum(row) for row in powers]

    def phrases(words):
        best = []
        for window in (1, 2, 3):
            weight, bias = (
                p[f"cross_sentence.windows.{window - 1}.{x}"] for x in ("weight", "bias")
            )
            filled = [*words, *[np.zeros(SIZE)] * (window - len(words))]
            for f in range(FILTERS):
                found = [
                    sum(weight[f, :, at] @ filled[start + at] for at in range(window)) + bias[f]
                    for start in range(len(filled) - window + 1)
                ]
                best.append(max(0.0, *found))
        return unit(norm("cross_sentence.norm", layer("cross_sentence.embed", np.array(best))))

    def one(v, e):
        stack = [*v, *e]
        heads = [head(stack, number) for number in range(HEADS)]
        mixed = []
        for y, *parts in zip(stack, *heads, strict=True):
            x = norm("cross.attention_norm", y + p["cross.out.weight"] @ np.concatenate(parts))
            inner = np.maximum(layer("cross.feed.0", x), 0)
            mixed.append(norm("cross.feed_norm", x + layer("cross.feed.2", inner)))
        return ALPHA * float(unit(sum(mixed[: len(v)]) / len(v)) @ phrases(mixed[len(v) :]))

    return one


def loops(model, images, texts):
    """Return the scores of all pairs by plain loops, (images, texts) float64."""
    by_family = {"scan": scan_loops, "bfan": bfan_loops, "sum-max": sum_max_loops}
    if model.family in by_family:
        return table(by_family[model.family](model), images, texts)
    own = [[float(a @ b) for b in texts.vectors.double()] for a in images.vectors.double()]
    scores = torch.tensor(own, dtype=torch.float64).view(len(images), len(texts))
    if model.config.modules == "self":
        return scores
    return scores + table(mmca_loops(model.double()), images, texts)
