"""Re-ranking gives the scores that all pairs get, whatever is read and by how many threads."""

import numpy as np
import pytest
import torch

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.scoring import rerank as module
from crossgaze.scoring.rerank import rerank
from scoring_parts import MODELS, gap, loops, scan, side, sides


@pytest.mark.parametrize("group", [1, 7, 900])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_candidates_score_as_the_loops_say(name, workers, group, monkeypatch):
    monkeypatch.setattr(module, "GROUP", group)
    model, (images, texts) = MODELS[name](), sides(padding=0.0)
    wanted = loops(model, images, texts)
    rows = [4, 0, 0, 2]
    found = rerank(
        model,
        texts,
        images.fragments.numpy(),
        rows,
        images.counts.numpy(),
        None if images.vectors is None else images.vectors.numpy(),
        workers=workers,
    )
    assert found.dtype == torch.float64
    assert gap(found, wanted[rows]) < 1e-12


def test_a_mapped_half_precision_file_is_read_as_it_is(tmp_path):
    model, text = scan().float(), side([5], seed=1, dtype=torch.float32)
    images = side([4] * 30, dtype=torch.float32, more=0)
    np.save(tmp_path / "regions.npy", images.fragments.numpy().astype(np.float16))
    regions = np.load(tmp_path / "regions.npy", mmap_mode="r")
    rows = np.array([29, 3, 17])
    found = rerank(model, text, regions, rows)
    half = Encoded(None, images.fragments.half().float(), images.counts)
    assert found.dtype == torch.float32
    assert gap(found, model.similarity(half[rows], text)) < 1e-6


def test_no_candidates_and_no_sentences_are_empty():
    images, texts = sides(padding=0.0)
    regions = images.fragments.numpy()
    assert rerank(scan(), texts, regions, []).shape == (0, len(texts))
    assert rerank(scan(), texts[[]], regions, [0, 1]).shape == (2, 0)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([5], {}, "rows: got 5, wanted 0 to 4"),
        ([-1], {}, "rows: got -1, wanted 0 to 4"),
        ([0], {"workers": 0}, "workers: got 0, wanted 1 or more"),
        ([0], {"counts": np.array([1, 2])}, r"counts: got shape \(2,\), wanted \(5,\)"),
        ([1], {"counts": np.array([1, 0, 1, 1, 1])}, "counts: go from 0 to 0, wanted 1 to"),
        ([1], {"counts": np.array([1, 99, 1, 1, 1])}, "counts: go from 99 to 99, wanted 1 to"),
    ],
)
def test_what_cannot_be_is_refused(rows, options, message):
    images, texts = sides(padding=0.0)
    with pytest.raises(InputError, match=message):
        rerank(scan(), texts, images.fragments.numpy(), rows, **options)


def test_regions_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"regions: got shape \(3, 4\), wanted \(N, k, D\)"):
        rerank(scan(), side([2]), np.zeros((3, 4)), [0])
