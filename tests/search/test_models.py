"""The models of an index: which ones they are, and how much they keep of what they read."""

import asking_parts
import pytest
import torch

import search_parts
from crossgaze.models.rdan import RDan
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.search import models
from crossgaze.search.models import REMEMBERED, load_model
from model_parts import save_bert

pytest.importorskip("transformers", reason="needs crossgaze[bert]")


@pytest.fixture
def saved(tmp_path):
    """A model that reads by a small BERT, in a folder; the BERT lies beside it."""
    (tmp_path / "bert").mkdir()
    save_bert(tmp_path / "bert")
    torch.manual_seed(0)
    text = TextConfig(kind="bert", bert=str(tmp_path / "bert"))
    model = Vse(VseConfig(region_width=search_parts.WIDTH, size=4, text=text), None)
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_in_use_remembers_few_sentences(saved, monkeypatch):
    assert REMEMBERED <= 1000
    monkeypatch.setattr(models, "REMEMBERED", 3)
    model, _ = load_model(saved)
    for count in range(1, 9):
        model.encode_texts([" ".join(["dog"] * count)])
    assert len(model.text.cache) == 3
    given, _ = load_model(models.load(saved))  # its owner may be training it
    assert given.text.cache.limit > 3


def test_a_model_that_answers_for_the_service_remembers_few_questions(tmp_path):
    pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
    from crossgaze.web.asker import Asker

    (tmp_path / "bert").mkdir()
    save_bert(tmp_path / "bert")
    text = TextConfig(kind="bert", bert=str(tmp_path / "bert"))
    config = type(asking_parts.answerer().config)(8, 4, text, answers=("yes", "no"))
    model = RDan(config, None)
    Asker(model)
    assert model.text.cache.limit == REMEMBERED


def test_another_bert_of_the_same_name_is_another_model(saved):
    _, before = load_model(saved)
    assert load_model(saved)[1] == before
    bert = saved.parent / "bert"
    from safetensors.torch import load_file, save_file

    weights = load_file(bert / "model.safetensors")
    name = next(name for name in weights if "word_embeddings" in name)
    weights[name] = weights[name] + 0.01
    save_file(weights, bert / "model.safetensors", {"format": "pt"})
    assert load_model(saved)[1].digest != before.digest
