"""r-DAN by the same loop: what it learns from, that runs repeat, and what is refused."""

import json

import numpy as np
import pytest
import torch

import crossgaze
from crossgaze.config import build
from crossgaze.data.questions.reading import read_questions
from crossgaze.errors import InputError
from crossgaze.training.config import TrainConfig
from crossgaze.training.data_config import DataConfig
from crossgaze.training.logs import read_log
from crossgaze.training.plan import make_plan
from crossgaze.training.prepare import prepare
from crossgaze.training.questions import split_questions
from crossgaze.training.tasks import AnswerStep, look_at_answers, task_of
from crossgaze.training.trainer import train
from training_parts import COLOURS, SMALL, THINGS, asking, write_questions

EVERYTHING = {
    "augment": {"words": 0.2, "regions": 0.2, "features": 0.1, "noise": 0.1},
    "average": 0.9,
    "optimiser": {"kind": "sgd", "rate": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "clip": 0.1},
    "schedule": {"kind": "drop", "after": [1]},
}


@pytest.fixture
def world(tmp_path):
    return write_questions(tmp_path)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A world, the folder of a run in it that has learned what there is, and its summary."""
    folder = tmp_path_factory.mktemp("learned")
    world = write_questions(folder)
    return world, folder / "run", train(asking(world, epochs=25), folder / "run")


class StopError(Exception):
    pass


def stop_after(calls):
    left = [calls]

    def step(done, total):
        left[0] -= 1
        if left[0] < 0:
            raise StopError

    return step


def weights(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["weights"]


def test_a_run_repeats_and_goes_on_bit_for_bit(world, tmp_path):
    config = asking(world, **EVERYTHING, epochs=3)
    whole = train(config, tmp_path / "whole")
    torch.manual_seed(123)
    train(config, tmp_path / "again")
    for calls in (2, 5, 1, 4):
        with pytest.raises(StopError):
            train(config, tmp_path / "stopped", on_progress=stop_after(calls))
    stopped = train(config, tmp_path / "stopped")
    assert stopped["history"] == whole["history"]
    for other in ("again", "stopped"):
        for key, value in weights(tmp_path / "whole").items():
            assert torch.equal(value, weights(tmp_path / other)[key]), key


def test_training_learns_and_the_best_snapshot_is_kept(learned):
    world, run, summary = learned
    accuracies = [figures["accuracy"] for figures in summary["history"]]
    assert summary["best_epoch"] == accuracies.index(max(accuracies)) + 1
    assert summary["metrics"]["accuracy"] == pytest.approx(max(accuracies), abs=0.001)
    assert max(accuracies) > accuracies[0] + 25
    assert set(summary["metrics"]) == {"accuracy", "yes_no", "other"}
    assert {"train_questions", "dev_questions"} <= set(summary["data"])
    assert summary["metrics_of"] == "30 % of the images of train"
    model = crossgaze.load(run / "best")
    assert model.origin["questions"] == "daquar"
    assert "accuracy on dev" in model.origin
    dev = prepare(asking(world)).dev
    assert look_at_answers(model, dev)["accuracy"] == pytest.approx(max(accuracies), abs=1e-9)
    lines = read_log(run / "log.jsonl")
    assert {"loss", "right"} <= lines[0].keys()
    assert (run / "curves.png").stat().st_size > 10_000


@pytest.mark.parametrize("reads", ["question", "image"])
def test_the_picture_is_needed_for_what_it_shows(learned, tmp_path, reads):
    """Question only cannot know the thing; image only cannot know what was asked."""
    world, _, both = learned
    # Longer than both together stand still before they learn; these two stand still for good.
    config = asking(world, model=SMALL["r-dan"] | {"reads": reads}, epochs=25, patience=12)
    alone = train(config, tmp_path / "run")
    assert both["metrics"]["accuracy"] > alone["metrics"]["accuracy"] + 10


def test_the_loss_is_the_cross_entropy_of_the_right_answers(world):
    config = asking(world, model={"size": 16, "dropout": 0.0})
    ready = prepare(config)
    batch = ready.train.read(np.arange(10))
    objective, told = AnswerStep(config, ready.model)(batch, None)
    with torch.no_grad():
        model = ready.model.eval()
        total = 0.0
        for i in range(10):
            question = ready.train.questions[i]
            count = int(batch.counts[i])
            logits = model.answer(batch.regions[i : i + 1, :count].float(), [question.text]).logits
            right = model.answers.index(question.answer)
            total -= float(logits[0].log_softmax(0)[right])
    assert objective.item() == pytest.approx(total / 10, rel=1e-5)
    assert float(told["loss"]) == pytest.approx(total / 10, rel=1e-5)
    assert 0 <= float(told["right"]) <= 1


def test_rare_answers_are_left_out_of_training_and_wrong_on_dev(world):
    ready = prepare(asking(world, data={"answers": 3}))
    assert len(ready.model.answers) == 3
    assert ready.model.answers[0] == "yes"
    assert {q.answer for q in ready.train.questions} == set(ready.model.answers)
    assert (ready.train.labels >= 0).all()
    assert (ready.dev.labels == -1).any()
    assert any("with a rarer answer are left out" in note for note in ready.notes)
    figures = look_at_answers(ready.model, ready.dev)
    known = float((ready.dev.labels >= 0).mean())
    assert figures["accuracy"] <= 100 * known


def test_dev_is_a_part_of_the_training_images_alone(world):
    config = asking(world).data
    train_part, dev, notes = split_questions(config)
    official = read_questions(world[0])
    test = set(official.split("test").images)
    assert not set(train_part.images) & set(dev.images)
    assert not (set(train_part.images) | set(dev.images)) & test
    assert set(train_part.images) | set(dev.images) == set(official.split("train").images)
    assert all(len(q.answers) == 1 for q in (*train_part.questions, *dev.questions))
    assert any("several answers are left out" in note for note in notes)
    assert {q.answer for q in dev.questions} <= {*THINGS, *COLOURS, "yes"}


def test_a_plan_speaks_of_questions(world, tmp_path):
    plan = make_plan(asking(world), tmp_path / "run")
    assert plan["loss"] == "cross-entropy"
    assert "questions of" in plan["learns from"]
    assert plan["answers"] == len(prepare(asking(world)).model.answers)
    assert task_of(asking(world)).figure == "accuracy"


def test_a_run_starts_from_a_model(world, tmp_path):
    first = train(asking(world, epochs=3), tmp_path / "first")
    start = str(tmp_path / "first" / "best")
    config = asking(world, start=start, optimiser={"rate": 1e-12}, epochs=1)
    second = train(config, tmp_path / "second")
    assert second["metrics"]["accuracy"] == pytest.approx(first["metrics"]["accuracy"], abs=0.01)
    fewer = asking(world, start=start, data={"answers": 3})
    with pytest.raises(InputError, match="another configuration or other answers"):
        prepare(fewer)


def test_changed_questions_are_refused(world, tmp_path):
    with pytest.raises(StopError):
        train(asking(world), tmp_path / "run", on_progress=stop_after(4))
    path = world[0] / "all_qa_pairs.txt"
    path.write_text(path.read_text().replace("is there a", "is there one"))
    with pytest.raises(InputError, match="questions or regions have changed since this run began"):
        train(asking(world), tmp_path / "run")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"family": "scan", "model": {}}, "data: scan learns from captions, wanted data.captions"),
        ({"constraints": {"ccr": 1.0}}, "constraints: r-dan has none"),
        ({"companion": {"hidden": 8}}, "companion: r-dan has none"),
        ({"data": {"captions": "x"}}, "data: got both of captions and questions"),
        ({"data": {"questions": None}}, "data: got neither of captions and questions"),
        ({"data": {"answers": 0}}, "data.answers: got 0"),
        ({"model": {"stepz": 3}}, "model: unknown key 'stepz'"),
    ],
)
def test_a_wrong_recipe_is_refused(world, changed, message):
    with pytest.raises(InputError, match=message):
        asking(world, **changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": {"answers": ["a", "b"]}}, "model.answers: are found in the training questions"),
        ({"data": {"dev_share": 0.0}}, "no split 'dev'"),
        ({"data": {"dev_share": 1e-9}}, "leaves nothing to learn from or to choose by"),
        ({"data": {"questions": "nowhere"}}, "nowhere: no such file or folder"),
    ],
)
def test_data_that_cannot_be_learned_from_is_refused(world, changed, message):
    with pytest.raises(InputError, match=message):
        prepare(asking(world, **changed))


def test_captions_have_no_settings_of_questions():
    keys = {"captions": "a", "regions": "b", "dev_share": 0.1}
    with pytest.raises(InputError, match="are settings of questions"):
        build(DataConfig, keys)
    config = build(TrainConfig, {"data": {"captions": "a", "regions": "b"}})
    assert config.task == "match"
    assert json.dumps(task_of(config).figure) == '"rsum"'
