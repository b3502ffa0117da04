"""docs/reliability.md is what its tool writes, and every test that it names exists."""

import ast
import functools
import json
import os
import re
from pathlib import Path

import pytest

import fuzz_arrays
import fuzz_texts
from reliability_parts import commit, keep, machine

reliability_inputs = pytest.importorskip("reliability_inputs", reason="needs tools/")
reliability_page = pytest.importorskip("reliability_page", reason="needs tools/")
ROWS = reliability_page.ROWS
ROOT = Path(__file__).parents[1]
NAMED = sorted({test for row in ROWS for test in row.tests})


@functools.cache
def names_in(path):
    found = ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
    return {node.name for node in found if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("test", NAMED)
def test_every_named_test_exists(test):
    path, name = test.split("::")
    assert name.startswith("test_")
    assert name in names_in(path)


@functools.cache
def slow_in(path):
    """Return the tests that only `make test-slow` and `make reliability` run."""
    found = ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
    return {
        node.name
        for node in found
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(one) == "pytest.mark.slow" for one in node.decorator_list)
    }


def test_a_row_that_counts_nothing_names_no_slow_test():
    """Its last column says `make test`."""
    assert "test_killed_many_times" in slow_in("tests/search/test_durability.py")
    for row in ROWS:
        slow = [test for test in row.tests if test.split("::")[1] in slow_in(test.split("::")[0])]
        assert row.counts or not slow, row.what


def test_the_page_is_what_the_tool_writes():
    assert reliability_page.PAGE.read_text("utf-8") == reliability_page.page(
        reliability_page.read_counts()
    ), "run tools/reliability_page.py"


def test_a_row_says_what_its_tests_need():
    """They skip where the machine lacks it, and `make test` does not install it."""
    marks = {"needs_mounts": "unshare", "needs_chromium": "chromium", '"atheris"': "x86-64"}
    for row in ROWS:
        for test in row.tests:
            path, name = test.split("::")
            source = (ROOT / path).read_text("utf-8")
            (found,) = [
                node
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.FunctionDef) and node.name == name
            ]
            own = " ".join(map(ast.unparse, found.decorator_list))
            own += " ".join(re.findall(r"^pytestmark = .*|^pytest\.importorskip.*", source, re.M))
            for mark, word in marks.items():
                assert mark not in own or word in row.needs, test
    (clock,) = [row for row in ROWS if row.counts == "jumps"]
    assert "C compiler" in clock.needs


def test_the_planned_numbers_are_those_of_the_readers():
    def number(path, name):
        (value,) = re.findall(rf"^(?:.*, )?{name} = (?:.*, )?([0-9_]+)$", path.read_text(), re.M)
        return int(value)

    fuzz = ROOT / "tests" / "fuzz"
    many = number(fuzz / "test_arrays.py", "MANY")
    wanted = {}
    for reader in fuzz_arrays.READERS:
        wanted.setdefault(int(many * reader.share), set()).add(reader.name)
    said = reliability_inputs.ARRAY_INPUTS
    assert {count: set(names) for count, names in said.items()} == wanted
    assert {reader.share for reader in fuzz_texts.READERS} == {1.0}
    assert number(fuzz / "test_texts.py", "MANY") == reliability_inputs.TEXT_INPUTS
    assert number(fuzz / "test_led_by_coverage.py", "MANY") == reliability_inputs.ATHERIS_RUNS


def test_what_was_counted_is_of_tests_that_exist():
    for test, entry in reliability_page.read_counts().items():
        assert test.partition("[")[0] in NAMED
        assert all(number >= 0 for number in entry["counts"].values())
        assert all(entry[name] for name in ("day", "commit", "machine"))


def counts_of(path):
    return json.loads(path.read_text("utf-8"))


def fuzzed(word):
    (row,) = [row for row in ROWS if f"tests/fuzz/{word}.py" in row.tests[0]]
    return row


def test_counts_of_parameters_are_summed_and_what_is_missing_is_said(tmp_path):
    row = fuzzed("test_texts")
    assert reliability_page.counted(row, {}) == "**not counted yet**"
    path = tmp_path / "counts.json"
    for name, numbers in (("a", {"inputs": 900, "refused": 800}), ("b", {"inputs": 100})):
        keep(path, f"{row.tests[0]}[{name}]", numbers)
    keep(path, f"{row.tests[0]}[b]", {"inputs": 200, "refused": 300})  # run again: replaced
    keep(path, "tests/other.py::test_x", {"inputs": 5})
    said = reliability_page.counted(row, counts_of(path))
    assert said == "1,100 inputs, 1,100 refused"


def test_counts_say_of_which_day_code_and_machine_they_are(tmp_path):
    assert reliability_page.when({}) == ""
    keep(tmp_path / "counts.json", "tests/x.py::test_x[1]", {"kills": 2})
    (entry,) = counts_of(tmp_path / "counts.json").values()
    said = reliability_page.when({"a": entry})
    assert said == f"Counted on {entry['day']}, commit {commit()}, {machine()}.\n\n"
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", entry["day"])
    assert re.fullmatch(r"unknown|[0-9a-f]{7,}( with changes)?", commit())
    assert machine().startswith(f"{os.cpu_count()} cores of ")
    old = {"commit": "abc1234", "machine": "8 cores of X"}
    many = {
        "a": entry | {"day": "2001-01-03"},
        "b": entry | {"day": "2001-01-02"},
        "c": old | {"day": "2001-01-01"},
    }
    assert reliability_page.when(many) == (
        "Counted on 2001-01-01, commit abc1234, 8 cores of X (1 test); "
        f"on 2001-01-02 to 2001-01-03, commit {commit()}, {machine()} (2 tests).\n\n"
    )


def test_readers_have_a_table_of_their_own_once_they_were_counted(tmp_path):
    assert reliability_page.by_reader({}) == ""
    path = tmp_path / "counts.json"
    keep(path, "tests/other.py::test_x[flickr8k]", {"kills": 5})
    assert reliability_page.by_reader(counts_of(path)) == ""
    (texts,), (arrays,) = fuzzed("test_texts").tests, fuzzed("test_arrays").tests
    (atheris,) = fuzzed("test_led_by_coverage").tests
    keep(path, f"{atheris}[flickr8k]", {"inputs": 20_000})
    keep(path, f"{texts}[flickr8k]", {"inputs": 9000, "read": 1000, "refused": 8000})
    keep(path, f"{arrays}[a store]", {"inputs": 30, "read": 10, "refused": 20})
    said = reliability_page.by_reader(counts_of(path)).splitlines()
    assert said[-2:] == [
        "| a store | 30 | 10 | 20 |  |",
        "| flickr8k | 9,000 | 1,000 | 8,000 | 20,000 |",
    ]
    assert reliability_page.page(counts_of(path)).count("\n## By reader\n") == 1
