"""The rule by which the region model's choice is settled on dev, worked by hand."""

import choose_selection


def line(weights, half, phrases, strict):
    return {"weights": weights, "boxes 0.5": half, "phrases 0.5": phrases, "boxes 0.7": strict}


def test_most_boxes_among_those_that_reach_the_bars():
    table = [line(1, 79.0, 92.0, 47.0), line(2, 80.0, 91.5, 46.0), line(3, 81.0, 91.5, 45.9)]
    assert choose_selection.best_of(table)["weights"] == 2
    table.append(line(4, 82.0, 90.9, 50.0))
    assert choose_selection.best_of(table)["weights"] == 2


def test_where_none_reaches_them_the_one_that_misses_least():
    table = [line(1, 82.0, 90.0, 50.0), line(2, 70.0, 90.5, 45.6), line(3, 90.0, 91.0, 45.0)]
    assert choose_selection.best_of(table)["weights"] == 2
