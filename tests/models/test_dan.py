"""m-DAN against loops over the paper's equations, in float64."""

import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import SPECIAL_WORDS, Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.dan import Dan, DanConfig
from crossgaze.models.text import TextConfig
from model_parts import draw, save_bert, scrambled

WIDTH, SIZE, WORD, K = 5, 4, 3, 2
CAPTIONS = ["a dog runs", "the red cat sits on a mat", "dogs"]
VOCABULARY = Vocabulary.build(CAPTIONS, min_count=1)
SMALL = DanConfig(
    region_width=WIDTH, size=SIZE, text=TextConfig(kind="lstm", word_size=WORD, join="sum")
)


def make(config=SMALL, vocabulary=VOCABULARY):
    return scrambled(lambda: Dan(config, vocabulary), seed=3)


# The paper in plain loops, over the model's own parameters so that gradients flow.


def tanh_layer(p, name, x):
    return torch.tanh(p[f"{name}.weight"] @ x + p[f"{name}.bias"])


def lstm(p, xs, back):
    """Eqs. 1-2, one direction: gates in torch's order input, forget, cell, output."""
    end = "_reverse" if back else ""
    h = c = torch.zeros(SIZE, dtype=torch.float64)
    states = {}
    for t in reversed(range(len(xs))) if back else range(len(xs)):
        gates = (
            p[f"text.rnn.weight_ih_l0{end}"] @ xs[t]
            + p[f"text.rnn.bias_ih_l0{end}"]
            + p[f"text.rnn.weight_hh_l0{end}"] @ h
            + p[f"text.rnn.bias_hh_l0{end}"]
        )
        i, f, g, o = (gates[part * SIZE : (part + 1) * SIZE] for part in range(4))
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        states[t] = h
    return states


def attend(p, name, fragments, memory):
    """Eqs. 4-5 and the weighted sum of 6; eqs. 8-10."""
    seen = tanh_layer(p, f"{name}.weights.memory", memory)
    scores = []
    for fragment in fragments:
        hidden = tanh_layer(p, f"{name}.weights.fragment", fragment) * seen
        scores.append(p[f"{name}.weights.score.weight"][0] @ hidden)  # its bias cancels
    total = sum(torch.exp(score) for score in scores)
    weights = [torch.exp(score) / total for score in scores]
    return sum(w * fragment for w, fragment in zip(weights, fragments, strict=True)), weights


def naive(p, regions, numbers):
    """Return S of one pair and the weights of each step."""
    xs = [p["text.embed.weight"][number] for number in numbers]
    ahead, back = lstm(p, xs, back=False), lstm(p, xs, back=True)
    words = [ahead[t] + back[t] for t in range(len(xs))]
    v = tanh_layer(p, "image_context.embed", sum(regions) / len(regions))  # eq. 13
    u = sum(words) / len(words)  # eq. 14
    memory_v, memory_u, score = v, u, v @ u
    seen, said = [], []
    for k in range(K):
        mean, weights = attend(p, f"image_steps.{k}", regions, memory_v)
        v = tanh_layer(p, f"image_steps.{k}.embed", mean)
        seen.append(torch.stack(weights))
        u, weights = attend(p, f"text_steps.{k}", words, memory_u)
        said.append(torch.stack(weights))
        memory_v, memory_u = memory_v + v, memory_u + u  # eqs. 16, 17
        score = score + v @ u  # eqs. 18, 19
    return score, torch.stack(seen), torch.stack(said)


def naive_matrix(p, regions, counts, texts):
    return torch.stack(
        [
            torch.stack([naive(p, list(x[:count]), VOCABULARY.encode(text))[0] for text in texts])
            for x, count in zip(regions, counts, strict=True)
        ]
    )


def test_scores_and_gradients_equal_the_papers_loops():
    model = make()
    regions, counts = draw(3, 4, WIDTH).requires_grad_(), [4, 1, 3]
    scores = model.similarity(
        model.encode_images(regions, torch.tensor(counts)), model.encode_texts(CAPTIONS)
    )
    p = {name: part.detach().clone().requires_grad_() for name, part in model.named_parameters()}
    twin = regions.detach().clone().requires_grad_()
    want = naive_matrix(p, twin, counts, CAPTIONS)
    assert scores.shape == (3, 3)
    torch.testing.assert_close(scores, want, rtol=0, atol=1e-13)
    mix = draw(3, 3, seed=9)
    (scores * mix).sum().backward()
    (want * mix).sum().backward()
    torch.testing.assert_close(regions.grad, twin.grad, rtol=0, atol=1e-13)
    for name, part in model.named_parameters():
        right = torch.zeros_like(part) if p[name].grad is None else p[name].grad
        torch.testing.assert_close(part.grad, right, rtol=0, atol=1e-13, msg=name)
        assert right.abs().max() > 1e-6 or name.endswith("score.bias"), name


def test_attention_is_each_sides_own_weights():
    model = make()
    regions, counts = draw(3, 4, WIDTH), torch.tensor([4, 1, 3])
    images, texts = model.encode_images(regions, counts), model.encode_texts(CAPTIONS)
    found = model.attention(images, texts)
    longest = texts.features.shape[1]
    assert found.names == ("step 1", "step 2")
    assert found.weights.shape == (3, K, longest, 4)
    p = dict(model.named_parameters())
    for i, text in enumerate(CAPTIONS):
        numbers = VOCABULARY.encode(text)
        _, seen, said = naive(p, list(regions[i, : counts[i]]), numbers)
        close = {"rtol": 0, "atol": 1e-14}
        torch.testing.assert_close(found.regions[i, :, : counts[i]], seen, **close)
        torch.testing.assert_close(found.words[i, :, : len(numbers)], said, **close)
        for k in range(K):
            outer = torch.outer(found.words[i, k], found.regions[i, k])
            torch.testing.assert_close(found.weights[i, k], outer, **close)
            assert abs(float(found.weights[i, k].sum().detach()) - 1) < 1e-12
        assert (found.weights[i, :, len(numbers) :] == 0).all()
    # Another sentence leaves what the image looks at as it was.
    other = model.attention(images, texts[[1, 0, 2]])
    assert torch.equal(other.regions, found.regions)
    with pytest.raises(InputError, match="got 3 images and 2 texts, wanted pairs"):
        model.attention(images, texts[:2])


def test_each_side_is_one_vector():
    model = make(replace(SMALL, steps=3))
    assert model.embeds
    assert model.family == "m-dan"
    images = model.encode_images(draw(2, 4, WIDTH))
    texts = model.encode_texts(CAPTIONS)
    assert images.vectors.shape == (2, 4 * SIZE)
    assert texts.vectors.shape == (3, 4 * SIZE)
    torch.testing.assert_close(model.similarity(images, texts), images.vectors @ texts.vectors.T)
    assert images[[1]].vectors.shape == (1, 4 * SIZE)
    assert images.mask.shape == (2, 4)
    assert model.attention(images, texts[:2]).names == ("step 1", "step 2", "step 3")


@settings(max_examples=20, deadline=None)
@given(
    count=st.integers(1, 4),
    extra=st.integers(0, 3),
    seed=st.integers(0, 2**16),
    fill=st.sampled_from([0.0, 1e6, float("nan"), float("inf")]),
)
def test_order_padding_and_batch_change_nothing(count, extra, seed, fill):
    model = make()
    generator = torch.Generator().manual_seed(seed)
    regions = draw(2, 4, WIDTH, seed=seed)
    counts = torch.tensor([count, 4])
    texts = model.encode_texts(CAPTIONS)
    together = model.similarity(model.encode_images(regions, counts), texts)
    order = torch.randperm(count, generator=generator)
    alone = torch.cat([regions[:1, :count][:, order], torch.full((1, extra, WIDTH), fill)], dim=1)
    image = model.encode_images(alone, torch.tensor([count]))
    ids = torch.full((1, 9 + extra), 2)
    numbers = model.text.tokenize(CAPTIONS[1])
    ids[0, : len(numbers)] = torch.tensor(numbers)
    text = model.encode_tokens(ids, [len(numbers)])
    close = {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(model.similarity(image, texts), together[:1], **close)
    torch.testing.assert_close(model.similarity(image, text), together[:1, 1:2], **close)
    assert model.attention(image, text).weights.isfinite().all()


def test_zero_regions_and_one_of_each_are_finite():
    model = make()
    regions = torch.zeros(1, 1, WIDTH, dtype=torch.float64, requires_grad=True)
    score = model.similarity(model.encode_images(regions), model.encode_tokens([[5]], [1]))
    score.sum().backward()
    assert score.isfinite().all()
    assert regions.grad.isfinite().all()
    assert all(part.grad.isfinite().all() for part in model.parameters())


@pytest.mark.parametrize("kind", ["gru", "bert"])
@pytest.mark.parametrize("frozen", [True, False])
def test_other_text_encoders_fit(kind, frozen, tmp_path):
    if kind == "bert":
        save_bert(tmp_path)
    text = TextConfig(kind=kind, word_size=WORD, bert=str(tmp_path), frozen=frozen)
    model = make(replace(SMALL, text=text))
    images, texts = model.encode_images(draw(2, 4, WIDTH)), model.encode_texts(CAPTIONS)
    scores = model.similarity(images, texts)
    assert scores.shape == (2, 3)
    assert scores.unique().numel() == 6
    alone = model.similarity(images, model.encode_texts(CAPTIONS[2:]))
    torch.testing.assert_close(scores[:, 2:], alone, rtol=0, atol=1e-12)
    scores.sum().backward()
    named = dict(model.named_parameters())
    trained = [name for name, part in named.items() if part.grad is not None]
    assert len(trained) == len(named)
    assert any(name.startswith("text.bert") for name in named) == (kind == "bert" and not frozen)
    if kind == "bert":
        unseen = model.encode_texts(["zebra dog"])  # no caption had the word
        assert unseen.vectors.isfinite().all()
        assert model.vocabulary is None


def test_parameters_at_the_papers_sizes():
    words = Vocabulary((*SPECIAL_WORDS, *(f"w{i}" for i in range(8_477))))
    assert len(words) == 8_481  # Flickr30K
    model = Dan(DanConfig(), words)
    embedding = 8_481 * 512
    lstm = 2 * (4 * 512 * 512 + 4 * 512 * 512 + 2 * 4 * 512)
    context = 2048 * 512 + 512  # P^(0)
    visual = 2 * (2048 * 512 + 512) + (512 * 512 + 512) + (512 + 1)  # W_v, P; W_vm; W_vh
    textual = 2 * (512 * 512 + 512) + (512 + 1)  # W_u, W_um; W_uh
    total = embedding + lstm + context + 2 * visual + 2 * textual
    assert total == 15_368_196
    assert sum(part.numel() for part in model.parameters()) == total
    assert model.encode_images(torch.zeros(1, 2, 2048)).vectors.shape == (1, 1536)


def test_the_configuration_is_checked_and_survives_json():
    assert build(DanConfig, json.loads(json.dumps(to_dict(SMALL)))) == SMALL
    for name in ("region_width", "size", "steps"):
        with pytest.raises(InputError, match=f"{name}: got 0, wanted a whole number, 1 "):
            replace(SMALL, **{name: 0})
    for ratio in (-0.1, 1.0, float("nan")):
        with pytest.raises(
            InputError, match=r"dropout: got \S+, wanted a number from 0 to less than 1"
        ):
            replace(SMALL, dropout=ratio)


def test_bad_input_is_named():
    model = make()
    with pytest.raises(InputError, match=r"regions: got shape \(1, 2, 3\), wanted \(N, k, 5\)"):
        model.encode_images(torch.zeros(1, 2, 3))
    with pytest.raises(InputError, match=r"texts\[1\]: ' ' has no word in it"):
        model.encode_texts(["dog", " "])
    with pytest.raises(InputError, match="'lstm': needs a vocabulary, got none"):
        Dan(SMALL)
