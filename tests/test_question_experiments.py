"""What the experiment on questions keeps of a run: bare numbers, no question and no answer."""

import json

import numpy as np
import pytest

from asking_parts import ANSWERS, answerer
from command_line import run as command
from crossgaze.data.regions.writer import RegionWriter

experiments = pytest.importorskip("question_experiments", reason="tools/ is not in an archive")

QUESTIONS = [
    ["what is on the table?", "lamp", 0],
    ["is the lamp on?", "yes", 0],
    ["how many chairs are there?", "2", 2],
    ["is the lamp on?", "no", 1],
]


@pytest.fixture
def world(tmp_path):
    """easy-vqa's layout with three images a split, and their regions."""
    root = tmp_path / "easy"
    names = []
    for split in ("train", "test"):
        (root / split / "images").mkdir(parents=True)
        (root / split / "questions.json").write_text(json.dumps(QUESTIONS))
        for number in range(3):
            (root / split / "images" / f"{number}.png").write_bytes(b"")
            names.append(f"{split}/images/{number}.png")
    (root / "answers.txt").write_text("\n".join(ANSWERS))
    features = np.random.default_rng(0).normal(size=(6, 3, 6)).astype(np.float32)
    with RegionWriter(tmp_path / "regions", 3, 6, fields=("counts",)) as writer:
        writer.append(names, features, counts=np.full(6, 3))
    return tmp_path


@pytest.fixture
def trained(world, monkeypatch, capsys):
    """The experiment with training that gives an untrained model; what was asked to be trained."""
    asked = []

    def crossgaze(words):
        if words[0] == "train":
            asked.append(words)
            out = world / words[-1]
            answerer(width=6, origin=False).save_pretrained(out / "best")
            model = {"answers": list(ANSWERS), "steps": 2}
            summary = {"model": model, "notes": ["left out: 'is the lamp on?'"], "seconds": 1}
            (out / "summary.json").write_text(json.dumps(summary))
            return ""
        there = [str(world / word) if word.startswith("runs/") else word for word in words]
        capsys.readouterr()  # what an earlier row said
        code, out, err = command(capsys, *there, "--resamples", 20)
        assert code == 0, err
        return out

    data = {"easy-vqa": experiments.Data("r.yaml", str(world / "easy"), str(world / "regions"))}
    monkeypatch.setattr(experiments, "crossgaze", crossgaze)
    monkeypatch.setattr(experiments, "ROOT", world)
    monkeypatch.setattr(experiments, "DATA", data)
    return asked


def test_a_result_holds_how_right_each_answer_was_and_no_text(world, trained):
    experiments.run("easy-vqa", 3)
    (words,) = trained
    assert words[:3] == ["train", "r.yaml", "seed=3"]
    path = world / "results" / "rdan" / "easy-vqa.json"
    found = json.loads(path.read_text())
    assert found["answered"]["image"] == [0, 0, 1, 2]  # in the order that they are met
    assert len(found["answered"]["right"]) == 4
    told = found["measured"]["figures"]["accuracy"]["value"]
    assert 100 * np.mean(found["answered"]["right"]) == pytest.approx(told)
    assert (found["seed"], found["row"]) == (3, "easy-vqa")
    again = "python tools/question_experiments.py --again easy-vqa --seed 3"
    assert found["commands"] == [again]
    assert found["training"]["model"] == {"answers": 5, "steps": 2}
    text = path.read_text()
    for question, _, _ in QUESTIONS:
        assert question not in text
    for answer in set(ANSWERS) - {"2"}:
        assert f'"{answer}"' not in text


def test_a_result_that_is_there_is_made_again_only_if_asked(world, monkeypatch, capsys):
    made = []
    monkeypatch.setattr(experiments, "ROOT", world)
    monkeypatch.setattr(experiments, "run", lambda name, seed: made.append(name))
    (world / "results" / "rdan").mkdir(parents=True)
    (world / "results" / "rdan" / "daquar-k1.json").write_text("{}")
    for words, wanted in {
        ("daquar-k1", "daquar-k3"): ["daquar-k3"],
        ("--again", "daquar-k1"): ["daquar-k1"],
        (): [name for name in experiments.ROWS if name != "daquar-k1"],
        ("--list",): [],
    }.items():
        made.clear()
        monkeypatch.setattr("sys.argv", ["question_experiments.py", *words])
        experiments.main()
        assert made == wanted
    assert "daquar-k1: daquar, r-DAN, K = 1 (done)" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["question_experiments.py", "daquar-k9"])
    with pytest.raises(SystemExit, match="no such row: daquar-k9; wanted of easy-vqa, daquar-k1"):
        experiments.main()
