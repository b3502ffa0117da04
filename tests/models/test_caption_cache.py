"""What is kept of a frozen BERT's work: in memory the last used, on disk what runs share."""

import pytest
import torch

from crossgaze.models.bert import BertText
from crossgaze.models.caption_cache import CaptionCache
from crossgaze.models.text import TextConfig
from model_parts import count_calls, ready, save_bert


@pytest.fixture
def config(tmp_path):
    (tmp_path / "bert").mkdir()
    save_bert(tmp_path / "bert")
    return TextConfig(kind="bert", bert=str(tmp_path / "bert"))


def test_what_a_frozen_bert_gave_is_kept_on_disk(config, tmp_path):
    first = BertText(4, config)
    texts = ["a dog runs", "red", "a cat"]
    rows = [first.tokenize(text) for text in texts]
    first.remember(rows, tmp_path / "kept")
    (path,) = (tmp_path / "kept").iterdir()
    other = BertText(4, config)
    calls = count_calls(other)
    other.remember(rows, tmp_path / "kept")
    ids, lengths = ready(texts, other)
    assert torch.equal(other._kept(ids, lengths, keep=True), first._kept(ids, lengths, keep=True))
    assert calls == []
    other.remember(rows[:2], tmp_path / "kept")  # other captions: another file
    path.write_bytes(path.read_bytes()[:-5])  # cut short: made again
    third = BertText(4, config)
    calls = count_calls(third)
    third.remember(rows, tmp_path / "kept")
    assert calls == [3]
    assert torch.equal(third._kept(ids, lengths, keep=True), first._kept(ids, lengths, keep=True))
    assert len(list((tmp_path / "kept").iterdir())) == 2
    with torch.no_grad():
        next(iter(third.bert.parameters())).add_(1.0)  # another BERT: another file
    third.remember(rows, tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 3


def test_caption_cache():
    cache = CaptionCache(1)
    one, two = torch.ones(1, 1), torch.zeros(1, 1)
    cache.put(b"1", one)
    assert cache.get(b"1") is one
    cache.put(b"2", two)
    assert cache.get(b"1") is None
    assert cache.get(b"2") is two
    cache.clear()
    assert len(cache) == 0


def test_a_cache_shrinks_to_the_last_used_and_never_grows():
    cache = CaptionCache(4)
    for key in (b"a", b"b", b"c"):
        cache.put(key, torch.zeros(1))
    cache.get(b"a")
    cache.shrink(2)
    assert [cache.get(key) is not None for key in (b"a", b"b", b"c")] == [True, False, True]
    cache.shrink(100)
    assert cache.limit == 2
