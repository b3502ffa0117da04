"""SIGKILL at random moments of extract, train, import and serve; index has its own in search/."""

import json
import random
import shutil
import signal
import time
import urllib.request

import numpy as np
import pytest
import torch
from PIL import Image

import crossgaze
import feature_files
import killing_work
import training_parts
from bad_places import checkpoint
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from killing import calm, kill_often, start
from reliability_parts import record

often = pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.slow)])
WAITING = 16  # photographs that a server finds to add when it starts: eight groups
LONGEST = 0.8  # seconds before it is killed; about as long as it needs to add them


def sound_so_far(folder, known):
    """The store is sound, and what was in it is in it still."""
    if not (folder / "head.json").exists():
        assert not known
        return
    found = verify(folder)
    assert not found.problems
    ids = RegionStore(folder).ids
    assert ids[: len(known)] == tuple(known)
    known[:] = ids


def survives(request, kills, work, source, folder):
    """Kill what makes a store of `source`; return it and the store that nobody disturbed, equal."""
    seconds, known = calm(work, source, folder / "calm"), []

    def again():
        same(RegionStore(folder / "out"), RegionStore(folder / "calm"))
        shutil.rmtree(folder / "out")
        known.clear()

    kill_often(
        kills,
        work,
        source,
        folder / "out",
        seconds=seconds,
        check=lambda: sound_so_far(folder / "out", known),
        again=again,
    )
    calm(work, source, folder / "out")
    stores = RegionStore(folder / "out"), RegionStore(folder / "calm")
    same(*stores)
    record(request, kills=kills)
    return stores


def same(one, other):
    assert one.ids == other.ids
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.boxes, other.boxes)


@often
def test_extract_goes_on_to_the_same_store(request, tmp_path, kills):
    (tmp_path / "photos").mkdir()
    rng = np.random.default_rng(0)
    for number in range(40):
        pixels = rng.integers(0, 256, (32, 32, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number:02}.png")
    store, calm_one = survives(request, kills, killing_work.extract, tmp_path / "photos", tmp_path)
    assert len(store) == len(calm_one) == 40


@often
def test_import_of_features_goes_on_to_the_same_store(request, tmp_path, kills):
    lines = [feature_files.tsv_line(f"{n}", *feature_files.random_image(3, 64)) for n in range(60)]
    (tmp_path / "train.tsv").write_text("".join(lines))
    features = tmp_path / "train.tsv"
    store, calm_one = survives(request, kills, killing_work.bring_features, features, tmp_path)
    assert len(store) == len(calm_one) == 60


@often
def test_import_of_a_checkpoint_leaves_the_old_model_or_the_new(request, tmp_path, kills):
    paths = [checkpoint(tmp_path / f"{value}.pth.tar", value) for value in (0.25, 0.5)]
    out, rng, seen = tmp_path / "model", random.Random(0), []
    for number in range(kills):
        process, told = start(killing_work.bring_models, paths, out)
        if number == 0:
            assert told.recv() == 0  # from here on there is a model
        time.sleep(rng.random() * 0.2)
        end_by_kill(process, told)
        weights = torch.cat([x.flatten() for x in crossgaze.load(out).state_dict().values()])
        assert weights.unique().tolist() in ([0.25], [0.5])  # whole, and never of both
        seen.append(float(weights[0]))
    assert kills < 50 or set(seen) == {0.25, 0.5}
    record(request, kills=kills)


@often
def test_train_goes_on_to_the_same_weights(request, tmp_path, kills):
    paths = training_parts.write_world(tmp_path, images=12, dev=4)
    more = training_parts.EVERYTHING | {"epochs": 2 if kills == 2 else 4}
    tree = training_parts.tree(paths, "vse++", batch=6, save_every=1, **more)
    seconds = calm(killing_work.learn, tree, tmp_path / "calm")
    out = tmp_path / "out"
    ends = []

    def again():
        training_parts.assert_equal_runs(tmp_path / "calm", out)
        shutil.rmtree(out)
        ends.append(1)

    def check():
        if (out / "checkpoint.pt").exists():
            assert isinstance(torch.load(out / "checkpoint.pt", weights_only=True), dict)
        if (out / "best").exists():
            crossgaze.load(out / "best")

    kill_often(kills, killing_work.learn, tree, out, seconds=seconds, check=check, again=again)
    calm(killing_work.learn, tree, out)
    training_parts.assert_equal_runs(tmp_path / "calm", out)
    record(request, kills=kills, ends=len(ends) + 1)


def end_by_kill(process, told):
    """Kill a process that would not have ended by itself, and see that it was the kill."""
    process.kill()
    process.join()
    told.close()
    assert process.exitcode == -signal.SIGKILL


def ask(address, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)


@often
def test_serve_keeps_what_it_told_of(request, tmp_path, kills):
    """Killed while it adds a folder and answers; what it said was found is found ever after."""
    pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
    pytest.importorskip("lancedb", reason="needs crossgaze[search]")
    import search_parts
    import web_parts

    web_parts.make_world(tmp_path, 0).close()
    rng, photos = random.Random(0), tmp_path / "photos"
    told_of, have, made, starts, done = set(), set(), 0, 0, 0
    began = time.monotonic()
    while done < kills:
        assert time.monotonic() < began + 300 + 60 * kills, f"{done} of {kills} kills met a job"
        while made < len(have) + WAITING:
            search_parts.make_photo(photos / f"{made:04}.png", made)
            made += 1
        process, told = start(killing_work.serve, tmp_path)
        starts += 1
        address = told.recv()
        assert ask(address, "index")["photographs"] >= len(told_of)
        state = ask(address, "index", {"folder": str(photos)})["state"]
        end = time.monotonic() + rng.random() * LONGEST
        # The first kill waits for a photograph.
        while state == "running" and (time.monotonic() < end or not told_of):
            told_of |= {card["id"] for card in ask(address, "images?limit=100")["photographs"]}
            state = ask(address, "index")["job"]["state"]
        assert state in ("running", "done")
        end_by_kill(process, told)
        index = web_parts.reopen(tmp_path)
        have = {entry.uid for part in index.tables.photos.every() for entry in part}
        assert told_of <= have
        assert verify(tmp_path / "index" / index.head.store).sound
        index.close()
        # It counts where the service said that it adds, and had not come to the end of it.
        done += state == "running" and len(have) < made
    index = web_parts.reopen(tmp_path)
    index.add(photos)
    assert len(index) == made
    assert told_of <= {entry.uid for part in index.tables.photos.every() for entry in part}
    index.close()
    assert told_of
    record(request, kills=kills, starts=starts)
