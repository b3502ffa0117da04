"""The section on questions: what the files say, worked out by hand on made-up ones."""

import json
from pathlib import Path

import numpy as np
import pytest

page = pytest.importorskip("question_page", reason="needs tools/")
ROWS = page.ROWS
ROOT = Path(__file__).parents[1]


def add(folder, row, right, images=(0, 1), wups=(40.0, 70.0)):
    """Write a result of as many questions as images."""
    accuracy = 100 * sum(right) / len(right)
    figures = {"accuracy": {"value": accuracy, "low": accuracy, "high": accuracy}}
    if wups:
        figures |= {"wups_0.9": {"value": wups[0]}, "wups_0.0": {"value": wups[1]}}
    made = {"epochs": 9, "best_epoch": 7, "seconds": 600, "parameters": 6_543_000}
    made["data"] = {"train_questions": 6000}
    found = {"row": row, "measured": {"figures": figures}, "training": made}
    found["answered"] = {"image": list(images), "right": list(right)}
    folder.mkdir(exist_ok=True)
    (folder / f"{row}.json").write_text(json.dumps(found))
    return folder / f"{row}.json"


def cells(text, title, first, place=1):
    """Return the cells of the one row of a part of the section that has `first` in this place."""
    part = text.split(f"### {title}\n")[1].split("\n### ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()]
    (found,) = [row for row in rows if len(row) > place and row[place] == first]
    return found


def test_without_results_the_section_says_so(tmp_path):
    text = page.questions_section(tmp_path)
    assert "None is in yet." in text
    for row in ROWS.values():
        assert cells(text, page.TITLES[row.data], row.title)[:3:2] == [
            "measured here",
            "not run yet",
        ]
    assert text.count("not run yet") == 2 * len(ROWS)


def test_figures_of_others_are_marked_as_theirs(tmp_path):
    text = page.questions_section(tmp_path)
    empty = ["-"] * 4
    lstm = cells(text, "DAQUAR", "LSTM, question only")
    assert lstm == ["theirs", "LSTM, question only", "about 19", *empty]
    assert cells(text, "DAQUAR", "SAN") == ["theirs", "SAN", "about 29.3", *empty]
    assert "theirs" not in text.split("### easy-vqa")[1].split("###")[0]


def test_figures_and_the_gain_over_the_question_alone_by_hand(tmp_path):
    folder = tmp_path / "rdan"
    add(folder, "easy-vqa", (1, 1), wups=())
    add(folder, "daquar-k2", (1, 1))
    add(folder, "daquar-k1", (1, 0), wups=())
    add(folder, "daquar-question", (0, 0), wups=(12.34, 56.78))
    text = page.questions_section(folder)
    assert "4 of 8 results are in." in text
    assert cells(text, "easy-vqa", "r-DAN, K = 2")[2:] == ["100.0", "100.0 to 100.0"]
    two = ["100.0", "100.0 to 100.0", "40.0", "70.0", "+100.0 (+100.0 to +100.0)"]
    assert cells(text, "DAQUAR", "r-DAN, K = 2")[2:] == two
    # Of two images either may be drawn twice.
    one = ["50.0", "0.0 to 100.0", "-", "-", "+50.0 (+0.0 to +100.0)"]
    assert cells(text, "DAQUAR", "r-DAN, K = 1")[2:] == one
    alone = ["0.0", "0.0 to 0.0", "12.3", "56.8", "-"]
    assert cells(text, "DAQUAR", "question only, K = 2")[2:] == alone
    made = ["6,000", "9", "7", "10", "6.5 M"]
    assert cells(text, "Making them again", "easy-vqa, r-DAN, K = 2", 0)[1:6] == made
    (folder / "daquar-question.json").unlink()
    assert cells(page.questions_section(folder), "DAQUAR", "r-DAN, K = 2")[-1] == "-"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda path: path.rename(path.with_name("daquar-k9.json")), "daquar-k9.json: no row of"),
        (lambda path: path.write_text("{}"), "does not say how right .* --again daquar-k1"),
        (
            lambda path: path.write_text(path.read_text().replace("[0, 1]", "[0]")),
            "not one image for each answer",
        ),
    ],
)
def test_results_that_are_none_are_named(tmp_path, change, says):
    change(add(tmp_path / "rdan", "daquar-k1", (1, 0)))
    with pytest.raises(SystemExit, match=says):
        page.questions_section(tmp_path / "rdan")


def test_figures_of_every_result_are_those_of_its_answers():
    for name, result in page.read_answers(ROOT / "results" / "rdan").items():
        told = result.found["measured"]["figures"]["accuracy"]
        mine = result.drawn.estimates(0.95)["accuracy"]
        for key in ("value", "low", "high"):
            assert getattr(mine, key) == pytest.approx(told[key], abs=0.006), (name, key)
        assert isinstance(result.found["training"]["model"]["answers"], int)
        assert np.isin(list(result.found["answered"]), ["image", "right"]).all()


def test_the_page_has_the_section():
    text = page.questions_section(ROOT / "results" / "rdan")
    assert f"## Questions\n\n{text}" in (ROOT / "docs" / "results.md").read_text("utf-8")
