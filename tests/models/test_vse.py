"""VSE++ against its few sums written out in NumPy, sentence by sentence."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import SPECIAL_WORDS, Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig

WORDS = Vocabulary.build(["a dog runs", "the cat sleeps"], min_count=1)
COUNTS, ROWS = [3, 1, 2], [[1, 4, 5, 2], [6], [1, 7, 2]]
TEXT = TextConfig(word_size=2, bidirectional=False)


def vse(**options):
    torch.manual_seed(0)
    options = {"region_width": 4, "size": 3, "text": TEXT, **options}
    found = Vse(VseConfig(**options), WORDS).double()
    torch.nn.init.normal_(found.regions.bias)
    return found


def features(seed=1):
    torch.manual_seed(seed)
    return torch.randn(3, 3, 4, dtype=torch.float64)


def tokens(rows=ROWS, filler=0, more=0):
    width = max(map(len, rows)) + more
    return torch.tensor([row + [filler] * (width - len(row)) for row in rows]), list(map(len, rows))


def matrix_of(values, f, images, texts, rows=ROWS, counts=COUNTS):
    """The scores by NumPy loops over `values`, the parameters by name."""

    def unit(x, on):
        return x / (np.sqrt(sum(y * y for y in x)) + 1e-8) if on else x

    def image(regions):
        mean = sum(regions) / len(regions)
        return unit(values["regions.weight"] @ mean + values["regions.bias"], images)

    def sentence(row):
        h = np.zeros(3)
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        wi, wh, bi, bh = (values[f"text.rnn.{name}"] for name in names)
        for word in row:
            a = wi @ values["text.embed.weight"][word] + bi
            b = wh @ h + bh
            reset, update = (1 / (1 + np.exp(-(a + b)[part])) for part in (slice(3), slice(3, 6)))
            h = (1 - update) * np.tanh(a[6:] + reset * b[6:]) + update * h
        return unit(h, texts)

    return np.array([[image(f[i, :k]) @ sentence(row) for row in rows]
                     for i, k in enumerate(counts)])  # fmt: skip


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("images", [True, False])
def test_scores_and_gradients_are_the_sums_written_out(images, texts):
    model = vse(normalize_images=images, normalize_texts=texts)
    f = features()
    found = model.similarity(model.encode_images(f, COUNTS), model.encode_tokens(*tokens()))
    values = {name: p.detach().numpy().copy() for name, p in model.named_parameters()}
    wanted = matrix_of(values, f.numpy(), images, texts)
    np.testing.assert_allclose(found.detach(), wanted, atol=1e-14)

    probe = np.random.default_rng(0).normal(size=(3, 3))
    (found * torch.tensor(probe)).sum().backward()
    random = np.random.default_rng(1)
    for name, parameter in model.named_parameters():
        first = [1, 4, 5, 6, 2] if "embed" in name else range(len(parameter))
        for _ in range(4):
            rest = (int(random.integers(n)) for n in parameter.shape[1:])
            place = (int(random.choice(first)), *rest)
            kept, ends = values[name][place], []
            for step in (1e-6, -1e-6):
                values[name][place] = kept + step
                ends.append((matrix_of(values, f.numpy(), images, texts) * probe).sum())
            values[name][place] = kept
            slope = (ends[0] - ends[1]) / 2e-6
            assert parameter.grad[place].item() == pytest.approx(slope, abs=1e-7)


def test_a_global_feature_is_one_region():
    model = vse()
    f = features()
    one = model.encode_images(f[:, 0]).vectors
    torch.testing.assert_close(one, model.encode_images(f, [1, 1, 1]).vectors)


def test_the_last_real_region_beside_the_mean():
    model = vse(whole=True)
    f = features()
    found = model.encode_images(f, COUNTS).vectors.detach().numpy()
    weight, bias = (
        model.get_parameter(f"regions.{name}").detach().numpy() for name in ("weight", "bias")
    )
    for i, count in enumerate(COUNTS):
        real = f[i, :count].numpy()
        wanted = weight[:, :4] @ real.mean(0) + weight[:, 4:] @ real[-1] + bias
        np.testing.assert_allclose(found[i], wanted / np.linalg.norm(wanted), atol=1e-7)
    padded = torch.cat([f, torch.full((3, 2, 4), torch.nan, dtype=f.dtype)], 1)
    np.testing.assert_array_equal(model.encode_images(padded, COUNTS).vectors.detach(), found)


@pytest.mark.parametrize("name", ["whole", "absolute"])
def test_switches_are_true_or_false(name):
    with pytest.raises(InputError, match=f"{name}: got 1, wanted True or False"):
        VseConfig(**{name: 1})


def test_weight_normalised_projection():
    model = vse(projection="weight_norm")
    model.regions.weight_g.data.mul_(3)
    f = features()
    v = model.regions.weight_v
    wanted = f.mean(1) @ (model.regions.weight_g * v / v.norm()).T + model.regions.bias
    wanted = wanted / wanted.norm(dim=1, keepdim=True)
    torch.testing.assert_close(model.encode_images(f).vectors, wanted, atol=1e-7, rtol=0)


def test_each_side_is_a_vector_of_length_one():
    model = vse()
    assert (Vse.family, Vse.embeds) == ("vse++", True)
    for side in (model.encode_images(features()), model.encode_texts(["a dog", "emu", "runs"])):
        assert side.fragments is None
        torch.testing.assert_close(
            side.vectors.norm(dim=1), torch.ones(3, dtype=torch.float64), atol=1e-6, rtol=0
        )


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(0, 2),
    st.sampled_from([1e30, torch.nan, torch.inf]),
    st.randoms(),
)
def test_order_padding_and_company_change_nothing(counts, rows, more, garbage, random):
    model = vse()
    f = features()[: len(counts)]
    plain = model.similarity(model.encode_images(f, counts), model.encode_tokens(*tokens(rows)))
    moved = torch.full((len(counts), 3 + more, 4), garbage, dtype=f.dtype)
    for row, k in enumerate(counts):
        moved[row, :k] = f[row, random.sample(range(k), k)]
    images = model.encode_images(moved, counts)
    texts = model.encode_tokens(*tokens(rows, -7, more))
    found = model.similarity(images, texts)
    torch.testing.assert_close(found, plain, atol=1e-13, rtol=0)
    for i, t in itertools.product(range(len(counts)), range(len(rows))):
        alone = model.similarity(
            model.encode_images(f[[i]], counts[i : i + 1]), model.encode_tokens(*tokens([rows[t]]))
        )
        torch.testing.assert_close(alone[0, 0], plain[i, t], atol=1e-13, rtol=0)
    found.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_zero_features_score_zero_with_finite_gradients():
    model = vse().float()
    model.regions.bias.data.zero_()
    found = model.similarity(model.encode_images(torch.zeros(1, 4)), model.encode_texts(["a"]))
    assert found.dtype == torch.float32
    assert found.tolist() == [[0.0]]
    found.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_attention_has_no_map():
    model = vse()
    images, texts = model.encode_images(features()), model.encode_texts(["a", "dog", "runs"])
    found = model.attention(images, texts)
    assert found.names == ()
    assert found.weights is None
    with pytest.raises(InputError, match="got 2 images and 3 texts, wanted pairs"):
        model.attention(images[:2], texts)


def test_parameters_at_the_papers_sizes():
    vocabulary = Vocabulary((*SPECIAL_WORDS, *(f"w{i}" for i in range(8477))))
    with torch.device("meta"):
        model = Vse(VseConfig(), vocabulary)
    # 2048 * 1024 + 1024, 8481 * 300, 3072 * (300 + 1024 + 2)
    assert sum(p.numel() for p in model.parameters()) == 2_098_176 + 2_544_300 + 4_073_472


def test_configuration():
    config = VseConfig()
    assert config.text == TextConfig(bidirectional=False)
    assert (config.size, config.region_width) == (1024, 2048)
    assert build(VseConfig, to_dict(config)) == config
    with pytest.raises(InputError, match="region_width: got -1, wanted a whole number"):
        VseConfig(region_width=-1)
