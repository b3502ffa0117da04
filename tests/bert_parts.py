"""A small BERT in a folder, such as transformers saves, for tests of reading it."""

import json

import pytest
import torch

transformers = pytest.importorskip("transformers")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "run", "##s", "cat", "red"]
HIDDEN = 8


def bert_config(**changes):
    return transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=10,
        hidden_dropout_prob=0.5,
        attention_probs_dropout_prob=0.5,
        **changes,
    )


def save_bert(path, words=WORDS):
    torch.manual_seed(0)
    config = bert_config()
    model = transformers.BertModel(config, add_pooling_layer=False)
    for parameter in model.parameters():  # far from zero, so that every part shows
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(path)
    (path / "vocab.txt").write_text("\n".join(words) + "\n")
    (path / "tokenizer_config.json").write_text(
        json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"})
    )
    return path
