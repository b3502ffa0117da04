"""The loss of a batch against the same put together by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from crossgaze.data.text.words import caption_words
from crossgaze.training.constraints import constraint_terms, encode_swaps
from crossgaze.training.losses import Hardest, LossConfig, make_loss
from crossgaze.training.prepare import prepare
from crossgaze.training.step import Step
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
