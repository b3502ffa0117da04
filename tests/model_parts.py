"""What the tests of several models need: random tensors, a small BERT."""

import pytest
import torch

from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig


def draw(*shape, seed=0):
    """Return random numbers in float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def scrambled(build, seed):
    """Build a model in float64 with parameters large enough that nothing is nearly linear."""
    torch.manual_seed(seed)
    model = build().double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    return model


def save_bert(path, pieces=("a", "dog", "##s", "red", "zebra", "cat")):
    """Write a BERT of one small layer with random weights and these word pieces."""
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces]
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
    )
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(path)
    (path / "vocab.txt").write_text("\n".join(words))
    (path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')


def bert_vse(folder, width=6):
    """Return a VSE++ that reads by a small BERT, which lies in `folder`."""
    folder.mkdir()
    save_bert(folder)
    torch.manual_seed(0)
    text = TextConfig(kind="bert", bert=str(folder))
    return Vse(VseConfig(region_width=width, size=4, text=text), None)


def ready(texts, encoder):
    rows = [encoder.tokenize(text) for text in texts]
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.full((len(rows), int(lengths.max())), 7)  # the padding is some word
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
    return ids, lengths


def count_calls(encoder):
    """Return a list that grows by the number of captions at each run of BERT."""
    calls = []
    encoder.bert.register_forward_pre_hook(
        lambda module, args, kwargs: calls.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    return calls
