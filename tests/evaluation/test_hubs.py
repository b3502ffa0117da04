"""What fits everything held back: CSLS against loops over its definition."""

from dataclasses import replace

import numpy as np
import pytest

import evaluation_parts as parts
from crossgaze.errors import InputError
from crossgaze.evaluation.bootstrap import BootstrapConfig
from crossgaze.evaluation.evaluate import EvaluateConfig, evaluate
from crossgaze.evaluation.hubs import Bank, Hubs, find_hubs, spread
from crossgaze.evaluation.recall import ranks_of
from crossgaze.evaluation.scores import score_captions
from crossgaze.evaluation.sources import open_regions

SIZES = {"batch": 3, "budget": 1 << 20}
QUICK = EvaluateConfig(batch=3, top=3, bootstrap=BootstrapConfig(resamples=20))


@pytest.fixture
def world(tmp_path):
    """Return captions and regions to search, and others."""
    every = parts.captioned(26)
    regions = open_regions(every, tmp_path, parts.write_store(tmp_path / "regions", every.images))
    one, other = every.select(every.images[:12]), every.select(every.images[12:])
    cut = [replace(regions, rows=regions.rows[part]) for part in (slice(12), slice(12, 26))]
    return one, cut[0], Bank(other, cut[1])


def slow_csls(models, captioned, regions, bank):
    """Return 2 s(i, c) - r(i) - r(c) by loops, s the mean of the models' scores."""

    def score(images, regions, captions):
        table = np.zeros((images, len(captions)))
        for model in models:
            seen = [model.encode_images(*regions.read([i])) for i in range(images)]
            said = [model.encode_texts([caption]) for caption in captions]
            for i, image in enumerate(seen):
                for j, text in enumerate(said):
                    pair = model.pair_similarity(image, text)
                    table[i, j] += float(pair.detach()) / len(models)
        return table

    own = score(len(captioned), regions, captioned.captions)
    texts = score(len(captioned), regions, bank.captioned.captions)
    images = score(len(bank.captioned), bank.regions, captioned.captions)
    out = np.zeros_like(own)
    for i in range(own.shape[0]):
        nearest_texts = sorted(texts[i], reverse=True)[:10]
        for j in range(own.shape[1]):
            nearest_images = sorted(images[:, j], reverse=True)[:10]
            out[i, j] = 2 * own[i, j] - sum(nearest_texts) / 10 - sum(nearest_images) / 10
    return out


def test_a_small_bank_is_taken_whole(world):
    """Of three images and captions the nearest are all."""
    captioned, regions, bank = world
    small = bank.captioned.select(bank.captioned.images[:3])
    hubs = find_hubs([parts.model()], captioned, regions, Bank(small, bank.regions), **SIZES)
    scores = score_captions([parts.model()], captioned.captions, bank.regions, slice(0, 3))
    np.testing.assert_allclose(hubs.captions, scores.mean(0), rtol=1e-6)


def test_a_bank_of_the_same_images_is_refused(world):
    captioned, regions, _ = world
    with pytest.raises(InputError, match=r"bank: has 12 of the images that are tested, such as "):
        evaluate(parts.model(), captioned, regions, QUICK, bank=Bank(captioned, regions))


@pytest.mark.parametrize("kinds", [("scan",), ("vse",), ("scan", "bfan")])
@pytest.mark.parametrize("folds", [1, 3])
def test_figures_are_those_of_loops(world, kinds, folds):
    captioned, regions, bank = world
    models = [parts.model(kind).double() for kind in kinds]
    config = replace(QUICK, folds=(folds,))
    seen = []
    found = evaluate(
        models, captioned, regions, config, bank=bank, on_progress=lambda *now: seen.append(now)
    )
    table = slow_csls(models, captioned, regions, bank)
    size = len(captioned) // folds
    for number, fold in enumerate(found.protocols[0].folds):
        rows = slice(number * size, (number + 1) * size)
        columns = np.flatnonzero(
            (captioned.image_of >= rows.start) & (captioned.image_of < rows.stop)
        )
        wanted = ranks_of(table[rows][:, columns], captioned.image_of[columns] - rows.start)
        assert fold.ranks.text_ranks.tolist() == wanted.text_ranks.tolist()
        assert fold.ranks.image_ranks.tolist() == wanted.image_ranks.tolist()
        np.testing.assert_allclose(
            fold.best_texts[0], -np.sort(-table[rows][:, columns] / 2, axis=1)[:, :3]
        )
    assert found.bank == (len(bank.captioned), len(bank.captioned.captions))
    assert seen[-1][0] == seen[-1][1]  # the bar ends where it said it would
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_hub_is_held_back():
    """Caption 0 fits every image of the bank; without it each image finds its own."""
    scores = np.array([[0.9, 0.8, 0.1], [0.9, 0.2, 0.8]], np.float32)
    hubs = Hubs(np.zeros(2), np.array([0.9, 0.1, 0.1]))
    found = hubs.hold_back(scores)
    assert scores.argmax(1).tolist() == [0, 0]
    assert found.argmax(1).tolist() == [1, 2]
    assert found.dtype == scores.dtype
    later = hubs.hold_back(scores[1:, 1:], image=1, caption=1)
    np.testing.assert_array_equal(later, found[1:, 1:])


def test_images_of_the_bank_are_spread_evenly():
    every = parts.captioned(26)
    assert spread(every, 3).images == (every.images[0], every.images[12], every.images[25])
    assert spread(every, 100).images == every.images
    with pytest.raises(InputError, match="bank: got 0 images"):
        spread(every, 0)


def test_scores_with_captions_of_others_are_those_of_the_pairs(world):
    _, regions, bank = world
    model = parts.model().double()
    texts = bank.captioned.captions[:3]
    found = score_captions([model], texts, regions, slice(2, 5), batch=2)
    assert found.shape == (3, 3)
    for i in range(3):
        image = model.encode_images(*regions.read([2 + i]))
        for j, text in enumerate(texts):
            one = float(model.pair_similarity(image, model.encode_texts([text])).detach())
            assert found[i, j] == pytest.approx(one)
