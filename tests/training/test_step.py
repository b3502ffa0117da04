"""The loss of a batch against the same put together by hand."""

import functools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from crossgaze.data.text.words import caption_words
from crossgaze.training.constraints import constraint_terms, encode_swaps
from crossgaze.training.losses import Hardest, LossConfig, make_loss
from crossgaze.training.prepare import prepare
from crossgaze.training.step import Step
from crossgaze.training.trainer import Run
from model_parts import save_bert
from training_parts import settings, write_world


@pytest.fixture
def world(tmp_path):
    return write_world(tmp_path)


def test_the_loss_is_that_of_all_pairs(world):
    ready = prepare(settings(world))
    batch = ready.train.read(np.arange(10))
    step = Step(settings(world), ready.model)
    objective, told = step(batch, Hardest(0.2))
    total, model = 0.0, ready.model
    with torch.no_grad():
        images = model.encode_images(batch.regions.float(), batch.counts)
        texts = model.encode_tokens(batch.ids, batch.lengths)
        scores = [
            [float(model.similarity(images[i], texts[j])) for j in range(10)] for i in range(10)
        ]
    owners = batch.owners.tolist()
    for i in range(10):
        wrong = [j for j in range(10) if owners[j] != owners[i]]
        total += max(0.0, 0.2 - scores[i][i] + max(scores[i][j] for j in wrong))
        total += max(0.0, 0.2 - scores[i][i] + max(scores[j][i] for j in wrong))
    assert float(objective.detach()) == pytest.approx(total, rel=1e-5)
    assert float(told["loss"]) == float(told["ranking"]) == pytest.approx(total, rel=1e-5)


def test_a_companion_adds_its_mean_and_learns_what_was_written(world):
    config = settings(world, "vsrn", companion={"hidden": 8, "word_size": 4, "weight": 0.5})
    ready = prepare(config)
    ready.companion.eval()
    read = ready.train.read(np.arange(6))
    batch = replace(read, ids=read.ids.masked_fill(read.ids > 3, 3))  # every word dropped
    step = Step(config, ready.model, ready.companion)
    objective, told = step(batch, make_loss(LossConfig()))
    images = ready.model.encode_images(batch.regions.float(), batch.counts)
    wanted = 0.5 * ready.companion.loss(images.features, images.counts, read.ids, read.lengths)
    assert float(told["captions"]) == pytest.approx(wanted.item(), rel=1e-5)
    assert objective.item() == pytest.approx(float(told["ranking"] + told["captions"]), rel=1e-6)


def test_a_companion_of_a_bert_reads_words_of_its_own(world, tmp_path):
    save_bert(tmp_path)
    text = {"kind": "bert", "bert": str(tmp_path)}
    config = settings(world, "vsrn", companion={"hidden": 8, "word_size": 4})
    config = replace(config, model={**config.model, "text": text})
    ready = prepare(config)
    batch = ready.train.read(np.arange(6))
    assert not torch.equal(batch.ids, batch.written)
    said = [ready.companion.vocabulary.decode(row.tolist()) for row in batch.written]
    assert said == [caption_words(text) for text in ready.train.texts[:6]]
    _, told = Step(config, ready.model, ready.companion)(batch, make_loss(LossConfig()))
    assert float(told["captions"]) > 0


@pytest.mark.parametrize("family", ["scan", "bfan"])
def test_constraints_are_added_with_their_lambdas(world, family):
    config = settings(world, family, constraints={"ccr": 0.3, "ccs": 2.0})
    ready = prepare(config)
    batch = ready.train.read(np.arange(8))
    from crossgaze.training.swaps import SwapSampler, word_list

    rows, owners = ready.train.sentences.rows(), ready.train.owners
    sampler = SwapSampler(rows, owners, word_list(ready.model.text), least=1)
    mine = owners[:8]
    swaps = sampler.sample(batch.ids, batch.lengths, mine, np.random.default_rng(0))
    assert swaps.found.any()
    batch = replace(batch, swaps=swaps)
    _, told = Step(config, ready.model)(batch, make_loss(config.loss))
    images = ready.model.encode_images(batch.regions.float(), batch.counts)
    texts = ready.model.encode_tokens(batch.ids, batch.lengths)
    swapped = encode_swaps(ready.model, swaps)
    terms = constraint_terms(ready.model, images, texts, swapped, config.constraints)
    assert terms["ccs"].item() > 0
    assert float(told["ccr"]) == pytest.approx(0.3 * terms["ccr"].item(), rel=1e-5)
    assert float(told["ccs"]) == pytest.approx(2.0 * terms["ccs"].item(), rel=1e-5)


def test_sides_meet_in_single_precision(world, monkeypatch):
    config = settings(world)
    ready = prepare(config)
    model = ready.model
    seen = []

    def half(encode):
        def call(*args):
            side = encode(*args)
            return replace(side, fragments=side.fragments.half())

        return call

    whole = model.similarity
    monkeypatch.setattr(model, "encode_images", half(model.encode_images))
    monkeypatch.setattr(model, "encode_tokens", half(model.encode_tokens))

    def similarity(images, texts):
        seen.extend([images.fragments.dtype, texts.fragments.dtype])
        return whole(images, texts)

    monkeypatch.setattr(model, "similarity", similarity)
    objective, _ = Step(config, model)(ready.train.read(np.arange(6)), Hardest(0.2))
    assert seen == [torch.float32] * 2
    objective.backward()
    assert all(p.grad is not None for p in model.parameters())


PROBE = """
import torch
line, gru, window = torch.nn.Linear(8, 8), torch.nn.GRU(8, 8), torch.nn.Conv1d(8, 8, 2)
with torch.autocast("cpu", dtype=torch.bfloat16):
    x = gru(line(torch.rand(4, 3, 8)))[0]
    (window(x.transpose(1, 2)).sum() + (x @ x.transpose(1, 2)).sum()).float().backward()
"""


@functools.cache
def can_half():
    """Whether the CPU can: some stop at an illegal instruction, so another process tries."""
    command = [sys.executable, "-W", "ignore", "-c", PROBE]
    return subprocess.run(command, check=False).returncode == 0


@pytest.fixture
def half():
    """Go on only where the CPU computes in bfloat16."""
    if not can_half():
        pytest.skip("this CPU does not compute in bfloat16")
    return torch.bfloat16


def autocast_now():
    """Return the type that autocast computes in, or None where it is off."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None


def watch(target, name, seen, monkeypatch):
    """Note in which precision something is called."""
    call = getattr(target, name)

    def noted(*args):
        seen.setdefault(name, set()).add(autocast_now())
        return call(*args)

    monkeypatch.setattr(target, name, noted)


# On a CPU torch's GRU stays in single precision, so the layers around it are looked at.
@pytest.mark.parametrize(
    ("family", "layers"), [("scan", ["regions"]), ("mmca", ["project", "sentence"])]
)
def test_encoders_compute_in_the_precision_of_the_recipe(world, half, family, layers):
    config = settings(world, family, precision="bfloat16")
    ready = prepare(config)
    made = {}
    for name in layers:
        ready.model.get_submodule(name).register_forward_hook(
            lambda module, args, out, name=name: made.update({name: out.dtype})
        )
    batch = ready.train.read(np.arange(8))
    objective, told = Step(config, ready.model)(batch, Hardest(0.2))
    assert made == dict.fromkeys(layers, half)
    assert objective.dtype == torch.float32
    assert torch.isfinite(objective)
    assert torch.isfinite(told["spread"])
    objective.backward()
    assert all(torch.isfinite(p.grad).all() for p in ready.model.parameters())
    wanted, _ = Step(replace(config, precision="float32"), ready.model)(batch, Hardest(0.2))
    assert made == dict.fromkeys(layers, torch.float32)
    assert objective.item() == pytest.approx(wanted.item(), rel=0.05)


def test_what_encodes_is_in_half_precision_and_nothing_is_where_sides_meet(
    tmp_path, half, monkeypatch
):
    world = write_world(tmp_path, images=72)  # enough for words that can be swapped
    seen = {}
    for family, more in (
        ("scan", {"constraints": {"ccr": 0.3, "ccs": 1.0}}),
        ("vsrn", {"companion": {"hidden": 8, "word_size": 4}}),
    ):
        config = settings(world, family, precision="bfloat16", **more)
        run = Run(config, prepare(config), tmp_path / family, torch.device("cpu"))
        for name in ("encode_images", "encode_tokens", "similarity", "attention"):
            watch(run.step.model, name, seen, monkeypatch)
        if run.step.companion is not None:
            watch(run.step.companion, "terms", seen, monkeypatch)
        batch = run.shown(0, 0, run.data.train.read(np.arange(8)))
        objective, _ = run.step(batch, Hardest(0.2))
        assert torch.isfinite(objective)
    encoding, meeting = {half}, {None}
    assert seen == {
        "encode_images": encoding,
        "encode_tokens": encoding,  # sentences with a word swapped as well
        "terms": encoding,
        "similarity": meeting,
        "attention": meeting,
    }
