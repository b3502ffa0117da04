"""A model that answers and a source of regions, both small, and a photograph."""

import numpy as np
import torch
from PIL import Image

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.models.rdan import RDan, RDanConfig
from crossgaze.models.text import TextConfig
from crossgaze.vision.settings import ExtractConfig
from crossgaze.vision.sources.making import make_source

QUESTIONS = ["what is on the table?", "how many chairs are there?", "is the lamp on?"]
ANSWERS = ("yes", "no", "2", "table", "lamp")
GRID = ExtractConfig(regions="grid", backbone="efficientnet-lite0", size=64, grid=2)


def answerer(width=1280, reads="both", origin=True):
    """Return a small r-DAN that remembers a 2 x 2 grid of EfficientNet-Lite0."""
    torch.manual_seed(0)
    text = TextConfig(kind="lstm", word_size=8, join="sum")
    config = RDanConfig(width, 16, text, reads=reads, answers=ANSWERS)
    model = RDan(config, Vocabulary.build(QUESTIONS, min_count=1)).eval()
    if origin:
        made = make_source(GRID, torch.device("cpu")).made_by
        model.origin = {"regions": {**made, "fit": "stretch"}}
    return model


def photograph(path, width=96, height=64):
    """Write a photograph that is bright on its left half."""
    pixels = np.full((height, width, 3), 60, np.uint8)
    pixels[:, : width // 2] = (230, 180, 90)
    Image.fromarray(pixels).save(path)
    return path
