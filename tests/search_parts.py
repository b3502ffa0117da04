"""What the tests of search need: small models, regions without a network, photographs."""

import zlib
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.summax import SumMax, SumMaxConfig
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.search.index import Index
from crossgaze.vision.photos import read_photo
from crossgaze.vision.sources.base import Found

WIDTH, REGIONS = 6, 4
WORDS = Vocabulary.build(["a red green blue dog cat runs in the snow ."], min_count=1)


class CellSource:
    """2 x 2 cells of a photograph, whose features are simple functions of its pixels."""

    regions, width, size, multiple = REGIONS, WIDTH, 8, 8
    fields = ("confidence", "classes")
    labels = {"classes": ("top left", "top right", "bottom left", "bottom right")}  # noqa: RUF012
    device = torch.device("cpu")

    def __init__(self, version=1):
        self.made_by = {"regions": "cells", "version": version}

    def __call__(self, photos, names, go_on):
        found = []
        for photo in photos:
            go_on()
            x = photo.pixels.astype(np.float32) / 255
            cells = x.reshape(2, 4, 2, 4, 3).mean((1, 3)).reshape(4, 3)
            features = np.concatenate([cells, cells**2 + 0.1], 1)
            # Dark photographs have fewer regions, so that counts differ.
            count = 4 if x.mean() > 0.5 else 3
            boxes = [(c % 2 / 2, c // 2 / 2, (c % 2 + 1) / 2, (c // 2 + 1) / 2) for c in range(4)]
            kept = slice(0, count)
            fields = {
                "confidence": np.linspace(1, 0.1, 4, dtype=np.float32)[kept],
                "classes": np.arange(4)[kept],
            }
            found.append(Found(features[kept], np.array(boxes, np.float32)[kept], fields))
        return found


def embedder(seed=0, size=5):
    torch.manual_seed(seed)
    text = TextConfig(word_size=4, bidirectional=False)
    return Vse(VseConfig(region_width=WIDTH, size=size, text=text), WORDS).eval()


def reranker(seed=1, size=5):
    torch.manual_seed(seed)
    text = TextConfig(word_size=4)
    return Scan(ScanConfig(region_width=WIDTH, size=size, text=text), WORDS).eval()


def taker(seed=0, size=5):
    """Return a re-ranker whose regions take one word each: most words have no region."""
    torch.manual_seed(seed)
    text = TextConfig(word_size=4)
    config = SumMaxConfig(region_width=WIDTH, size=size, text=text, direction="i-t")
    return SumMax(config, WORDS).eval()


def save_models(folder):
    """Write both models and return their folders."""
    made = []
    for name, model in (("embedder", embedder()), ("reranker", reranker())):
        model.save_pretrained(Path(folder) / name)
        made.append(Path(folder) / name)
    return made


def make_photo(path, seed):
    """Write a small photograph of four coloured cells; another seed is another content."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(zlib.crc32(str(seed).encode()))
    cells = rng.integers(0, 256, (2, 2, 3), np.uint8)
    Image.fromarray(np.kron(cells, np.ones((8, 8, 1), np.uint8))).save(path)
    return path


def create(world, **more):
    how = {
        "embedder": world / "embedder",
        "reranker": world / "reranker",
        "source": CellSource(),
    }
    return Index.create(world / "index", **how | more)


def reopen(world, **more):
    return Index.open(world / "index", source=CellSource(), **more)


def encoded(path, model):
    """A photograph's regions by the source itself, encoded: nothing of the index in between."""
    photo = read_photo(path, 8)
    (found,) = CellSource()([photo], [""], lambda: None)
    with torch.no_grad():
        return model.encode_images(torch.from_numpy(found.features)[None])
