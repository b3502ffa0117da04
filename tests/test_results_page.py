"""The page of results: current with the results, and right on made-up ones worked out by hand."""

import json
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

from crossgaze.config import load_recipe, to_dict
from crossgaze.evaluation.recall import FIGURES
from crossgaze.training.config import TrainConfig

ROOT = Path(__file__).parents[1]
claims = pytest.importorskip("claims", reason="needs tools/")
result_files = pytest.importorskip("result_files")
results_page = pytest.importorskip("results_page")
ROWS = results_page.ROWS


def add(root, row, seed=0, images=(1, 1), attention=None, **training):
    """Write a result of so many images with a caption each, which has its image's rank."""
    facts = {"epochs": 2, "best_epoch": 2, "seconds": 600, "parameters": 2_000_000}
    facts["history"] = [{"rsum": 100.0}, {"rsum": 120.0}]
    facts["metrics"] = {"rsum": 120.0 + seed}
    ranks = {"images": list(images), "captions": list(images), "per_image": [1] * len(images)}
    found = {"row": row, "seed": seed, "training": None if ROWS[row].members else facts | training}
    found |= {"ranks": ranks} | ({} if attention is None else {"attention": attention})
    path = root / "results" / "flickr8k" / f"{row}-{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))
    return path


def phrases(f1, covered=(1, 1)):
    """Sums of two images with two phrases each."""
    precision = [number / 2 for number in covered]
    same = {"precision": precision, "recall": list(covered), "pointing": [1, 2]}
    return {"phrases": [2, 2], **same, "f1": list(f1), "covered": list(covered)}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docs").mkdir()
    return tmp_path


def make(root, *words):
    """Run the tool and return the page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["results_page.py", "--root", str(root), *words])
        results_page.main()
    return (root / "docs" / "results.md").read_text("utf-8")


def test_a_result_of_other_settings_than_its_rows_is_refused(root):
    recipe = ROOT / "recipes" / "flickr8k" / "scan-ccr.yaml"
    config = to_dict(load_recipe(TrainConfig, recipe, ["seed=2", "data.regions=elsewhere"]))
    add(root, "scan-ccr", config=config)
    make(root)  # where its data lay, and its seed, are no matter
    add(root, "scan-ccr", config=config | {"constraints": {"ccr": 0.7}})
    with pytest.raises(SystemExit, match=r"scan-ccr-0.json: .*constraints.ccr is 0.7, not"):
        make(root)


def section(page, title):
    return page.split(f"## {title}\n")[1].split("\n## ")[0]


def cells(page, title, first):
    """Return the cells of the rows of a section's table that begin so."""
    lines = [line for line in section(page, title).splitlines() if line.startswith(f"| {first} |")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def claim(page, first, second, figure="rsum"):
    """Return seeds, difference and verdict of a comparison."""
    lines = section(page, "Did the papers' claims hold?").splitlines()
    (line,) = [line for line in lines if f"| {first} - {second} | {figure} |" in line]
    return [cell.strip() for cell in line.strip("|").split("|")][3:6]


@pytest.fixture(scope="module")
def real():
    """The results of this repository, with the draws that were made from them."""
    return result_files.read_results(ROOT / "results" / "flickr8k")


def test_the_page_is_current_with_the_results(real, monkeypatch):
    monkeypatch.setattr(results_page, "read_results", lambda folder: real)
    done = sum(map(len, real.values()))
    assert f"{done} of {wanted()} results are in" in make(
        ROOT, "--check"
    )  # it exits if not current


def test_figures_of_every_result_are_those_of_its_ranks(real):
    for runs in real.values():
        for run in runs.values():
            measured = run.found["measured"]
            (protocol,) = measured["protocols"]
            for name in FIGURES:
                told = protocol["figures"][name]["value"]
                assert run.value(name) == pytest.approx(told, abs=0.006), (run.path, name)
            if run.attention is not None:
                told = measured["attention"][0]["figures"]
                for name, value in run.attention.values.items():
                    assert value == pytest.approx(told[name]["value"], abs=0.0002), run.path


def test_without_results_every_row_and_claim_is_listed_as_not_run(root):
    with pytest.raises(
        SystemExit, match=r"not current: results\.md; run python tools/results_page"
    ):
        make(root, "--check")
    assert not list((root / "docs").iterdir())
    page = make(root)
    make(root, "--check")
    for name, row in ROWS.items():
        dev = "Regions" if name.startswith("regions-") else "Looked for the mistake"
        where = dev if row.split == "dev" else "Retrieval"
        if row.learned == ("flickr8k",) == (row.tested,):
            assert "not run yet" in cells(page, where, row.title)[0], name
        else:
            moved = section(page, "From one set to another, and both together").splitlines()
            assert any(f"| {row.title} |" in line and "not run yet" in line for line in moved), name
        assert "not run yet" in cells(page, "Making it again", row.title)[0], name
    assert section(page, "Did the papers' claims hold?").count("not run yet") == len(claims.CLAIMS)
    assert f"0 of {wanted()} results are in" in page
    assert "![" not in page


def wanted():
    return sum(len(row.seeds) for row in ROWS.values())


def test_figures_and_differences_worked_out_by_hand(root):
    add(root, "scan-t-i-avg", images=(1, 1))  # 600
    add(root, "sum-max-t-i", images=(1, 20))  # half of each recall: 300
    add(root, "vse", images=(20, 20))  # 0
    add(root, "scan-all-negatives", images=(3, 3))  # not R@1: 400
    add(root, "vsrn", images=(7, 7))  # R@10 alone: 200
    add(root, "vsrn-mean-pool", images=(1, 1))
    page = make(root)
    (row,) = cells(page, "Retrieval", "SCAN t-i AVG, all negatives")
    assert row[1:] == ["1", *["0.0", "100.0", "100.0"] * 2, "400.0", "400.0 to 400.0"]
    assert cells(page, "Retrieval", "Sum-Max t-i")[0][-2:] == ["300.0", "0.0 to 600.0"]
    # The second image may be drawn 0, 1 or 2 times of 2.
    away = ["1 and 1", "+300.0 (+0.0 to +600.0)", "open: the interval holds 0"]
    assert claim(page, "SCAN t-i AVG", "Sum-Max t-i")[1:] == away[1:]
    assert claim(page, "Sum-Max t-i", "VSE++, mean pooling") == away
    held = ["+200.0 (+200.0 to +200.0)", "**held**"]
    assert claim(page, "SCAN t-i AVG", "SCAN t-i AVG, all negatives")[1:] == held
    lost = ["1 and 1", "-400.0 (-400.0 to -400.0)", "**did not hold**: the other way round"]
    assert claim(page, "VSRN", "VSRN, mean pooling") == lost
    assert claim(page, "VSRN", "VSRN without L_G") == ["1 and 0", "-", "not run yet"]
    assert cells(page, "Retrieval", "SCAN t-i AVG")[0][1] == "1 of 3"
    assert cells(page, "Making it again", "VSRN")[0][2:6] == ["2", "2", "10", "2.0 M"]
    assert f"6 of {wanted()} results are in; training them took 1.0 hours" in page
    assert "no row has several" in page


def test_seeds_have_a_mean_and_a_spread(root):
    for seed, rank in enumerate((1, 3, 3)):  # 600, 400, 400
        add(root, "scan-t-i-avg", seed, (rank, rank), best_epoch=seed, seconds=600 * seed)
    for seed in (0, 1):
        add(root, "scan-ccr-ccs", seed)
    add(root, "vse", images=(20, 20))
    add(root, "sum-max-t-i")
    page = make(root)
    (row,) = cells(page, "Retrieval", "SCAN t-i AVG")
    assert row[1:3] == ["3", "33.3 ± 57.7"]
    assert row[-2:] == ["466.7 ± 115.5", "466.7 to 466.7"]
    assert cells(page, "Retrieval", "SCAN + CCR + CCS")[0][1:3] == ["2 of 3", "100.0 ± 0.0"]
    assert cells(page, "Making it again", "SCAN t-i AVG")[0][2:5] == ["2, 2, 2", "0, 1, 2", "10"]
    # Pooled: sqrt((2 x 115.47^2 + 1 x 0) / 3) = 94.3, with t = 3.18: 274 > 133 for 2 and 3 runs.
    told = " ".join(page.split())
    assert "Seeds differ by 94.3 in rsum: a standard deviation of SCAN t-i AVG and SCAN" in told
    assert "whose 5 runs" in told
    near = ["2 and 3", "+133.3 (+133.3 to +133.3)", "**held**, but seeds differ as much"]
    assert claim(page, "SCAN + CCR + CCS", "SCAN t-i AVG") == near
    others = "**held** (by other models' seeds)"
    far = ["1 and 1", "+600.0 (+600.0 to +600.0)", others]
    assert claim(page, "Sum-Max t-i", "VSE++, mean pooling") == far


def test_attention_by_hand(root):
    add(root, "scan-t-i-avg", attention=phrases((0.25, 0.75)))
    add(root, "scan-ccr", attention=phrases((0.5, 1.0)))
    add(root, "scan-ccs")  # not measured
    page = make(root)
    figures = ["1", "0.500", "1.000", "0.750", "0.500 to 1.000", "0.750", "0.500"]
    assert cells(page, "Attention", "SCAN + CCR")[0][1:] == figures
    found = ["1 and 1", "+0.250 (+0.250 to +0.250)", "**held**"]
    assert claim(page, "SCAN + CCR", "SCAN t-i AVG", "attention F1") == found
    assert claim(page, "SCAN + CCS", "SCAN t-i AVG", "attention F1")[1:] == ["-", "not measured"]
    assert cells(page, "Attention", "SCAN + CCS")[0][1:] == ["1", *["-"] * 6]


def test_regions_are_compared_over_all_phrases(root):
    add(root, "regions-objects", attention=phrases((0.5, 1.0), (1, 2)))
    add(root, "regions-whole")
    assert cells(make(root), "Regions", "SCAN t-i AVG, objects")[0][-2:] == ["-", "-"]
    add(root, "regions-grid", images=(3, 3), attention=phrases((0.5, 0.0), (1, 0)))
    page = make(root)
    # F1 of all four phrases: 1.5 / 4 and 0.5 / 4; of the covered ones it would be 0.5 and 0.5.
    (objects,) = cells(page, "Regions", "SCAN t-i AVG, objects")
    assert objects[5:8] == ["0.375", "0.750", "0.750"]
    assert objects[-2:] == ["+200.0 (+200.0 to +200.0)", "+0.250 (+0.000 to +0.500)"]
    assert cells(page, "Regions", "SCAN t-i AVG, 6x6 grid")[0][5] == "0.125"
    assert cells(page, "Regions", "SCAN t-i AVG, objects and whole")[0][-2:] == [
        "+200.0 (+200.0 to +200.0)",
        "-",
    ]


def test_an_ensemble_is_compared_with_its_members_of_the_same_seed(root):
    add(root, "scan-t-i-avg", 0, (3, 3))
    add(root, "scan-t-i-avg", 1, (1, 1))
    add(root, "scan-both", 0, (1, 1))
    page = make(root)
    same = ["1 and 1", "+200.0 (+200.0 to +200.0)"]
    assert claim(page, "SCAN t-i AVG + i-t AVG", "SCAN t-i AVG")[:2] == same
    assert claim(page, "SCAN t-i AVG + i-t AVG", "SCAN i-t AVG") == ["0 and 0", "-", "not run yet"]
    making = "Making it again", "SCAN t-i AVG + i-t AVG"
    assert cells(page, *making)[0][2:6] == ["-"] * 4  # a member has no result
    add(root, "scan-i-t-avg", 0, (3, 3), seconds=1200, epochs=5)
    assert cells(make(root), *making)[0][2:6] == ["2+5", "2+2", "30", "4.0 M"]


def test_rows_that_share_a_run_are_counted_once(root):
    add(root, "scan-t-i-avg", seconds=3600)
    add(root, "scan-t-i-avg-on-coco", seconds=3600)
    add(root, "regions-grid", seconds=1800)
    assert f"3 of {wanted()} results are in; training them took 1.5 hours" in make(root)


def test_curves_are_drawn_and_known_to_be_current(root):
    pytest.importorskip("matplotlib")
    for seed in (0, 1, 2):
        add(root, "scan-t-i-avg", seed, history=[{"rsum": 100.0 + seed}, {"rsum": 150.0}])
    add(root, "m-dan")
    page = make(root)
    shown = re.findall(r"\(pictures/(curves-[a-z]+\.png)\)", page)
    assert shown == ["curves-scan.png", "curves-constraints.png", "curves-others.png"]
    pictures = root / "docs" / "pictures"
    assert sorted(path.name for path in pictures.iterdir()) == sorted(shown)
    for path in pictures.iterdir():
        assert path.stat().st_size < 100_000
        with Image.open(path) as picture:
            assert len(picture.convert("RGB").getcolors(1 << 20)) > 10
    before = (pictures / "curves-others.png").stat().st_mtime_ns
    make(root, "--check")
    # Figures stay as they are, only a curve is another.
    add(root, "scan-t-i-avg", 2, history=[{"rsum": 90.0}, {"rsum": 150.0}])
    with pytest.raises(
        SystemExit, match=r"not current: curves-scan\.png, curves-constraints\.png;"
    ):
        make(root, "--check")
    make(root)
    make(root, "--check")
    assert (pictures / "curves-others.png").stat().st_mtime_ns == before
    (root / "results" / "flickr8k" / "m-dan-0.json").unlink()
    with pytest.raises(SystemExit, match=r"not current: results\.md, curves-others\.png;"):
        make(root, "--check")
    make(root)
    assert not (pictures / "curves-others.png").exists()


def test_every_trained_row_is_in_a_picture(root):
    pytest.importorskip("matplotlib")
    for name, row in ROWS.items():
        for seed in row.seeds:
            add(root, name, seed)
    results = result_files.read_results(root / "results" / "flickr8k")
    drawn = {title for _, runs in results_page.curves(results).values() for title, _ in runs}
    # Hubs are held back without any training.
    assert drawn == {row.title for row in ROWS.values() if row.recipe and not row.bank}
    page = make(root)
    assert "not run yet" not in page.replace(section(page, "Questions"), "")
    assert f"{wanted()} of {wanted()} results are in" in page


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda path: path.rename(path.with_name("vse-7.json")), "vse-7.json: no row and seed"),
        (lambda path: path.write_text("{}"), r"vse-0.json: has no ranks; python .* --again vse"),
        (
            lambda path: path.write_text(path.read_text().replace("[1, 1]", "[1]", 1)),
            "not one rank",
        ),
    ],
)
def test_results_that_are_none_are_named(root, change, says):
    change(add(root, "vse"))
    with pytest.raises(SystemExit, match=says):
        make(root)


def test_claims_speak_of_rows_and_of_what_the_papers_print():
    for one in claims.CLAIMS:
        assert {one.first, one.second} <= set(ROWS)
        assert ROWS[one.first].split == ROWS[one.second].split == "test"
        assert claims.paper_says(one)
    said = {(one.first, one.second, one.figure): claims.paper_says(one) for one in claims.CLAIMS}
    # 45.8 77.8 86.2 33.9 63.7 73.4 against 67.9 89.0 94.4 43.9 74.2 82.8, typed in again.
    hard = said["scan-t-i-avg", "scan-all-negatives", "rsum"]
    assert hard == "+71.4 (SCAN table 4, Flickr30K)"
    assert said["scan-ccr", "scan-t-i-avg", "f1"] == "+0.028 (CCR/CCS table 4, Flickr30K)"
    assert said["sum-max-t-i", "vse", "rsum"].startswith("R@1 +27.7 and +21.0 ")
    # 61.8 and 45.8 against 31.9 and 23.1; 424.2 against 414.3.
    assert said["scan-t-i-avg", "vse", "rsum"] == "R@1 +29.9 and +22.7 (SCAN table 3, Flickr30K)"
    seen = "+9.9 (CCR/CCS table 3, Flickr30K, learned from MS-COCO)"
    assert said["coco-scan-ccr-ccs-on-flickr8k", "coco-scan-on-flickr8k", "rsum"] == seen
    assert said["scan-ccr-ccs-on-coco", "scan-t-i-avg-on-coco", "rsum"] == seen


def test_how_far_seeds_alone_differ_is_students():
    """From its printed table: 4.303 for two degrees of freedom, 1.960 for very many."""
    few, many = (result_files.Luck(2.0, freedom, ("vse",)) for freedom in (2, 100_000))
    assert few.reach(1, 1) == pytest.approx(4.303 * 2 * 2**0.5, rel=1e-3)
    assert many.reach(4, 4) == pytest.approx(1.960 * 2 * 0.5**0.5, rel=1e-3)


def test_what_ccr_costs_on_dev_is_held_against_what_seeds_differ_by(root):
    for name, figures in (
        ("scan-t-i-avg", (300.0, 302.0, 304.0)),  # a standard deviation of 2, of two degrees
        ("bfan", (320.0,)),
        ("bfan-ccr", (310.0,)),
        ("bfan-ccr-ccs", (290.0,)),
    ):
        for seed, rsum in enumerate(figures):
            add(root, name, seed, metrics={"rsum": rsum})
    found = " ".join(section(make(root), "Looked for the mistake").split())
    assert "stand 10.0 and 30.0 below BFAN's" in found
    assert "differ there by 2.0" in found
    assert "by up to 12.2 by seeds alone" in found  # 4.303 x 2 x sqrt 2, from the printed table
    assert "what is lost on dev lies within and is more than that" in found


def test_median_ranks_and_intervals_that_no_other_table_has(root):
    add(root, "scan-ccr", images=(2, 4), attention=phrases((0.5, 1.0)))
    add(root, "coco-bfan", images=(1, 1))
    page = make(root)
    (home,) = cells(page, "Intervals", "SCAN + CCR")[1:]
    medians = "3 (2 to 4) and 3 (2 to 4)"
    assert home[1:6] == ["Flickr8k", "Flickr8k", "above", "above", medians]
    assert home[6:] == ["0.500 to 0.500", "1.000 to 1.000", "0.500 to 1.000"]
    (away,) = cells(page, "Intervals", "BFAN")
    assert away[1:6] == [
        "COCO",
        "COCO",
        "100.0 to 100.0",
        "100.0 to 100.0",
        "1 (1 to 1) and 1 (1 to 1)",
    ]
    assert away[6:] == ["-", "-", "-"]
