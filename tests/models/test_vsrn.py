"""VSRN against its equations, written out as loops in NumPy float64, and against itself."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.config import build as build_config
from crossgaze.config import to_dict
from crossgaze.data.text.vocabulary import SPECIAL_WORDS, Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.region_order import order_regions
from crossgaze.models.text import TextConfig
from crossgaze.models.vsrn import RelationLayer, Vsrn, VsrnConfig

VOCABULARY = Vocabulary.build(["a dog runs", "two cats sleep on a mat"], min_count=1)
SMALL = VsrnConfig(
    region_width=5, size=4, layers=2, text=TextConfig(word_size=3, bidirectional=False)
)
FORMS = [
    replace(SMALL, variant=variant, layers=layers, reasoning=reasoning, normalize_images=normed)
    for variant in ("f30k", "coco")
    for layers, reasoning, normed in ((2, "gru", True), (0, "gru", False), (1, "mean", True))
]


def build(config=SMALL, seed=0):
    """A model in float64 whose every parameter and statistic is random, batch norms too."""
    torch.manual_seed(seed)
    model = Vsrn(config, VOCABULARY).double()
    for name, values in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith("running_var"):
            values.data.uniform_(0.5, 2.0)
        elif values.is_floating_point():
            values.data.normal_(0.0, 0.6)
    return model


def weights_of(model):
    return {name: values.detach().numpy().copy() for name, values in model.state_dict().items()}


# The oracle ---------------------------------------------------------------------------------------


def norm_over(x):
    return x / (np.sqrt((x**2).sum()) + 1e-8)


def norm_columns(images):
    """Every image's every feature, over its regions."""
    return [np.stack([norm_over(column) for column in v.T]).T for v in images]


def batch_norm(rows, w, name, train, after):
    """Rows (n, D), all real; in training by their own mean and variance, else by the kept ones."""
    mean, variance = w[f"{name}.running_mean"], w[f"{name}.running_var"]
    if train:
        n = len(rows)
        mean_now = sum(rows) / n
        variance_now = sum((row - mean_now) ** 2 for row in rows) / n
        after[f"{name}.running_mean"] = 0.9 * mean + 0.1 * mean_now
        after[f"{name}.running_var"] = 0.9 * variance + 0.1 * variance_now * n / (n - 1)
        mean, variance = mean_now, variance_now
    scale = w[f"{name}.weight"] / np.sqrt(variance + 1e-5)
    return [(row - mean) * scale + w[f"{name}.bias"] for row in rows]


def relation(images, w, name, train, after):
    """Eqs. 2 and 3, region by region."""

    def conv(which, x):
        return w[f"{name}.{which}.weight"][:, :, 0] @ x + w[f"{name}.{which}.bias"]

    updates = []
    for v in images:
        for i in range(len(v)):
            y = np.zeros(v.shape[1])
            for j in range(len(v)):
                y += (conv("theta", v[i]) @ conv("phi", v[j])) / len(v) * conv("g", v[j])
            updates.append(conv("W.0", y))
    updates = iter(batch_norm(updates, w, f"{name}.W.1", train, after))
    return [np.stack([row + next(updates) for row in v]) for v in images]


def gru(rows, w, name):
    """torch's GRU: eqs. 4-7 with 1 - z for z, and the reset behind U_m instead of before it."""
    w_ih, w_hh = w[f"{name}.weight_ih_l0"], w[f"{name}.weight_hh_l0"]
    b_ih, b_hh = w[f"{name}.bias_ih_l0"], w[f"{name}.bias_hh_l0"]
    size = w_hh.shape[1]
    R, Z, M = slice(size), slice(size, 2 * size), slice(2 * size, None)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    m = np.zeros(size)
    for x in rows:
        r = sigmoid(w_ih[R] @ x + b_ih[R] + w_hh[R] @ m + b_hh[R])  # eq. 6
        z = 1 - sigmoid(w_ih[Z] @ x + b_ih[Z] + w_hh[Z] @ m + b_hh[Z])  # eq. 4
        new = np.tanh(w_ih[M] @ x + b_ih[M] + r * (w_hh[M] @ m + b_hh[M]))  # eq. 5
        m = (1 - z) * m + z * new  # eq. 7
    return m


def oracle_images(images, w, config, train=False):
    """Image vectors (N, D), V* of each image, and the statistics as training leaves them."""
    after = {}
    v = [np.stack([w["fc.weight"] @ f + w["fc.bias"] for f in regions]) for regions in images]
    if config.variant == "coco":
        v = norm_columns(v)
    for number in range(1, config.layers + 1):
        v = relation(v, w, f"Rs_GCN_{number}", train, after)
    v = norm_columns(v)
    if config.reasoning == "gru":
        vectors = [gru(rows, w, "img_rnn") for rows in v]
    else:
        vectors = [sum(rows) / len(rows) for rows in v]
    if config.variant == "f30k":
        vectors = batch_norm(vectors, w, "bn", train, after)
    if config.normalize_images:
        vectors = [norm_over(vector) for vector in vectors]
    return np.stack(vectors), v, after


def oracle_texts(rows, w):
    return np.stack([norm_over(gru(w["text.embed.weight"][row], w, "text.rnn")) for row in rows])


def some_images(counts, seed=0, width=5):
    """The ragged images, and the same padded with garbage: NaN, infinity, large numbers."""
    draw = np.random.default_rng(seed)
    ragged = [draw.normal(size=(count, width)) for count in counts]
    padded = np.full((len(counts), max(counts) + 1, width), np.nan)
    padded[::2, :, ::2] = np.inf
    padded[:, :, 1] = 1e6
    for number, regions in enumerate(ragged):
        padded[number, : len(regions)] = regions
    return ragged, torch.tensor(padded), torch.tensor(counts)


def padded_part(features, counts):
    return features[torch.arange(features.shape[1]) >= counts[:, None]]


# Against the oracle -------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [[3, 1, 4], [3, 3]])
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("config", FORMS)
def test_images_are_the_equations(config, train, counts):
    model = build(config).train(train)
    before = weights_of(model)
    ragged, padded, counts = some_images(counts)
    if (counts == 3).all():
        padded = padded[:, :3]  # no padding at all
    vectors, v_star, after = oracle_images(ragged, before, config, train)
    found = model.encode_images(padded, counts)
    np.testing.assert_allclose(found.vectors.detach(), vectors, atol=1e-12)
    for features, expected in zip(found.features.detach(), v_star, strict=True):
        np.testing.assert_allclose(features[: len(expected)], expected, atol=1e-12)
    assert (padded_part(found.features, counts) == 0).all()
    for name, values in weights_of(model).items():  # training moves the statistics, nothing else
        if not name.endswith("num_batches_tracked"):
            np.testing.assert_allclose(values, after.get(name, before[name]), atol=1e-12)
    batch_norms = config.layers + (config.variant == "f30k")
    assert len(after) == (2 * batch_norms if train else 0)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("config", FORMS)
def test_gradients_are_the_differences_of_the_equations(config, train):
    model = build(config, seed=1).train(train)
    w = weights_of(model)
    ragged, padded, counts = some_images([2, 3], seed=1)
    pull = np.random.default_rng(2).normal(size=(2, config.size))
    pull_v = np.random.default_rng(3).normal(size=(3, config.size))

    def value(images, weights):
        vectors, v_star, _ = oracle_images(images, weights, config, train)
        return (vectors * pull).sum() + sum((v * pull_v[: len(v)]).sum() for v in v_star)

    x = padded.clone().requires_grad_()
    encoded = model.encode_images(x, counts)
    found = (encoded.vectors * torch.tensor(pull)).sum()
    found = found + (encoded.features[:, :3] * torch.tensor(pull_v)).sum()
    found.backward()
    assert found.item() == pytest.approx(value(ragged, w), abs=1e-11)
    step = 1e-6
    for number, regions in enumerate(ragged):  # every number of every region
        for place in np.ndindex(regions.shape):
            moved = [[r.copy() for r in ragged] for _ in range(2)]
            moved[0][number][place] += step
            moved[1][number][place] -= step
            slope = (value(moved[0], w) - value(moved[1], w)) / (2 * step)
            assert x.grad[(number, *place)].item() == pytest.approx(slope, abs=2e-7)
    assert (padded_part(x.grad, counts) == 0).all()
    for name, parameter in model.named_parameters():  # every parameter, in two directions
        if name.startswith("text."):
            continue
        for seed in range(2):
            way = np.random.default_rng(seed).normal(size=parameter.shape)
            up = value(ragged, {**w, name: w[name] + step * way})
            down = value(ragged, {**w, name: w[name] - step * way})
            slope = (parameter.grad.numpy() * way).sum()
            assert slope == pytest.approx((up - down) / (2 * step), abs=2e-7), name


@pytest.mark.parametrize("kind", ["f30k", "coco"])
def test_scores_are_inner_products_of_the_equations(kind):
    config = replace(SMALL, variant=kind)
    model = build(config).eval()
    w = weights_of(model)
    ragged, padded, counts = some_images([3, 2])
    captions = ["a dog", "two cats sleep", "mat"]
    rows = [VOCABULARY.encode(caption) for caption in captions]
    vectors, _, _ = oracle_images(ragged, w, config)
    scores = model.similarity(model.encode_images(padded, counts), model.encode_texts(captions))
    assert scores.shape == (2, 3)
    np.testing.assert_allclose(scores.detach(), vectors @ oracle_texts(rows, w).T, atol=1e-12)


@pytest.mark.parametrize("images", [False, True])
@pytest.mark.parametrize("texts", [False, True])
def test_each_side_is_normalised_or_not(images, texts):
    model = build(replace(SMALL, normalize_images=images, normalize_texts=texts)).eval()
    w, row = weights_of(model), VOCABULARY.encode("a cat")
    expected = gru(w["text.embed.weight"][row], w, "text.rnn")
    assert np.linalg.norm(expected) != pytest.approx(1.0, abs=1e-2)
    expected = norm_over(expected) if texts else expected
    np.testing.assert_allclose(
        model.encode_texts(["a cat"]).vectors[0].detach(), expected, atol=1e-12
    )
    _, padded, counts = some_images([2])
    length = model.encode_images(padded, counts).vectors.norm().item()
    assert (length == pytest.approx(1.0, abs=1e-3)) is images


@pytest.mark.parametrize("seed", range(5))
def test_attention_is_section_4_5(seed):
    model = build(seed=seed).eval()
    ragged, padded, counts = some_images([5, 1, 8], seed)
    vectors, v_star, _ = oracle_images(ragged, weights_of(model), SMALL)
    found = model.attention(model.encode_images(padded, counts), model.encode_texts(["a"] * 3))
    assert found.names == ("regions",)
    assert found.weights is None
    assert found.words is None
    assert found.regions.shape == (3, 1, 9)
    for number, (vector, v) in enumerate(zip(vectors, v_star, strict=True)):
        agreement = [vector @ row for row in v]
        expected = [0.0] * 9
        for i, own in enumerate(agreement):
            rank = 1 + sum(other > own for other in agreement)
            expected[i] = 50 * (len(v) - rank) ** 2
        assert found.regions[number, 0].tolist() == expected
    assert sorted(found.regions[0, 0].tolist()) == [0, 0, 0, 0, 0, 50, 200, 450, 800]


# Against itself -----------------------------------------------------------------------------------

seeds = st.integers(0, 2**20)
many_counts = st.lists(st.integers(1, 5), min_size=1, max_size=4)
forms = st.sampled_from(FORMS)


@settings(max_examples=25, deadline=None)
@given(forms, seeds, many_counts)
def test_padding_and_company_change_nothing(config, seed, counts):
    model = build(config, seed=seed % 7).eval()
    ragged, padded, real = some_images(counts, seed)
    together = model.encode_images(padded, real)
    for number, regions in enumerate(ragged):
        alone = model.encode_images(torch.tensor(regions)[None])
        torch.testing.assert_close(together.vectors[number], alone.vectors[0])
        torch.testing.assert_close(together.features[number, : len(regions)], alone.features[0])


@settings(max_examples=20, deadline=None)
@given(forms, seeds, st.lists(st.integers(1, 5), min_size=2, max_size=4))
def test_padding_changes_nothing_in_training(config, seed, counts):
    short, long = build(config).train(), build(config).train()
    _, padded, real = some_images(counts, seed)
    more = torch.cat([padded, torch.full_like(padded, torch.nan)], 1)
    a, b = short.encode_images(padded, real), long.encode_images(more, real)
    torch.testing.assert_close(a.vectors, b.vectors)
    for name, values in short.state_dict().items():
        torch.testing.assert_close(values, long.state_dict()[name])


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["f30k", "coco"]), seeds, st.permutations(range(4)))
def test_without_the_gru_the_order_of_regions_does_not_matter(variant, seed, places):
    model = build(replace(SMALL, variant=variant, reasoning="mean")).eval()
    x = torch.tensor(np.random.default_rng(seed).normal(size=(2, 4, 5)))
    a, b = model.encode_images(x), model.encode_images(x[:, list(places)])
    torch.testing.assert_close(a.vectors, b.vectors)
    torch.testing.assert_close(a.features[:, list(places)], b.features)


def test_with_the_gru_the_order_of_regions_matters():
    model = build().eval()
    x = torch.tensor(np.random.default_rng(0).normal(size=(1, 4, 5)))
    a, b = model.encode_images(x), model.encode_images(x.flip(1))
    torch.testing.assert_close(a.features.flip(1), b.features)  # the graph does not mind
    assert (a.vectors - b.vectors).abs().max() > 1e-3


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["a", "a dog", "two cats sleep on a mat"]), min_size=1, max_size=4))
def test_captions_do_not_depend_on_their_company(captions):
    model = build().eval()
    together = model.encode_texts(captions).vectors
    for caption, vector in zip(captions, together, strict=True):
        torch.testing.assert_close(model.encode_texts([caption]).vectors[0], vector)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("config", FORMS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1)])
def test_zero_features_are_finite(config, train, shape):
    """Also one image and one region, also in training, where torch's batch norm gives up."""
    torch.manual_seed(0)
    model = Vsrn(config, VOCABULARY).train(train)  # float32, the bias of the projection is zero
    x = torch.zeros(*shape, 5, requires_grad=True)
    images, texts = model.encode_images(x), model.encode_tokens([[4]], [1])
    scores = model.similarity(images, texts)
    scores.sum().backward()
    assert scores.isfinite().all()
    assert x.grad.isfinite().all()
    for name, parameter in model.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), name


def test_a_lone_row_in_training_uses_the_running_statistics():
    model = build()
    x = torch.tensor(np.random.default_rng(0).normal(size=(1, 1, 5)))
    expected = model.eval().encode_images(x).vectors
    before = weights_of(model)
    found = model.train().encode_images(x).vectors
    torch.testing.assert_close(found, expected)
    for name, values in weights_of(model).items():
        np.testing.assert_array_equal(values, before[name])


def test_a_fresh_graph_layer_is_the_identity():
    torch.manual_seed(0)
    v = torch.randn(2, 3, 4)
    for train in (True, False):
        layer = RelationLayer(4).train(train)
        torch.testing.assert_close(layer(v, torch.tensor([3, 3])), v, rtol=0, atol=0)


def test_one_vector_an_image_is_one_region():
    model = build().eval()
    x = torch.randn(2, 5, dtype=torch.float64)
    torch.testing.assert_close(
        model.encode_images(x).vectors, model.encode_images(x[:, None]).vectors
    )


# Sizes and names ----------------------------------------------------------------------------------


def test_parameters_at_the_papers_sizes():
    """By hand, with D = d = 2048 and the 8,481 words of Flickr30K, of 300 numbers each."""
    D, words = 2048, 8481
    vocabulary = Vocabulary((*SPECIAL_WORDS, *(f"w{i}" for i in range(words - 4))))
    linear = D * D + D
    layer = 4 * linear + 2 * D
    image = linear + 4 * layer + 2 * (3 * D * D + 3 * D)
    text = words * 300 + 3 * D * 300 + 3 * D * D + 2 * 3 * D
    with torch.device("meta"):
        f30k = Vsrn(VsrnConfig(variant="f30k"), vocabulary)
        coco = Vsrn(VsrnConfig(variant="coco"), vocabulary)
    count = {m: sum(p.numel() for p in m.parameters()) for m in (f30k, coco)}
    assert image + 2 * D + text == 113_519_276
    assert count == {f30k: 113_519_276, coco: 113_519_276 - 2 * D}
    state = {name: tuple(values.shape) for name, values in f30k.state_dict().items()}
    assert state["Rs_GCN_4.theta.weight"] == (2048, 2048, 1)
    assert state["img_rnn.weight_ih_l0"] == (6144, 2048)


@pytest.mark.parametrize("variant", ["f30k", "coco"])
def test_names_are_those_of_the_public_checkpoints(variant):
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    image = {"fc.weight", "fc.bias"}
    rnn = [f"{kind}_{side}_l0" for kind in ("weight", "bias") for side in ("ih", "hh")]
    image |= {f"img_rnn.{name}" for name in rnn}
    for number in (1, 2, 3, 4):
        for conv in ("g", "theta", "phi", "W.0"):
            image |= {f"Rs_GCN_{number}.{conv}.{kind}" for kind in ("weight", "bias")}
        image |= {f"Rs_GCN_{number}.W.1.{kind}" for kind in norm}
    if variant == "f30k":
        image |= {f"bn.{kind}" for kind in norm}
    text = {"embed.weight", *(f"rnn.{name}" for name in rnn)}
    model = Vsrn(replace(SMALL, layers=4, variant=variant), VOCABULARY)
    assert set(model.state_dict()) == image | {f"text.{name}" for name in text}
    assert model.embeds
    assert model.family == "vsrn"


@pytest.mark.parametrize("config", [VsrnConfig(), *FORMS])
def test_configurations_come_back_from_plain_values(config):
    assert build_config(VsrnConfig, to_dict(config)) == config


# The order of regions -----------------------------------------------------------------------------


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 0}, "size: got 0, wanted a whole number, 1 or more"),
        ({"region_width": -1}, "region_width: got -1, wanted a whole number, 1 or more"),
        ({"layers": -1}, "layers: got -1, wanted a whole number, 0 to 64"),
        ({"variant": "flickr"}, "variant: got 'flickr', wanted one of f30k, coco"),
        ({"reasoning": "max"}, "reasoning: got 'max', wanted one of gru, mean"),
    ],
)
def test_bad_configurations_are_refused_by_name(given, message):
    with pytest.raises(InputError) as error:
        VsrnConfig(**given)
    assert str(error.value) == message


def test_bad_input_is_refused_by_name():
    model = build().eval()
    images, texts = model.encode_images(torch.zeros(2, 1, 5)), model.encode_texts(["a"])
    with pytest.raises(InputError, match="got 2 images and 1 texts, wanted pairs"):
        model.attention(images, texts)
    with pytest.raises(InputError, match="attention: got images without region features"):
        model.attention(replace(images[[0]], features=None), texts)
    with pytest.raises(InputError, match="vsrn: got a side without vectors"):
        model.similarity(replace(images, vectors=None), texts)
    with pytest.raises(InputError, match=r"regions: got shape \(2, 1, 6\)"):
        model.encode_images(torch.zeros(2, 1, 6))
    features, counts = torch.zeros(1, 2, 3), torch.tensor([2])
    with pytest.raises(InputError, match=r"confidence: got none, wanted \(1, 2\)"):
        order_regions(features, counts)
    with pytest.raises(InputError, match=r"boxes: got shape \(1, 2\), wanted \(1, 2, 4\)"):
        order_regions(features, counts, boxes=torch.zeros(1, 2), how="box-size")
    with pytest.raises(InputError, match="how: got 'size', wanted one of given, confidence"):
        order_regions(features, counts, how="size")
    with pytest.raises(InputError, match=r"features, counts: got shapes \(2, 3\) and \(1,\)"):
        order_regions(features[0], counts)
