"""SCAN against loops over its equations and the public code's behaviour (FACTS.md), pair by pair.

The oracle takes one image and one sentence without padding, as lists of vectors, and goes fragment
by fragment; its gradients come from autograd through those loops.
"""

import itertools
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import SPECIAL_WORDS, Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.models.scan import Scan, ScanConfig, pool
from crossgaze.models.text import TextConfig

WORDS = Vocabulary.build(["a dog runs", "the cat sleeps", "two birds"], min_count=1)
NORMS = ("softmax", "l2norm", "clipped_l2norm", "l1norm", "clipped_l1norm", "clipped", "no_norm")
NORMS += ("paper",)
POOLINGS = ("LSE", "AVG", "SUM", "MAX")
DIRECTIONS = ("t-i", "i-t")
COUNTS, LENGTHS = [4, 1, 3], [2, 5, 1]


def scan(**options):
    torch.manual_seed(0)
    options = {"region_width": 4, "size": 3, "text": TextConfig(word_size=2), **options}
    return Scan(ScanConfig(**options), WORDS).double()


@cache
def parts(width=3, scale=1.0):
    """Fragments that differ in length, so that normalised and raw scores are told apart."""
    torch.manual_seed(7)
    v = scale * torch.randn(3, 4, width, dtype=torch.float64)
    e = scale * torch.randn(3, 5, width, dtype=torch.float64)
    return v, e


def encoded(v, e, counts=COUNTS, lengths=LENGTHS):
    return Encoded(None, v, torch.tensor(counts)), Encoded(None, e, torch.tensor(lengths))


# The oracle -----------------------------------------------------------------------------------


def dot(a, b):
    return (a * b).sum()


def size(values):
    return torch.sqrt(sum(x * x for x in values))


def cosine(a, b):
    lengths = torch.sqrt(dot(a, a)) * torch.sqrt(dot(b, b))
    return dot(a, b) / max(lengths, torch.tensor(1e-8, dtype=a.dtype))


def normalised(row, norm):
    """The scores of one context fragment with all query fragments."""
    if norm == "paper":
        row = [max(s, 0 * s) for s in row]
        return [s / size(row) if any(x > 0 for x in row) else 0 * s for s in row]
    if "clipped" in norm:
        row = [s if s > 0 else 0.1 * s for s in row]
    if "l2norm" in norm:
        return [s / (size(row) + 1e-8) for s in row]
    if "l1norm" in norm:
        return [s / (sum(abs(x) for x in row) + 1e-8) for s in row]
    if norm == "softmax":
        return [torch.exp(s) / sum(torch.exp(x) for x in row) for s in row]
    return row


def weights_of(context, query, config):
    """alpha[i][j]: how much query fragment i looks at context fragment j."""
    compare = cosine if config.feature_norm == "paper" else dot
    bar = [normalised([compare(c, q) for q in query], config.feature_norm) for c in context]
    alphas = []
    for i in range(len(query)):
        powers = [torch.exp(config.lambda1 * bar[j][i]) for j in range(len(context))]
        alphas.append([power / sum(powers) for power in powers])
    return alphas


def score_of(v, e, config):
    context, query = (v, e) if config.direction == "t-i" else (e, v)
    alphas = weights_of(context, query, config)
    r = []
    for i, fragment in enumerate(query):
        attended = sum(a * c for a, c in zip(alphas[i], context, strict=True))
        r.append(cosine(fragment, attended))
    if config.pooling == "LSE":
        return torch.log(sum(torch.exp(config.lambda2 * x) for x in r)) / config.lambda2
    if config.pooling == "MAX":
        return max(r)
    return sum(r) / len(r) if config.pooling == "AVG" else sum(r)


def matrix_of(v, e, config, counts=COUNTS, lengths=LENGTHS):
    return torch.stack(
        [
            torch.stack(
                [score_of(list(v[i, :k]), list(e[t, :n]), config) for t, n in enumerate(lengths)]
            )
            for i, k in enumerate(counts)
        ]
    )


# Against the oracle ---------------------------------------------------------------------------


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("norm", NORMS)
def test_scores_and_gradients_are_the_papers(norm, pooling, direction):
    model = scan(feature_norm=norm, pooling=pooling, direction=direction, lambda1=4, lambda2=6)
    probe = torch.randn(3, 3, dtype=torch.float64)
    results = []
    for similarity in (lambda v, e: model.similarity(*encoded(v, e)),
                       lambda v, e: matrix_of(v, e, model.config)):  # fmt: skip
        v, e = (part.clone().requires_grad_() for part in parts())
        scores = similarity(v, e)
        (scores * probe).sum().backward()
        results.append((scores.detach(), v.grad, e.grad))
    (scores, dv, de), (wanted, wanted_dv, wanted_de) = results
    torch.testing.assert_close(scores, wanted, atol=1e-13, rtol=0)
    torch.testing.assert_close(dv, wanted_dv, atol=1e-12, rtol=0)
    torch.testing.assert_close(de, wanted_de, atol=1e-12, rtol=0)
    assert dv[:, 0].abs().max() > 1e-4


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_four_poolings_and_eight_norms_all_differ(direction):
    sides = encoded(*parts())
    found = [
        scan(feature_norm=norm, pooling=pooling, direction=direction).similarity(*sides)
        for norm, pooling in itertools.product(NORMS, POOLINGS)
    ]
    for one, other in itertools.combinations(found, 2):
        assert (one - other).abs().max() > 1e-4


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("projection", ["basic", "weight_norm"])
@pytest.mark.parametrize(("images", "texts"), [(True, True), (False, True), (True, False)])
def test_whole_model_from_features_and_words(both, projection, images, texts):
    """Each sentence alone through torch's GRU unpacked, each region alone through W f + b."""
    model = scan(
        text=TextConfig(word_size=2, bidirectional=both), projection=projection,
        normalize_images=images, normalize_texts=texts,
    )  # fmt: skip
    torch.nn.init.normal_(model.regions.bias)
    sentences = [[1, 4, 5, 2], [1, 2], [6]]
    features = torch.randn(2, 3, 4, dtype=torch.float64)
    w = model.regions.matrix()

    def unit(x, on):
        return x / (torch.sqrt(dot(x, x)) + 1e-8) if on else x

    def words(row):
        states = model.text.rnn(model.text.embed(torch.tensor([row])))[0][0]
        if both:
            states = (states[:, :3] + states[:, 3:]) / 2
        return [unit(state, texts) for state in states]

    regions = [
        [unit(w @ f + model.regions.bias, images) for f in image[:k]]
        for image, k in zip(features, (3, 2), strict=True)
    ]
    wanted = torch.stack(
        [torch.stack([score_of(v, words(row), model.config) for row in sentences]) for v in regions]
    )
    ids = torch.tensor([row + [9] * (5 - len(row)) for row in sentences])
    found = model.similarity(
        model.encode_images(features, [3, 2]), model.encode_tokens(ids, [4, 2, 1])
    )
    torch.testing.assert_close(found, wanted, atol=1e-13, rtol=0)
    grads = [
        torch.autograd.grad(scores.square().sum(), list(model.parameters()), retain_graph=True)
        for scores in (found, wanted)
    ]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, atol=1e-11, rtol=0)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_attention_is_alpha_words_by_regions(direction):
    model = scan(direction=direction)
    v, e = parts()
    found = model.attention(*encoded(v, e))
    assert found.names == (direction,)
    assert found.weights.shape == (3, 1, 5, 4)
    for p, (k, n) in enumerate(zip(COUNTS, LENGTHS, strict=True)):
        sides = list(v[p, :k]), list(e[p, :n])
        alphas = weights_of(*(sides if direction == "t-i" else sides[::-1]), model.config)
        wanted = torch.tensor(alphas, dtype=torch.float64)
        wanted = wanted if direction == "t-i" else wanted.T
        part = found.weights[p, 0, :n, :k]
        torch.testing.assert_close(part, wanted, atol=1e-14, rtol=0)
        over_context = part.sum(1 if direction == "t-i" else 0)
        torch.testing.assert_close(over_context, torch.ones_like(over_context))
        assert found.weights[p].sum() == pytest.approx(part.sum().item())


def test_attention_takes_pairs():
    images, texts = encoded(*parts())
    with pytest.raises(InputError, match="got 3 images and 2 texts, wanted pairs"):
        scan().attention(images, texts[:2])


# Invariances ----------------------------------------------------------------------------------

models = st.builds(
    scan,
    feature_norm=st.sampled_from(NORMS),
    pooling=st.sampled_from(POOLINGS),
    direction=st.sampled_from(DIRECTIONS),
)
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def random_sides(counts, lengths, seed):
    torch.manual_seed(seed)
    v = torch.randn(len(counts), max(counts), 3, dtype=torch.float64)
    e = torch.randn(len(lengths), max(lengths), 3, dtype=torch.float64)
    return v, e


@settings(deadline=None, max_examples=40)
@given(models, shapes, shapes, st.integers(0, 99), st.randoms())
def test_the_order_of_regions_does_not_matter(model, counts, lengths, seed, random):
    v, e = random_sides(counts, lengths, seed)
    moved = v.clone()
    for row, k in enumerate(counts):
        moved[row, :k] = v[row, random.sample(range(k), k)]
    one, other = (model.similarity(*encoded(x, e, counts, lengths)) for x in (v, moved))
    torch.testing.assert_close(one, other, atol=1e-12, rtol=0)


@settings(deadline=None, max_examples=40)
@given(models, shapes, shapes, st.integers(0, 3), st.sampled_from([1e9, torch.nan, -torch.inf]))
def test_more_padding_with_anything_in_it_changes_nothing(model, counts, lengths, more, garbage):
    v, e = random_sides(counts, lengths, 1)
    wide = [torch.full((len(x), x.shape[1] + more, 3), garbage, dtype=x.dtype) for x in (v, e)]
    for x, room, real in ((v, wide[0], counts), (e, wide[1], lengths)):
        for row, n in enumerate(real):
            room[row, :n] = x[row, :n]
        room.requires_grad_()
    sides = encoded(*wide, counts, lengths)
    found = model.similarity(*sides)
    wanted = model.similarity(*encoded(v, e, counts, lengths))
    torch.testing.assert_close(found, wanted, atol=1e-12, rtol=0)
    found.sum().backward()
    assert all(room.grad.isfinite().all() for room in wide)
    pairs = min(len(counts), len(lengths))
    assert model.attention(sides[0][:pairs], sides[1][:pairs]).weights.isfinite().all()


@settings(deadline=None, max_examples=25)
@given(models, shapes, shapes, st.integers(0, 99))
def test_a_pair_scores_the_same_in_any_company(model, counts, lengths, seed):
    images, texts = encoded(*random_sides(counts, lengths, seed), counts, lengths)
    together = model.similarity(images, texts)
    for i, t in itertools.product(range(len(counts)), range(len(lengths))):
        alone = model.similarity(images[[i]], texts[[t]])
        torch.testing.assert_close(together[i, t], alone[0, 0], atol=1e-12, rtol=0)


# Edges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("norm", NORMS)
def test_zero_vectors_give_finite_scores_and_gradients(norm, pooling, direction):
    model = scan(feature_norm=norm, pooling=pooling, direction=direction).float()
    for zero_image, zero_text in ((True, True), (True, False), (False, True)):
        v = torch.zeros(2, 3, 3) if zero_image else torch.randn(2, 3, 3)
        e = torch.zeros(2, 2, 3) if zero_text else torch.randn(2, 2, 3)
        v.requires_grad_(), e.requires_grad_()
        scores = model.similarity(*encoded(v, e, [3, 1], [2, 1]))
        assert scores.dtype == torch.float32
        assert scores.isfinite().all()
        scores.sum().backward()
        assert v.grad.isfinite().all()
        assert e.grad.isfinite().all()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_zero_features_train(direction):
    """The whole model on an image of zeros: with no bias its embedding is the zero vector."""
    model = scan(direction=direction).float()
    images = model.encode_images(torch.zeros(1, 2, 4))
    assert not images.fragments.any()
    model.similarity(images, model.encode_texts(["a dog"])).sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_one_region_and_one_word_score_their_cosine(direction):
    model = scan(direction=direction)
    v, e = parts()
    found = model.similarity(*encoded(v[:1], e[:1], [1], [1]))
    assert found.shape == (1, 1)
    assert found.item() == pytest.approx(cosine(v[0, 0], e[0, 0]).item(), abs=1e-14)


def test_large_lambdas_do_not_overflow():
    sides = encoded(*parts())
    found = scan(pooling="LSE", lambda1=1e4, lambda2=1e4).float().similarity(*sides)
    best = scan(pooling="MAX", lambda1=1e4).float().similarity(*sides)
    torch.testing.assert_close(found, best, atol=1e-3, rtol=0)


def test_pool_of_one_pair_by_hand():
    r, mask = torch.tensor([[0.5, -0.25, 9.0]]), torch.tensor([[True, True, False]])
    assert pool(r, mask, "SUM", 2.0).tolist() == [0.25]
    assert pool(r, mask, "AVG", 2.0).tolist() == [0.125]
    assert pool(r, mask, "MAX", 2.0).tolist() == [0.5]
    # log(e^1 + e^-0.5) / 2
    assert pool(r, mask, "LSE", 2.0).tolist() == pytest.approx([0.6007066], abs=1e-6)


# The model as a whole -------------------------------------------------------------------------


def test_defaults_are_the_papers_text_image_model():
    config = ScanConfig()
    assert (config.region_width, config.size, config.direction) == (2048, 1024, "t-i")
    assert (config.pooling, config.lambda1, config.lambda2) == ("AVG", 9.0, 6.0)
    assert config.feature_norm == "clipped_l2norm"
    assert config.text == TextConfig(kind="gru", word_size=300, bidirectional=True, join="mean")
    assert build(ScanConfig, to_dict(config)) == config
    assert (Scan.family, Scan.embeds) == ("scan", False)


@pytest.mark.parametrize(
    ("words", "options", "count"),
    [
        # 2048 * 1024 + 1024, V * 300, and two directions of 3072 * (300 + 1024 + 2)
        (8481, {}, 2_098_176 + 2_544_300 + 2 * 4_073_472),
        (11353, {}, 2_098_176 + 3_405_900 + 2 * 4_073_472),
        (8481, {"projection": "weight_norm"}, 2_098_177 + 2_544_300 + 2 * 4_073_472),
        (8481, {"text": TextConfig(bidirectional=False)}, 2_098_176 + 2_544_300 + 4_073_472),
    ],
)
def test_parameters_at_the_papers_sizes(words, options, count):
    vocabulary = Vocabulary((*SPECIAL_WORDS, *(f"w{i}" for i in range(words - 4))))
    with torch.device("meta"):
        model = Scan(ScanConfig(**options), vocabulary)
    assert sum(p.numel() for p in model.parameters()) == count


def test_state_maps_one_to_one_to_the_public_codes():
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    text = ["embed.weight", *(f"rnn.{n}{way}" for n in names for way in ("", "_reverse"))]
    for projection, image in (
        ("basic", ["weight", "bias"]),
        ("weight_norm", ["weight_g", "weight_v", "bias"]),
    ):
        keys = set(scan(projection=projection).state_dict())
        assert keys == {f"regions.{key}" for key in image} | {f"text.{key}" for key in text}


def test_an_lstm_reads_words_too():
    model = scan(text=TextConfig(kind="lstm", word_size=2))
    images = model.encode_images(torch.randn(2, 3, 4))
    assert model.similarity(images, model.encode_texts(["a dog", "emu"])).isfinite().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direction": "t2i"}, r"direction: got 't2i' \(did you mean 't-i'\?\), wanted one of t-i"),
        ({"pooling": "Mean"}, "pooling: got 'Mean', wanted one of LSE, AVG, SUM, MAX"),
        ({"feature_norm": "l3norm"}, r"feature_norm: got 'l3norm' \(did you mean 'l[12]norm'"),
        ({"lambda1": 0}, "lambda1: got 0, wanted a number above 0"),
        ({"lambda2": -6.0}, "lambda2: got -6.0, wanted a number above 0"),
        ({"size": 0}, "size: got 0, wanted a whole number, 1 or more"),
    ],
)
def test_values_that_cannot_be_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        ScanConfig(**options)


def test_words_need_a_vocabulary():
    with pytest.raises(InputError, match="needs a vocabulary, got none"):
        Scan(ScanConfig(region_width=4, size=3))
