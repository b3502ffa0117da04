"""Runs that repeat, go on after being stopped, and refuse what is not theirs."""

import json
import signal
import subprocess
import sys
import time

import pytest
import torch
import yaml
from safetensors.torch import load_file

import crossgaze
from crossgaze.errors import InputError
from crossgaze.models.pretrained import load
from crossgaze.models.vsrn_captioner import Captioner
from crossgaze.training.logs import read_log
from crossgaze.training.prepare import prepare
from crossgaze.training.trainer import Run, train
from model_parts import count_calls, save_bert
from training_parts import (
    COLOURS,
    EVERYTHING,
    SMALL,
    THINGS,
    assert_equal_runs,
    settings,
    tree,
    write_world,
)

# Dropout, drawn negatives, batch norm, a companion: all that could remember or draw.
RUNS = {
    "scan": {},
    "vsrn": {"companion": {"hidden": 8, "word_size": 4}},
    "m-dan": {"loss": {"kind": "sampled", "margin": 1.0}, "optimiser": {"kind": "sgd"}},
}


@pytest.fixture
def world(tmp_path):
    return write_world(tmp_path)


class StopError(Exception):
    pass


def stop_after(calls):
    """Return a progress function that raises in a given call."""
    left = [calls]

    def step(done, total):
        left[0] -= 1
        if left[0] < 0:
            raise StopError

    return step


@pytest.mark.parametrize("family", RUNS)
def test_a_run_repeats_and_goes_on_bit_for_bit(world, tmp_path, family):
    config = settings(world, family, **EVERYTHING | RUNS[family] | {"epochs": 3})
    train(config, tmp_path / "whole")
    torch.manual_seed(123)  # what the caller drew before has no say
    train(config, tmp_path / "again")
    assert_equal_runs(tmp_path / "whole", tmp_path / "again")
    for calls in (2, 5, 1, 4):  # in mid-epoch, with and without a checkpoint since
        with pytest.raises(StopError):
            train(config, tmp_path / "stopped", on_progress=stop_after(calls))
    train(config, tmp_path / "stopped")
    assert_equal_runs(tmp_path / "whole", tmp_path / "stopped")


@pytest.mark.parametrize("family", ["mmca", "scan"])
def test_a_run_with_a_frozen_bert_goes_on_bit_for_bit(world, tmp_path, family):
    """A caption's features depend on what BERT reads beside it; after a stop that must not show."""
    torch.manual_seed(0)
    save_bert(tmp_path / "bert", ("a", "the", "stands", "here", *COLOURS, *THINGS))
    text = {"kind": "bert", "bert": str(tmp_path / "bert")}
    # Sentences that are made anew in each step: some come again.
    swaps = {"constraints": {"ccs": 0.1, "drawn": 0}} if family == "scan" else {}
    config = settings(world, family, model=SMALL[family] | {"text": text}, epochs=3, **swaps)
    train(config, tmp_path / "whole")
    for calls in (2, 4):
        with pytest.raises(StopError):
            train(config, tmp_path / "stopped", on_progress=stop_after(calls))
    train(config, tmp_path / "stopped")
    assert_equal_runs(tmp_path / "whole", tmp_path / "stopped")
    for run in ("whole", "stopped"):  # the captions' words stay with the model
        seen = load(tmp_path / run / "best").text.seen
        assert seen >= {"a", "the", "red", "stands", "here"}
        assert seen <= {"a", "the", *COLOURS, *THINGS, "stands", "here"}


@pytest.mark.parametrize("drawn", [0, 2])
def test_a_frozen_bert_reads_swaps_that_were_drawn_before_only_once(tmp_path, drawn):
    world = write_world(tmp_path, images=120)
    save_bert(tmp_path / "bert", ("a", "the", *COLOURS, *THINGS))
    text = {"kind": "bert", "bert": str(tmp_path / "bert")}
    constraints = {"ccs": 0.1, "drawn": drawn}
    config = settings(world, model={"size": 16, "text": text}, constraints=constraints)
    ready = prepare(config)
    run = Run(config, ready, tmp_path / "run", torch.device("cpu"))
    (tmp_path / "run").mkdir()
    calls, known = count_calls(ready.model.text), len(ready.model.text.cache)
    run.one_epoch(lambda done, total: None)
    run.close()
    assert bool(calls) == (drawn == 0)
    assert len(ready.model.text.cache) == known  # those that come once are not kept


def test_words_cannot_be_dropped_from_a_bert(world, tmp_path):
    save_bert(tmp_path / "bert")
    text = {"kind": "bert", "bert": str(tmp_path / "bert")}
    config = settings(world, model={"size": 16, "text": text}, augment={"words": 0.1})
    with pytest.raises(InputError, match=r"augment.words: got words to drop"):
        train(config, tmp_path / "run")


def test_another_seed_is_another_run(world, tmp_path):
    for seed in (0, 1):
        train(settings(world, seed=seed), tmp_path / str(seed))
    first, second = (read_log(tmp_path / str(seed) / "log.jsonl") for seed in (0, 1))
    assert first[0]["loss"] != second[0]["loss"]


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_result(world, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(tree(world, **EVERYTHING | {"epochs": 30})))
    train(settings(world, **EVERYTHING | {"epochs": 30}), tmp_path / "whole", device="cpu")
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "crossgaze", "train", recipe, "--out", out, "--device", "cpu"]
    checkpoint = out / "checkpoint.pt"
    kills = 0
    for wanted in (2, 9):  # checkpoints to see before the kill
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen, last = 0, None
        while seen < wanted and process.poll() is None:
            now = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
            seen, last = seen + (now != last), now
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills == 2, "the runs ended before they were killed"
    assert not (out / "summary.json").exists()
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["steps"] == 120
    assert_equal_runs(tmp_path / "whole", out)


def test_the_rate_follows_the_schedule(world, tmp_path):
    """Four steps an epoch: two of warm-up, a drop after the first epoch."""
    schedule = {"kind": "drop", "after": [1], "factor": 0.25, "warmup": 2}
    config = settings(world, schedule=schedule, optimiser={"rate": 0.008}, log_every=1)
    train(config, tmp_path / "run")
    lines = [line for line in read_log(tmp_path / "run" / "log.jsonl") if line["kind"] == "step"]
    rates = [line["rate"] for line in lines]
    assert rates == pytest.approx([0.004, 0.008, 0.008, 0.008, 0.002, 0.002, 0.002, 0.002])


def test_a_rate_that_drops_to_nearly_nothing_leaves_the_weights(world, tmp_path):
    schedule = {"kind": "drop", "after": [1], "factor": 1e-12}
    history = train(settings(world, schedule=schedule, epochs=3), tmp_path / "run")["history"]
    assert history[0] == history[1] == history[2]
    moving = train(settings(world, epochs=3), tmp_path / "other")["history"]
    assert moving[0] == history[0]
    assert moving[1] != history[1]


def test_progress_grows_from_the_beginning_to_the_end(world, tmp_path):
    """48 captions in batches of 12, two epochs; a run that goes on begins where it stopped."""
    config, steps = settings(world), []
    with pytest.raises(StopError):
        train(config, tmp_path / "run", on_progress=stop_after(7))
    train(config, tmp_path / "run", on_progress=lambda *step: steps.append(step))
    assert steps[0] == (72, 96)  # the checkpoint of step 6, in mid-epoch
    whole = []
    train(config, tmp_path / "whole", on_progress=lambda *step: whole.append(step))
    for found, first in ((whole, 0), (steps, 72)):
        assert {total for _, total in found} == {96}
        done = [count for count, _ in found]
        assert sorted(set(done)) == list(range(first, 97, 12))
        assert done == sorted(done)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_has_what_the_log_has(world, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(settings(world), tmp_path / "run", tensorboard=True)
    lines = read_log(tmp_path / "run" / "log.jsonl")
    found = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    for name, kind, value in (
        ("step/loss", "step", lambda line: line["loss"]),
        ("step/rate", "step", lambda line: line["rate"]),
        ("epoch/dev/rsum", "epoch", lambda line: line["dev"]["rsum"]),
    ):
        wanted = [(line["step"], value(line)) for line in lines if line["kind"] == kind]
        events = [(event.step, event.value) for event in found.Scalars(name)]
        assert [step for step, _ in events] == [step for step, _ in wanted]
        assert [number for _, number in events] == pytest.approx([n for _, n in wanted], rel=1e-6)
    train(settings(world), tmp_path / "plain")
    assert not (tmp_path / "plain" / "tensorboard").exists()


def test_the_best_snapshot_is_the_epoch_with_the_highest_sum(world, tmp_path):
    summary = train(settings(world, epochs=5), tmp_path / "run")
    sums = [figures["rsum"] for figures in summary["history"]]
    assert summary["best_epoch"] == sums.index(max(sums)) + 1
    assert summary["metrics"]["rsum"] == pytest.approx(max(sums), abs=0.001)
    model = crossgaze.load(tmp_path / "run" / "best")
    assert model.origin["epoch"] == summary["best_epoch"]
    from crossgaze.training.prepare import prepare
    from crossgaze.training.validation import evaluate_dev

    dev = prepare(settings(world)).dev
    assert evaluate_dev(model, dev)["rsum"] == pytest.approx(max(sums), abs=1e-9)


def test_training_learns_what_there_is_to_learn(world, tmp_path):
    summary = train(settings(world, epochs=12), tmp_path / "run")
    assert summary["metrics"]["rsum"] > summary["history"][0]["rsum"] + 50
    lines = [line for line in read_log(tmp_path / "run" / "log.jsonl") if line["kind"] == "step"]
    assert lines[-1]["loss"] < 0.5 * lines[0]["loss"]


def test_patience_ends_a_run_that_gets_no_better(world, tmp_path):
    config = settings(world, epochs=50, patience=2, optimiser={"rate": 1e-12})
    summary = train(config, tmp_path / "run")
    assert (summary["best_epoch"], summary["epochs"]) == (1, 3)


def test_averaged_weights_are_what_is_kept(world, tmp_path):
    train(settings(world, average=0.9, epochs=1), tmp_path / "run")
    saved = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    best = load_file(tmp_path / "run" / "best" / "model.safetensors")
    for key, value in best.items():
        assert torch.equal(value, saved["average"]["mean"][f"model.{key}"])
        assert not torch.equal(value, saved["weights"][f"model.{key}"])


def test_a_companion_is_kept_beside_the_model(world, tmp_path):
    config = settings(world, "vsrn", companion={"hidden": 8, "word_size": 4, "weight": 0.5})
    train(config, tmp_path / "run")
    captioner = Captioner.load(tmp_path / "run" / "best-companion")
    assert captioner.config.size == 16
    model = crossgaze.load(tmp_path / "run" / "best")
    images = model.encode_images(torch.rand(2, 4, 12))
    assert len(captioner.greedy(images.features, images.counts)) == 2
    assert "captions" in read_log(tmp_path / "run" / "log.jsonl")[0]


@pytest.mark.parametrize("in_memory", [False, True])
def test_features_in_memory_give_the_same_run(world, tmp_path, in_memory):
    keys = tree(world)
    keys["data"] = keys["data"] | {"in_memory": in_memory}
    found = train(settings(world, data=keys["data"]), tmp_path / "run")
    wanted = train(settings(world), tmp_path / "plain")
    assert found["history"] == wanted["history"]


def test_half_precision_is_refused_on_a_cpu(world, tmp_path):
    """Some CPUs stop at an illegal instruction there, all are slower."""
    with pytest.raises(InputError, match="precision: got bfloat16 on a cpu, wanted float32"):
        train(settings(world, precision="bfloat16"), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_run_with_other_settings_is_refused_by_name(world, tmp_path):
    train(settings(world), tmp_path / "run")
    smaller = settings(world, model={"size": 8, "text": {"word_size": 8}})
    with pytest.raises(InputError, match=r"other settings: model.size is 16, not 8; give the same"):
        train(smaller, tmp_path / "run")
    again = train(settings(world), tmp_path / "run")
    assert again == json.loads((tmp_path / "run" / "summary.json").read_text())


def test_changed_data_are_refused(world, tmp_path):
    with pytest.raises(StopError):
        train(settings(world), tmp_path / "run", on_progress=stop_after(4))
    text = world[0].read_text()
    world[0].write_text(text.replace("red", "crimson"))
    with pytest.raises(InputError, match="captions or regions have changed"):
        train(settings(world), tmp_path / "run")


def test_a_folder_of_something_else_is_refused(world, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(InputError, match=r"holds 'notes.txt', wanted a new folder or a run's"):
        train(settings(world), tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep me"
    with pytest.raises(InputError, match="is a file, wanted a folder for the run"):
        train(settings(world), tmp_path / "mine" / "notes.txt")


def test_a_damaged_checkpoint_is_named(world, tmp_path):
    with pytest.raises(StopError):
        train(settings(world), tmp_path / "run", on_progress=stop_after(4))
    (tmp_path / "run" / "checkpoint.pt").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"checkpoint.pt: does not read as a checkpoint"):
        train(settings(world), tmp_path / "run")


def test_a_loss_that_is_no_number_ends_the_run(tmp_path):
    huge = write_world(tmp_path, dtype="float32", scale=5e37)
    loose = SMALL["sum-max"] | {"normalize_images": False, "size": 64}
    wild = settings(huge, "sum-max", model=loose)
    with pytest.raises(InputError, match="the loss is not a number any more; lower"):
        train(wild, tmp_path / "run")


def test_a_run_starts_from_a_model(world, tmp_path):
    train(settings(world), tmp_path / "first")
    start = tmp_path / "first" / "best"
    config = settings(world, start=str(start), optimiser={"rate": 1e-12}, epochs=1)
    summary = train(config, tmp_path / "second")
    first = json.loads((tmp_path / "first" / "summary.json").read_text())
    assert summary["metrics"]["rsum"] == pytest.approx(first["metrics"]["rsum"], abs=0.01)
    with pytest.raises(InputError, match="is not a vse"):
        train(settings(world, "vse++", start=str(start)), tmp_path / "third")


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: saved.pop("optimiser"),
        lambda saved: saved["weights"].popitem(),
        lambda saved: saved["state"].update(step=-1),
        lambda saved: saved["state"].update(what=1),
        lambda saved: saved.update(weights=[]),
    ],
)
def test_a_checkpoint_of_something_else_is_named(world, tmp_path, change):
    with pytest.raises(StopError):
        train(settings(world), tmp_path / "run", on_progress=stop_after(5))
    path = tmp_path / "run" / "checkpoint.pt"
    saved = torch.load(path, weights_only=True)
    change(saved)
    torch.save(saved, path)
    with pytest.raises(InputError, match=r"checkpoint.pt: is not of this run: \w+Error"):
        train(settings(world), tmp_path / "run")


@pytest.mark.parametrize("text", ["{", "[]", "\xff"])
def test_a_damaged_summary_is_named(world, tmp_path, text):
    with pytest.raises(StopError):
        train(settings(world), tmp_path / "run", on_progress=stop_after(1))
    (tmp_path / "run" / "summary.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"summary.json.*: (is not|does not read as)"):
        train(settings(world), tmp_path / "run")
