"""MMCA against loops over the paper's equations, in float64."""

import importlib.util
import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.bert import MINILM, MINILM_MODULE
from crossgaze.models.mmca import Mmca, MmcaConfig, PhraseVector
from crossgaze.models.pretrained import load
from crossgaze.models.text import TextConfig
from model_parts import draw, save_bert, scrambled

WIDTH, SIZE, HEADS, FILTERS, ALPHA = 5, 6, 2, 3, 0.7
CAPTIONS = ["a dog runs", "the red cat sits on a mat", "dogs"]
VOCABULARY = Vocabulary.build(CAPTIONS, min_count=1)
SMALL = MmcaConfig(
    region_width=WIDTH,
    size=SIZE,
    text=TextConfig(kind="gru", word_size=3),
    heads=HEADS,
    filters=FILTERS,
    alpha=ALPHA,
)


def make(config=SMALL, vocabulary=VOCABULARY):
    return scrambled(lambda: Mmca(config, vocabulary), seed=4)


# The paper in plain loops, over the model's own parameters so that gradients flow.


def layer(p, name, x):
    return p[f"{name}.weight"] @ x + p[f"{name}.bias"]


def layer_norm(p, name, x):
    mean = sum(x) / len(x)
    variance = sum((number - mean) ** 2 for number in x) / len(x)
    return (x - mean) / torch.sqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def unit_length(x):
    return x / (torch.sqrt(sum(number * number for number in x)) + 1e-8)


def transformer(p, name, fragments):
    """Eqs. 1-4; also the softmax of every head, (h, m, m) as lists."""
    wide, heads, tables = SIZE // HEADS, [], []
    for head in range(HEADS):
        rows = slice(head * wide, (head + 1) * wide)
        q, k, v = (
            [p[f"{name}.{part}.weight"][rows] @ f for f in fragments]
            for part in ("query", "key", "value")
        )
        scores = [[torch.exp(a @ b / math.sqrt(wide)) for b in k] for a in q]
        weights = [[score / sum(row) for score in row] for row in scores]
        heads.append([sum(w * x for w, x in zip(row, v, strict=True)) for row in weights])
        tables.append(weights)
    out = []
    for i, fragment in enumerate(fragments):
        joined = p[f"{name}.out.weight"] @ torch.cat([head[i] for head in heads])
        x = layer_norm(p, f"{name}.attention_norm", fragment + joined)
        inner = torch.clamp(layer(p, f"{name}.feed.0", x), min=0)
        out.append(layer_norm(p, f"{name}.feed_norm", x + layer(p, f"{name}.feed.2", inner)))
    return out, tables


def phrase_vector(p, name, words):
    """Eqs. 6-7."""
    best = []
    for window in (1, 2, 3):
        filters = p[f"{name}.windows.{window - 1}.weight"]  # (filters, D, window)
        bias = p[f"{name}.windows.{window - 1}.bias"]
        filled = words + [torch.zeros_like(words[0])] * (window - len(words))
        for f in range(FILTERS):
            places = [
                sum(filters[f, :, at] @ filled[start + at] for at in range(window)) + bias[f]
                for start in range(len(filled) - window + 1)
            ]
            best.append(torch.clamp(torch.stack(places), min=0).max())
    return unit_length(layer_norm(p, f"{name}.norm", layer(p, f"{name}.embed", torch.stack(best))))


def naive(p, regions, words):
    """Return i_0 . c_0, i_1 . c_1 and the heads' tables, of raw regions and words e_1 ... e_n."""
    r = [layer(p, "project", region) for region in regions]
    attended, _ = transformer(p, "region_unit", r)
    i0, c0 = unit_length(sum(attended) / len(r)), phrase_vector(p, "sentence", words)
    mixed, tables = transformer(p, "cross", r + words)  # eqs. 8-14
    i1 = unit_length(sum(mixed[: len(r)]) / len(r))
    c1 = phrase_vector(p, "cross_sentence", mixed[len(r) :])
    return i0 @ c0, i1 @ c1, tables


def test_scores_and_gradients_equal_the_papers_loops():
    model = make()
    regions, counts = draw(3, 4, WIDTH).requires_grad_(), [4, 1, 3]
    texts = [*CAPTIONS, "a"]
    scores = model.similarity(
        model.encode_images(regions, torch.tensor(counts)), model.encode_texts(texts)
    )
    p = {name: part.detach().clone().requires_grad_() for name, part in model.named_parameters()}
    twin = regions.detach().clone().requires_grad_()
    # The words come from a second text encoder with the same weights; it has its own tests.
    encoder = make().text
    rows = []
    for x, count in zip(twin, counts, strict=True):
        for text in texts:
            numbers = torch.tensor([encoder.tokenize(text)])
            words = encoder(numbers, torch.tensor([numbers.shape[1]]))[0]
            own, cross, _ = naive(p, list(x[:count]), list(words))
            rows.append(own + ALPHA * cross)
    want = torch.stack(rows).reshape(3, 4)
    torch.testing.assert_close(scores, want, rtol=0, atol=1e-12)
    mix = draw(3, 4, seed=9)
    (scores * mix).sum().backward()
    (want * mix).sum().backward()
    torch.testing.assert_close(regions.grad, twin.grad, rtol=0, atol=1e-12)
    for name, part in encoder.named_parameters():
        p[f"text.{name}"].grad = part.grad
    for name, part in model.named_parameters():
        torch.testing.assert_close(part.grad, p[name].grad, rtol=0, atol=1e-12, msg=name)
        assert part.grad.abs().max() > 1e-7, name


def test_attention_is_the_softmax_of_words_over_regions():
    model = make()
    regions, counts = draw(3, 4, WIDTH), torch.tensor([4, 1, 3])
    images, texts = model.encode_images(regions, counts), model.encode_texts(CAPTIONS)
    found = model.attention(images, texts)
    assert found.names == ("head 1", "head 2")
    assert found.weights.shape == (3, HEADS, texts.fragments.shape[1], 4)
    p = {name: part.detach() for name, part in model.named_parameters()}
    for i in range(3):
        count, length = int(counts[i]), int(texts.counts[i])
        words = list(texts.fragments[i, :length].detach())
        _, _, tables = naive(p, list(regions[i, :count]), words)
        want = torch.tensor(
            [[row[:count] for row in table[count:]] for table in tables], dtype=torch.float64
        )
        got = found.weights[i]
        torch.testing.assert_close(got[:, :length, :count].detach(), want, rtol=0, atol=1e-13)
        assert (got[:, length:] == 0).all()
        assert (got[:, :, count:] == 0).all()
        assert (got.sum(-1) < 1).all()  # the rest is what words give to words
    with pytest.raises(InputError, match="got 3 images and 2 texts, wanted pairs"):
        model.attention(images, texts[:2])


def test_the_self_attention_module_alone():
    both = make()
    model = make(replace(SMALL, modules="self"))
    model.load_state_dict({name: both.state_dict()[name] for name in model.state_dict()})
    assert model.cross is None
    assert not any(name.startswith("cross") for name in model.state_dict())
    regions = draw(2, 4, WIDTH)
    images, texts = model.encode_images(regions), model.encode_texts(CAPTIONS)
    own = model.similarity(images, texts)
    torch.testing.assert_close(own, images.vectors @ texts.vectors.T)
    whole = both.similarity(both.encode_images(regions), both.encode_texts(CAPTIONS))
    assert (whole - own).abs().min() > 1e-6
    assert (whole - own).abs().max() <= ALPHA  # unit vectors
    found = model.attention(images[:1], texts[:1])
    assert (found.names, found.weights) == ((), None)


def test_windows_never_reach_past_the_sentence():
    module = PhraseVector(SIZE, FILTERS).double()
    words = draw(1, 5, SIZE)
    alone = module(words[:, :2], torch.tensor([2]))
    junk = words.clone()
    junk[:, 2:] = 1e6
    torch.testing.assert_close(module(junk, torch.tensor([2])), alone, rtol=0, atol=1e-14)
    # Two words have one bi-gram; a third of zeros would add one that begins at the second.
    p = dict(module.named_parameters())
    named = {f"m.{name}": part for name, part in p.items()}
    right = phrase_vector(named, "m", list(words[0, :2]))
    torch.testing.assert_close(alone[0], right, rtol=0, atol=1e-14)
    padded = torch.cat([words[:, :2], torch.zeros(1, 1, SIZE).double()], dim=1)
    assert not torch.allclose(module(padded, torch.tensor([3])), alone)


@settings(max_examples=20, deadline=None)
@given(
    count=st.integers(1, 4),
    extra=st.integers(0, 3),
    seed=st.integers(0, 2**16),
    fill=st.sampled_from([0.0, 1e6, float("nan"), float("inf")]),
)
def test_order_padding_and_batch_change_nothing(count, extra, seed, fill):
    model = make()
    regions = draw(2, 4, WIDTH, seed=seed)
    texts = model.encode_texts(CAPTIONS)
    together = model.similarity(model.encode_images(regions, torch.tensor([count, 4])), texts)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    alone = torch.cat([regions[:1, :count][:, order], torch.full((1, extra, WIDTH), fill)], dim=1)
    image = model.encode_images(alone, torch.tensor([count]))
    ids = torch.full((1, 9 + extra), 2)
    numbers = model.text.tokenize(CAPTIONS[1])
    ids[0, : len(numbers)] = torch.tensor(numbers)
    text = model.encode_tokens(ids, [len(numbers)])
    close = {"rtol": 0, "atol": 1e-11}
    torch.testing.assert_close(model.similarity(image, texts), together[:1], **close)
    torch.testing.assert_close(model.similarity(image, text), together[:1, 1:2], **close)
    assert model.attention(image, text).weights.isfinite().all()


def test_blocks_of_images_change_nothing(monkeypatch):
    model = make()
    images, texts = model.encode_images(draw(5, 3, WIDTH)), model.encode_texts(CAPTIONS)
    want = model.similarity(images, texts)
    monkeypatch.setattr("crossgaze.scoring.stacks.NUMBERS", 1)  # one pair at a time
    torch.testing.assert_close(model.similarity(images, texts), want, rtol=0, atol=1e-12)
    assert model.similarity(images[:0], texts).shape == (0, 3)
    assert model.similarity(images, texts[:0]).shape == (5, 0)


def test_zero_regions_and_one_of_each_are_finite():
    model = make()
    regions = torch.zeros(1, 1, WIDTH, dtype=torch.float64, requires_grad=True)
    score = model.similarity(model.encode_images(regions), model.encode_tokens([[5]], [1]))
    score.sum().backward()
    assert score.isfinite().all()
    assert regions.grad.isfinite().all()
    assert all(part.grad.isfinite().all() for part in model.parameters())
    # A model of zeros: every vector is zero.
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    model.zero_grad()
    score = model.similarity(model.encode_images(regions), model.encode_tokens([[5]], [1]))
    score.sum().backward()
    assert score.item() == 0
    assert all(part.grad.isfinite().all() for part in model.parameters())


@pytest.mark.parametrize("frozen", [True, False])
def test_over_bert(frozen, tmp_path):
    save_bert(tmp_path)
    text = TextConfig(kind="bert", bert=str(tmp_path), frozen=frozen)
    model = make(replace(SMALL, text=text), None)
    images, texts = model.encode_images(draw(2, 4, WIDTH)), model.encode_texts(CAPTIONS)
    scores = model.similarity(images, texts)
    assert scores.unique().numel() == 6
    alone = model.similarity(images, model.encode_texts(CAPTIONS[2:]))
    torch.testing.assert_close(scores[:, 2:], alone, rtol=0, atol=1e-12)
    scores.sum().backward()
    named = dict(model.named_parameters())
    assert all(part.grad is not None for part in named.values())
    assert any(name.startswith("text.bert") for name in named) != frozen
    # What a model's files hold is enough to bring the scores back.
    model.save_pretrained(tmp_path / "out")
    twin = load(tmp_path / "out").double()
    again = twin.similarity(twin.encode_images(draw(2, 4, WIDTH)), twin.encode_texts(CAPTIONS))
    torch.testing.assert_close(again, scores, rtol=0, atol=1e-5)  # loaded as float32
    p = dict(model.named_parameters())
    length = int(texts.counts[1])
    own, cross, _ = naive(p, list(draw(2, 4, WIDTH)[0]), list(texts.fragments[1, :length]))
    torch.testing.assert_close(scores[0, 1], own + ALPHA * cross, rtol=0, atol=1e-12)


@pytest.mark.skipif(
    importlib.util.find_spec(MINILM_MODULE) is None, reason=f"needs the package {MINILM}"
)
def test_parameters_at_the_papers_sizes():
    pytest.importorskip("transformers")
    model = Mmca(MmcaConfig())
    unit = 4 * 256 * 256 + 2 * (256 * 256 + 256) + 2 * 2 * 256
    phrases = (1 + 2 + 3) * 256 * 256 + 3 * 256 + (3 * 256 * 256 + 256) + 2 * 256
    text = 384 * 256 + 256  # MiniLM is frozen and outside; the paper's BERT has 768
    total = text + (2048 * 256 + 256) + 2 * unit + 2 * phrases
    assert total == 2_595_328
    assert sum(part.numel() for part in model.parameters()) == total
    assert sum(part.numel() for part in model.state_dict().values()) == total
    with torch.inference_mode():
        scores = model.similarity(
            model.encode_images(torch.randn(2, 3, 2048)), model.encode_texts(["A surfer rides."])
        )
    assert scores.shape == (2, 1)
    assert scores.dtype == torch.float32


def test_the_configuration_is_checked_and_survives_json():
    assert build(MmcaConfig, json.loads(json.dumps(to_dict(SMALL)))) == SMALL
    for name in ("region_width", "size", "heads", "filters"):
        with pytest.raises(InputError, match=f"{name}: got 0, wanted a whole number, 1 or more"):
            replace(SMALL, **{name: 0})
    wrong = {
        "heads": (4, "heads: is 4, wanted a divisor of the size, 6"),
        "alpha": (float("nan"), "alpha: is nan, wanted a number, 0 or more"),
        "modules": ("cross", "modules: is 'cross', wanted 'both' or 'self'"),
        "dropout": (1.0, "dropout: got 1.0, wanted a number from 0 to less than 1"),
    }
    for name, (value, message) in wrong.items():
        with pytest.raises(InputError, match=message):
            replace(SMALL, **{name: value})
    with pytest.raises(InputError, match="alpha: is -1"):
        replace(SMALL, alpha=-1)


def test_bad_input_is_named():
    model = make()
    assert not model.embeds
    assert model.family == "mmca"
    with pytest.raises(InputError, match=r"regions: got shape \(1, 2, 3\), wanted \(N, k, 5\)"):
        model.encode_images(torch.zeros(1, 2, 3))
    with pytest.raises(InputError, match=r"texts\[0\]: '' has no word in it"):
        model.encode_texts([""])
    with pytest.raises(InputError, match="'gru': needs a vocabulary, got none"):
        Mmca(SMALL)
