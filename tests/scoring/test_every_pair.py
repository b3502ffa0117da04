"""All pairs: the same scores however they are cut, streamed and shared out, within a budget."""

import itertools
import re
import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.scoring.every_pair import score_into
from crossgaze.scoring.kernel import InnerProducts
from scoring_parts import MODELS, bfan, cut, gap, loops, mmca, scan, score, side, sides, sum_max

TINY = {"regions": 6, "words": 6, "block": 2, "piece": 8, "small": 0, "stack": 60}


class Blocks:
    """A sink that keeps the blocks as they come."""

    def __init__(self):
        self.starts, self.parts = [], []

    def take(self, start, scores):
        self.starts.append(start)
        self.parts.append(scores.clone())


class Vectors:
    """A model of inner products."""

    def kernel(self):
        return InnerProducts()


def batches(encoded, sizes):
    start = 0
    for size in itertools.cycle(sizes):
        if start >= len(encoded):
            return
        yield encoded[start : start + size]
        start += size


# Cutting and sharing out ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8)
@given(
    regions=st.integers(1, 40),
    words=st.integers(1, 40),
    block=st.integers(1, 9),
    piece=st.integers(1, 400),
    workers=st.integers(1, 4),
)
def test_no_cut_and_no_thread_changes_a_score(name, dtype, regions, words, block, piece, workers):
    model = MODELS[name]().to(dtype)
    encoded = sides([4, 1, 3, 4, 2, 4, 4], [2, 5, 1, 5, 2, 3, 5, 5], dtype=dtype)
    whole = score(model, *encoded, out=dtype, workers=1)
    with cut(regions=regions, words=words, block=block, piece=piece, small=0, stack=7 * piece):
        found = score(model, *encoded, out=dtype, workers=workers)
    assert gap(found, whole) < 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_uneven_batches_of_both_sides_give_the_whole(name):
    model = MODELS[name]()
    images, texts = sides()
    wanted = loops(model, images, texts)
    for sizes in ([1], [2, 1], [3], [4, 2, 1], [9]):
        for tiny in ({}, TINY):
            sink = Blocks()
            with cut(**tiny):
                many = score_into(
                    model, batches(images, sizes), batches(texts, sizes[::-1]), [sink]
                )
            assert many == wanted.shape
            assert gap(torch.cat(sink.parts), wanted) < 1e-12


def test_blocks_come_in_order_with_every_sentence():
    images, texts = sides()
    sink, other, seen = Blocks(), Blocks(), []
    with cut(block=2):
        score_into(scan(), images, texts, [sink, other], on_progress=seen.append)
    assert sink.starts == [0, 2, 4]
    assert [tuple(part.shape) for part in sink.parts] == [(2, 7), (2, 7), (1, 7)]
    assert seen == [2, 4, 5]
    assert torch.equal(torch.cat(sink.parts), torch.cat(other.parts))
    score_into(scan(), images, texts, [], on_progress=seen.append)
    assert seen[3:] == [5]


def test_a_batch_of_images_is_not_taken_before_the_last_is_done():
    images, texts = sides()
    log = []

    def stream():
        for number, batch in enumerate(batches(images, [2])):
            log.append(f"take {number}")
            yield batch

    score_into(scan(), stream(), texts, [], on_progress=lambda done: log.append(f"done {done}"))
    assert log == ["take 0", "done 2", "take 1", "done 4", "take 2", "done 5"]


@pytest.mark.parametrize("workers", [1, 3])
def test_work_is_shared_among_so_many_threads_that_compute_alone(workers, monkeypatch):
    model, names, inside = scan(), set(), set()
    kernel = model.kernel()
    plain = kernel.score

    def watched(images, texts):
        names.add(threading.current_thread().name)
        inside.add((torch.get_num_threads(), torch.is_grad_enabled()))
        return plain(images, texts)

    monkeypatch.setattr(kernel, "score", watched)
    monkeypatch.setattr(model, "kernel", lambda: kernel)
    before = torch.get_num_threads()
    images, texts = sides([3] * 8, [4] * 12)
    with cut(regions=3, words=4, small=0):
        score(model, images, texts, workers=workers)
    assert torch.get_num_threads() == before
    assert inside == {(1, False)}
    assert 1 <= len(names) <= workers
    assert all(name.startswith("score") for name in names)
    names.clear()
    with cut(regions=3, words=4, piece=1):
        score(model, images, texts, workers=workers)  # too little to share
    assert names == {threading.main_thread().name}


def test_what_goes_wrong_in_a_thread_is_raised(monkeypatch):
    model = scan()
    kernel = model.kernel()

    def fail(images, texts):
        raise ZeroDivisionError("in a thread")

    monkeypatch.setattr(kernel, "score", fail)
    monkeypatch.setattr(model, "kernel", lambda: kernel)
    with cut(small=0, regions=3), pytest.raises(ZeroDivisionError, match="in a thread"):
        score(model, *sides(), workers=2)


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_are_refused(workers):
    with pytest.raises(InputError, match=f"workers: got {workers}, wanted 1 or more"):
        score(scan(), *sides(), workers=workers)


# The budget -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [scan, bfan, sum_max, mmca])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_budget_of_one_block_is_enough_and_less_is_refused_with_the_number(make, workers):
    images, texts = sides()
    model, sink = make(), Blocks()
    with cut(**TINY):
        with pytest.raises(InputError, match="budget: got 10 bytes, wanted at least") as caught:
            score(model, images, texts, budget=10, workers=workers)
        message = str(caught.value)
        assert "\n" not in message
        assert f"for {workers} workers, 4 regions" in message
        least = int(re.search(r"at least ([\d,]+)", message)[1].replace(",", ""))
        with pytest.raises(InputError, match=f"wanted at least {least:,} for"):
            score(model, images, texts, budget=least - 1, workers=workers)
        score_into(model, images, texts, [sink], budget=least, workers=workers)
    assert gap(torch.cat(sink.parts), loops(model, images, texts)) < 1e-12
    assert len(sink.parts) >= 3


@settings(max_examples=40)
@given(
    regions=st.integers(1, 60),
    words=st.integers(1, 60),
    counts=st.lists(st.sampled_from([1, 2, 7]), min_size=1, max_size=9),
    lengths=st.lists(st.sampled_from([1, 2, 60]), min_size=1, max_size=4),
    budget=st.integers(1, 20000),
)
def test_the_number_that_a_refusal_names_would_do(regions, words, counts, lengths, budget):
    images, texts = sides(counts, lengths)
    with cut(regions=regions, words=words, piece=1, block=9):
        try:
            found = score(sum_max(), images, texts, budget=budget, workers=1)
        except InputError as error:
            least = int(re.search(r"at least ([\d,]+)", str(error))[1].replace(",", ""))
            found = score(sum_max(), images, texts, budget=least, workers=1)
    assert found.isfinite().all()


def test_smaller_budgets_make_smaller_blocks_and_tiles():
    images, texts = side([2] * 40), side([3] * 30, seed=1)
    sizes = []
    for budget in (1 << 30, 16_000, 4_000):
        sink = Blocks()
        with cut(piece=1):
            score_into(scan(), images, texts, [sink], budget=budget, workers=1)
        sizes.append(len(sink.parts[0]))
        assert 4 * len(sink.parts[0]) * len(texts) <= max(budget // 4, 4 * len(texts))
    assert sizes[0] == 40
    assert sizes[0] > sizes[1] > sizes[2]


# Precision ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_products_in_bfloat16_come_close(name):
    model = MODELS[name]().float()
    images, texts = sides(dtype=torch.float32)
    wanted = score(model, images, texts, out=torch.float32)
    sink = Blocks()
    score_into(model, images, texts, [sink], dtype=torch.bfloat16)
    found = torch.cat(sink.parts)
    assert found.dtype == torch.float32
    many = 5 if name.startswith("sum-max") else 1  # a sum of so many
    assert 0 < gap(found, wanted) < 0.05 * many


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_scores_are_single_unless_double(dtype):
    images, texts = sides(dtype=dtype, padding=0.0)
    sink = Blocks()
    score_into(sum_max(), images, texts, [sink])
    wanted = torch.float64 if dtype == torch.float64 else torch.float32
    assert {part.dtype for part in sink.parts} == {wanted}


# Edges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_no_images_and_no_sentences(name):
    model = MODELS[name]()
    images, texts = sides()
    for nothing in (side([]), []):
        sink = Blocks()
        assert score_into(model, images, nothing, [sink]) == (5, 0)
        assert torch.cat(sink.parts).shape == (5, 0)
        sink = Blocks()
        assert score_into(model, nothing, texts, [sink]) == (0, 7)
        assert score_into(model, nothing, nothing, [sink]) == (0, 0)
        assert sink.parts == []


def test_vectors_alone_are_multiplied():
    images, texts = (Encoded(x.vectors, None, x.counts) for x in sides())
    with cut(regions=2, words=3, block=2):
        found = score(Vectors(), images, texts)
    torch.testing.assert_close(found, images.vectors @ texts.vectors.T, atol=1e-14, rtol=0)
    assert score_into(Vectors(), images, texts[:0], []) == (5, 0)
    assert score_into(Vectors(), images[:0], texts, []) == (0, 7)


def test_a_side_of_nothing_is_refused():
    images, texts = sides()
    with pytest.raises(InputError, match="got a side without"):
        score(scan(), Encoded(None, None, images.counts), texts)


def test_no_gradient_is_recorded():
    images, texts = sides()
    images.fragments.requires_grad_()
    sink = Blocks()
    score_into(mmca(), images, texts, [sink])
    assert not any(part.requires_grad for part in sink.parts)


# What a caller's thread has set ---------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("small", [0, 1 << 40])
def test_inference_mode_and_autocast_change_no_number(name, small):
    model, (images, texts) = MODELS[name]().float(), sides(dtype=torch.float32)
    with cut(regions=3, words=4, small=small):
        wanted = model.similarity(images, texts)
        with torch.inference_mode():
            assert gap(model.similarity(images, texts), wanted) == 0
        if name != "mmca self":  # a plain product, which follows autocast as any layer does
            with torch.no_grad(), torch.autocast("cpu", torch.float16):
                assert gap(model.similarity(images, texts), wanted) == 0
