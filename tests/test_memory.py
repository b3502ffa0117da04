"""Asking for memory before it is taken."""

import re

import numpy as np
import pytest

import model_parts
from crossgaze import memory
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError
from crossgaze.models.bert import BertText
from crossgaze.models.text import TextConfig


def machine(monkeypatch, tmp_path, free_kilobytes, group=None):
    """Pretend to be on a machine, or in a container on it."""
    (tmp_path / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {free_kilobytes} kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    if group is not None:
        (tmp_path / "memory.max").write_text(f"{group[0]}\n")
        (tmp_path / "memory.current").write_text(f"{group[1]}\n")


@pytest.mark.parametrize(
    ("group", "free"), [(None, 102_400), (("max", 5), 102_400), ((9000, 1000), 8000), ((5, 9), 0)]
)
def test_the_smaller_of_machine_and_container_counts(monkeypatch, tmp_path, group, free):
    machine(monkeypatch, tmp_path, 100, group)
    assert memory.free_bytes() == free


def test_where_nobody_tells_nothing_is_refused(monkeypatch, tmp_path):
    machine(monkeypatch, tmp_path, "many")
    assert memory.free_bytes() is None
    memory.require_room("x", 1 << 60, 1 << 60, "things", "take fewer")


def test_features_that_would_not_fit_are_refused_with_the_number_that_would(monkeypatch, tmp_path):
    from crossgaze.data.regions.store import RegionStore
    from crossgaze.training.batches import ImageRegions

    with RegionWriter(tmp_path / "s", 2, 4, dtype="float16", fields=["counts"]) as writer:
        names = [f"{n}" for n in range(100)]
        writer.append(names, np.ones((100, 2, 4)), counts=np.full(100, 2))
    store = RegionStore(tmp_path / "s")
    machine(monkeypatch, tmp_path, 1)  # 1,024 bytes; an image has 16
    with pytest.raises(InputError, match=r"data.in_memory: 100 images' features need 1,600") as e:
        ImageRegions([store], [store.ids], in_memory=True)
    assert "1,024 are free" in str(e.value)
    fit = int(re.search(r"([\d,]+) would fit", str(e.value))[1])
    assert len(ImageRegions([store], [store.ids[:fit]], in_memory=True)) == fit == 57
    with pytest.raises(InputError, match="would fit"):
        ImageRegions([store], [store.ids[: fit + 1]], in_memory=True)
    assert len(ImageRegions([store], [store.ids])) == 100  # mapped, they need none


def test_captions_of_a_frozen_bert_that_would_not_fit_are_refused_before_it_reads_any(
    monkeypatch, tmp_path
):
    (tmp_path / "bert").mkdir()
    model_parts.save_bert(tmp_path / "bert")
    text = BertText(4, TextConfig(kind="bert", bert=str(tmp_path / "bert")))
    calls = model_parts.count_calls(text)
    rows = [[2, 5 + one, 5 + other, 3] for one in range(6) for other in range(5)]  # 4 pieces each
    machine(monkeypatch, tmp_path, 2)  # 2,048 bytes; a caption has 4 pieces of 8 numbers of 4 bytes
    with pytest.raises(InputError, match=r"what a frozen BERT gives: 30 captions need 3,840") as e:
        text.remember(rows)
    assert calls == []
    fit = int(re.search(r"([\d,]+) would fit", str(e.value))[1])
    assert fit == 2048 * 9 // 10 // 128
    text.remember(rows[:fit])
    assert len(text.cache) == fit
    text.remember(rows[:fit])  # what is kept already needs nothing more
    with pytest.raises(InputError, match="would fit"):
        text.remember(rows)
