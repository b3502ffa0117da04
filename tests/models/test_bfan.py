"""BFAN against loops over the public code's definition (FACTS.md), one unpadded pair at a time."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import SPECIAL_WORDS, Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.bfan import Bfan, BfanConfig, focus
from crossgaze.models.encoded import Encoded
from crossgaze.models.text import TextConfig

WORDS = Vocabulary.build(["a dog runs", "the cat sleeps"], min_count=1)
FOCALS = ("equal", "prob")
COUNTS, LENGTHS = [5, 1, 3], [2, 6, 1]


def bfan(focal="equal", lambda1=20.0, **options):
    torch.manual_seed(0)
    options = {"region_width": 4, "size": 3, "text": TextConfig(word_size=2), **options}
    return Bfan(BfanConfig(focal=focal, lambda1=lambda1, **options), WORDS).double()


def random_sides(counts=COUNTS, lengths=LENGTHS, seed=7):
    torch.manual_seed(seed)
    v = torch.randn(len(counts), max(counts), 3, dtype=torch.float64)
    e = torch.randn(len(lengths), max(lengths), 3, dtype=torch.float64)
    return v, e


def encoded(v, e, counts=COUNTS, lengths=LENGTHS):
    return Encoded(None, v, torch.tensor(counts)), Encoded(None, e, torch.tensor(lengths))


# The oracle -----------------------------------------------------------------------------------


def size(values):
    return torch.sqrt(sum(x * x for x in values))


def kept_of(a, focal):
    """Which context fragments are kept, from the pairwise sums; all where attention is uniform."""
    a = [x.item() for x in a]
    weigh = (lambda x: 1.0) if focal == "equal" else math.sqrt
    gains = [sum((x - y) * weigh(y) for y in a) for x in a]
    if max(gains) <= 1e-5 * sum(y * weigh(y) for y in a):
        return [True] * len(a)
    return [gain > 0 for gain in gains]


def weights_of(context, query, focal, lambda1):
    bars = []
    for c in context:
        row = [(c * q).sum() for q in query]
        row = [s if s > 0 else 0.1 * s for s in row]
        bars.append([s / (size(row) + 1e-8) for s in row])
    weights = []
    for i in range(len(query)):
        powers = [torch.exp(lambda1 * bar[i]) for bar in bars]
        a = [power / sum(powers) for power in powers]
        kept = kept_of(a, focal)
        total = sum(x for x, keep in zip(a, kept, strict=True) if keep)
        weights.append([x / total if keep else 0 * x for x, keep in zip(a, kept, strict=True)])
    return weights


def one_way(context, query, focal, lambda1):
    r = []
    for q, row in zip(query, weights_of(context, query, focal, lambda1), strict=True):
        attended = sum(w * c for w, c in zip(row, context, strict=True))
        r.append((q * attended).sum() / (size(q) * size(attended)))
    return sum(r) / len(r)


def score_of(v, e, focal, lambda1):
    v, e = list(v), list(e)
    return one_way(v, e, focal, lambda1) + one_way(e, v, focal, lambda1)


# Against the oracle ---------------------------------------------------------------------------


@pytest.mark.parametrize("focal", FOCALS)
@pytest.mark.parametrize("lambda1", [4.0, 20.0])
@pytest.mark.parametrize("seed", range(4))
def test_scores_and_gradients_are_the_public_codes(focal, lambda1, seed):
    probe = torch.randn(3, 3, dtype=torch.float64)
    results = []
    for ours in (True, False):
        v, e = (part.requires_grad_() for part in random_sides(seed=seed))
        if ours:
            scores = bfan(focal, lambda1).similarity(*encoded(v, e))
        else:
            rows = [[score_of(v[i, :k], e[t, :n], focal, lambda1) for t, n in enumerate(LENGTHS)]
                    for i, k in enumerate(COUNTS)]  # fmt: skip
            scores = torch.stack([torch.stack(row) for row in rows])
        (scores * probe).sum().backward()
        results.append((scores.detach(), v.grad, e.grad))
    for found, wanted, atol in zip(*results, (1e-13, 1e-11, 1e-11), strict=True):
        torch.testing.assert_close(found, wanted, atol=atol, rtol=0)


@pytest.mark.parametrize("focal", FOCALS)
def test_attention_is_what_was_kept_in_both_directions(focal):
    v, e = random_sides()
    found = bfan(focal, 4.0).attention(*encoded(v, e))
    assert found.names == ("t-i", "i-t")
    assert found.weights.shape == (3, 2, 6, 5)
    dropped = 0
    for p, (k, n) in enumerate(zip(COUNTS, LENGTHS, strict=True)):
        regions, words = list(v[p, :k]), list(e[p, :n])
        ahead = torch.tensor(weights_of(regions, words, focal, 4.0), dtype=torch.float64)
        back = torch.tensor(weights_of(words, regions, focal, 4.0), dtype=torch.float64).T
        for number, wanted in enumerate((ahead, back)):
            part = found.weights[p, number]
            torch.testing.assert_close(part[:n, :k], wanted, atol=1e-14, rtol=0)
            assert not part[n:].any()
            assert not part[:, k:].any()
            dropped += int((wanted == 0).sum())
    assert dropped > 10  # the weights of irrelevant fragments are exactly 0


def test_attention_takes_pairs():
    images, texts = encoded(*random_sides())
    with pytest.raises(InputError, match="got 1 images and 3 texts, wanted pairs"):
        bfan().attention(images[:1], texts)


def test_equal_and_prob_keep_by_hand():
    a = torch.tensor([[[0.55, 0.27, 0.1, 0.08]]], dtype=torch.float64)
    mask = torch.ones(1, 4, dtype=torch.bool)
    # equal: above the mean 0.25. prob: above sum a sqrt(a) / sum sqrt(a) = 0.6025 / 1.8603 = 0.3239
    assert focus(a, mask, "equal")[0, 0].tolist() == pytest.approx([0.55 / 0.82, 0.27 / 0.82, 0, 0])
    assert focus(a, mask, "prob")[0, 0].tolist() == [1, 0, 0, 0]


def test_the_mean_is_over_real_context_only():
    a = torch.tensor([[[0.5, 0.3, 0.2, 0.0, 0.0]]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False, False]])
    # With 5 fragments the mean were 0.2, and 0.3 would stay.
    assert focus(a, mask, "equal")[0, 0].tolist() == [1, 0, 0, 0, 0]


def test_no_gradient_flows_to_what_is_dropped():
    logits = torch.tensor([[[2.0, 1.0, -1.0]]], dtype=torch.float64, requires_grad=True)
    kept = focus(logits.softmax(-1), torch.ones(1, 3, dtype=torch.bool), "prob")
    kept[0, 0, 0].backward()
    assert logits.grad[0, 0, 2].abs() < 1e-15


# Uniform attention ----------------------------------------------------------------------------


@pytest.mark.parametrize("focal", FOCALS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 36])
def test_uniform_attention_keeps_all(focal, dtype, n):
    a = torch.full((1, 2, n), 1 / n, dtype=dtype)
    a[0, 1] *= 1 + 1e-7 * torch.randn(n, dtype=dtype)  # uniform but for rounding
    a = (a / a.sum(-1, keepdim=True)).requires_grad_()
    found = focus(a, torch.ones(1, n, dtype=torch.bool), focal)
    torch.testing.assert_close(found, a)
    found.square().sum().backward()
    assert a.grad.isfinite().all()


@pytest.mark.parametrize("focal", FOCALS)
def test_a_little_off_uniform_is_decided_by_the_rule(focal):
    a = torch.tensor([[[0.25 + 1e-4, 0.25, 0.25, 0.25 - 1e-4]]], dtype=torch.float64)
    found = focus(a, torch.ones(1, 4, dtype=torch.bool), focal)[0, 0]
    assert found[0] > 0.3
    assert found[3] == 0


@pytest.mark.parametrize("focal", FOCALS)
def test_zero_vectors_give_finite_scores_and_gradients(focal):
    for zero_image, zero_text in ((True, True), (True, False), (False, True)):
        v = torch.zeros(2, 3, 3) if zero_image else torch.randn(2, 3, 3)
        e = torch.zeros(2, 2, 3) if zero_text else torch.randn(2, 2, 3)
        v.requires_grad_(), e.requires_grad_()
        scores = bfan(focal).float().similarity(*encoded(v, e, [3, 1], [2, 1]))
        assert scores.dtype == torch.float32
        assert scores.isfinite().all()
        assert not scores.any()
        scores.sum().backward()
        assert v.grad.isfinite().all()
        assert e.grad.isfinite().all()


@pytest.mark.parametrize("focal", FOCALS)
def test_one_query_fragment_does_not_hang_on_rounding(focal):
    """Its positive scores all normalise to 1, so single and double precision must agree."""
    torch.manual_seed(0)
    e = torch.nn.functional.normalize(torch.rand(1, 12, 8, dtype=torch.float64) + 0.1, dim=-1)
    v = torch.nn.functional.normalize(torch.rand(20, 1, 8, dtype=torch.float64) + 0.1, dim=-1)
    found = [
        bfan(focal).similarity(*encoded(v.to(dtype), e.to(dtype), [1] * 20, [12])).double()
        for dtype in (torch.float32, torch.float64)
    ]
    torch.testing.assert_close(*found, atol=1e-5, rtol=0)


@pytest.mark.parametrize("focal", FOCALS)
def test_one_region_and_one_word_score_twice_their_cosine(focal):
    v, e = random_sides([1], [1])
    found = bfan(focal).similarity(*encoded(v, e, [1], [1]))
    wanted = 2 * torch.nn.functional.cosine_similarity(v[0, 0], e[0, 0], dim=0)
    assert found.item() == pytest.approx(wanted.item(), abs=1e-14)


# Invariances ----------------------------------------------------------------------------------

models = st.builds(bfan, st.sampled_from(FOCALS), st.sampled_from([4.0, 20.0]))
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3)


@settings(deadline=None, max_examples=40)
@given(models, shapes, shapes, st.integers(0, 99), st.randoms())
def test_order_padding_and_company_change_nothing(model, counts, lengths, seed, random):
    v, e = random_sides(counts, lengths, seed)
    plain = model.similarity(*encoded(v, e, counts, lengths))
    moved = torch.full((len(v), v.shape[1] + 2, 3), torch.nan, dtype=v.dtype)
    for row, k in enumerate(counts):
        moved[row, :k] = v[row, random.sample(range(k), k)]
    words = torch.full((len(e), e.shape[1] + 1, 3), 1e9, dtype=e.dtype)
    for row, n in enumerate(lengths):
        words[row, :n] = e[row, :n]
    images, texts = encoded(moved.requires_grad_(), words.requires_grad_(), counts, lengths)
    found = model.similarity(images, texts)
    torch.testing.assert_close(found, plain, atol=1e-12, rtol=0)
    for i, t in itertools.product(range(len(counts)), range(len(lengths))):
        alone = model.similarity(images[[i]], texts[[t]])
        torch.testing.assert_close(alone[0, 0], plain[i, t], atol=1e-12, rtol=0)
    found.sum().backward()
    assert moved.grad.isfinite().all()
    assert words.grad.isfinite().all()
    pairs = min(len(counts), len(lengths))
    weights = model.attention(images[:pairs], texts[:pairs]).weights
    assert weights.isfinite().all()


# The model as a whole -------------------------------------------------------------------------


def test_whole_model_scores_its_own_fragments():
    model = bfan("prob")
    images = model.encode_images(torch.randn(2, 3, 4, dtype=torch.float64), [3, 2])
    texts = model.encode_texts(["a dog", "the cat runs"])
    found = model.similarity(images, texts)
    for i, t in itertools.product(range(2), range(2)):
        v = images.fragments[i, : images.counts[i]]
        e = texts.fragments[t, : texts.counts[t]]
        assert found[i, t].item() == pytest.approx(score_of(v, e, "prob", 20.0).item(), abs=1e-13)
    found.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_parameters_at_the_papers_sizes():
    vocabulary = Vocabulary((*SPECIAL_WORDS, *(f"w{i}" for i in range(8477))))
    with torch.device("meta"):
        model = Bfan(BfanConfig(), vocabulary)
    # 2048 * 1024 + 1024, 8481 * 300, 2 * 3072 * (300 + 1024 + 2)
    assert sum(p.numel() for p in model.parameters()) == 2_098_176 + 2_544_300 + 8_146_944


def test_configuration():
    config = BfanConfig()
    assert (config.focal, config.lambda1, config.size, config.region_width) == (
        *("equal", 20.0, 1024, 2048),
    )
    assert (Bfan.family, Bfan.embeds) == ("bfan", False)
    assert build(BfanConfig, to_dict(config)) == config
    with pytest.raises(InputError, match="focal: got 'hard', wanted one of equal, prob"):
        BfanConfig(focal="hard")
    with pytest.raises(InputError, match="lambda1: got -1, wanted a number above 0"):
        BfanConfig(lambda1=-1)
