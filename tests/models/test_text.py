"""The recurrent encoders against the GRU's and LSTM's equations, word by word in NumPy."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.text.vocabulary import SPECIAL_WORDS, Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.text import RecurrentText, TextConfig, build_text, last_word

WORDS = Vocabulary.build(["a dog runs", "the cat sleeps", "two birds"], min_count=1)
SIZE = 3
CONFIGS = [
    TextConfig(kind=kind, word_size=2, layers=layers, bidirectional=both, join=join)
    for kind, layers, both, join in itertools.product(
        ("gru", "lstm"), (1, 2), (False, True), ("mean", "sum")
    )
]
IDS = [[1, 4, 5, 6, 2], [1, 7, 2], [8], [1, 9, 10, 2]]


def build(config, seed=0):
    torch.manual_seed(seed)
    return RecurrentText(WORDS, SIZE, config).double()


def padded(rows, filler=0, width=None):
    lengths = [len(row) for row in rows]
    width = width or max(lengths)
    return torch.tensor([row + [filler] * (width - len(row)) for row in rows]), torch.tensor(
        lengths
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru_step(x, state, wi, wh, bi, bh):
    (h,) = state
    n = len(h)
    ir, iz, ic = (wi[g * n : (g + 1) * n] @ x + bi[g * n : (g + 1) * n] for g in range(3))
    hr, hz, hc = (wh[g * n : (g + 1) * n] @ h + bh[g * n : (g + 1) * n] for g in range(3))
    reset, update = sigmoid(ir + hr), sigmoid(iz + hz)
    candidate = np.tanh(ic + reset * hc)
    return ((1 - update) * candidate + update * h,)


def lstm_step(x, state, wi, wh, bi, bh):
    h, c = state
    n = len(h)
    i, f, g, o = (
        wi[q * n : (q + 1) * n] @ x + bi[q * n : (q + 1) * n] + wh[q * n : (q + 1) * n] @ h
        + bh[q * n : (q + 1) * n]
        for q in range(4)
    )  # fmt: skip
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def oracle(config, weights, row):
    """One sentence: the states of each layer and direction, word by word."""
    x = [weights["embed.weight"][word] for word in row]
    step, parts = (gru_step, 1) if config.kind == "gru" else (lstm_step, 2)
    for layer in range(config.layers):
        ways = []
        for suffix in ["", "_reverse"][: 1 + config.bidirectional]:
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            p = [weights[f"rnn.{name}_l{layer}{suffix}"] for name in names]
            state = tuple(np.zeros(SIZE) for _ in range(parts))
            outputs = [None] * len(row)
            order = reversed(range(len(row))) if suffix else range(len(row))
            for place in order:
                state = step(x[place], state, *p)
                outputs[place] = state[0]
            ways.append(outputs)
        x = [np.concatenate(states) for states in zip(*ways, strict=True)]
    if not config.bidirectional:
        return np.array(x)
    joined = np.array([state[:SIZE] + state[SIZE:] for state in x])
    return joined / 2 if config.join == "mean" else joined


def arrays(model):
    return {name: value.detach().numpy().copy() for name, value in model.named_parameters()}


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_features_are_the_recurrence_word_by_word(config):
    model = build(config)
    found = model(*padded(IDS)).detach().numpy()
    assert found.shape == (4, 5, SIZE)
    for row, ids in enumerate(IDS):
        wanted = oracle(config, arrays(model), ids)
        np.testing.assert_allclose(found[row, : len(ids)], wanted, atol=1e-14)
        assert not found[row, len(ids) :].any()


@pytest.mark.parametrize("config", CONFIGS[::2], ids=str)
def test_gradients_are_the_recurrences_by_finite_differences(config):
    model = build(config, seed=1)
    rows = IDS[:2]
    probe = np.random.default_rng(0).normal(size=(2, 5, SIZE))
    (model(*padded(rows)) * torch.tensor(probe)).sum().backward()
    weights = arrays(model)

    def total():
        return sum(
            (oracle(config, weights, ids) * probe[i, : len(ids)]).sum()
            for i, ids in enumerate(rows)
        )

    random = np.random.default_rng(1)
    for name, parameter in model.named_parameters():
        # Of the embedding, only words that occur have a gradient.
        first = [1, 4, 7, 2] if name == "embed.weight" else range(len(parameter))
        for _ in range(3):
            place = (int(random.choice(first)), *(int(random.integers(n)) for n in
                     parameter.shape[1:]))  # fmt: skip
            kept = weights[name][place]
            weights[name][place] = kept + 1e-6
            above = total()
            weights[name][place] = kept - 1e-6
            slope = (above - total()) / 2e-6
            weights[name][place] = kept
            assert parameter.grad[place].item() == pytest.approx(slope, abs=1e-8)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=4),
    st.integers(0, 3),
    st.sampled_from([-1, 0, 3, 10**9]),
    st.sampled_from(CONFIGS),
)
def test_a_sentence_alone_has_the_same_features(rows, more, filler, config):
    model = build(config)
    together = model(*padded(rows, filler, max(map(len, rows)) + more))
    for row, ids in enumerate(rows):
        alone = model(*padded([ids]))[0]
        torch.testing.assert_close(together[row, : len(ids)], alone, atol=1e-14, rtol=0)
        assert not together[row, len(ids) :].any()


def test_a_word_alone_knows_nothing_of_the_words_behind_it_in_one_direction():
    model = build(TextConfig(word_size=2, bidirectional=False))
    one, other = model(*padded([[1, 4, 5]])), model(*padded([[1, 4, 6]]))
    torch.testing.assert_close(one[:, :2], other[:, :2])
    both = build(TextConfig(word_size=2))
    one, other = both(*padded([[1, 4, 5]])), both(*padded([[1, 4, 6]]))
    assert (one[:, 0] - other[:, 0]).abs().max() > 1e-6


def test_parameters_have_the_public_codes_names_and_shapes():
    vocabulary = Vocabulary((*SPECIAL_WORDS, *(f"w{i}" for i in range(8477))))
    with torch.device("meta"):
        found = RecurrentText(vocabulary, 1024, TextConfig())
    gates = {"weight_ih_l0": (3072, 300), "weight_hh_l0": (3072, 1024)}
    gates |= {"bias_ih_l0": (3072,), "bias_hh_l0": (3072,)}
    wanted = {"embed.weight": (8481, 300)}
    for name, shape in gates.items():
        wanted |= {f"rnn.{name}": shape, f"rnn.{name}_reverse": shape}
    assert {name: tuple(value.shape) for name, value in found.state_dict().items()} == wanted
    # 8481 * 300 + 2 * (3072 * 300 + 3072 * 1024 + 2 * 3072)
    assert sum(p.numel() for p in found.parameters()) == 10_691_244


def test_the_embedding_begins_between_a_tenth_and_minus_a_tenth():
    weights = build(TextConfig(word_size=100)).embed.weight
    assert 0.095 < weights.abs().max() <= 0.1


def test_tokenize_and_tokens_agree():
    model = build(TextConfig(word_size=2))
    assert model.tokenize("A dog barks") == [1, 4, 5, 3, 2]
    assert model.tokens("A dog barks") == ["<start>", "a", "dog", "<unk>", "<end>"]
    assert model.tokenize("  ") == []
    assert model.tokens("  ") == []


def test_numbers_that_no_word_has_are_refused_where_they_are_real():
    model = build(TextConfig(word_size=2))
    model.require_known(torch.tensor([[1, -5], [2, 999]]), torch.tensor([1, 1]))
    with pytest.raises(InputError, match=f"ids: 999 is no word .*which has {len(WORDS)}"):
        model.require_known(torch.tensor([[1, -5], [2, 999]]), torch.tensor([1, 2]))


def test_how_many_words_is_enough_to_read_numbers_but_no_text():
    torch.manual_seed(0)
    model = build_text(TextConfig(word_size=2), SIZE, len(WORDS)).double()
    assert (model.vocabulary, model.words) == (None, len(WORDS))
    torch.testing.assert_close(model(*padded(IDS)), build(TextConfig(word_size=2))(*padded(IDS)))
    with pytest.raises(InputError, match="ids: 99 is no word of the vocabulary"):
        model.require_known(torch.tensor([[99]]), torch.tensor([1]))
    for read in (model.tokenize, model.tokens):
        with pytest.raises(InputError, match="has no vocabulary, only numbers of words"):
            read("a dog")


def test_last_word_is_the_last_real_one():
    features = torch.arange(12.0).view(2, 3, 2)
    assert last_word(features, torch.tensor([3, 1])).tolist() == [[4, 5], [6, 7]]


def test_build_text_builds_what_the_configuration_names():
    assert isinstance(build_text(TextConfig(), 4, WORDS).rnn, torch.nn.GRU)
    assert isinstance(build_text(TextConfig(kind="lstm"), 4, WORDS).rnn, torch.nn.LSTM)
    with pytest.raises(InputError, match="text encoder 'lstm': needs a vocabulary, got none"):
        build_text(TextConfig(kind="lstm"), 4, None)


@pytest.mark.parametrize("width", [0.1, 1.0])
def test_words_begin_within_their_range(width):
    drawn = build(TextConfig(word_size=400, word_range=width)).embed.weight
    assert 0.99 * width < float(drawn.detach().abs().max()) <= width
    plain = build(TextConfig(word_size=400)).embed.weight  # the same draws, in the public code's
    torch.testing.assert_close(drawn, plain * width / 0.1)


@pytest.mark.parametrize("width", [0.0, -1.0, float("nan"), "wide"])
def test_a_range_of_nothing_is_refused(width):
    with pytest.raises(InputError, match=r"text\.word_range: got "):
        TextConfig(word_range=width)
