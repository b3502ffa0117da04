"""JSON that is gigantic, nested or holds numbers of hundreds of digits, in every file that has it.

What lies beside captions and questions, which tests/data/test_textfiles.py reads.
"""

import json

import numpy as np
import pytest

from crossgaze import memory
from crossgaze.data import textfiles
from crossgaze.data.regions.merge import merge_stores
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError
from crossgaze.evaluation.report import read_ranks
from crossgaze.explain.queries import read_queries
from crossgaze.models.pretrained import family_of
from crossgaze.training.logs import read_log
from crossgaze.vision.backbones.auto import read_preprocessing
from crossgaze.vision.extract import Shard, require_same_shard
from crossgaze.vision.sources.box_files import read_box_file


def merge(path):
    with RegionWriter(path.parent / "part", 4, 6, fields=["counts"]) as writer:
        writer.append(["a"], np.ones((1, 4, 6)))
    moved = path.rename(path.parent / "part" / path.name)
    merge_stores([moved.parent], path.parent / "whole")


READERS = {
    "model": ("config.json", lambda path: family_of(path.parent)),
    "boxes": ("boxes.json", read_box_file),
    "ranks": ("result.json", read_ranks),
    "queries": ("result.json", read_queries),
    "preprocessing": (
        "preprocessor_config.json",
        lambda path: read_preprocessing(str(path.parent)),
    ),
    "merge": ("report.json", merge),
    "extract": ("report.json", lambda path: require_same_shard(path.parent, Shard())),
    "log": ("log.jsonl", read_log),
}


@pytest.mark.parametrize("name", READERS)
def test_gigantic_json_is_refused_unread(tmp_path, name):
    file, read = READERS[name]
    with (tmp_path / file).open("wb") as out:
        out.truncate(1 << 34)  # 16 GB of nothing
    with pytest.raises(InputError, match=rf"{file}: has 17,179,869,184 bytes, .* may have [\d,]+ "):
        read(tmp_path / file)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "\xff", "7", "{"])
def test_json_that_is_something_else_is_one_line(tmp_path, name, text):
    file, read = READERS[name]
    (tmp_path / file).write_bytes(text.encode("latin1") + b"\n")
    with pytest.raises(InputError, match=file) as caught:
        read(tmp_path / file)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["boxes", "ranks", "queries", "log"])
def test_json_whose_values_would_not_fit_is_refused_before_they_are_made(
    tmp_path, monkeypatch, name
):
    file, read = READERS[name]
    (tmp_path / file).write_text('{"a":[' + "[]," * 999 + "[]]}\n")
    monkeypatch.setattr(textfiles, "LARGE_TEXT", 100)
    monkeypatch.setattr(memory, "free_bytes", lambda: 50_000)
    with pytest.raises(InputError, match=rf"{file}: [\d,]+ characters of JSON need .* split the"):
        read(tmp_path / file)


def result(**changes):
    """An evaluation of one image and one caption; numbers of the first may be others."""
    answer = {"caption": 0, "image": "a", "score": changes.get("score", 0.5)}
    entry = {"rank": changes.get("rank", 1), "top": [answer], "image": "a"}
    caption = {"caption": changes.get("caption", 0), "text": "t"} | entry
    protocol = {"folds": 1, "queries": {"images": [entry], "captions": [caption]}}
    return {"format": "crossgaze-evaluation", "version": 1, "protocols": [protocol]}


@pytest.mark.parametrize(
    ("read", "changes"),
    [
        (read_ranks, {"rank": 1 << 80}),
        (read_ranks, {"rank": float("inf")}),
        (read_queries, {"rank": float("inf")}),
        (read_queries, {"score": 10**400}),
        (read_queries, {"caption": float("inf")}),
    ],
)
def test_numbers_of_a_result_that_no_machine_holds_are_refused(tmp_path, read, changes):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result()))
    read(path)
    path.write_text(json.dumps(result(**changes)))
    with pytest.raises(InputError, match=r"result.json: does not read as an evaluation: Overflow"):
        read(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"image_mean": [10**400, 1, 1]},
        {"rescale_factor": 10**400},
        {"rescale_factor": 1e-320},
        {"image_std": [1e308, 1, 1]},  # infinite as the backbone computes
        {"image_std": [1e-300, 1, 1]},  # and nothing
    ],
)
def test_preprocessing_by_numbers_that_no_pixel_has_is_refused(tmp_path, changes):
    path = tmp_path / "preprocessor_config.json"
    good = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    path.write_text(json.dumps(good))
    assert read_preprocessing(str(tmp_path)) == ([127.5] * 3, [127.5] * 3)
    path.write_text(json.dumps(good | changes))
    with pytest.raises(InputError, match=r"preprocessor_config.json: (states|does not state)"):
        read_preprocessing(str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"shard": "1/1000000000000"}, "shard 2/1000000000000 is not among the 1 stores"),
        ({"photos": "many"}, "report.json: does not read as a report: TypeError"),
        ({"unreadable": 3}, "report.json: does not read as a report: TypeError"),
        ({"seconds": float("inf")}, "report.json: does not read as a report: ValueError"),
    ],
)
def test_a_shards_report_that_cannot_be_is_refused(tmp_path, changes, says):
    report = {"shard": "1/1", "finished": True, "photos": 1, "unreadable": [], "seconds": 1.5}
    (tmp_path / "report.json").write_text(json.dumps(report | changes))
    with pytest.raises(InputError, match=says):
        merge(tmp_path / "report.json")
