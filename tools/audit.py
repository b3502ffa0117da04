"""A check of the dependencies' pins, without a network: it knows of no hole. `make lint` runs it.

    python tools/audit.py

Every range of pyproject.toml must be met by a pin of constraints.txt; and what is installed for
them, directly or not, must be what is pinned and have what it needs. What somebody has installed
besides is not looked at. Known vulnerabilities are looked up
by a service: `pip install pip-audit && pip-audit -r constraints.txt --no-deps`, where there is one.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
# The environment's own tools, and what torch's CUDA build pins by itself.
UNPINNED = re.compile(r"pip|setuptools|wheel|triton|(nvidia|cuda)-.*")


def read_pins(text: str) -> dict[str, str]:
    """Return the version that each line `name==version` pins, by canonical name."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    pairs = [line.partition("==") for line in lines]
    return {canonicalize_name(name.strip()): version.strip() for name, _, version in pairs}


def wanted(project: Mapping[str, object]) -> list[Requirement]:
    """Return the requirements of a project and of all its extras, but for the project itself."""
    extras: Mapping[str, list[str]] = project.get("optional-dependencies", {})  # type: ignore[assignment]
    texts: list[str] = [*project["dependencies"]]  # type: ignore[misc]
    found = [Requirement(text) for text in [*texts, *(t for some in extras.values() for t in some)]]
    return [one for one in found if one.name != project["name"]]


def all_of(requirements: Iterable[Requirement], needs: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the names of what is required and of all that it needs in turn, where installed."""
    found: set[str] = set()
    left = [(one, {""}) for one in requirements]
    done: set[tuple[str, frozenset[str]]] = set()
    while left:
        one, asked = left.pop()
        name, extras = canonicalize_name(one.name), frozenset({"", *one.extras})
        if not _holds(one, asked) or name not in needs or (name, extras) in done:
            continue
        done.add((name, extras))
        found.add(name)
        left += [(Requirement(text), set(extras)) for text in needs[name]]
    return found


def _holds(one: Requirement, extras: Iterable[str]) -> bool:
    """Tell whether a requirement counts here, for a package that was asked for with extras."""
    return one.marker is None or any(one.marker.evaluate({"extra": name}) for name in extras)


def out_of_range(requirements: Iterable[Requirement], pins: Mapping[str, str]) -> list[str]:
    """Say which requirements no pin meets."""
    said = []
    for one in requirements:
        pin = pins.get(canonicalize_name(one.name))
        if pin is None:
            said.append(f"constraints.txt: has no {one.name}, pyproject.toml wants {one}")
        elif not one.specifier.contains(pin, prereleases=True):
            said.append(f"constraints.txt: has {one.name}=={pin}, pyproject.toml wants {one}")
    return said


def not_as_pinned(installed: Mapping[str, str], pins: Mapping[str, str]) -> list[str]:
    """Say what is installed in another version than is pinned, or without being pinned."""
    said = []
    for name, version in sorted(installed.items()):
        pin = pins.get(name)
        if pin is None and not UNPINNED.fullmatch(name):
            said.append(f"constraints.txt: has no {name}, {version} is installed")
        elif pin is not None and version.partition("+")[0] != pin:  # torch says +cpu behind it
            said.append(f"{name}: {version} is installed, constraints.txt has {pin}")
    return said


def unmet(installed: Mapping[str, str], needs: Mapping[str, Iterable[str]]) -> list[str]:
    """Say what lacks something that it needs, as `pip check` does."""
    said = []
    for name, texts in sorted(needs.items()):
        for one in map(Requirement, texts):
            if not _holds(one, [""]):
                continue
            there = installed.get(canonicalize_name(one.name))
            if there is None:
                said.append(f"{name}: needs {one}, which is not installed")
            elif not one.specifier.contains(there, prereleases=True):
                said.append(f"{name}: needs {one}, {there} is installed")
    return said


def main() -> int:
    pins = read_pins((ROOT / "constraints.txt").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = {canonicalize_name(d.name): d for d in importlib.metadata.distributions()}
    needs = {name: one.requires or [] for name, one in found.items()}
    ours = all_of(wanted(project), needs)
    installed = {name: found[name].version for name in ours}
    said = out_of_range(wanted(project), pins) + not_as_pinned(installed, pins)
    said += unmet(installed, {name: needs[name] for name in ours})
    for line in said:
        print(line, file=sys.stderr)
    if not said:
        print(f"{len(installed)} packages are as constraints.txt has them and have what they need")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
