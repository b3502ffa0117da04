"""Finding damage in region stores."""

import json
import os
import zlib

import numpy as np
import pytest

from crossgaze.data.regions.verify import verify
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import FileFormatError

FIELDS = ["counts", "boxes", "sizes"]


@pytest.fixture
def store(tmp_path):
    rng = np.random.default_rng(1)
    with RegionWriter(tmp_path / "s", 3, 4, fields=FIELDS) as writer:
        for batch in ("ab", "cde"):
            n = len(batch)
            boxes = np.tile([0.0, 0.0, 5.0, 5.0], (n, 3, 1))
            counts = rng.integers(1, 4, n)
            array = rng.normal(size=(n, 3, 4))
            writer.append(list(batch), array, counts=counts, boxes=boxes, sizes=np.full((n, 2), 5))
    return tmp_path / "s"


def test_a_sound_store_is_sound(store):
    steps = []
    found = verify(store, on_progress=lambda done, total: steps.append((done, total)))
    assert found.sound
    assert found.images == 5
    assert found.notes == ()
    assert steps == [(2, 5), (5, 5)]


@pytest.mark.parametrize("file", ["features.bin", "boxes.bin", "counts.bin", "sizes.bin"])
@pytest.mark.parametrize("place", [0.0, 0.5, 0.99])
def test_every_flipped_bit_is_found(store, file, place):
    data = bytearray((store / file).read_bytes())
    data[int(place * len(data))] ^= 1
    (store / file).write_bytes(data)
    problems = verify(store).problems
    assert any(file in problem and "checksum" in problem for problem in problems)


@pytest.mark.parametrize("cut", [1, 7, 40])
@pytest.mark.parametrize("file", ["features.bin", "boxes.bin"])
def test_truncation_is_found(store, file, cut):
    os.truncate(store / file, (store / file).stat().st_size - cut)
    (problem,) = verify(store).problems
    assert file in problem
    assert "is truncated" in problem


def test_damage_to_head_and_log_is_found(store):
    head = (store / "head.json").read_text()
    (store / "head.json").write_text(head[:-9])
    assert "head.json" in verify(store).problems[0]
    (store / "head.json").write_text(head)
    log = (store / "log.jsonl").read_bytes()
    (store / "log.jsonl").write_bytes(log.replace(b'"a"', b'"z"'))
    assert "log.jsonl, line 1" in verify(store).problems[0]
    (store / "log.jsonl").write_bytes(log.replace(b'"e"', b'"z"'))  # in the last line, too
    assert "log.jsonl, line 2" in verify(store).problems[0]
    nothing = b'{"ids":[],"crc":{"features":1}}'  # which no writer lists
    line = b"%08x %s\n" % (zlib.crc32(nothing), nothing)
    (store / "log.jsonl").write_bytes(line + log)
    assert "log.jsonl, line 1" in verify(store).problems[0]
    (store / "log.jsonl").write_bytes(log)
    assert verify(store).sound


@pytest.mark.parametrize("lines", [0, 1])
@pytest.mark.parametrize("torn", [b"", b"0a0b {"])
def test_a_log_that_lost_lines_is_damage_and_costs_no_features(store, lines, torn):
    log = (store / "log.jsonl").read_bytes().splitlines(keepends=True)
    (store / "log.jsonl").write_bytes(b"".join(log[:lines]) + torn)
    assert any("log.jsonl: is damaged" in problem for problem in verify(store).problems)
    before = (store / "features.bin").read_bytes()
    with pytest.raises(FileFormatError, match=r"is damaged: it lists . images, the store has 5"):
        RegionWriter(store, 3, 4, fields=FIELDS)
    assert (store / "features.bin").read_bytes() == before


def test_a_damaged_state_is_found(store):
    for text in ("nonsense", "", f"{1:020} {0:020}\n"):
        (store / "state").write_text(text)
        (problem,) = verify(store).problems
        assert f"{store}/state: is damaged" in problem
        with pytest.raises(FileFormatError, match=r"state: is damaged.* remove this file"):
            RegionWriter(store, 3, 4, fields=FIELDS)
    (store / "state").unlink()
    assert verify(store).sound
    RegionWriter(store, 3, 4, fields=FIELDS).close()
    assert (store / "state").read_text() == f"{5:020} {0:020}\n"


def test_without_a_state_nothing_is_cut_off(store):
    log = (store / "log.jsonl").read_bytes()
    (store / "log.jsonl").write_bytes(log.splitlines(keepends=True)[0])
    (store / "state").unlink()
    before = (store / "features.bin").read_bytes()
    assert any("state: is missing" in problem for problem in verify(store).problems)
    with pytest.raises(FileFormatError, match=r"state: is missing, and . rows lie behind the"):
        RegionWriter(store, 3, 4, fields=FIELDS)
    assert (store / "features.bin").read_bytes() == before
    assert not (store / "state").exists()


def test_repeated_ids_are_found(store):
    log = (store / "log.jsonl").read_bytes().splitlines(keepends=True)
    (store / "log.jsonl").write_bytes(log[0] * 2)
    assert any("'a' is in the log more than once" in p for p in verify(store).problems)


@pytest.mark.parametrize(
    ("file", "place", "value", "message"),
    [
        ("features.bin", 0, np.array(np.nan, "<f2"), "features are not all finite"),
        ("boxes.bin", 0, np.array(9.0, "<f4"), "a box ends before it begins"),
        ("counts.bin", 0, np.array(4, "<i4"), "has 4 regions, wanted 1 to 3"),
    ],
)
def test_values_that_make_no_sense_are_found_without_checksums(store, file, place, value, message):
    data = bytearray((store / file).read_bytes())
    data[place : place + value.nbytes] = value.tobytes()
    (store / file).write_bytes(data)
    assert any(message in problem for problem in verify(store).problems)


def test_features_past_the_last_region_are_found(tmp_path):
    with RegionWriter(tmp_path / "s", 3, 4, fields=["counts"]) as writer:
        writer.append(["a"], np.ones((1, 3, 4)), counts=[2])
    raw = np.fromfile(tmp_path / "s" / "features.bin", "<f2")
    raw[-1] = 1
    raw.tofile(tmp_path / "s" / "features.bin")
    assert any("go on past its last region" in p for p in verify(tmp_path / "s").problems)


def test_the_head_of_a_store_is_plain_json(store):
    head = json.loads((store / "head.json").read_text())
    assert head["regions"] == 3
    assert head["fields"]["boxes"] == {"dtype": "<f4", "shape": [3, 4], "file": "boxes.bin"}


def test_a_batch_larger_than_a_block_is_checked_whole(tmp_path):
    with RegionWriter(tmp_path / "s", 1, 1, fields=[]) as writer:
        writer.append([str(n) for n in range(600)], np.ones((600, 1, 1)))
    assert verify(tmp_path / "s").sound
    data = bytearray((tmp_path / "s" / "features.bin").read_bytes())
    data[-1] ^= 1
    (tmp_path / "s" / "features.bin").write_bytes(data)
    assert not verify(tmp_path / "s").sound
