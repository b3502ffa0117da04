"""The papers' rows against the papers' own text, where it is there."""

import re
from collections import Counter

import pytest

from crossgaze.evaluation.papers import ROWS, attention_rows, retrieval_rows
from crossgaze.evaluation.recall import RECALLS
from crossgaze.models.families import FAMILIES
from support import SHARED, needs_shared

TEXTS = {"SCAN": "scan", "VSRN": "vsrn", "DAN": "dan", "MMCA": "mmca", "CCR/CCS": "ccr-ccs"}


def plain(text):
    """Letters and digits only, Greek spelled out, as two ways of writing a row agree on."""
    text = text.replace("ours", "").replace("\\lambda", "lambda").replace("\\alpha", "alpha")
    return re.sub(r"[^a-z0-9=.+*]", "", re.sub(r"<[^>]*>|\[\d+\]", "", text.lower()))


def table_lines(paper):
    """Yield the name and the numbers of every line of a table in the paper's text."""
    for line in (SHARED / "papers" / f"{TEXTS[paper]}.txt").read_text("utf-8").splitlines():
        cells = re.sub(r"</?b>", "", line).rstrip("\t").split("\t")
        numbers = [cell.strip() for cell in cells[1:]]
        if numbers and all(re.fullmatch(r"-|\d+(\.\d+)?", cell) for cell in numbers):
            yield cells[0].strip(), [cell for cell in numbers if cell != "-"]


@needs_shared
@pytest.mark.parametrize("paper", TEXTS)
def test_every_row_stands_in_its_paper(paper):
    printed = Counter()
    for name, numbers in table_lines(paper):
        printed[(plain(name), tuple(float(number) for number in numbers))] += 1
    rows = [row for row in ROWS if row.paper == paper]
    assert rows
    for row in rows:
        name = plain(row.name)
        if paper == "CCR/CCS":  # "+ CCR" below "SCAN"
            name = re.sub(r"^(scan|bfan)\+", "+", name)
        values = tuple(row.figures.values())
        found = [key for key in printed if key[1] == values and key[0].startswith(name)]
        assert found, (row.name, values)
        printed[found[0]] -= 1
        assert printed[found[0]] >= 0, f"{row.name} is printed fewer times than it is here"


@needs_shared
@pytest.mark.parametrize(
    ("paper", "left_out"),
    [
        # Other people's methods, table by table.
        ("CCR/CCS", 0),
        ("MMCA", 11 + 13 + 6),  # the text has lost a cell of table 3's VSE++
        ("SCAN", 7 + 8 + 4 + 1),
    ],
)
def test_no_row_of_our_methods_is_forgotten(paper, left_out):
    printed = sum(1 for _ in table_lines(paper))
    assert printed - sum(row.paper == paper for row in ROWS) == left_out


def test_printed_sums_are_sums_but_for_one():
    wrong = []
    for row in ROWS:
        if "rsum" in row.figures:
            total = sum(row.figures[name] for name in RECALLS)
            if abs(total - row.figures["rsum"]) > 0.15:
                wrong.append((row.source, row.name, round(total, 1), row.figures["rsum"]))
    assert wrong == [("CCR/CCS table 3", "BFAN + CCR + CCS", 437.4, 435.2)]


def test_figures_are_shares_and_families_exist():
    for row in ROWS:
        assert row.family in FAMILIES
        for name, value in row.figures.items():
            most = {"rsum": 600, "f1": 1, "precision": 1, "recall": 1}.get(name, 100)
            assert 0 < value <= most, row
        if all(name in row.figures for name in RECALLS):
            for side in ("i2t", "t2i"):
                cuts = [row.figures[f"{side}_r{k}"] for k in (1, 5, 10)]
                assert cuts == sorted(cuts), row


def test_a_sum_is_made_only_of_all_six():
    (dan,) = [row for row in ROWS if row.name == "DAN (ResNet)"]
    assert dan.rsum == pytest.approx(55.0 + 81.8 + 89.0 + 39.4 + 69.2 + 79.1)
    vse, whole = retrieval_rows({"vse++"}, "MS-COCO", "5K")  # SCAN prints four, VSRN all six
    assert vse.rsum is None
    assert whole.rsum == pytest.approx(41.3 + 69.2 + 81.2 + 30.3 + 59.1 + 72.4)


def test_rows_of_a_family_come_once_and_in_order():
    rows = retrieval_rows({"scan", "bfan"}, "Flickr30K", "1K")
    assert rows[0].name.startswith("SCAN t-i LSE")
    assert len({tuple(row.figures.items()) for row in rows}) == len(rows)
    assert not [row for row in rows if row.family == "sum-max" or row.data != "Flickr30K"]
    assert [row.trained for row in rows].count("MS-COCO") == 4
    assert [row.figures["f1"] for row in attention_rows({"bfan"})] == [0.419, 0.448, 0.437, 0.466]
    assert not attention_rows({"vsrn"})
