"""What the tests of several models need: random tensors, encoded sides, a small BERT."""

import pytest
import torch

from crossgaze.models.encoded import Encoded

COUNTS, LENGTHS = [4, 1, 3], [2, 5, 1]  # real regions of three images, real words of three texts


def draw(*shape, seed=0):
    """Return random numbers in float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_sides(counts=COUNTS, lengths=LENGTHS, seed=7):
    """Return random fragments of width 3 for images and sentences, padding random as well."""
    torch.manual_seed(seed)
    v = torch.randn(len(counts), max(counts), 3, dtype=torch.float64)
    e = torch.randn(len(lengths), max(lengths), 3, dtype=torch.float64)
    return v, e


def encoded(v, e, counts=COUNTS, lengths=LENGTHS):
    """Return fragments as a model's two encoded sides."""
    return Encoded(None, v, torch.tensor(counts)), Encoded(None, e, torch.tensor(lengths))


def save_bert(path):
    """Write a BERT of one small layer with random weights and eleven word pieces."""
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "##s", "red", "zebra", "cat"]
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
