"""The projection against its sum written out, and the encoders that four models share."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.checks import require_choice, require_positive
from crossgaze.models.encoded import Attention
from crossgaze.models.regions import EncoderConfig, FragmentMatcher, RegionProjection
from crossgaze.models.text import TextConfig

WORDS = Vocabulary.build(["a dog runs", "the cat sleeps"], min_count=1)
TEXT = TextConfig(word_size=3)


class Plain(FragmentMatcher):
    family = "plain"

    def _pairs(self, regions, words, k_mask, n_mask):
        return torch.einsum("pkd,pnd->p", regions, words)

    def attention(self, images, texts):
        return Attention(names=())


def model(**options):
    torch.manual_seed(0)
    found = Plain(EncoderConfig(region_width=4, size=3, text=TEXT, **options), WORDS).double()
    torch.nn.init.normal_(found.regions.bias)  # begins at 0, where a lost bias would not be seen
    return found


def projected(layer, f):
    """Eq. 13 for one region, number by number; the matrix from g and V where it is kept so."""
    values = {name: value.tolist() for name, value in layer.named_parameters()}
    if "weight" in values:
        w = values["weight"]
    else:
        v, g = values["weight_v"], values["weight_g"]
        whole = math.sqrt(sum(x * x for row in v for x in row))
        w = [[g * x / whole for x in row] for row in v]
    return [
        sum(x * y for x, y in zip(row, f, strict=True)) + b
        for row, b in zip(w, values["bias"], strict=True)
    ]


@pytest.mark.parametrize("kind", ["basic", "weight_norm"])
def test_projection_is_eq_13(kind):
    torch.manual_seed(0)
    layer = RegionProjection(4, 3, kind).double()
    torch.nn.init.normal_(layer.bias)
    if kind == "weight_norm":
        layer.weight_g.data.mul_(1.7)  # so that g is not the length of V
    f = torch.randn(2, 5, 4, dtype=torch.float64)
    found = layer(f)
    wanted = [[projected(layer, region) for region in image] for image in f.tolist()]
    np.testing.assert_allclose(found.detach(), wanted, atol=1e-14)
    names = [name for name, _ in layer.named_parameters()]

    def by_parameters(*values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (f,))

    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    assert torch.autograd.gradcheck(by_parameters, values)


def test_weight_norm_is_torchs_own_with_dim_none():
    torch.manual_seed(0)
    layer = RegionProjection(4, 3, "weight_norm").double()
    layer.weight_g.data.fill_(2.0)
    linear = torch.nn.Linear(4, 3).double()
    linear.weight.data = torch._weight_norm(layer.weight_v.data, layer.weight_g.data, -1)
    linear.bias.data = layer.bias.data
    f = torch.randn(6, 4, dtype=torch.float64)
    torch.testing.assert_close(layer(f), linear(f), atol=1e-14, rtol=0)


@pytest.mark.parametrize(
    ("kind", "shapes"),
    [
        ("basic", {"weight": (1024, 2048), "bias": (1024,)}),
        ("weight_norm", {"weight_g": (), "weight_v": (1024, 2048), "bias": (1024,)}),
    ],
)
def test_parameters_have_the_public_codes_names_and_the_papers_sizes(kind, shapes):
    layer = RegionProjection(2048, 1024, kind)
    assert {name: tuple(value.shape) for name, value in layer.state_dict().items()} == shapes
    count = sum(p.numel() for p in layer.parameters())
    assert count == 2048 * 1024 + 1024 + (kind == "weight_norm")
    reach = math.sqrt(6 / (2048 + 1024))
    matrix = layer.matrix().detach()
    assert 0.999 * reach < matrix.abs().max() <= reach * 1.0001
    assert matrix.mean().abs() < reach / 100
    assert not layer.bias.any()


def test_a_zero_direction_stays_finite():
    layer = RegionProjection(4, 3, "weight_norm")
    layer.weight_v.data.zero_()
    found = layer(torch.ones(1, 4))
    assert not found.any()
    found.sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize("on", [True, False])
def test_both_sides_are_normalised_or_not(on):
    plain = model(normalize_images=on, normalize_texts=on)
    f = torch.randn(2, 3, 4, dtype=torch.float64)
    v = plain.encode_images(f).fragments
    ids, lengths = torch.tensor([[1, 4, 2], [1, 2, 0]]), torch.tensor([3, 2])
    e = plain.encode_tokens(ids, lengths).fragments
    raw = np.array([[projected(plain.regions, region) for region in image] for image in f.tolist()])
    states = plain.text(ids, lengths).detach().numpy()
    for found, wanted in ((v, raw), (e, states)):
        if on:
            wanted = wanted / (np.sqrt((wanted**2).sum(-1, keepdims=True)) + 1e-8)
        np.testing.assert_allclose(found.detach(), wanted, atol=1e-14)
    assert not e[1, 2:].any()


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(0, 2),
    st.sampled_from([1e30, torch.nan, torch.inf]),
    st.sampled_from(["basic", "weight_norm"]),
)
def test_what_lies_in_the_padding_reaches_neither_fragments_nor_gradients(
    counts, more, garbage, kind
):
    plain = model(projection=kind)
    k = max(counts) + more
    f = torch.randn(len(counts), k, 4, dtype=torch.float64)
    dirty = f.clone()
    for row, count in enumerate(counts):
        dirty[row, count:] = garbage
    grads = []
    for regions in (f, dirty):
        plain.zero_grad()
        found = plain.encode_images(regions, counts)
        found.fragments.pow(3).sum().backward()
        grads.append([p.grad.clone() for p in plain.regions.parameters()])
        assert all(not found.fragments[row, count:].any() for row, count in enumerate(counts))
    for clean, same in zip(*grads, strict=True):
        torch.testing.assert_close(clean, same)
        assert clean.isfinite().all()


def test_zero_regions_and_float32_are_finite():
    plain = model().float()
    plain.regions.bias.data.zero_()
    f = torch.zeros(1, 2, 4, requires_grad=True)
    found = plain.encode_images(f).fragments
    assert found.dtype == torch.float32
    assert not found.any()
    found.sum().backward()
    assert f.grad.isfinite().all()
    assert plain.regions.weight.grad.isfinite().all()


def test_configuration_goes_to_plain_values_and_back():
    config = EncoderConfig(region_width=4, text=TextConfig(kind="lstm"), projection="weight_norm")
    assert build(EncoderConfig, to_dict(config)) == config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"region_width": 0}, "region_width: got 0, wanted a whole number, 1 or more"),
        ({"size": 1.5}, "size: got 1.5, wanted a whole number, 1 or more"),
        ({"size": True}, "size: got True, wanted a whole number, 1 or more"),
        (
            {"projection": "weightnorm"},
            r"projection: got 'weightnorm' \(did you mean 'weight_norm'\?\), wanted one of basic, ",
        ),
        ({"normalize_images": 1}, "normalize_images: got 1, wanted True or False"),
        ({"normalize_texts": None}, "normalize_texts: got None, wanted True or False"),
    ],
)
def test_values_that_cannot_be_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        EncoderConfig(**options)


@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, True, "9", None])
def test_a_positive_number_is_asked_for(value):
    with pytest.raises(InputError, match=r"lambda1: got .*, wanted a number above 0"):
        require_positive("lambda1", value)


def test_good_values_pass():
    assert require_positive("lambda1", 9) is None
    assert require_positive("lambda1", 0.5) is None
    assert require_choice("direction", "t-i", ["t-i", "i-t"]) is None
