"""Finding and reading a BERT: from a folder or a package, and what is refused."""

import importlib.util
import json
import sys

import pytest
import torch

from bert_parts import WORDS, bert_config, save_bert
from crossgaze.errors import InputError, MissingExtraError
from crossgaze.models.bert import MINILM, MINILM_MODULE, BertText
from crossgaze.models.text import TextConfig, build_text
from model_parts import count_calls, ready

transformers = pytest.importorskip("transformers")

needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec(MINILM_MODULE) is None, reason=f"needs the package {MINILM}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def config(folder):
    return TextConfig(kind="bert", bert=str(folder))


def test_loading_prints_nothing_and_leaves_transformers_as_it_was(config, capfd):
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_info()
    try:
        assert build_text(config, 4, None).size == 4
        assert logging.get_verbosity() == logging.INFO
        assert logging.is_progress_bar_enabled()
    finally:
        logging.set_verbosity(level)
    assert capfd.readouterr() == ("", "")


def test_loading_a_folder_needs_no_network(config, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError(f"asked the network: {args}")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    encoder = BertText(4, config)
    assert encoder(*ready(["a dog"], encoder)).shape[2] == 4


def test_missing_packages_are_named(config, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"needs the package gt-all.*crossgaze\[bert\]"):
            BertText(4, TextConfig(kind="bert"))
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"package transformers: .*crossgaze\[bert\]"):
        BertText(4, config)


def test_what_is_no_bert_is_refused_by_name(tmp_path):
    def refused(match):
        with pytest.raises(InputError, match=match):
            BertText(4, TextConfig(kind="bert", bert=str(tmp_path)))

    refused(f"bert '{tmp_path}': ")  # an empty folder
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    refused("is a 'gpt2', wanted a 'bert'")
    save_bert(tmp_path, words=[*WORDS, "more"])
    refused("its tokenizer has 12 word pieces, the model 11")
    save_bert(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    refused("bert ")
    (tmp_path / "vocab.txt").write_bytes(b"\xdbPAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\ndog")
    refused("valid UTF-8")
    (tmp_path / "vocab.txt").write_text("[PAD]\n[CLS]\n[SEP]\n[MASK]\na\ndog\nred\n")
    refused(r"Missing \[UNK\]")
    save_bert(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"junk")
    refused(f"bert '{tmp_path}': ")
    save_bert(tmp_path)
    BertText(4, TextConfig(kind="bert", bert=str(tmp_path)))
    # A config that wants more layers than there are weights for: transformers makes some up.
    bert_config().save_pretrained(tmp_path)
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(
        text.replace('"num_hidden_layers": 2', '"num_hidden_layers": 3')
    )
    refused(r"has no weights for encoder\.layer\.2\S* \(16 are missing\)")


@pytest.mark.parametrize("name", ["", "/no/such/folder", "./bert", "a/b/c"])
def test_a_folder_that_is_not_there_is_said_so(name):
    with pytest.raises(InputError, match=f"bert '{name}': no such folder, and no Hub id either"):
        BertText(4, TextConfig(kind="bert", bert=name))


def test_bad_sizes_are_refused(config):
    with pytest.raises(InputError, match="size: is 0, wanted 1 or more"):
        BertText(0, config)
    with pytest.raises(InputError, match="cache_captions: is -1, wanted 0 or more"):
        BertText(4, config, cache_captions=-1)


@needs_minilm
def test_minilm_knows_what_sentences_mean(capfd):
    encoder = BertText(384, TextConfig(kind="bert"))
    assert capfd.readouterr() == ("", "")
    assert sum(part.numel() for part in encoder.parameters()) == 384 * 384 + 384
    # 30,522 word pieces, 512 places, 2 segments, 6 layers of 4 x 384^2 and 2 x 384 x 1,536.
    layer = 4 * (384 * 384 + 384) + 2 * 384 * 1536 + 1536 + 384 + 4 * 384
    assert sum(part.numel() for part in encoder.bert.parameters()) == (
        (30_522 + 512 + 2 + 2) * 384 + 6 * layer
    )
    calls = count_calls(encoder)
    texts = [
        "A dog runs across the grass.",
        "A puppy is running over a meadow.",
        "The stock market fell sharply today.",
    ]
    with torch.no_grad():
        encoder.project.weight.copy_(torch.eye(384))
        encoder.project.bias.zero_()
    batch = ready(texts, encoder)
    words = encoder(*batch).detach()
    means = torch.nn.functional.normalize(words.sum(1) / batch[1][:, None], dim=-1)
    near, far = float(means[0] @ means[1]), float(means[0] @ means[2])
    assert near > 0.6
    assert far < 0.2
    assert calls == [3]
    assert torch.equal(encoder(*batch).detach(), words)
    assert calls == [3]


def test_code_in_a_folder_is_never_run(folder, tmp_path, capsys, monkeypatch):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "x.py").write_text("print('PWNED')")
    config = {"model_type": "mine", "auto_map": {"AutoConfig": "x.C", "AutoModel": "x.M"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("builtins.input", lambda *words: "y")
    with pytest.raises(InputError, match="bert"):
        BertText(4, TextConfig(kind="bert", bert=str(tmp_path)))
    assert "PWNED" not in capsys.readouterr().out
