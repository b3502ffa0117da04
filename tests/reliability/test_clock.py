"""Clocks that jump: nothing is measured or decided by the time of day, and dates may be any."""

import ast
import os
from pathlib import Path

import pytest

import search_parts

SOURCE = Path(__file__).parents[2] / "src" / "crossgaze"
# What tells the time of day; durations are perf_counter's and monotonic's, which never jump.
TIME_OF_DAY = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow")}
TIME_OF_DAY |= {("date", "today"), ("datetime", "today"), ("time", "localtime")}


def test_nothing_asks_for_the_time_of_day():
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
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
