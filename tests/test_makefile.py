"""What the tasks would run, without running them."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def dry_run(*words):
    if shutil.which("make") is None:
        pytest.skip("needs make")
    command = ["make", "--dry-run", "VENV=no-such-venv", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_torch_may_come_from_another_index():
    plain = dry_run("demo")
    assert "--index-url" not in plain
    assert "--no-deps" not in plain
    other = dry_run("demo", "TORCH_INDEX=https://example.org/cpu")
    (line,) = [line for line in other.splitlines() if "torch==" in line]
    assert "--index-url https://example.org/cpu --no-deps torch==" in line
    assert other.count("--index-url") == 1  # nothing else comes from there


def test_coverage_has_a_bar_and_the_tests_do_not_measure_it():
    assert "--fail-under=90" in dry_run("coverage")
    assert "--cov" not in dry_run("test")


def test_the_source_archive_names_what_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for path in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert (ROOT / path).exists(), path


def test_counts_of_bad_days_begin_anew_unless_only_some_are_run():
    assert "rm -f results/reliability.json" in dry_run("reliability")
    assert "rm -f results/reliability.json" not in dry_run("reliability", "RUNS=tests/fuzz")
