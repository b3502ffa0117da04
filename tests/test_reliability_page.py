"""docs/reliability.md is what its tool writes, and every test that it names exists."""

import ast
import functools
import json
from pathlib import Path

import pytest

from reliability_parts import keep

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


def test_what_was_counted_is_of_tests_that_exist():
    for test, numbers in reliability_page.read_counts().items():
        assert test.partition("[")[0] in NAMED
        assert all(number >= 0 for number in numbers.values())


def test_counts_of_parameters_are_summed_and_what_is_missing_is_said(tmp_path):
    (row,) = [row for row in ROWS if "tests/fuzz/test_texts.py" in row.tests[0]]
    assert reliability_page.counted(row, {}) == "**not counted yet**"
    path = tmp_path / "counts.json"
    for name, numbers in (("a", {"inputs": 900, "refused": 800}), ("b", {"inputs": 100})):
        keep(path, f"{row.tests[0]}[{name}]", numbers)
    keep(path, f"{row.tests[0]}[b]", {"inputs": 200, "refused": 300})  # run again: replaced
    keep(path, "tests/other.py::test_x", {"inputs": 5})
    said = reliability_page.counted(row, json.loads(path.read_text("utf-8")))
    assert said == "1,100 inputs, 1,100 refused"
