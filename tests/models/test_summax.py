"""Sum-Max against eqs. 9 and 10 in loops over one unpadded pair."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import SPECIAL_WORDS, Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded, real
from crossgaze.models.summax import SumMax, SumMaxConfig, sum_max
from crossgaze.models.text import TextConfig

WORDS = Vocabulary.build(["a dog runs", "the cat sleeps"], min_count=1)
DIRECTIONS = ("t-i", "i-t")
COUNTS, LENGTHS = [4, 1, 3], [2, 5, 1]


def summax(direction="t-i", **options):
    torch.manual_seed(0)
    options = {"region_width": 4, "size": 3, "text": TextConfig(word_size=2), **options}
    return SumMax(SumMaxConfig(direction=direction, **options), WORDS).double()


def random_sides(counts=COUNTS, lengths=LENGTHS, seed=7):
    torch.manual_seed(seed)
    v = torch.randn(len(counts), max(counts), 3, dtype=torch.float64)
    e = torch.randn(len(lengths), max(lengths), 3, dtype=torch.float64)
    return v, e


def encoded(v, e, counts=COUNTS, lengths=LENGTHS):
    return Encoded(None, v, torch.tensor(counts)), Encoded(None, e, torch.tensor(lengths))


def score_of(v, e, direction):
    def s(i, j):
        return sum(v[i, d] * e[j, d] for d in range(3))

    k, n = len(v), len(e)
    if direction == "t-i":
        return sum(max(s(i, j) for i in range(k)) for j in range(n))
    return sum(max(s(i, j) for j in range(n)) for i in range(k))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_scores_and_gradients_are_eqs_9_and_10(direction):
    probe = torch.randn(3, 3, dtype=torch.float64)
    results = []
    for ours in (True, False):
        v, e = (part.requires_grad_() for part in random_sides())
        if ours:
            scores = summax(direction).similarity(*encoded(v, e))
        else:
            rows = [[score_of(v[i, :k], e[t, :n], direction) for t, n in enumerate(LENGTHS)]
                    for i, k in enumerate(COUNTS)]  # fmt: skip
            scores = torch.stack([torch.stack(row) for row in rows])
        (scores * probe).sum().backward()
        results.append((scores.detach(), v.grad, e.grad))
    for found, wanted in zip(*results, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-14, rtol=0)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_pairs_may_be_padded_on_both_sides(direction):
    v, e = random_sides()
    masks = real(torch.tensor(COUNTS), 4), real(torch.tensor(LENGTHS), 5)
    found = sum_max(v, e, *masks, direction)
    for p, (k, n) in enumerate(zip(COUNTS, LENGTHS, strict=True)):
        wanted = score_of(v[p, :k], e[p, :n], direction)
        assert found[p].item() == pytest.approx(wanted.item(), abs=1e-14)


def test_the_directions_are_each_others_mirror():
    v, e = random_sides()
    ahead = summax("t-i").similarity(*encoded(v, e))
    back = summax("i-t").similarity(*encoded(e, v, LENGTHS, COUNTS)).T
    torch.testing.assert_close(ahead, back)
    assert (ahead - summax("i-t").similarity(*encoded(v, e))).abs().max() > 0.1


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_attention_points_at_what_was_summed(direction):
    model = summax(direction)
    v, e = random_sides()
    images, texts = encoded(v, e)
    found = model.attention(images, texts)
    assert found.names == (direction,)
    assert found.weights.shape == (3, 1, 5, 4)
    s = torch.einsum("pnd,pkd->pnk", e, v)
    scores = (found.weights[:, 0] * s).sum((1, 2))
    torch.testing.assert_close(scores, model.similarity(images, texts).diagonal())
    taken = found.weights.sum((1, 2, 3)).tolist()
    assert taken == (LENGTHS if direction == "t-i" else COUNTS)
    with pytest.raises(InputError, match="wanted pairs"):
        model.attention(images, texts[:1])


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(DIRECTIONS), shapes, shapes, st.integers(0, 99), st.randoms())
def test_order_padding_and_company_change_nothing(direction, counts, lengths, seed, random):
    model = summax(direction)
    v, e = random_sides(counts, lengths, seed)
    plain = model.similarity(*encoded(v, e, counts, lengths))
    moved = torch.full((len(v), v.shape[1] + 2, 3), torch.nan, dtype=v.dtype)
    for row, k in enumerate(counts):
        moved[row, :k] = v[row, random.sample(range(k), k)]
    words = torch.cat([e, torch.full_like(e, 1e9)], dim=1)
    for row, n in enumerate(lengths):
        words[row, n:] = torch.inf
    images, texts = encoded(moved.requires_grad_(), words.requires_grad_(), counts, lengths)
    found = model.similarity(images, texts)
    torch.testing.assert_close(found, plain, atol=1e-12, rtol=0)
    for i, t in itertools.product(range(len(counts)), range(len(lengths))):
        alone = model.similarity(images[[i]], texts[[t]])
        torch.testing.assert_close(alone[0, 0], plain[i, t], atol=1e-12, rtol=0)
    found.sum().backward()
    assert moved.grad.isfinite().all()
    assert words.grad.isfinite().all()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_zero_vectors_score_zero_with_finite_gradients(direction):
    model = summax(direction).float()
    images = model.encode_images(torch.zeros(1, 1, 4))
    found = model.similarity(images, model.encode_tokens([[4]], [1]))
    assert found.dtype == torch.float32
    assert found.tolist() == [[0.0]]
    found.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_whole_model_has_scans_encoders():
    model = summax()
    f = torch.randn(2, 3, 4, dtype=torch.float64)
    images, texts = model.encode_images(f), model.encode_texts(["a dog", "runs"])
    for fragments, mask in ((images.fragments, images.mask), (texts.fragments, texts.mask)):
        lengths = fragments.norm(dim=-1)[mask]
        torch.testing.assert_close(lengths, torch.ones_like(lengths), atol=1e-6, rtol=0)
    wanted = score_of(images.fragments[1], texts.fragments[0, :4], "t-i")
    assert model.similarity(images, texts)[1, 0].item() == pytest.approx(wanted.item(), abs=1e-14)
    assert (SumMax.family, SumMax.embeds) == ("sum-max", False)


def test_parameters_at_the_papers_sizes():
    vocabulary = Vocabulary((*SPECIAL_WORDS, *(f"w{i}" for i in range(8477))))
    with torch.device("meta"):
        model = SumMax(SumMaxConfig(), vocabulary)
    # 2048 * 1024 + 1024, 8481 * 300, 2 * 3072 * (300 + 1024 + 2)
    assert sum(p.numel() for p in model.parameters()) == 2_098_176 + 2_544_300 + 8_146_944


def test_configuration():
    config = SumMaxConfig(direction="i-t", size=8)
    assert build(SumMaxConfig, to_dict(config)) == config
    with pytest.raises(InputError, match=r"direction: got 'ti'.*wanted one of t-i, i-t"):
        SumMaxConfig(direction="ti")
