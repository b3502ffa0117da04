"""Clocks that jump: nothing is measured or decided by the time of day, and dates may be any."""

import ast
import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import search_parts
from durability_parts import answers, make_world, start
from reliability_parts import record

SOURCE = Path(__file__).parents[2] / "src" / "crossgaze"
# What tells the time of day; durations are perf_counter's and monotonic's, which never jump.
TIME_OF_DAY = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow")}
TIME_OF_DAY |= {("date", "today"), ("datetime", "today"), ("time", "localtime")}


def test_nothing_asks_for_the_time_of_day():
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        # Of a time that is given, localtime only says what a clock showed then.
        told = {
            id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args
        }
        for node in ast.walk(tree):
            if id(node) in told and isinstance(node, ast.Attribute) and node.attr == "localtime":
                continue
            is_name = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if is_name and (node.value.id, node.attr) in TIME_OF_DAY:
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
            if isinstance(node, ast.ImportFrom) and node.module == "time":
                found += [path.name for name in node.names if name.name in ("time", "time_ns")]
    assert not found


FAR = [0, 1, -86_400 * 365 * 30, 4_102_444_800, 13_569_465_600]  # 1970, 1940, 2100, 2400


@pytest.mark.parametrize("then", FAR)
def test_dates_may_be_of_any_time_and_jump_back(tmp_path, then):
    """A camera or a disk with a wrong clock: the photograph is there, found, and not made again."""
    pytest.importorskip("lancedb", reason="needs crossgaze[search]")
    search_parts.save_models(tmp_path)
    for number in range(3):
        path = search_parts.make_photo(tmp_path / "photos" / f"{number}.png", number)
        os.utime(path, (then, then))
    index = search_parts.create(tmp_path)
    assert index.add(tmp_path / "photos").added == 3
    assert index.add(tmp_path / "photos").unchanged == 3
    assert len(index.search("a red dog", k=3).hits) == 3
    # The clock jumps back, and a photograph changes: newer by content, older by date.
    path = search_parts.make_photo(tmp_path / "photos" / "1.png", "changed")
    os.utime(path, (then - 1000, then - 1000))
    report = index.add(tmp_path / "photos")
    assert (report.changed, report.unchanged) == (1, 2)
    assert len(index.search("a red dog", k=3).hits) == 3
    index.close()


YEAR = 365 * 86_400


@pytest.fixture(scope="module")
def clock(tmp_path_factory):
    """A library that moves the time of day of a program, and the file that says how far."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("clock")
    source = Path(__file__).with_name("moved_clock.c")
    library = folder / "moved_clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
    return library, folder / "seconds"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["lance", "milvus"])
def test_a_clock_that_jumps_by_years_while_an_index_is_written(request, tmp_path, clock, engine):
    """After every acknowledged batch another time, in both directions, also for the database."""
    pytest.importorskip("lancedb", reason="needs crossgaze[search]")
    if engine == "milvus":
        pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    library, seconds = clock
    world, rng = make_world(tmp_path), random.Random(0)

    seconds.write_bytes(bytes(8))

    def jump():
        with seconds.open("r+b") as file:  # in place: it is mapped
            file.write(struct.pack("q", rng.randint(-40, 40) * YEAR))

    jump()
    before = ("env", f"LD_PRELOAD={library}", f"MOVED_CLOCK={seconds}")
    told = subprocess.run([*before, "date", "+%s"], capture_output=True, text=True, check=True)
    (moved,) = struct.unpack("q", seconds.read_bytes())
    now = subprocess.run(["date", "+%s"], capture_output=True, text=True, check=True)
    assert abs(int(told.stdout) - moved - int(now.stdout)) < 60  # the library does what it should
    jumps = 0
    for change in range(2):
        if change:
            for number in range(0, 40, 3):
                search_parts.make_photo(world / "photos" / f"{number:03}.png", f"new {number}")
            for number in range(1, 40, 5):
                (world / "photos" / f"{number:03}.png").unlink()
        with start(world, engine, before=before) as child:
            for line in child.stdout:
                assert not line.startswith("failed"), line
                jump()
                jumps += 1
            assert child.wait() == 0, child.stderr.read()
    assert jumps > 10
    with search_parts.reopen(world) as index:
        found = answers(index)
    shutil.rmtree(world / "index")
    with search_parts.create(world) as calm:
        calm.add(world / "photos")
        assert found == answers(calm)
    record(request, jumps=jumps)
