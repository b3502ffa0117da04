"""Two processes that train together do what one does with the whole batch."""

import json
import socket

import pytest
import torch
from safetensors.torch import load_file

import killing
import killing_work
from crossgaze.config import to_dict
from crossgaze.data.text.vocabulary import UNKNOWN
from crossgaze.errors import InputError
from crossgaze.training.distributed import choose_device, process_group
from crossgaze.training.logs import read_log
from model_parts import save_bert
from training_parts import COLOURS, SMALL, THINGS, asking, tree, write_questions, write_world

# Without dropout: it is drawn for each part by itself. The caption generator has some by default.
CASES = {
    "scan": {},
    "scan-constrained": {"constraints": {"ccr": 0.5, "ccs": 2.0}, "augment": {"words": 0.3}},
    "scan-drawn": {"constraints": {"ccs": 2.0, "drawn": 2}},
    "scan-bert": {"constraints": {"ccs": 2.0, "drawn": 2}},
    "bfan-mean": {"constraints": {"ccr": 0.5, "mean": True}, "loss": {"mean": True}},
    "vse++": {"loss": {"kind": "violations"}},
    "mmca": {},
    "m-dan": {"loss": {"kind": "sampled", "margin": 1.0, "negatives": 2}},
    "r-dan": {},
    "vsrn": {"companion": {"hidden": 8, "word_size": 4, "dropout": 0.0}},
}


def recipe(world, name):
    if name == "r-dan":
        return to_dict(
            asking(write_questions(world[0].parent), model=SMALL[name] | {"dropout": 0.0})
        )
    family = {"bfan-mean": "bfan"}.get(name, "scan" if name.startswith("scan") else name)
    keys = tree(world, family, **CASES[name])
    if name == "scan-bert":
        folder = world[0].parent / "bert"
        torch.manual_seed(0)
        save_bert(folder, ("a", "the", "stands", "here", *COLOURS, *THINGS))
        keys["model"] = {"size": 16, "text": {"kind": "bert", "bert": str(folder)}}
    if family == "m-dan":
        keys["model"] = keys["model"] | {"dropout": 0.0}
    return keys


def start(out, recipes, rank, ranks, port):
    out.mkdir(exist_ok=True)
    given = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_PORT": port}
    environment = {key: str(value) for key, value in given.items()} | {"MASTER_ADDR": "127.0.0.1"}
    process, _ = killing.start(killing_work.train_together, environment, out, recipes)
    return process


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    world = write_world(folder, images=72)  # enough for words that can be swapped
    recipes = []
    for name in CASES:
        recipes.append(folder / f"{name}.json")
        recipes[-1].write_text(json.dumps(recipe(world, name)))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for ranks in (1, 2):
        out = folder / str(ranks)
        started = [start(out, recipes, rank, ranks, port) for rank in range(ranks)]
        for process in started:
            process.join(300)
        assert [process.exitcode for process in started] == [0] * ranks
    return folder


def load(results, ranks, rank, case):
    return torch.load(results / str(ranks) / f"rank{rank}.pt", weights_only=True)[case]


@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradients_are_those_of_one_process(results, case):
    alone = load(results, 1, 0, case)
    for rank in range(2):
        found = load(results, 2, rank, case)
        for name, value in alone["told"].items():
            assert float(found["told"][name]) == pytest.approx(float(value), rel=1e-5), name
        for name, gradient in alone["gradients"].items():
            torch.testing.assert_close(
                found["gradients"][name], gradient, rtol=1e-4, atol=1e-6, msg=name
            )
        for name, value in alone["buffers"].items():
            torch.testing.assert_close(found["buffers"][name], value, rtol=1e-5, atol=1e-6)
    assert any(bool(gradient.abs().sum() > 0) for gradient in alone["gradients"].values())


def test_each_process_reads_its_own_part(results):
    parts = [load(results, 2, rank, "scan")["read"] for rank in range(2)]
    assert [len(part) for part in parts] == [6, 5]
    assert torch.cat(parts).tolist() == list(range(3, 14))


def test_constraints_were_at_work(results):
    told = load(results, 2, 0, "scan-constrained")["told"]
    assert told["ccr"] > 0
    assert told["ccs"] > 0
    assert load(results, 2, 0, "scan-drawn")["told"]["ccs"] > 0


@pytest.mark.parametrize("case", ["scan-constrained", "scan-drawn"])
def test_words_are_dropped_and_swapped_as_one_process_draws_them(results, case):
    alone = load(results, 1, 0, case)
    parts = [load(results, 2, rank, case) for rank in range(2)]
    for name in ("shown", "swapped"):
        assert torch.equal(torch.cat([part[name] for part in parts]), alone[name])
        assert [len(part[name]) for part in parts] == [6, 5]
    assert not torch.equal(alone["shown"], alone["swapped"])
    dropped = (alone["shown"] == UNKNOWN).sum() > 0
    assert bool(dropped) == (case == "scan-constrained")


def test_a_frozen_bert_reads_in_one_process_and_the_others_take_what_it_kept(results):
    alone = load(results, 1, 0, "scan-bert")["reads"]
    assert alone > 1  # captions, and swapped sentences
    assert [load(results, 2, rank, "scan-bert")["reads"] for rank in range(2)] == [alone, 0]
    kept = [{path.name for path in (results / n / "words").iterdir()} for n in ("1", "2")]
    assert kept[0] == kept[1]
    assert len(kept[0]) == 2


def test_a_whole_run_goes_the_same_way(results):
    logs = [read_log(results / str(ranks) / "run" / "log.jsonl") for ranks in (1, 2)]
    assert [line["kind"] for line in logs[0]] == [line["kind"] for line in logs[1]]
    for one, two in zip(*logs, strict=True):
        if one["kind"] == "step":
            assert two["loss"] == pytest.approx(one["loss"], rel=1e-3)
    summary = json.loads((results / "2" / "run" / "summary.json").read_text())
    assert summary["ranks"] == 2


def test_one_process_measures_batch_norms_while_the_others_wait(results):
    logs = [read_log(results / str(ranks) / "run-with-norms" / "log.jsonl") for ranks in (1, 2)]
    looks = [[line["dev"] for line in log if line["kind"] == "epoch"] for log in logs]
    assert looks[0]
    assert looks[0] == looks[1]
    kept = [results / str(ranks) / "run-with-norms/best/model.safetensors" for ranks in (1, 2)]
    one, two = map(load_file, kept)
    torch.testing.assert_close(two["bn.running_mean"], one["bn.running_mean"], rtol=1e-3, atol=1e-4)


def test_a_device_that_is_not_there_is_named():
    for name in ("gpu", "meta"):
        wanted = f"device: '{name}' cannot be used here, wanted auto, cpu, cuda or cuda:1: "
        with pytest.raises(InputError, match=wanted):
            choose_device(name)
    if not torch.cuda.is_available():
        assert choose_device("auto") == torch.device("cpu")
        with pytest.raises(InputError, match="device: 'cuda' cannot be used here"):
            choose_device("cuda")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"WORLD_SIZE": "abc"}, "WORLD_SIZE: got 'abc', wanted a number; start several"),
        ({"LOCAL_RANK": "-1"}, "LOCAL_RANK: got '-1', wanted a number"),
        ({"WORLD_SIZE": "2"}, "RANK: it is not set; start several processes with torchrun"),
        ({"WORLD_SIZE": "2", "RANK": "1", "MASTER_PORT": "x"}, "MASTER_PORT: got 'x'"),
    ],
)
def test_what_another_launcher_left_is_refused_in_a_line(variables, message, monkeypatch):
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=message), process_group("cpu"):
        pass
