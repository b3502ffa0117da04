"""The tool that writes down the words of training captions."""

import pytest

from crossgaze.errors import InputError
from crossgaze.models.pretrained import load
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from evaluation_parts import model as with_vocabulary
from model_parts import save_bert
from training_parts import COLOURS, THINGS, write_world

seen_words = pytest.importorskip("seen_words", reason="needs tools/")


def test_the_words_of_the_training_captions_are_written_into_the_model(tmp_path):
    (tmp_path / "bert").mkdir()
    save_bert(tmp_path / "bert")
    text = TextConfig(kind="bert", bert=str(tmp_path / "bert"))
    Vse(VseConfig(region_width=6, size=4, text=text), None).save_pretrained(tmp_path / "m")
    captions, _ = write_world(tmp_path)
    captions.write_text(captions.read_text().replace("stands here", "rests", 1))
    more = '{"image": "x.jpg", "caption": "a walrus", "split": "test"}\n'
    captions.write_text(captions.read_text() + more)
    assert seen_words.write(tmp_path / "m", [captions]).endswith("words.txt: 15 words")
    wanted = {"a", "the", *COLOURS, *THINGS, "stands", "here", "rests"}
    assert load(tmp_path / "m").text.seen == wanted
    with pytest.raises(InputError, match="no split 'restval'"):
        seen_words.write(tmp_path / "m", [captions], "restval")


def test_a_model_with_a_vocabulary_needs_none(tmp_path):
    with_vocabulary().save_pretrained(tmp_path / "m")
    with pytest.raises(InputError, match="has a vocabulary"):
        seen_words.write(tmp_path / "m", [tmp_path])
