"""A tiny run from files to a detector: stopped, gone on with, and the same."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from crossgaze.errors import InputError
from crossgaze.vision.objects.detector import load_detector
from crossgaze.vision.objects.finishing import finish
from crossgaze.vision.objects.network import NetworkConfig
from crossgaze.vision.objects.run import SECOND, Run
from crossgaze.vision.objects.train_config import TrainConfig
from crossgaze.vision.objects.training import read_split, train

NETWORK = NetworkConfig(size=64, width=8, first=60, proposals=20, hidden=16)
XML = (
    "<annotation><size><width>100</width><height>50</height></size><object><name>1</name>"
    "<bndbox><xmin>11</xmin><ymin>6</ymin><xmax>60</xmax><ymax>40</ymax></bndbox></object>"
    "</annotation>"
)


@pytest.fixture
def config(tmp_path):
    """Three training photographs, of which one has no annotation, and one for dev."""
    flickr8k, entities = tmp_path / "flickr8k", tmp_path / "entities"
    (flickr8k / "images").mkdir(parents=True)
    for part in ("Annotations", "Sentences"):
        (entities / part).mkdir(parents=True)
    names = ["1_a.jpg", "2_b.jpg", "3_c.jpg", "4_d.jpg"]
    rng = np.random.default_rng(0)
    for name in names:
        pixels = rng.integers(0, 256, (50, 100, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(flickr8k / "images" / name)
        number = name[0]
        if number != "3":
            (entities / "Annotations" / f"{number}.xml").write_text(XML)
            line = "[/EN#1/animals A brown dog] runs .\n"
            (entities / "Sentences" / f"{number}.txt").write_text(line)
    (flickr8k / "Flickr8k.token.txt").write_text("".join(f"{n}#0\tA dog .\n" for n in names))
    (flickr8k / "Flickr_8k.trainImages.txt").write_text("\n".join(names[:3]))
    (flickr8k / "Flickr_8k.devImages.txt").write_text("4_d.jpg")
    (tmp_path / "run").mkdir()
    return TrainConfig(
        flickr8k, entities, tmp_path / "run", network=NETWORK, epochs=2, second=2, batch=2, least=2
    )


def test_annotated_photographs_only(config):
    split, words = read_split(config.flickr8k, config.entities, "train", 2)
    assert split.images == ("1_a.jpg", "2_b.jpg")
    assert (words.nouns, words.attributes) == (("dog",), ("brown",))


@pytest.mark.parametrize("last", [2, 3, 4])
def test_a_run_that_was_stopped_ends_where_one_that_was_not_does(
    last, config, tmp_path, monkeypatch
):
    whole = train(config).state_dict()
    other = replace(config, out=tmp_path / "other")
    other.out.mkdir()
    step, calls = Run.step, []

    def stop_in_the_last_epoch(self, *args):
        calls.append(1)
        if len(calls) == last:
            raise KeyboardInterrupt
        return step(self, *args)

    monkeypatch.setattr(Run, "step", stop_in_the_last_epoch)
    with pytest.raises(KeyboardInterrupt):
        train(other)
    monkeypatch.setattr(Run, "step", step)
    again = train(other).state_dict()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    lines = [json.loads(line) for line in (other.out / "log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    assert all(np.isfinite(line["objectness"]) for line in lines[:2])
    assert all(np.isfinite(line["quality"]) for line in lines[2:])
    with pytest.raises(InputError, match="other settings"):
        train(replace(other, rate=0.5))
    chosen = replace(other, selection=replace(other.selection, weights=(1.0, 0.0, 0.0)))
    assert train(chosen).state_dict().keys()  # the choice is made after training


def test_the_stages_learn_one_after_the_other(config):
    torch.manual_seed(0)
    train(replace(config, second=0))
    first = torch.load(config.out / "state.pt", weights_only=True)["model"]
    config = replace(config, out=config.out.parent / "both")
    config.out.mkdir()
    both = train(config).state_dict()
    for name in both:
        assert torch.equal(first[name], both[name]) != name.startswith(SECOND), name


def test_from_training_to_a_detector_on_disk(config):
    detector = finish(config, train(replace(config, epochs=1, rounds=1, second=1)))
    detector.save(config.out / "model")
    found = load_detector(config.out / "model")
    assert found.nouns == ("dog",)
    assert found.selection == detector.selection
    pixels = torch.randint(0, 256, (2, 64, 64, 3), dtype=torch.uint8)
    for ours, theirs in zip(found(pixels), detector(pixels), strict=True):
        assert 1 <= len(ours) <= 36
        np.testing.assert_allclose(ours.boxes[0], theirs.boxes[0], atol=5e-3)  # 16-bit weights


def test_rounds_divide_the_epochs(config):
    with pytest.raises(InputError, match="rounds: got 2 for 3 epochs"):
        train(replace(config, epochs=3))


def test_nothing_annotated(config):
    for path in (config.entities / "Annotations").iterdir():
        path.unlink()
    with pytest.raises(InputError):
        read_split(config.flickr8k, config.entities, "train")
