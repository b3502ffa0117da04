"""Swaps drawn before training: such as the sampler draws, the same again, and read once."""

import numpy as np
import torch

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.training.batches import Sentences
from crossgaze.training.drawn_swaps import DrawnSwaps
from crossgaze.training.swaps import SwapSampler

CAPTIONS = [
    "a red bike in the street .",
    "the dog in a field .",
    "a cat near the house .",
    "on and on .",  # nothing to swap
    "the green ball in a car .",
]
OWNERS = np.arange(len(CAPTIONS))


def made(each=3, seed=5):
    vocabulary = Vocabulary.build(CAPTIONS, min_count=1)
    rows = [vocabulary.encode(caption) for caption in CAPTIONS]
    sampler = SwapSampler(rows, OWNERS, vocabulary.words, least=1)
    sentences = Sentences(rows)
    return sampler, sentences, DrawnSwaps(sampler, sentences, OWNERS, each, seed), vocabulary


def drawn(sentences, swaps, captions, seed):
    rows = np.array(captions)
    lengths = torch.from_numpy(sentences.lengths[rows])
    ids = sentences.padded(rows, int(lengths.max()) + 2)
    return ids, swaps.sample(ids, lengths, rows, np.random.default_rng(seed))


def test_each_is_one_that_the_sampler_could_have_drawn():
    sampler, sentences, swaps, vocabulary = made()
    for seed in range(20):
        ids, found = drawn(sentences, swaps, [4, 0, 3, 1], seed)
        assert found.found.tolist() == [True, True, False, True]
        assert torch.equal(found.ids[2], ids[2])
        for row, caption in ((0, 4), (1, 0), (3, 1)):
            place = int(found.places[row])
            others = torch.arange(ids.shape[1]) != place
            assert torch.equal(found.ids[row][others], ids[row][others])
            old, new = (vocabulary.words[int(x[row, place])] for x in (ids, found.ids))
            likely = dict(zip(sampler.words, sampler.replacements(old, caption), strict=True))
            assert likely[new] > 0


def test_a_step_draws_among_all_of_a_captions_swaps_and_among_no_others():
    _, sentences, swaps, _ = made(each=3)
    rows = {tuple(row) for row in swaps.rows(sentences)}
    seen = set()
    for seed in range(60):
        _, found = drawn(sentences, swaps, [0, 1, 2, 4], seed)
        seen |= {
            tuple(ids[:length])
            for ids, length in zip(found.ids.tolist(), found.lengths.tolist(), strict=True)
        }
    assert seen == rows
    assert len(rows) > 4  # more than one for some caption


def test_the_same_seed_draws_the_same_and_another_does_not():
    _, sentences, one, _ = made(each=8, seed=1)
    _, _, again, _ = made(each=8, seed=1)
    _, _, other, _ = made(each=8, seed=2)
    assert one.rows(sentences) == again.rows(sentences)
    assert one.rows(sentences) != other.rows(sentences)
