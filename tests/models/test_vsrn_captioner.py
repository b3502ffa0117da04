"""VSRN's caption generator against loops in NumPy float64, and its writing against all captions."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.text.vocabulary import END, SPECIAL_WORDS, START, UNKNOWN, Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.text import TextConfig
from crossgaze.models.vsrn import Vsrn, VsrnConfig
from crossgaze.models.vsrn_captioner import Captioner, CaptionerConfig

VOCABULARY = Vocabulary((*SPECIAL_WORDS, "dog", "runs"))
SMALL = CaptionerConfig(size=4, hidden=3, word_size=2, dropout=0.0)


def build(seed=0, spread=0.8, config=SMALL, vocabulary=VOCABULARY):
    torch.manual_seed(seed)
    model = Captioner(config, vocabulary).double().eval()
    for values in model.parameters():
        values.data.normal_(0.0, spread)
    return model


def weights_of(model):
    return {name: values.detach().numpy().copy() for name, values in model.named_parameters()}


# The oracle ---------------------------------------------------------------------------------------


def gru_step(x, h, w, name, suffix=""):
    """One step of torch's GRU."""
    i = w[f"{name}.weight_ih{suffix}"] @ x + w[f"{name}.bias_ih{suffix}"]
    o = w[f"{name}.weight_hh{suffix}"] @ h + w[f"{name}.bias_hh{suffix}"]
    n = len(h)
    r = 1 / (1 + np.exp(-(i[:n] + o[:n])))
    z = 1 / (1 + np.exp(-(i[n : 2 * n] + o[n : 2 * n])))
    return (1 - z) * np.tanh(i[2 * n :] + r * o[2 * n :]) + z * h


def oracle_read(regions, w):
    h, states = np.zeros(w["out.weight"].shape[1]), []
    for f in regions:
        h = gru_step(w["project.weight"] @ f + w["project.bias"], h, w, "reader", "_l0")
        states.append(h)
    return states


def oracle_next(states, h, word, w):
    """The next state and the log-probability of every word after it."""
    # One linear layer over [e_i; h], here in one piece.
    both = np.concatenate([w["attend_region.weight"], w["attend_state.weight"]], axis=1)
    energy = []
    for e in states:
        inner = np.tanh(both @ np.concatenate([e, h]) + w["attend_region.bias"])
        energy.append(float(w["attend.weight"][0] @ inner))
    weights = np.exp(np.array(energy) - max(energy))
    weights /= weights.sum()
    context = sum(a * e for a, e in zip(weights, states, strict=True))
    h = gru_step(np.concatenate([w["embed.weight"][word], context]), h, w, "writer")
    logits = w["out.weight"] @ h + w["out.bias"]
    return h, logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


def oracle_log_p(regions, caption, w):
    """Eq. 9 of one caption, <start> first, without its sign."""
    states = oracle_read(regions, w)
    h, total = states[-1], 0.0
    for before, word in itertools.pairwise(caption):
        h, log_p = oracle_next(states, h, before, w)
        total += log_p[word]
    return total


def oracle_greedy(regions, w, steps):
    states = oracle_read(regions, w)
    h, words = states[-1], [START]
    while len(words) <= steps and words[-1] != END:
        h, log_p = oracle_next(states, h, words[-1], w)
        words.append(max(range(END, len(log_p)), key=lambda word: log_p[word]))
    return words


def oracle_beam(regions, w, width, steps):
    states = oracle_read(regions, w)
    kept = [(0.0, [START], states[-1])]
    for _ in range(steps):
        grown = [row for row in kept if row[1][-1] == END]  # what is finished competes once
        for total, words, h in kept:
            if words[-1] != END:
                after, log_p = oracle_next(states, h, words[-1], w)
                for word in range(END, len(log_p)):
                    grown.append((total + log_p[word], [*words, word], after))
        kept = sorted(grown, key=lambda row: -row[0])[:width]
    return kept[0][1]


def all_captions(size, steps):
    """Everything that can be written in so many steps: finished, or cut off unfinished."""
    words = range(UNKNOWN, size)
    for n in range(steps):
        for row in itertools.product(words, repeat=n):
            yield [START, *row, END]
    for row in itertools.product(words, repeat=steps):
        yield [START, *row]


def numbers(words, steps):
    """Back to ids; a caption shorter than `steps` was ended."""
    row = [START, *VOCABULARY.encode_words(words)]
    return [*row, END] if len(words) < steps else row


def some_images(counts, seed=0, width=4):
    """The ragged images, and the same padded with garbage."""
    draw = np.random.default_rng(seed)
    ragged = [draw.normal(size=(count, width)) for count in counts]
    padded = np.full((len(counts), max(counts) + 1, width), np.nan)
    padded[:, :, 1] = 1e6
    for number, regions in enumerate(ragged):
        padded[number, : len(regions)] = regions
    return ragged, torch.tensor(padded), torch.tensor(counts)


# Learning -----------------------------------------------------------------------------------------

CAPTIONS = [[START, 4, 5, END], [START, END], [START, 5, 5, UNKNOWN, 4, END]]
IDS = torch.full((3, 8), 10**6)  # garbage behind the real words
for _row, _caption in enumerate(CAPTIONS):
    IDS[_row, : len(_caption)] = torch.tensor(_caption)
LENGTHS = torch.tensor([len(caption) for caption in CAPTIONS])


def test_loss_is_equation_9():
    model = build()
    w = weights_of(model)
    ragged, padded, counts = some_images([3, 1, 2])
    each = [oracle_log_p(x, caption, w) for x, caption in zip(ragged, CAPTIONS, strict=True)]
    found = model.log_likelihood(padded, counts, IDS, LENGTHS)
    np.testing.assert_allclose(found.detach(), each, atol=1e-12)
    assert model.loss(padded, counts, IDS, LENGTHS).item() == pytest.approx(-sum(each) / 3, 1e-12)


def test_gradients_are_the_differences_of_equation_9():
    model = build(seed=1)
    w = weights_of(model)
    ragged, padded, counts = some_images([3, 1, 2], seed=1)

    def value(images, weights):
        pairs = zip(images, CAPTIONS, strict=True)
        return -sum(oracle_log_p(x, caption, weights) for x, caption in pairs) / 3

    x = padded.clone().requires_grad_()
    model.loss(x, counts, IDS, LENGTHS).backward()
    step = 1e-6
    for number, regions in enumerate(ragged):
        for place in np.ndindex(regions.shape):
            up, down = ([r.copy() for r in ragged] for _ in range(2))
            up[number][place] += step
            down[number][place] -= step
            slope = (value(up, w) - value(down, w)) / (2 * step)
            assert x.grad[(number, *place)].item() == pytest.approx(slope, abs=1e-7)
        assert (x.grad[number, len(regions) :] == 0).all()
    for name, parameter in model.named_parameters():
        for seed in range(2):
            way = np.random.default_rng(seed).normal(size=parameter.shape)
            up = value(ragged, {**w, name: w[name] + step * way})
            down = value(ragged, {**w, name: w[name] - step * way})
            slope = (parameter.grad.numpy() * way).sum()
            assert slope == pytest.approx((up - down) / (2 * step), abs=1e-7), name


def test_words_past_the_maximum_length_are_not_learned():
    model = build(config=replace(SMALL, max_length=4))
    ragged, padded, counts = some_images([3, 1, 2])
    w = weights_of(model)
    each = [oracle_log_p(x, caption[:4], w) for x, caption in zip(ragged, CAPTIONS, strict=True)]
    found = model.log_likelihood(padded, counts, IDS, LENGTHS)
    np.testing.assert_allclose(found.detach(), each, atol=1e-12)


def test_dropout_is_for_learning_only():
    model = build(config=replace(SMALL, dropout=0.5))
    _, padded, counts = some_images([3, 1, 2])

    def losses():
        return {model.loss(padded, counts, IDS, LENGTHS).item() for _ in range(4)}

    assert len(losses()) == 1
    model.train()
    assert len(losses()) == 4
    written = {str(model.greedy(padded, counts, 6)) for _ in range(8)}
    assert len(written) == 1
    assert written == {str(model.eval().greedy(padded, counts, 6))}


def test_the_loss_teaches_the_graph_layers():
    torch.manual_seed(0)
    text = TextConfig(word_size=3, bidirectional=False)
    matcher = Vsrn(VsrnConfig(region_width=5, size=4, layers=1, text=text), VOCABULARY)
    images = matcher.encode_images(torch.randn(3, 2, 5))
    Captioner(SMALL, VOCABULARY).loss(images.features, images.counts, IDS, LENGTHS).backward()
    assert matcher.fc.weight.grad.abs().max() > 0
    assert matcher.relation_layers[0].W[1].weight.grad.abs().max() > 0
    assert matcher.img_rnn.weight_ih_l0.grad is None  # it reads V*, not the image's vector


def test_it_learns_to_write_two_captions():
    captions = ["a dog runs on the grass", "two cats sleep"]
    vocabulary = Vocabulary.build(captions, min_count=1)
    torch.manual_seed(0)
    config = CaptionerConfig(size=6, hidden=24, word_size=8)
    model = Captioner(config, vocabulary)
    x, counts = torch.randn(2, 3, 6), torch.tensor([3, 2])
    rows = [vocabulary.encode(caption) for caption in captions]
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.zeros(2, int(lengths.max()), dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
    adam = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(100):
        adam.zero_grad()
        model.loss(x, counts, ids, lengths).backward()
        adam.step()
    expected = [caption.split() for caption in captions]
    assert model.greedy(x, counts) == expected
    assert model.beam(x, counts, width=4) == expected
    assert model.eval().loss(x, counts, ids, lengths).item() < 0.5


# Writing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_greedy_takes_the_likeliest_word_each_time(seed):
    model = build(seed, spread=1.5)
    w = weights_of(model)
    ragged, padded, counts = some_images([2, 1, 3], seed)
    for steps in (1, 7):
        expected = [VOCABULARY.decode(oracle_greedy(x, w, steps)) for x in ragged]
        assert model.greedy(padded, counts, steps) == expected
        assert model.beam(padded, counts, 1, steps) == expected


@pytest.mark.parametrize("width", [2, 3, 5])
def test_beam_keeps_the_likeliest_beginnings(width):
    differ = 0
    for seed in range(20):
        model = build(seed, spread=1.5)
        model.out.bias.data[END] += 0.7  # captions that end early, beside those that go on
        w = weights_of(model)
        ragged, padded, counts = some_images([2, 1, 3], seed)
        expected = [VOCABULARY.decode(oracle_beam(x, w, width, 6)) for x in ragged]
        assert model.beam(padded, counts, width, 6) == expected
        differ += expected != model.greedy(padded, counts, 6)
    assert differ > 0


def test_a_wide_beam_finds_the_best_of_all_captions():
    """And a narrow one is on these cases never worse than greedy, and sometimes better."""
    steps, gains = 4, {2: 0, 3: 0}
    for seed in range(8):
        model = build(seed, spread=1.5)
        w = weights_of(model)
        ragged, padded, counts = some_images([2, 1], seed)
        widest = model.beam(padded, counts, width=4**steps, max_length=steps)
        greedy = model.greedy(padded, counts, steps)
        for number, x in enumerate(ragged):
            rated = [(oracle_log_p(x, row, w), row) for row in all_captions(len(VOCABULARY), steps)]
            best, row = max(rated)
            assert numbers(widest[number], steps) == row
            own = oracle_log_p(x, numbers(greedy[number], steps), w)
            assert own <= best + 1e-12
            for width in gains:
                words = model.beam(padded, counts, width, steps)[number]
                found = oracle_log_p(x, numbers(words, steps), w)
                assert own - 1e-12 <= found <= best + 1e-12
                gains[width] += found > own + 1e-9
    assert gains[3] >= gains[2] > 0


def test_padding_and_start_are_never_written():
    model = build()
    model.out.bias.data[:2] = 50.0  # all the model wants to write
    model.out.bias.data[END] = -50.0
    _, padded, counts = some_images([2, 1])
    for width in (1, 3):
        for words in model.beam(padded, counts, width, max_length=5):
            assert len(words) == 5  # neither of them was written, they would be left out here


def test_an_image_may_get_no_word():
    model = build()
    model.out.bias.data[END] = 50.0
    _, padded, counts = some_images([2, 1])
    assert model.greedy(padded, counts) == [[], []]
    assert model.beam(padded, counts, 3) == [[], []]


def test_the_configuration_bounds_what_is_written():
    model = build(config=replace(SMALL, max_length=5))
    model.out.bias.data[END] = -50.0
    _, padded, counts = some_images([2])
    assert [len(words) for words in model.greedy(padded, counts)] == [4]  # and <start> makes 5
    assert CaptionerConfig().max_length == 60


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**20), st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 3)
)
def test_padding_and_company_change_nothing(seed, counts, width):
    model = build(seed % 11, spread=1.5)
    ragged, padded, real = some_images(counts, seed)
    together = model.beam(padded, real, width, 6)
    ids = torch.tensor([[START, 4, 5, END, 0]] * len(counts))
    lengths = torch.full((len(counts),), 4)
    log_p = model.log_likelihood(padded, real, ids, lengths)
    for number, regions in enumerate(ragged):
        alone, count = torch.tensor(regions)[None], torch.tensor([len(regions)])
        assert model.beam(alone, count, width, 6)[0] == together[number]
        own = model.log_likelihood(alone, count, ids[:1, :4], lengths[:1])[0]
        torch.testing.assert_close(own, log_p[number])


def test_zero_features_are_finite():
    torch.manual_seed(0)
    model = Captioner(SMALL, VOCABULARY)
    x = torch.zeros(1, 1, 4, requires_grad=True)
    loss = model.loss(x, torch.tensor([1]), IDS[:1], LENGTHS[:1])
    loss.backward()
    assert loss.isfinite()
    assert x.grad.isfinite().all()
    assert len(model.beam(x, torch.tensor([1]), 2)) == 1


# Sizes and bad input ------------------------------------------------------------------------------


def test_parameters_at_the_papers_sizes():
    """By hand, with D = 2048, H = 512 and the 8,481 words of Flickr30K, of 300 numbers each."""
    D, H, E, V = 2048, 512, 300, 8481
    vocabulary = Vocabulary((*SPECIAL_WORDS, *(f"w{i}" for i in range(V - 4))))
    reader = D * H + H + 3 * H * (H + H) + 6 * H
    attention = 2 * H * H + H + H
    writer = V * E + 3 * H * (E + H + H) + 6 * H + H * V + V
    with torch.device("meta"):
        model = Captioner(CaptionerConfig(), vocabulary)
    assert reader + attention + writer == 12_082_125
    assert sum(p.numel() for p in model.parameters()) == 12_082_125


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 0}, "size: got 0, wanted a whole number, 1 or more"),
        ({"hidden": 0}, "hidden: got 0, wanted a whole number, 1 or more"),
        ({"word_size": -2}, "word_size: got -2, wanted a whole number, 1 or more"),
        ({"max_length": 1}, "max_length: got 1, wanted a whole number, 2 or more"),
        ({"dropout": 1.0}, "dropout: got 1.0, wanted a number from 0 to less than 1"),
    ],
)
def test_bad_configurations_are_refused_by_name(given, message):
    with pytest.raises(InputError) as error:
        CaptionerConfig(**given)
    assert str(error.value) == message


def test_bad_input_is_refused_by_name():
    model = build()
    _, x, counts = some_images([3, 1, 2])
    with pytest.raises(InputError, match=r"features: got shape \(3, 4, 5\), wanted \(N, k, 4\)"):
        model.greedy(torch.zeros(3, 4, 5), counts)
    with pytest.raises(InputError, match=r"counts: go from 0 to 2, wanted 1 to 4"):
        model.greedy(x, counts - 1)
    with pytest.raises(InputError, match=r"counts: got shape \(2,\) for rows of shape \(3, 4, 4\)"):
        model.greedy(x, counts[:2])
    with pytest.raises(InputError, match=r"lengths: go from 1 to 5, wanted 2 to 8"):
        model.loss(x, counts, IDS, LENGTHS - 1)
    with pytest.raises(InputError, match=r"ids: got 2 captions, wanted 3, one an image"):
        model.loss(x, counts, IDS[:2], LENGTHS[:2])
    with pytest.raises(InputError, match=r"ids: got numbers of no word, wanted 0 to 5"):
        model.loss(x, counts, IDS.clamp(max=6) + 1, LENGTHS)
    with pytest.raises(InputError, match=r"width: got 0, wanted 1 or more"):
        model.beam(x, counts, 0)
    with pytest.raises(InputError, match=r"max_length: got 0, wanted 1 or more"):
        model.greedy(x, counts, 0)


# Keeping ------------------------------------------------------------------------------------------


def test_a_saved_captioner_writes_the_same(tmp_path):
    model = build().float()
    model.save(tmp_path / "one")
    model.save(tmp_path / "one")  # over itself
    again = Captioner.load(tmp_path / "one")
    assert again.config == model.config
    assert again.vocabulary == model.vocabulary
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value)


def test_what_is_no_captioner_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match="no such folder, wanted a caption generator"):
        Captioner.load(tmp_path / "nowhere")
    model = build().float()
    model.save(tmp_path / "one")
    (tmp_path / "one" / "model.safetensors").write_bytes(b"what")
    with pytest.raises(InputError, match=r"model.safetensors: does not read as safetensors"):
        Captioner.load(tmp_path / "one")
    (tmp_path / "one" / "config.json").write_text('{"format": "crossgaze-model"}')
    with pytest.raises(InputError, match=r"config.json: is not of a crossgaze-captioner"):
        Captioner.load(tmp_path / "one")


@pytest.mark.parametrize("config", [None, [], {"size": 3}, {"hidden": 1 << 19}, {"hidden": "x"}])
def test_a_caption_generators_head_is_checked_before_memory_is_taken(tmp_path, config):
    build().float().save(tmp_path / "one")
    head = json.loads((tmp_path / "one" / "config.json").read_text())
    head["config"] = config if not isinstance(config, dict) else head["config"] | config
    (tmp_path / "one" / "config.json").write_text(json.dumps(head))
    with pytest.raises(InputError, match=r"config.json: |does not fit the model"):
        Captioner.load(tmp_path / "one")
