"""r-DAN against loops over the paper's equations, in float64."""

import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import crossgaze
from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.pretrained import load_answerer
from crossgaze.models.rdan import RDan, RDanConfig
from crossgaze.models.text import TextConfig
from model_parts import draw, scrambled

WIDTH, SIZE, WORD = 5, 4, 3
QUESTIONS = ["what is it?", "how many red cats sit on a mat?", "why?"]
ANSWERS = ("yes", "no", "2", "red", "cat")
VOCABULARY = Vocabulary.build(QUESTIONS, min_count=1)
SMALL = RDanConfig(
    region_width=WIDTH,
    size=SIZE,
    text=TextConfig(kind="lstm", word_size=WORD, join="sum"),
    answers=ANSWERS,
)


def make(config=SMALL):
    return scrambled(lambda: RDan(config, VOCABULARY), seed=3)


# The paper in plain loops, over numbers: nothing of the model but its parameters is used.


def layer(p, name, x):
    return [
        float(sum(w * xi for w, xi in zip(row, x, strict=True)) + b)
        for row, b in zip(p[f"{name}.weight"].tolist(), p[f"{name}.bias"].tolist(), strict=True)
    ]


def tanh(x):
    return torch.tensor(x, dtype=torch.float64).tanh().tolist()


def times(a, b):
    return [x * y for x, y in zip(a, b, strict=True)]


def lstm(p, xs, back):
    """Eqs. 1-2, one direction: gates in torch's order input, forget, cell, output."""
    end = "_reverse" if back else ""
    q = {key.removeprefix("text.rnn."): value for key, value in p.items() if "rnn" in key}
    h = c = torch.zeros(SIZE, dtype=torch.float64)
    states = {}
    for t in reversed(range(len(xs))) if back else range(len(xs)):
        gates = q[f"weight_ih_l0{end}"] @ xs[t] + q[f"bias_ih_l0{end}"]
        gates = gates + q[f"weight_hh_l0{end}"] @ h + q[f"bias_hh_l0{end}"]
        i, f, g, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states[t] = h
    return states


def attend(p, name, fragments, memory):
    """Eqs. 4-5 and the sum of 6; eqs. 8-10."""
    seen = tanh(layer(p, f"{name}.weights.memory", memory))
    hidden = [times(tanh(layer(p, f"{name}.weights.fragment", x)), seen) for x in fragments]
    scores = [layer(p, f"{name}.weights.score", h)[0] for h in hidden]
    total = sum(2.718281828459045**score for score in scores)
    weights = [2.718281828459045**score / total for score in scores]
    mean = [
        sum(w * x[d] for w, x in zip(weights, fragments, strict=True))
        for d in range(len(fragments[0]))
    ]
    return mean, weights


def naive(p, regions, numbers, steps, reads="both"):
    """Return the logits of one question about one image, and the weights of each step."""
    xs = [p["text.embed.weight"][number] for number in numbers]
    ahead, back = lstm(p, xs, back=False), lstm(p, xs, back=True)
    words = [(ahead[t] + back[t]).tolist() for t in range(len(xs))]
    v = u = [1.0] * SIZE
    if reads != "question":
        mean = [sum(x[d] for x in regions) / len(regions) for d in range(WIDTH)]
        v = tanh(layer(p, "image_context.embed", mean))  # eq. 13
    if reads != "image":
        u = [sum(word[d] for word in words) / len(words) for d in range(SIZE)]  # eq. 14
    memory = times(v, u)  # eq. 12
    seen, said = [], []
    for k in range(steps):
        if reads != "question":
            mean, weights = attend(p, f"image_steps.{k}", regions, memory)
            v = tanh(layer(p, f"image_steps.{k}.embed", mean))  # eq. 6
            seen.append(weights)
        if reads != "image":
            u, weights = attend(p, f"text_steps.{k}", words, memory)  # eq. 10
            said.append(weights)
        memory = [m + x for m, x in zip(memory, times(v, u), strict=True)]  # eq. 11
    return layer(p, "classify", memory), seen, said  # eq. 15


@pytest.mark.parametrize("reads", ["both", "question", "image"])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_answers_and_attention_equal_the_papers_loops(reads, steps):
    model = make(replace(SMALL, reads=reads, steps=steps))
    regions, counts = draw(3, 4, WIDTH), torch.tensor([4, 1, 3])
    with torch.no_grad():
        found = model.answer(regions, QUESTIONS, counts)
    p = {name: part.detach() for name, part in model.named_parameters()}
    for i, question in enumerate(QUESTIONS):
        numbers = VOCABULARY.encode(question)
        real = regions[i, : counts[i]].tolist()
        logits, seen, said = naive(p, real, numbers, steps, reads)
        close = {"rtol": 0, "atol": 1e-12}
        want = torch.tensor(logits, dtype=torch.float64)
        torch.testing.assert_close(found.logits[i], want, **close)
        for weights, wanted, n in (
            (found.attention.regions, seen, int(counts[i])),
            (found.attention.words, said, len(numbers)),
        ):
            if not wanted:
                assert weights is None
                continue
            wanted = torch.tensor(wanted, dtype=torch.float64)
            torch.testing.assert_close(weights[i, :, :n], wanted, **close)
            assert (weights[i, :, n:] == 0).all()
    assert found.attention.names == tuple(f"step {k + 1}" for k in range(steps))


@pytest.mark.parametrize("reads", ["both", "question", "image"])
def test_gradients_equal_finite_differences(reads):
    model = make(replace(SMALL, reads=reads))
    regions, labels = draw(3, 4, WIDTH), torch.tensor([0, 3, 1])

    def loss():
        logits = model.answer(regions, QUESTIONS).logits
        return torch.nn.functional.cross_entropy(logits, labels)

    loss().backward()
    step = 1e-6
    for name, part in model.named_parameters():
        if part.grad is None:
            assert reads == "image"
            assert name.startswith("text.")
            continue
        flat, gradient = part.data.view(-1), part.grad.view(-1)
        for place in {0, len(flat) // 2, len(flat) - 1, int(gradient.abs().argmax())}:
            before = float(flat[place])
            sides = []
            for side in (step, -step):
                flat[place] = before + side
                with torch.no_grad():
                    sides.append(float(loss()))
            flat[place] = before
            want = (sides[0] - sides[1]) / (2 * step)
            assert float(gradient[place]) == pytest.approx(want, abs=2e-9), (name, place)
    assert model.classify.weight.grad.abs().max() > 1e-3


@settings(max_examples=20, deadline=None)
@given(
    count=st.integers(1, 4),
    extra=st.integers(0, 3),
    seed=st.integers(0, 2**16),
    fill=st.sampled_from([0.0, 1e6, float("nan"), float("inf")]),
)
def test_order_padding_and_batch_change_nothing(count, extra, seed, fill):
    model = make()
    regions, counts = draw(2, 4, WIDTH, seed=seed), torch.tensor([count, 4])
    together = model.answer(regions, QUESTIONS[:2], counts)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    alone = torch.cat([regions[:1, :count][:, order], torch.full((1, extra, WIDTH), fill)], dim=1)
    numbers = model.text.tokenize(QUESTIONS[0])
    ids = torch.full((1, len(numbers) + extra), 2)
    ids[0, : len(numbers)] = torch.tensor(numbers)
    found = model.answer_tokens(alone, ids, [len(numbers)], counts=torch.tensor([count]))
    close = {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(found.logits, together.logits[:1], **close)
    moved = together.attention.regions[:1, :, :count][:, :, order]
    torch.testing.assert_close(found.attention.regions[..., :count], moved, **close)
    assert (found.attention.regions[..., count:] == 0).all()


def test_each_side_steers_the_other():
    """One memory: another question moves what is looked at in the image, and the reverse."""
    model = make()
    regions = draw(2, 4, WIDTH)
    first = model.answer(regions[:1], QUESTIONS[:1]).attention
    asked = model.answer(regions[:1], [QUESTIONS[1]]).attention
    shown = model.answer(regions[1:], QUESTIONS[:1]).attention
    assert (first.regions - asked.regions).abs().max() > 1e-4
    assert (first.words - shown.words).abs().max() > 1e-4


def test_a_shut_eye_sees_nothing():
    regions = draw(2, 4, WIDTH)
    blind = make(replace(SMALL, reads="question"))
    assert torch.equal(
        blind.answer(regions[:1], QUESTIONS[:1]).logits,
        blind.answer(regions[1:], QUESTIONS[:1]).logits,
    )
    deaf = make(replace(SMALL, reads="image"))
    assert torch.equal(
        deaf.answer(regions[:1], QUESTIONS[:1]).logits,
        deaf.answer(regions[:1], QUESTIONS[2:]).logits,
    )
    assert not any(part.requires_grad for part in deaf.text.parameters())
    names = {name.split(".")[0] for name, _ in blind.named_parameters()}
    assert names == {"text", "text_steps", "classify"}


def test_dropout_is_of_training_alone():
    model = make(replace(SMALL, dropout=0.5))
    regions = draw(1, 4, WIDTH)
    still = [model.answer(regions, QUESTIONS[:1]).logits for _ in range(2)]
    assert torch.equal(*still)
    model.train()
    moving = [model.answer(regions, QUESTIONS[:1]).logits for _ in range(2)]
    assert not torch.equal(*moving)


def test_parameters_at_the_papers_sizes():
    model = RDan(RDanConfig(answers=tuple(f"a{n}" for n in range(2000))), 1000)
    lstm = 2 * (4 * 512 * 512 + 4 * 512 * 512 + 2 * 4 * 512)
    visual = 2 * (2048 * 512 + 512) + (512 * 512 + 512) + (512 + 1)
    textual = 2 * (512 * 512 + 512) + (512 + 1)
    total = 1000 * 512 + lstm + (2048 * 512 + 512) + 2 * visual + 2 * textual + 2000 * 513
    assert sum(part.numel() for part in model.parameters()) == total
    assert RDanConfig().steps == 2
    assert RDanConfig().dropout == 0.5


def test_a_model_loads_as_it_was_saved(tmp_path):
    model = RDan(SMALL, VOCABULARY).eval()
    model.origin = {"regions": {"regions": "grid", "grid": 2}}
    model.save_pretrained(tmp_path / "m")
    again = crossgaze.load(tmp_path / "m")
    assert isinstance(again, RDan)
    assert again.answers == ANSWERS
    assert again.origin == model.origin
    regions = torch.rand(3, 4, WIDTH)
    with torch.no_grad():
        same = (one.answer(regions, QUESTIONS).logits for one in (model, again))
        assert torch.equal(*same)
    card = (tmp_path / "m" / "README.md").read_text()
    assert "| answers | yes, no, 2, red, cat |" in card
    assert "model.answer(" in card
    assert load_answerer(tmp_path / "m").family == "r-dan"


def test_the_configuration_is_checked_and_survives_json():
    assert build(RDanConfig, json.loads(json.dumps(to_dict(SMALL)))) == SMALL
    for changed, message in (
        ({"steps": 0}, "steps: got 0, wanted a whole number, 1 to 64"),
        ({"reads": "imag"}, r"reads: got 'imag' \(did you mean 'image'\?\)"),
        ({"answers": ("a", "b", "a")}, "answers: 'a' comes twice"),
        ({"answers": ("", "b")}, "answers: got something other than texts"),
        ({"dropout": 1.0}, "dropout: got 1.0, wanted a number from 0 to less than 1"),
    ):
        with pytest.raises(InputError, match=message):
            replace(SMALL, **changed)


def test_bad_input_is_named(tmp_path):
    model = make()
    with pytest.raises(InputError, match=r"regions: got shape \(1, 2, 3\), wanted \(N, k, 5\)"):
        model.answer(torch.zeros(1, 2, 3), ["why?"])
    with pytest.raises(InputError, match="got 2 images and 1 questions, wanted pairs"):
        model.answer(torch.zeros(2, 2, 5), ["why?"])
    with pytest.raises(InputError, match=r"questions\[0\]: ' ' has no word in it"):
        model.answer(torch.zeros(1, 2, 5), [" "])
    with pytest.raises(InputError, match="questions: got one text 'why"):
        model.answer(torch.zeros(1, 2, 5), "why?")
    with pytest.raises(InputError, match="answers: got none, wanted the answers"):
        RDan(replace(SMALL, answers=()), VOCABULARY)
    from crossgaze.models.scan import Scan, ScanConfig

    Scan(ScanConfig(region_width=5, size=6), VOCABULARY).save_pretrained(tmp_path / "scan")
    with pytest.raises(InputError, match="is a scan, which answers no questions; wanted an r-dan"):
        load_answerer(tmp_path / "scan")
