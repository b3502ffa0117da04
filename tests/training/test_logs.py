"""Logs, TensorBoard, curves and the summary."""

import json
import math
import sys

import pytest
import torch
from PIL import Image

from crossgaze.errors import InputError, MissingExtraError
from crossgaze.training.curves import draw_curves
from crossgaze.training.logs import RunLog, read_log
from crossgaze.training.summary import git_version
from crossgaze.training.trainer import train
from training_parts import settings, write_world

RECALLS = ("i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10")


def lines(epochs=3, rise=1.0):
    for epoch in range(1, epochs + 1):
        for part in (0.5, 1.0):
            at = epoch - 1 + part
            yield {"kind": "step", "step": int(4 * at), "at": at, "loss": 20 / (1 + rise * at)}
        figures = dict.fromkeys(RECALLS, 10.0 * epoch)
        dev = figures | {"rsum": sum(figures.values())}
        yield {"kind": "epoch", "step": 4 * epoch, "epoch": epoch, "dev": dev, "best": True}


def test_a_log_is_cut_to_what_a_checkpoint_knew(tmp_path):
    log = RunLog(tmp_path)
    log.write({"kind": "step", "step": 1})
    size = log.size()
    log.write({"kind": "step", "step": 2})
    log.close()
    again = RunLog(tmp_path, size=size)
    again.write({"kind": "step", "step": 3})
    again.close()
    assert [line["step"] for line in read_log(tmp_path / "log.jsonl")] == [1, 3]


def test_half_a_line_is_not_read_and_nonsense_is_named(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"a": 1}\n{"a": ')
    assert read_log(tmp_path / "log.jsonl") == [{"a": 1}]
    for text, says in (("what", "is not JSON"), ("[1]", "is a list, wanted an object")):
        (tmp_path / "log.jsonl").write_text(f'{{"a": 1}}\n{text}\n')
        with pytest.raises(InputError, match=f"log.jsonl, line 2: {says}"):
            read_log(tmp_path / "log.jsonl")


def _damaged(data):
    """Ways in which a log of lines is not what the run wrote."""
    lines = data.splitlines(keepends=True)
    yield "bytes, and had", b"".join(lines[:-1])
    yield "no such file", None
    yield "has no line that ends at byte", data[:-1] + b" "
    yield "line 1: is not UTF-8", b"\xff" + data[1:]
    yield "line 1: is not JSON", b"\0" * len(data[:-1]) + b"\n"
    yield "line 1: is a list", b"[" + b" " * (len(lines[0]) - 3) + b"]\n" + b"".join(lines[1:])
    yield "line 1: is no line of a training run", data.replace(b'"loss"', b'"lass"')
    yield "line 1: is no line of a training run", data.replace(b'"kind": "step"', b'"kind": "stop"')
    yield "its epochs are not those of the checkpoint", data.replace(b'"rsum"', b'"rsun"')


class StopError(Exception):
    pass


def test_a_damaged_log_is_refused_before_training_goes_on(tmp_path):
    """At the end, hours later, it would be too late."""
    config = settings(write_world(tmp_path), "vse++", epochs=3, save_every=1)

    def stop(done, total):
        if done >= total / 2:
            raise StopError

    def never(done, total):
        pytest.fail("training went on")

    with pytest.raises(StopError):
        train(config, tmp_path / "run", on_progress=stop)
    log = tmp_path / "run" / "log.jsonl"
    saved = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    good = log.read_bytes()[: saved["state"]["log_bytes"]]
    assert {line["kind"] for line in map(json.loads, good.splitlines())} == {"step", "epoch"}
    for says, bad in _damaged(good):
        log.unlink() if bad is None else log.write_bytes(bad)
        with pytest.raises(InputError, match=f"log.jsonl.*{says}") as caught:
            train(config, tmp_path / "run", on_progress=never)
        assert len(str(caught.value).splitlines()) == 1
        log.write_bytes(good)
    log.write_bytes(good + b"\0\xff junk after the checkpoint")
    assert train(config, tmp_path / "run")["epochs"] == 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_has_the_same_numbers(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = RunLog(tmp_path, tensorboard=True)
    for line in lines():
        log.write(line)
    log.close()
    found = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    sums = [(event.step, event.value) for event in found.Scalars("epoch/dev/rsum")]
    assert sums == [(4, 60.0), (8, 120.0), (12, 180.0)]
    assert len(found.Scalars("step/loss")) == 6


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kept", [0, 4])
def test_tensorboard_forgets_what_came_after_the_checkpoint(tmp_path, kept):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = RunLog(tmp_path, tensorboard=True)
    for step in (2, 4, 6, 8):
        log.write({"kind": "step", "step": step, "loss": 1.0})
    log.close()
    again = RunLog(tmp_path, step=kept, tensorboard=True)
    again.write({"kind": "step", "step": kept + 1, "loss": 2.0})
    again.close()
    found = EventAccumulator(str(tmp_path / "tensorboard")).Reload().Scalars("step/loss")
    before = [(step, 1.0) for step in (2, 4) if step <= kept]
    assert [(event.step, event.value) for event in found] == [*before, (kept + 1, 2.0)]


def test_a_gradient_that_overflowed_is_null_in_the_log(tmp_path):
    log = RunLog(tmp_path)
    log.write({"kind": "step", "step": 1, "gradient": math.inf, "loss": 2.0})
    log.close()
    text = (tmp_path / "log.jsonl").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["gradient"] is None


@pytest.mark.parametrize("fallen", [True, False])
def test_a_collapse_stands_in_the_notes(tmp_path, monkeypatch, fallen):
    """As if the spread of all scores, or of none, told a collapse (see test_warm_start.py)."""
    world = write_world(tmp_path)
    monkeypatch.setattr("crossgaze.training.trainer.collapsed", lambda spread: fallen)
    notes = train(settings(world, epochs=2), tmp_path / "run")["notes"]
    assert ["loss.warm_steps" in note for note in notes if "collapsed" in note] == [True] * fallen


def test_without_tensorboard_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crossgaze\[train\]'"):
        RunLog(tmp_path, tensorboard=True)


@pytest.mark.parametrize("runs", [1, 2])
def test_curves_are_a_picture_with_something_on_it(tmp_path, runs):
    logs = []
    for number in range(runs):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines(rise=1 + number)))
        logs.append((f"run {number}", path))
    draw_curves(logs, tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.width >= 1000
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 50


def test_curves_of_nothing_are_refused(tmp_path):
    with pytest.raises(InputError, match="logs: got none"):
        draw_curves([], tmp_path / "curves.png")


def test_a_run_without_matplotlib_ends_with_a_note(tmp_path, monkeypatch):
    world = write_world(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    summary = train(settings(world, epochs=1), tmp_path / "run")
    assert not (tmp_path / "run" / "curves.png").exists()
    assert any("pip install 'crossgaze[train]'" in note for note in summary["notes"])


def test_the_summary_says_what_was_done(tmp_path):
    world = write_world(tmp_path)
    summary = train(settings(world, seed=3), tmp_path / "run", command="crossgaze train x")
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["command"] == "crossgaze train x"
    assert summary["seed"] == 3
    assert summary["config"]["batch"] == 12
    assert summary["model"]["region_width"] == 12
    assert summary["data"]["train_captions"] == 48
    assert summary["versions"]["git"] == git_version()
    assert set(RECALLS) < summary["metrics"].keys()
    assert (tmp_path / "run" / "curves.png").is_file()
