"""What the experiment keeps of an evaluation: bare numbers, enough to make every figure again."""

import json

import numpy as np
import pytest

import evaluation_parts as parts
from command_line import run as command
from crossgaze.data.captions.reading import read_captions
from crossgaze.evaluation.bootstrap import BootstrapConfig
from crossgaze.evaluation.phrase_sums import PhraseSums
from crossgaze.evaluation.recall import Retrieval

experiments = pytest.importorskip("experiments", reason="needs tools/")


@pytest.fixture
def world(tmp_path):
    """A folder with data, regions, phrases and models where the experiment's runs leave them."""
    data = parts.write_flickr8k(tmp_path / "flickr8k")
    parts.write_store(tmp_path / "regions", read_captions(data).images)
    parts.write_entities(tmp_path / "annotations.zip")
    return tmp_path


@pytest.fixture
def trained(world, monkeypatch, capsys):
    """The experiment with training that gives an untrained model; the rows that were trained."""
    rows = []

    def crossgaze(words):
        if words[0] == "train":
            out = world / words[-1]
            rows.append(out.name)
            if not out.exists():
                parts.model("scan", seed=len(rows)).save_pretrained(out / "best")
                (out / "summary.json").write_text('{"history": [], "seconds": 1}')
            return ""
        there = [str(world / word) if word.startswith("runs/") else word for word in words]
        capsys.readouterr()  # what an earlier row said
        code, out, err = command(capsys, *there, "--resamples", 20)
        assert code == 0, err
        return out

    monkeypatch.setattr(experiments, "crossgaze", crossgaze)
    monkeypatch.setattr(experiments, "ROOT", world)
    monkeypatch.setattr(
        experiments, "DATA", dict.fromkeys(experiments.DATA, str(world / "flickr8k"))
    )
    monkeypatch.setattr(experiments, "ENTITIES", str(world / "annotations.zip"))
    monkeypatch.setattr(experiments, "REGIONS", {"whole": str(world / "regions")})
    return rows


def test_a_result_holds_every_rank_and_no_text(world, trained):
    experiments.run("scan-t-i-avg", 0)
    path = world / "results" / "flickr8k" / "scan-t-i-avg-0.json"
    found = json.loads(path.read_text())
    ranks = found["ranks"]
    owners = np.repeat(np.arange(10), ranks["per_image"])
    texts, images = (np.array(ranks[side]) - 1 for side in ("images", "captions"))
    figures = found["measured"]["protocols"][0]["figures"]
    for name, value in Retrieval(texts, images, owners).figures().items():
        assert value == pytest.approx(figures[name]["value"], abs=0.006)
    sums = PhraseSums.from_dict(found["attention"]).drawn(BootstrapConfig(5))
    for name, value in sums.values.items():
        assert value == pytest.approx(found["measured"]["attention"][0]["figures"][name]["value"])
    numbers = [*ranks.values(), *found["attention"].values()]
    assert all(isinstance(number, int | float) for some in numbers for number in some)
    assert len([line for line in path.read_text().splitlines() if '"ranks": {' in line]) == 1
    assert found["commands"] == ["python tools/experiments.py --again scan-t-i-avg"]
    text = path.read_text()
    for caption in read_captions(world / "flickr8k").captions:
        assert caption not in text


def test_an_ensemble_trains_its_members_and_has_no_attention_of_its_own(world, trained):
    experiments.run("scan-both", 0)
    assert trained == ["scan-t-i-avg-0", "scan-i-t-avg-0"]
    found = json.loads((world / "results" / "flickr8k" / "scan-both-0.json").read_text())
    assert found["training"] is None
    assert "attention" not in found
    assert len(found["ranks"]["images"]) == 10


def test_captions_are_counted_image_by_image():
    captions = [{"image": name, "rank": rank} for name, rank in zip("aab", (3, 1, 2), strict=True)]
    images = [{"image": "a", "rank": 1}, {"image": "b", "rank": 4}]
    queries = {"images": images, "captions": captions}
    whole = {"protocols": [{"queries": queries}], "model": {"folders": ["m"]}, "attention": []}
    wanted = {"images": [1, 4], "captions": [3, 1, 2], "per_image": [2, 1]}
    assert experiments.bare_numbers(whole) == {"ranks": wanted}
    text = experiments.written({"row": "x"}, {"ranks": wanted, "more": [1]})
    assert json.loads(text) == {"row": "x", "ranks": wanted, "more": [1]}
    assert len(text.splitlines()) == 5


@pytest.mark.parametrize("again", [True, False])
def test_a_result_that_is_there_is_made_again_only_if_asked(world, monkeypatch, again):
    made = []
    monkeypatch.setattr(experiments, "ROOT", world)
    monkeypatch.setattr(experiments, "run", lambda *row: made.append(row))
    (world / "results" / "flickr8k").mkdir(parents=True)
    (world / "results" / "flickr8k" / "scan-t-i-avg-1.json").write_text("{}")
    words = ["experiments.py", "scan-t-i-avg", *(["--again"] if again else [])]
    monkeypatch.setattr("sys.argv", words)
    experiments.main()
    assert made == [("scan-t-i-avg", seed) for seed in ((0, 1, 2) if again else (0, 2))]


def test_rows_that_are_tested_elsewhere_share_a_run(world, trained, monkeypatch):
    said = []
    real = experiments.crossgaze
    monkeypatch.setattr(experiments, "crossgaze", lambda words: said.append(words) or real(words))
    for name in ("coco-scan", "coco-scan-on-flickr8k"):
        experiments.run(name, 0)
    assert trained == ["coco-scan-0", "coco-scan-0"]  # the second time it has ended
    learned = [words for words in said if words[0] == "train"]
    assert learned[0] == learned[1]
    tested = [words for words in said if words[0] == "evaluate"]
    assert ["--entities" in words for words in tested] == [False, True]


def test_several_sets_are_learned_from_together(monkeypatch, tmp_path):
    said = []
    (tmp_path / "runs/flickr8k/both-scan-0").mkdir(parents=True)
    (tmp_path / "runs/flickr8k/both-scan-0/summary.json").write_text("{}")
    monkeypatch.setattr(experiments, "ROOT", tmp_path)
    monkeypatch.setattr(experiments, "crossgaze", said.append)
    experiments.train("both-scan", 0)
    assert "data.captions=[../shared/data/flickr8k, ../shared/data/coco]" in said[0]
    assert "data.regions=[regions/flickr8k, regions/coco]" in said[0]


def test_a_seed_that_a_row_has_not_is_refused(trained, monkeypatch):
    """Its result would be no row's, and test would be looked at for nothing."""
    monkeypatch.setattr("sys.argv", ["experiments.py", "--seed", "1", "bfan"])
    with pytest.raises(SystemExit, match=r"bfan has no seed 1, wanted of 0"):
        experiments.main()


def test_a_seed_alone_means_the_rows_that_have_it(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["experiments.py", "--seed", "2", "--list"])
    experiments.main()
    rows = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert rows == ["scan-t-i-avg-2", "scan-ccr-ccs-2"]
