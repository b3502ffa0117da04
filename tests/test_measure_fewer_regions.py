"""Recalls with regions left out: with none it is the plain evaluation, the others are drawn."""

import sys
from pathlib import Path

import numpy as np
import torch

import search_parts
from crossgaze.evaluation.recall import ranks_of, rounded

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import measure_fewer_regions

CAPTIONS = ["a red dog", "a blue cat", "the green snow", "a cat runs", "a dog in the snow", "red"]


class Store:
    """What of a region store is read here."""

    features = np.random.default_rng(0).random((3, 4, search_parts.WIDTH)).astype(np.float32)
    counts = np.array([4, 2, 3])


def test_with_nothing_left_out_it_is_the_plain_evaluation():
    model, owners = search_parts.embedder(), [0, 0, 1, 1, 2, 2]
    found = measure_fewer_regions.figures(
        model, Store, np.arange(3), CAPTIONS, owners, shares=(0.0, 0.75)
    )
    with torch.no_grad():
        images = model.encode_images(Store.features, Store.counts)
        scores = model.similarity(images, model.encode_texts(CAPTIONS))
    assert found["0.0"] == rounded(ranks_of(scores, np.array(owners)).figures())
    first = [
        list(measure_fewer_regions.images(model, Store, np.arange(3), share)) for share in (0, 0.75)
    ]
    assert [part.counts.tolist() for (part,) in first] == [[4, 2, 3], [1, 1, 1]]
