"""Every equation of the papers is found by its number, and the page that says so is current."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("equations", ROOT / "tools" / "equations.py")
equations = importlib.util.module_from_spec(spec)
spec.loader.exec_module(equations)


@pytest.mark.parametrize("paper", equations.PAPERS)
def test_every_equation_is_implemented_or_said_to_be_missing(paper):
    last = equations.PAPERS[paper][1]
    found = equations.find()[paper]
    missing = set(range(1, last + 1)) - set(found) - set(equations.LATER[paper])
    assert not missing
    assert not set(found) - set(range(1, last + 1))  # nobody names an equation that is not there


def test_the_page_is_current():
    assert equations.PAGE.read_text("utf-8") == equations.page(), "run python tools/equations.py"


def test_what_is_said_to_be_missing_is():
    for paper, later in equations.LATER.items():
        assert not set(later) & set(equations.find()[paper])


def test_a_mention_is_found_where_it_stands(tmp_path):
    folder = tmp_path / "src" / "crossgaze" / "models"
    folder.mkdir(parents=True)
    (folder / "scan.py").write_text(
        '"""Prose on Eq. 9."""\n\n# Eqs. 1-2: code\nx = 1  # Eq. 3 of DAN\n'
    )
    found = equations.find(tmp_path)
    assert found["SCAN"][2] == [("src/crossgaze/models/scan.py", 3)]
    assert found["DAN"][3] == [("src/crossgaze/models/scan.py", 4)]
