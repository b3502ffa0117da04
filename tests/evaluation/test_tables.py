"""Tables say whose numbers they are."""

import pytest

from crossgaze.evaluation.bootstrap import Estimate
from crossgaze.evaluation.papers import attention_rows, retrieval_rows
from crossgaze.evaluation.recall import FIGURES
from crossgaze.evaluation.tables import (
    ATTENTION,
    MEASURED,
    PRINTED,
    attention_table,
    change_table,
    papers_data,
    retrieval_table,
    same_data,
)

MADE = {name: Estimate(10.0 + n, 9.0 + n, 11.5 + n) for n, name in enumerate(FIGURES)}


def test_measured_and_printed_rows_are_told_apart():
    papers = retrieval_rows({"sum-max", "m-dan"}, "Flickr30K", "1K")
    table = retrieval_table([("mine", "flickr8k test", MADE)], papers)
    assert [row[0] for row in table.rows] == [MEASURED, "", *[PRINTED] * 4]
    assert all(len(row) == len(table.header) for row in table.rows)
    assert table.rows[0][:5] == (MEASURED, "mine", "flickr8k test", "10.0", "11.0")
    assert table.rows[1][1:4] == ("  95 % interval", "", "9.0-11.5")
    dan = next(row for row in table.rows if "DAN (ResNet)" in row[1])
    assert dan[1:] == (
        "DAN table 2: DAN (ResNet)",
        "Flickr30K 1K",
        *("55.0", "81.8", "89.0", "1", "39.4", "69.2", "79.1", "2", "413.5"),
    )
    (note,) = table.notes
    assert "were not measured here" in note
    assert "on other data or another protocol" in note


def test_on_the_very_same_data_it_is_not_said_to_be_other():
    papers = retrieval_rows({"scan"}, "Flickr30K", "1K")
    (note,) = retrieval_table([("mine", "f30k", MADE)], papers, same=True).notes
    assert "other data" not in note
    assert not retrieval_table([("mine", "f30k", MADE)], []).notes


def test_what_a_paper_does_not_print_is_a_dash():
    table = retrieval_table([], retrieval_rows({"vse++"}, "MS-COCO", "5 x 1K"))
    assert table.rows[0][3:] == ("64.6", "-", "95.7", "-", "52.0", "-", "92.0", "-", "-")


def test_transfer_rows_say_what_they_were_trained_on():
    table = retrieval_table([], retrieval_rows({"bfan"}, "Flickr30K", "1K"))
    trained = [row for row in table.rows if "table 3" in row[1]]
    assert [row[2] for row in trained] == ["Flickr30K 1K, trained on MS-COCO"] * 2


def test_without_intervals_there_is_no_row_for_them():
    bare = {name: Estimate(1.0) for name in FIGURES}
    assert len(retrieval_table([("mine", "x", bare)], []).rows) == 1


def test_attention_in_three_places_of_decimals():
    made = {name: Estimate(0.25, 0.2, 0.3) for name in ATTENTION}
    table = attention_table([("mine", "x", made)], attention_rows({"scan"}))
    assert table.rows[0][3:] == ("0.250", "0.250", "0.250")
    assert table.rows[1][3:] == ("0.200-0.300",) * 3
    assert table.rows[2][1:] == ("CCR/CCS table 4: SCAN", "Flickr30K 1K", "0.201", "0.858", "0.305")


def test_differences_have_signs():
    change = {name: Estimate(1.25, -0.5, 3.0) for name in FIGURES}
    table = change_table(5, "old.json", change)
    assert table.title == "against old.json"
    assert table.rows[0][2:4] == ("mean of 5 folds", "+1.2")
    assert table.rows[1][3] == "-0.5 to +3.0"
    bare = change_table(1, "old.json", {name: Estimate(0.0) for name in FIGURES})
    assert bare.rows[1][3] == "-"


@pytest.mark.parametrize(
    ("name", "images", "folds", "split", "where", "same"),
    [
        ("coco_precomp", 5000, 5, "testall", ("MS-COCO", "5 x 1K"), True),
        ("coco_precomp", 5000, 1, "test", ("MS-COCO", "5K"), True),
        ("coco_precomp", 5000, 1, "dev", ("MS-COCO", "5K"), False),
        ("coco", 500, 1, "test", ("MS-COCO", "5 x 1K"), False),
        ("f30k_precomp", 1000, 1, "test", ("Flickr30K", "1K"), True),
        ("f30k_precomp", 1000, 1, "dev", ("Flickr30K", "1K"), False),
        ("dataset_flickr30k", 1014, 1, "val", ("Flickr30K", "1K"), False),
        ("flickr8k", 1000, 1, "test", ("Flickr30K", "1K"), False),
    ],
)
def test_the_nearest_of_the_papers_protocols(name, images, folds, split, where, same):
    assert papers_data(name, images, folds) == where
    assert same_data(name, images, folds, {split}) is same


def test_markdown_has_every_row():
    table = retrieval_table([("mine", "a|b", MADE)], retrieval_rows({"sum-max"}, "Flickr30K", "1K"))
    lines = table.markdown().splitlines()
    assert lines[0].startswith("| whose | what |")
    assert sum(line.startswith("| ") for line in lines) == 2 + len(table.rows)
    assert {line.count(" |") for line in lines if line.startswith("|")} == {len(table.header)}
    assert lines[-1] == table.notes[0]
