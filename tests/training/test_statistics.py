"""Statistics of batch norms: those of whole images through the weights that are kept, by loops."""

import math

import pytest
import torch
from safetensors.torch import load_file

from crossgaze.training.prepare import prepare
from crossgaze.training.statistics import measured_statistics
from crossgaze.training.trainer import train
from training_parts import SMALL, settings, write_world

MEAN = SMALL["vsrn"] | {"layers": 0, "reasoning": "mean"}


@pytest.fixture
def world(tmp_path):
    return write_world(tmp_path)


def by_loops(weights, regions):
    """Mean and variance, by number, of the mean region of every image of VSRN without reasoning.

    v = W f + b of each region; each number divided by its length over the image's regions; the
    mean over them. The variance is the sample's, as torch keeps it.
    """
    rows = []
    for number in range(len(regions)):
        features, count = regions.gather(torch.tensor([number]).numpy())
        found = features[0, : int(count)].double() @ weights["fc.weight"].double().T
        found = found + weights["fc.bias"].double()
        row = []
        for column in found.T.tolist():
            length = math.sqrt(sum(value * value for value in column))
            row.append(sum(value / length for value in column) / len(column))
        rows.append(row)
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    spread = [
        sum((value - mean) ** 2 for value in column) / (len(rows) - 1)
        for column, mean in zip(zip(*rows, strict=True), means, strict=True)
    ]
    return means, spread


def test_they_are_those_of_the_images_and_gone_afterwards(world):
    ready = prepare(settings(world, "vsrn", model=MEAN))
    model = ready.model.train()
    before = {name: value.clone() for name, value in model.named_buffers()}
    means, spread = by_loops(model.state_dict(), ready.train.regions)
    with measured_statistics(model, ready.train.regions):
        assert model.bn.running_mean.tolist() == pytest.approx(means, abs=1e-6)
        assert model.bn.running_var.tolist() == pytest.approx(spread, rel=1e-3)
        assert not model.training
        assert not model.bn.training
    assert model.training
    assert model.bn.training
    assert model.bn.momentum == 0.1
    for name, value in model.named_buffers():
        assert torch.equal(value, before[name])
    # Others than training had: the test could not fail otherwise.
    assert not torch.allclose(before["bn.running_mean"], torch.tensor(means).float())


def test_every_layer_has_them_and_one_that_no_image_meets_keeps_its_own(world):
    ready = prepare(settings(world, "vsrn"))
    model = ready.model.eval()
    model.unused = torch.nn.BatchNorm1d(3)
    model.unused.running_mean.fill_(7.0)
    with torch.no_grad():  # a fresh graph layer gives nothing to the next
        for layer in model.relation_layers:
            layer.W[1].weight.fill_(1.0)
    with measured_statistics(model, ready.train.regions):
        found = [layer.W[1].running_mean.abs().sum() for layer in model.relation_layers]
        assert all(found)
        assert model.unused.running_mean.tolist() == [7.0] * 3
        vectors = model.encode_images(*ready.train.regions.gather(torch.arange(24).numpy()))
        assert vectors.vectors.isfinite().all()
    assert not model.relation_layers[0].W[1].running_mean.any()


def test_a_model_without_norms_is_not_run(world, monkeypatch):
    ready = prepare(settings(world, "scan"))
    calls = []
    monkeypatch.setattr(ready.model, "encode_images", lambda *given: calls.append(given))
    with measured_statistics(ready.model, ready.train.regions):
        assert ready.model.training
    assert not calls


def test_what_is_interrupted_leaves_everything_as_it_was(world, monkeypatch):
    ready = prepare(settings(world, "vsrn"))
    before = ready.model.bn.running_var.clone()

    def fails(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ready.model, "encode_images", fails)
    with (
        pytest.raises(KeyboardInterrupt),
        measured_statistics(ready.model, ready.train.regions),
    ):
        pass
    assert torch.equal(ready.model.bn.running_var, before)
    assert ready.model.bn.training


@pytest.mark.parametrize("more", [{"average": 0.9}, {"augment": {"regions": 0.5}}])
def test_a_run_keeps_them_with_its_model(world, tmp_path, more):
    config = settings(world, "vsrn", model=MEAN, epochs=1, **more)
    train(config, tmp_path / "run")
    best = load_file(tmp_path / "run" / "best" / "model.safetensors")
    means, spread = by_loops(best, prepare(config).train.regions)
    assert best["bn.running_mean"].tolist() == pytest.approx(means, abs=1e-6)
    assert best["bn.running_var"].tolist() == pytest.approx(spread, rel=1e-3)
    # Training goes on with what it gathered itself.
    saved = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["weights"]
    assert not torch.equal(saved["model.bn.running_mean"], best["bn.running_mean"])


def test_where_use_is_as_training_is_they_stay_what_training_gathered(world, tmp_path):
    """So a run by a paper's recipe is the public code's."""
    train(settings(world, "vsrn", epochs=1, augment={"words": 0.1}), tmp_path / "run")
    best = load_file(tmp_path / "run" / "best" / "model.safetensors")
    saved = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["weights"]
    for name in ("bn.running_mean", "bn.running_var", "Rs_GCN_1.W.1.running_mean"):
        assert torch.equal(best[name], saved[f"model.{name}"])
