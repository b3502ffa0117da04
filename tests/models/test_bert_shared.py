"""Two models that read by one copy of a frozen BERT give what each gave alone."""

from dataclasses import replace

import pytest
import torch

from crossgaze.models.bert import BertText
from crossgaze.models.text import TextConfig, build_text
from model_parts import count_calls, ready, save_bert

pytest.importorskip("transformers", reason="needs crossgaze[bert]")

TEXTS = ["a red dog", "cats", "a zebra a cat a dog"]


@pytest.fixture
def config(tmp_path):
    """Settings of a text encoder that reads by a small frozen BERT."""
    torch.manual_seed(0)
    (tmp_path / "bert").mkdir()
    save_bert(tmp_path / "bert")
    return TextConfig(kind="bert", bert=str(tmp_path / "bert"))


def encoder(config, size=4, seed=0, **more):
    torch.manual_seed(seed)
    return BertText(size, config, **more).eval()


def test_sharing_changes_no_feature_and_reads_each_sentence_once(config):
    tuned = replace(config, tuned=1)  # an upper layer of its own, which reads what the rest gives
    one, other = encoder(config), encoder(config, size=6, seed=1)
    alone = [encoder(config)(*ready(TEXTS, one)), encoder(config, 6, 1)(*ready(TEXTS, one))]
    assert other.share_frozen(one)
    assert other.bert is one.bert
    calls = count_calls(one)
    found = [part(*ready(TEXTS, one)) for part in (one, other)]
    assert calls == [len(TEXTS)]
    for was, now in zip(alone, found, strict=True):
        torch.testing.assert_close(now, was, rtol=0, atol=0)
    assert not encoder(tuned).share_frozen(one)  # it reads one layer less of the same BERT


def test_what_is_not_the_same_frozen_bert_is_not_shared(config, tmp_path):
    one = encoder(config)
    assert not one.share_frozen(one)
    assert not encoder(replace(config, frozen=False)).share_frozen(one)
    assert not one.share_frozen(encoder(replace(config, frozen=False)))
    assert not encoder(config, cache_dtype=torch.float16).share_frozen(one)
    assert not encoder(config).double().share_frozen(one)
    assert not encoder(config).share_frozen(build_text(TextConfig(), 4, 9))
    assert not build_text(TextConfig(), 4, 9).share_frozen(one)
    other = encoder(config)
    other.bert.config.layer_norm_eps *= 10  # the same weights, read otherwise
    assert not other.share_frozen(one)
    off = encoder(config)
    name = next(iter(dict(off.bert.named_parameters())))
    off.bert.get_parameter(name).data[0, 0] += 1e-3  # one number of one weight
    before = off.bert
    assert not off.share_frozen(one)
    assert off.bert is before
