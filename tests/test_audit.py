"""The audit of dependencies: each thing that can be wrong is said."""

import tomllib

import pytest
from packaging.requirements import Requirement

audit = pytest.importorskip("audit", reason="needs tools/")


def test_pins_are_read_by_their_one_name():
    text = "# exact\nImageIO==2.38.1\ntyping_extensions==4.16.0\n\n"
    assert audit.read_pins(text) == {"imageio": "2.38.1", "typing-extensions": "4.16.0"}


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ("a>=1,<3", ""),
        ("a>=3", "constraints.txt: has a==2.0, pyproject.toml wants a>=3"),
        ("b", "constraints.txt: has no b, pyproject.toml wants b"),
    ],
)
def test_ranges_are_held_against_pins(requirement, message):
    said = audit.out_of_range([Requirement(requirement)], {"a": "2.0"})
    assert said == ([message] if message else [])


def test_what_is_installed_must_be_what_is_pinned():
    installed = {"torch": "2.1+cpu", "pip": "1", "nvidia-x": "3", "new": "1", "a": "2"}
    said = audit.not_as_pinned(installed, {"torch": "2.1", "a": "1"})
    assert said == [
        "a: 2 is installed, constraints.txt has 1",
        "constraints.txt: has no new, 1 is installed",
    ]


def test_what_something_needs_must_be_there():
    needs = {"x": ["a>=2", "b", "c; extra == 'more'", "d; python_version < '3'"]}
    assert audit.unmet({"x": "1", "a": "1"}, needs) == [
        "x: needs a>=2, 1 is installed",
        "x: needs b, which is not installed",
    ]


def test_what_is_needed_is_followed_and_what_is_not_is_left_alone():
    needs = {
        "a": ["b[more]>=1", "c; extra == 'x'", "gone"],
        "b": ["d; extra == 'more'", "a"],
        "c": [],
        "d": [],
        "mine": ["a"],
    }
    assert audit.all_of([Requirement("a")], needs) == {"a", "b", "d"}
    assert audit.all_of([Requirement("A[x]; python_version < '3'")], needs) == set()
    assert audit.all_of([Requirement("A[x]")], needs) == {"a", "b", "c", "d"}


def test_the_projects_own_ranges_are_met_by_its_pins():
    project = tomllib.loads((audit.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = audit.wanted(project)
    assert {"torch", "fastapi", "hypothesis"} <= {one.name for one in requirements}
    pins = audit.read_pins((audit.ROOT / "constraints.txt").read_text("utf-8"))
    assert audit.out_of_range(requirements, pins) == []
