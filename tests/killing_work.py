"""What the processes of `killing` do; a fork server imports this once for all of them."""

import importlib
import os
import sys
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

import search_parts
import training_parts
from crossgaze.config import build
from crossgaze.data.regions import import_batches
from crossgaze.data.regions.importing import import_regions
from crossgaze.files import only_writer
from crossgaze.models.checkpoints import import_checkpoint
from crossgaze.training.config import TrainConfig
from crossgaze.training.trainer import train
from crossgaze.vision import extract as extracting
from crossgaze.vision.backbones.base import Backbone
from crossgaze.vision.settings import ExtractConfig

__all__ = ["np", "torch", "training_parts"]  # for those that are forked from here

GRID = ExtractConfig(regions="grid", grid=1, size=32, batch=1, workers=2)


class Mean(Backbone):
    """A 'network' that averages 32 x 32 pixels, and takes its time."""

    def __init__(self):
        super().__init__("mean", width=3, stride=32, mean=(0.0,) * 3, scale=(1.0,) * 3)

    def features(self, x):
        time.sleep(0.002)
        return torch.nn.functional.avg_pool2d(x, 32)


def begun(work, told, *args):
    """Say that the work begins, then do it."""
    torch.set_num_threads(1)
    told.send("begun")
    work(told, *args)


def extract(told, photos, out):
    with patch.object(extracting, "GROUP", 4):  # photographs of a commit
        extracting.extract(photos, out, GRID, backbone=Mean())


def learn(told, tree, out):
    train(build(TrainConfig, tree), out, device="cpu")


def bring_features(told, tsv, out):
    with patch.object(import_batches, "BATCH", 2):
        import_regions(tsv, out)


def hold(told, folder):
    """Be the writer of a folder until killed."""
    with only_writer(folder, "this"):
        told.send("held")
        time.sleep(3600)


def bring_models(told, checkpoints, out):
    """Import one checkpoint after the other to the same place, until killed."""
    for number in range(1000):
        path = checkpoints[number % len(checkpoints)]
        import_checkpoint(path, "scan").save_pretrained(out)
        told.send(number)


def train_together(told, environment, out, recipes):
    """Be one of the processes that `torchrun` would start with this environment."""
    os.environ.update(environment)
    _of_folder("training", "ranks_child").main(out, recipes)


def _of_folder(folder, name):
    sys.path.insert(0, str(Path(__file__).parent / folder))
    return importlib.import_module(name)


def run_program(told, name, world, *words):
    """Do what a program of tests/search/ does, and tell the lines that it would print.

    It brings LanceDB, whose threads no fork would survive: it is imported here and never before.
    """
    program = _of_folder("search", name)
    program.say = lambda *said: told.send(" ".join(map(str, said)))
    program.main(world, *words)


def search(told, world, query):
    """Search an index until killed."""
    with search_parts.reopen(world) as index:
        told.send("searches")
        while True:
            index.refresh()
            index.search(query, k=5, exhaustive=True)
            index.search(query, k=5)


def serve(told, world):
    """Serve an index whose source of regions takes its time, as `crossgaze serve` does."""
    from crossgaze.search import adding
    from crossgaze.search.index import Index
    from crossgaze.web.app import create_app
    from crossgaze.web.server import address_of, bind
    from crossgaze.web.server import serve as run
    from crossgaze.web.settings import ServeConfig

    class Slow(search_parts.CellSource):
        def __call__(self, photos, names, go_on):
            time.sleep(0.05)
            return super().__call__(photos, names, go_on)

    adding.COMMIT = adding.GROUP = 2
    adding.default_batch = lambda device: 0  # else a group would be four of its batches
    index = Index.open(world / "index", source=Slow())
    with bind("127.0.0.1", 0) as bound:
        bound.listen(16)  # whoever asks before the service is ready waits
        told.send(address_of(bound, "127.0.0.1"))
        run(create_app(index, ServeConfig(folders=(world / "photos",))), bound)


def serve_command(told, world, out, errors):
    """Be `crossgaze serve` with what it prints in files; after 64 photographs, adding is slow."""
    from crossgaze.cli import main
    from crossgaze.search import adding

    class Slower(search_parts.CellSource):
        def __call__(self, photos, names, go_on):
            for name in names:
                go_on()
                time.sleep(0 if name < "064" else 1)
            return super().__call__(photos, names, go_on)

    for path, stream in ((out, 1), (errors, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    sys.stdout.reconfigure(line_buffering=True)
    adding.COMMIT, adding.GROUP = 1, 64
    words = ["serve", world / "index", "--add", world / "photos", "--answerer", "none", "--port", 0]
    with patch("crossgaze.search.index.open_source", lambda config: Slower()):
        sys.exit(main(list(map(str, words))))
