"""Sinks: matrices, files, the best K and ranks, against NumPy and brute force."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.scoring.every_pair import score_into
from crossgaze.scoring.pairs import score_pairs
from crossgaze.scoring.sinks import BestImages, BestTexts, ScoreFile, ScoreMatrix, TruthRanks
from model_parts import draw
from scoring_parts import bfan, cut, loops, scan, sides

# Few values, so that many are equal.
tables = st.integers(1, 6).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(0, 3), min_size=width, max_size=width), min_size=1, max_size=6
    )
)


def feed(sink, scores, size):
    for start in range(0, len(scores), size):
        sink.take(start, scores[start : start + size])
    return sink


# All scores -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tensor", "array", "mapped"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_matrix_is_filled(kind, dtype, tmp_path):
    images, texts = sides()
    if kind == "tensor":
        out = torch.full((5, 7), torch.nan, dtype=getattr(torch, dtype))
    elif kind == "array":
        out = np.full((5, 7), np.nan, dtype)
    else:
        out = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.dtype(dtype), (5, 7))
    with cut(block=2):
        score_into(scan(), images, texts, [ScoreMatrix(out)])
    if kind == "mapped":
        out.flush()
        out = np.load(tmp_path / "x.npy")
    near = 1e-6 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(np.asarray(out), loops(scan(), images, texts), atol=near, rtol=0)


@pytest.mark.parametrize("shape", [(4, 7), (5, 6), (5, 8), (7, 5)])
@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_a_matrix_of_another_shape_is_refused(make, shape):
    with pytest.raises(InputError, match=rf"out: got shape \({shape[0]}, {shape[1]}\), wanted \("):
        score_into(scan(), *sides(), [ScoreMatrix(make(shape))])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_file_holds_the_same_numbers(tmp_path, dtype):
    images, texts = sides(dtype=dtype)
    model = bfan().to(dtype)
    out, path = torch.zeros(5, 7, dtype=dtype), tmp_path / "scores.npy"
    with ScoreFile(path, images=5) as file, cut(block=2):
        score_into(model, images, texts, [file, ScoreMatrix(out)])
        assert not path.exists()
    found = np.load(path, mmap_mode="r")
    assert found.shape == (5, 7)
    assert found.dtype == out.numpy().dtype
    np.testing.assert_array_equal(found, out.numpy())
    assert [x.name for x in tmp_path.iterdir()] == ["scores.npy"]


def test_nothing_is_left_behind_when_scoring_fails(tmp_path):
    (tmp_path / "scores.npy").write_bytes(b"old")

    def stop(done):
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        cut(block=2),
        ScoreFile(tmp_path / "scores.npy", 5) as file,
    ):
        score_into(scan(), *sides(), [file], on_progress=stop)
    assert [x.name for x in tmp_path.iterdir()] == ["scores.npy"]
    assert (tmp_path / "scores.npy").read_bytes() == b"old"


def test_nothing_is_left_behind_when_the_disk_is_full(tmp_path):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        with pytest.raises((InputError, OSError)), ScoreFile(tmp_path / "scores.npy", 2) as file:
            feed(file, draw(2, 600), 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows", [4, 6])
def test_a_file_with_other_than_the_promised_rows_is_refused(tmp_path, rows):
    with (
        pytest.raises(InputError, match=rf"scores.npy: got {rows} rows, wanted 5; nothing"),
        ScoreFile(tmp_path / "scores.npy", images=5) as file,
    ):
        file.take(0, draw(rows, 3))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path, folder):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"scores.npy: cannot be written: (No such|Not a dir)"):
        ScoreFile(tmp_path / folder / "scores.npy", images=5)


def test_the_name_of_a_folder_is_refused_and_nothing_left(tmp_path):
    (tmp_path / "scores.npy").mkdir()
    with (
        pytest.raises(InputError, match=r"scores\.npy"),
        ScoreFile(tmp_path / "scores.npy", images=1) as file,
    ):
        file.take(0, draw(1, 3))
    assert [x.name for x in tmp_path.iterdir()] == ["scores.npy"]


# The best -------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(tables, st.integers(1, 8), st.integers(1, 7))
def test_the_best_are_those_of_a_stable_sort(rows, k, size):
    scores = torch.tensor(rows, dtype=torch.float64)
    for sink, table in ((BestTexts(k), scores.numpy()), (BestImages(k), scores.numpy().T)):
        order = np.argsort(-table, axis=1, kind="stable")[:, :k]
        found = feed(sink, scores, size)
        np.testing.assert_array_equal(found.rows, order)
        np.testing.assert_array_equal(found.scores, np.take_along_axis(table, order, 1))
        assert found.rows.dtype == torch.int64


def test_many_equal_scores_come_in_order():
    scores = torch.arange(3000).remainder(2).float().view(-1, 1)
    assert feed(BestImages(9), scores, 2000).rows.tolist() == [list(range(1, 18, 2))]
    assert feed(BestTexts(9), scores.T, 1).rows.tolist() == [list(range(1, 18, 2))]


def test_the_best_do_not_hold_on_to_the_blocks():
    scores = draw(4, 6)
    wanted = scores.clone()
    texts, images = feed(BestTexts(2), scores, 4), feed(BestImages(2), scores, 4)
    scores.zero_()
    assert torch.equal(texts.scores, wanted.sort(1, descending=True).values[:, :2])
    assert torch.equal(images.scores, wanted.T.sort(1, descending=True).values[:, :2])


@pytest.mark.parametrize("kind", [BestTexts, BestImages])
def test_the_best_of_none_are_refused(kind):
    with pytest.raises(InputError, match="k: got 0, wanted 1 or more"):
        kind(0)
    with pytest.raises(InputError, match="no images"):
        _ = kind(3).rows
    with pytest.raises(InputError, match="no images"):
        _ = kind(3).scores


# Ranks ----------------------------------------------------------------------------------------


def brute(scores, truth):
    """Count one by one what stands before the right answer, equal scores included."""
    texts = []
    for t, right in enumerate(truth):
        others = [i for i in range(len(scores)) if i != right]
        texts.append(1 + sum(scores[i][t] >= scores[right][t] for i in others))
    images = []
    for i, row in enumerate(scores):
        own = [row[t] for t, right in enumerate(truth) if right == i]
        others = [row[t] for t, right in enumerate(truth) if right != i]
        images.append(1 + sum(s >= max(own) for s in others) if own else 0)
    return images, texts


def ranks(scores, truth, size, guess=None, **options):
    truth = torch.tensor(truth)
    guess = scores[truth, torch.arange(len(truth))] if guess is None else guess
    return feed(TruthRanks(truth, guess, **options), scores, size)


@settings(max_examples=80)
@given(tables, st.data(), st.integers(1, 7))
def test_ranks_are_those_counted_one_by_one(rows, data, size):
    truth = [data.draw(st.integers(0, len(rows) - 1)) for _ in rows[0]]
    off = torch.tensor([data.draw(st.floats(-1, 1)) for _ in truth], dtype=torch.float64)
    # Steps of half the slack: some equal, some close to the guess, some far from it.
    scores = torch.tensor(rows, dtype=torch.float64) * 5e-4
    guess = scores[torch.tensor(truth), torch.arange(len(truth))] + 9e-4 * off
    found = ranks(scores, truth, size, guess)
    assert (found.images.tolist(), found.texts.tolist()) == brute(rows, truth)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_constant_scores_rank_last(size):
    found = ranks(torch.ones(4, 6), [0, 0, 1, 1, 3, 3], size)
    assert found.texts.tolist() == [4] * 6
    assert found.images.tolist() == [5, 5, 0, 5]


@pytest.mark.parametrize("steps", [-2, -1, 0, 1, 2])
def test_scores_at_the_very_edge_of_the_slack_are_counted_once(steps):
    """The rounding of guess + slack and of score - guess must not count one twice, or never."""
    guess = torch.rand(2000, generator=torch.Generator().manual_seed(0))
    for sign in (1, -1):
        edge = guess + sign * 1e-3
        for _ in range(abs(steps)):
            edge = torch.nextafter(edge, torch.tensor(math.copysign(math.inf, steps)))
        found = ranks(torch.stack([guess, edge]), [0] * 2000, 2)
        assert found.texts.unique().tolist() == [2 if sign > 0 else 1]


def test_ranks_of_a_model_with_guesses_from_pairs():
    model = bfan().float()
    images, texts = sides(dtype=torch.float32)
    truth = torch.tensor([4, 0, 0, 1, 4, 2, 2])
    guess = score_pairs(model, images, texts, torch.stack([truth, torch.arange(7)], dim=1))
    found, out = TruthRanks(truth, guess), torch.zeros(5, 7)
    with cut(block=2):
        score_into(model, images, texts, [found, ScoreMatrix(out)])
    assert (found.images.tolist(), found.texts.tolist()) == brute(out.tolist(), truth.tolist())


def test_a_wrong_guess_is_refused():
    scores, guess = draw(3, 4), torch.zeros(4, dtype=torch.float64)
    guess += scores[0]
    guess[2] += 0.5
    found = ranks(scores, [0] * 4, 2, guess)
    with pytest.raises(InputError, match=r"truth: sentence 2 scores .* with its image 0, guessed"):
        _ = found.texts
    assert (
        ranks(scores, [0] * 4, 2, guess, slack=0.6).texts.tolist()
        == brute(scores.tolist(), [0] * 4)[1]
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_guesses_may_have_another_precision(dtype):
    scores = draw(3, 4).float()
    found = ranks(scores, [0, 2, 1, 0], 2, scores[[0, 2, 1, 0], range(4)].to(dtype), slack=0.1)
    assert (found.images.tolist(), found.texts.tolist()) == brute(scores.tolist(), [0, 2, 1, 0])


def test_ranks_without_sentences():
    found = feed(TruthRanks(torch.zeros(0).long(), torch.zeros(0)), torch.zeros(3, 0), 2)
    assert found.images.tolist() == [0, 0, 0]
    assert found.texts.tolist() == []


def test_an_image_that_never_came_is_refused():
    found = ranks(draw(2, 3), [0, 1, 5], 2, torch.zeros(3, dtype=torch.float64), slack=99.0)
    with pytest.raises(InputError, match="truth: sentence 2 scores nan with its image 5"):
        _ = found.texts


def test_guesses_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"truth: got shapes \(3,\) and \(4,\), wanted one"):
        TruthRanks(torch.zeros(3, dtype=torch.long), torch.zeros(4))
    with pytest.raises(InputError, match="truth: got shapes"):
        TruthRanks(torch.zeros(3, 1, dtype=torch.long), torch.zeros(3, 1))
