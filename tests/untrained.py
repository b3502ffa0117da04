"""Untrained models that stand in for those that ship, until they do: the one place of it.

The guides and the help texts say what one says to a crossgaze with its models. Where the zoo has a
name, nothing stands in for it; once it has all three, this file and the lines that call it can go.
"""

from pathlib import Path

import torch

import asking_parts
import search_parts
from crossgaze.models.finding import zoo_models
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.search.defaults import NAMES

ANSWERER = "daquar"  # what `tools/ship_model.py` calls the r-DAN
WIDTH = 1792  # of the regions of the region model that ships


def missing():
    """Return the names of the models that the guides take and the zoo has not."""
    return sorted({*NAMES.values(), ANSWERER} - {*zoo_models()})


def write_missing(folder):
    """Write a model for each name that is missing; a folder goes before a name of the zoo."""
    for name in missing():
        _make(name).save_pretrained(Path(folder) / name)


def with_models(words):
    """Return the words of a command, with the names that it would take if nobody named any.

    Only `index` has models that nobody names, and only where it makes a new index.
    """
    new = words[0] == "index" and "--from" not in words and "--info" not in words
    if not new or "--embedder" in words or not missing():
        return words
    if (Path(words[words.index("--into") + 1]) / "index.json").exists():
        return words
    return [*words, "--embedder", NAMES["embedder"], "--reranker", NAMES["reranker"]]


def _make(name):
    torch.manual_seed(0)
    if name == ANSWERER:
        return asking_parts.answerer()
    text = TextConfig(word_size=8, bidirectional=name != NAMES["embedder"])
    kind, config = (Vse, VseConfig) if name == NAMES["embedder"] else (Scan, ScanConfig)
    return kind(config(region_width=WIDTH, size=8, text=text), search_parts.WORDS).eval()
