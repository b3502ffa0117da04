import json
import os
import pickle
import sys
import types
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.text import vocabulary as vocabulary_module
from crossgaze.data.text.vocabulary import END, PAD, SPECIAL_WORDS, START, UNKNOWN, Vocabulary
from crossgaze.errors import FileFormatError, InputError
from support import SHARED, needs_shared

DOGS = Vocabulary((*SPECIAL_WORDS, "a", "dog", "ca", "n't", "run", "."))


def test_special_words_stand_first():
    assert (PAD, START, END, UNKNOWN) == (0, 1, 2, 3)
    assert SPECIAL_WORDS == ("<pad>", "<start>", "<end>", "<unk>")


def test_build_keeps_frequent_words_in_the_order_they_first_occur():
    captions = ["The dog runs.", "A DOG runs fast.", "the cat; the dog"]
    assert Vocabulary.build(captions, min_count=2).words[4:] == ("the", "dog", "runs", ".")
    assert Vocabulary.build(captions, min_count=3).words[4:] == ("the", "dog")
    assert Vocabulary.build(iter(captions), min_count=1).words[4:] == (
        *("the", "dog", "runs", ".", "a", "fast", "cat", ";"),
    )
    assert Vocabulary.build(["a"] * 3).words == SPECIAL_WORDS
    assert Vocabulary.build(["a"] * 4).words == (*SPECIAL_WORDS, "a")
    assert len(Vocabulary.build([])) == 4


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), max_size=8), st.integers(1, 5))
def test_build_counts_as_a_plain_loop_does(captions, min_count):
    counts = Counter()
    for caption in captions:
        counts.update(caption)
    built = Vocabulary.build((" ".join(caption) for caption in captions), min_count)
    assert built.words == (*SPECIAL_WORDS, *(w for w in counts if counts[w] >= min_count))


def test_build_refuses_what_is_no_list_of_captions():
    with pytest.raises(InputError, match="captions: is one text, wanted a list"):
        Vocabulary.build("a dog")
    with pytest.raises(InputError, match="min_count: is 0, wanted 1 or more"):
        Vocabulary.build(["a dog"], min_count=0)


def test_encode_wraps_and_lowers():
    assert DOGS.encode("A dog can't RUN.") == [1, 4, 5, 6, 7, 8, 9, 2]
    assert DOGS.encode("A cat") == [1, 4, 3, 2]
    assert DOGS.encode("") == [1, 2]
    assert DOGS.encode_words(["dog", "Dog", "<end>"]) == [5, 3, 2]


def test_decode():
    assert DOGS.decode(DOGS.encode("A dog. A cat")) == ["a", "dog", ".", "a", "<unk>"]
    assert DOGS.decode([0, 1, 2, 3, 4], keep_special=True) == [
        "<pad>",
        "<start>",
        "<end>",
        "<unk>",
        "a",
    ]
    assert DOGS.decode(np.array([5, 0])) == ["dog"]
    assert DOGS.decode([]) == []
    for wrong in (-1, 10):
        with pytest.raises(InputError, match=f"ids: {wrong} is no word's id, wanted 0 to 9"):
            DOGS.decode([4, wrong])


@given(st.lists(st.sampled_from(["a", "dog", "run", "."])))
def test_known_words_come_back(words):
    assert DOGS.decode(DOGS.encode_words(words)) == words


def test_unknown_words_and_membership():
    assert DOGS.unknown_words("The dog, the Cat") == ("the", ",", "cat")
    assert DOGS.unknown_words("a dog") == ()
    assert "dog" in DOGS
    assert "cat" not in DOGS
    assert 5 not in DOGS
    assert len(DOGS) == 10
    assert repr(DOGS) == "Vocabulary(10 words)"


def test_a_vocabulary_is_a_frozen_value():
    assert Vocabulary(list(DOGS.words)) == DOGS
    assert hash(Vocabulary(DOGS.words)) == hash(DOGS)
    assert Vocabulary((*SPECIAL_WORDS, "a")) != DOGS
    with pytest.raises(AttributeError):
        DOGS.words = ()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("<pad>", "<start>", "<unk>", "<end>"), "has '<unk>' for id 2, wanted '<end>'"),
        (("<pad>", "<start>"), "has no word for id 2, wanted '<end>'"),
        ((*SPECIAL_WORDS, "a", "b", "a"), "has the word 'a' twice"),
        ((*SPECIAL_WORDS, "<pad>"), "has the word '<pad>' twice"),
        ((*SPECIAL_WORDS, 7), "has 7 for id 4, wanted a text"),
        ((*SPECIAL_WORDS, ["a"]), "for id 4, wanted a text"),
    ],
)
def test_words_that_are_no_vocabulary(words, problem):
    with pytest.raises(InputError) as caught:
        Vocabulary(words)
    assert str(caught.value).startswith("vocabulary: ")
    assert problem in str(caught.value)


# Files.


@settings(max_examples=50, deadline=None)
@given(words=st.lists(st.text(), unique=True).filter(lambda w: not set(w) & set(SPECIAL_WORDS)))
def test_save_and_load(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("vocabulary") / "v.json"
    asked = Vocabulary((*SPECIAL_WORDS, *words))
    asked.save(path)
    assert Vocabulary.load(path) == asked
    # as the public code reads it
    content = json.loads(path.read_text("ascii"))
    assert content["idx"] == len(asked)
    assert all(content["word2idx"][w] == i for i, w in enumerate(asked.words))
    assert all(content["idx2word"][str(i)] == w for i, w in enumerate(asked.words))
    assert [file.name for file in path.parent.iterdir()] == ["v.json"]


def test_save_replaces_and_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "v.json"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(InputError, match=r"v\.json: cannot be written: No space left"):
            DOGS.save(path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["v.json"]
    DOGS.save(str(path))
    assert Vocabulary.load(str(path)) == DOGS


def test_save_names_a_path_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="is a folder, wanted a file name"):
        DOGS.save(tmp_path)
    with pytest.raises(InputError, match="cannot be written: No such file"):
        DOGS.save(tmp_path / "none" / "v.json")


def content(**changed):
    words = DOGS.words
    return {
        "word2idx": {word: i for i, word in enumerate(words)},
        "idx2word": {str(i): word for i, word in enumerate(words)},
        "idx": len(words),
    } | changed


def without(key):
    return {name: value for name, value in content().items() if name != key}


def moved(**ids):
    return {"word2idx": content()["word2idx"] | ids}


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ([], "holds [], wanted word2idx"),
        ("word", "holds 'word', wanted word2idx"),
        ({}, "has no word2idx, wanted word2idx, idx2word and idx"),
        (without("idx2word"), "has no idx2word"),
        (without("idx"), "idx is None, wanted 10"),
        (content(idx=11), "idx is 11, wanted 10"),
        (content(idx=True), "idx is True, wanted 10"),
        (content(word2idx=["a"]), "word2idx is ['a'], wanted a map"),
        (content(idx2word=None), "idx2word is None, wanted a map"),
        (content(**moved(dog=12)), "gives 'dog' the id 12, wanted ids from 0 to 9 without a gap"),
        (content(**moved(dog=-1)), "gives 'dog' the id -1"),
        (content(**moved(dog="5")), "gives 'dog' the id '5'"),
        (content(**moved(dog=5.0)), "gives 'dog' the id 5.0"),
        (content(**moved(dog=True)), "gives 'dog' the id True"),
        (content(**moved(dog=4)), "gives 'a' and 'dog' the same id 4"),
        (content(**moved(a=5, dog=4)), "idx2word has 'a' for id 4, wanted word2idx's 'dog'"),
        (content(**moved(**{"<pad>": 3, "<unk>": 0})), "has '<unk>' for id 0, wanted '<pad>'"),
        (content(word2idx={"<pad>": 0}), "has no word for id 1, wanted '<start>'"),
        (content(idx2word={}), "idx2word has no word for id 0, wanted word2idx's '<pad>'"),
        (
            content(idx2word=content()["idx2word"] | {"10": "x"}),
            "idx2word has 11 words, wanted word2idx's 10",
        ),
        (
            content(idx2word=content()["idx2word"] | {"9": ["."]}),
            "idx2word has ['.'] for id 9, wanted word2idx's '.'",
        ),
    ],
)
def test_load_says_what_is_wrong(tmp_path, found, problem):
    path = tmp_path / "v.json"
    path.write_text(json.dumps(found))
    with pytest.raises(FileFormatError) as caught:
        Vocabulary.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "cut short"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"word2idx": {"\xff": 1}}', "not UTF-8"),
        (b"a dog\na cat\n", "starts with b'a', wanted SCAN's JSON or VSRN's pickle"),
        (b"cos\nsystem\n(S'true'\ntR.", "asks for os.system"),
        (b"(dp0\nI1\nI2\ns.", "holds a dict"),
    ],
)
def test_load_refuses_other_files(tmp_path, data, problem):
    path = tmp_path / "v"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=problem) as caught:
        Vocabulary.load(path)
    assert str(path) in str(caught.value)


def test_load_reads_json_behind_a_byte_order_mark(tmp_path):
    path = tmp_path / "v.json"
    path.write_bytes(b"\xef\xbb\xbf\r\n " + json.dumps(content()).encode())
    assert Vocabulary.load(path) == DOGS


def test_load_names_missing_folders_and_large_files(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no such file, wanted a vocabulary"):
        Vocabulary.load(tmp_path / "none.json")
    with pytest.raises(InputError, match="is a folder, wanted a vocabulary"):
        Vocabulary.load(tmp_path)
    DOGS.save(tmp_path / "v.json")
    size = (tmp_path / "v.json").stat().st_size
    monkeypatch.setattr(vocabulary_module, "MAX_FILE_BYTES", size - 1)
    with pytest.raises(FileFormatError, match=f"has {size} bytes, .* has {size - 1} at most"):
        Vocabulary.load(tmp_path / "v.json")
    monkeypatch.setattr(vocabulary_module, "MAX_FILE_BYTES", size)
    assert Vocabulary.load(tmp_path / "v.json") == DOGS


@pytest.mark.parametrize("protocol", range(6))
def test_load_reads_the_pickle_of_the_public_code(tmp_path, monkeypatch, protocol):
    vocab = types.ModuleType("vocab")
    vocab.Vocabulary = type("Vocabulary", (), {"__module__": "vocab"})
    monkeypatch.setitem(sys.modules, "vocab", vocab)
    asked = vocab.Vocabulary()
    words = (*SPECIAL_WORDS, "dog", "caf\xe9", "\u732b")
    asked.word2idx = {word: i for i, word in enumerate(words)}
    asked.idx2word = dict(enumerate(words))
    asked.idx = len(words)
    path = tmp_path / "v.pkl"
    path.write_bytes(pickle.dumps(asked, protocol))
    assert Vocabulary.load(path).words == words
    asked.idx2word[5] = "cafe"
    path.write_bytes(pickle.dumps(asked, protocol))
    with pytest.raises(FileFormatError, match="idx2word has 'cafe' for id 5, wanted"):
        Vocabulary.load(path)
    asked.word2idx[6] = 4
    path.write_bytes(pickle.dumps(asked, protocol))
    with pytest.raises(FileFormatError, match="word2idx has 6 for a word, wanted a text"):
        Vocabulary.load(path)


@needs_shared
def test_flickr8k():
    folder = SHARED / "data/flickr8k"
    train = set((folder / "Flickr_8k.trainImages.txt").read_text().split())
    dev = set((folder / "Flickr_8k.devImages.txt").read_text().split())
    lines = [
        line.split("\t", 1) for line in (folder / "Flickr8k.token.txt").read_text().splitlines()
    ]
    captions = [caption for name, caption in lines if name.split("#")[0] in train]
    assert len(captions) == 29_995
    found = Vocabulary.build(captions)
    assert len(found) == 2_931
    counts = Counter(word for caption in captions for word in caption.lower().split())
    plain = [word for word in counts if word.isalpha() and counts[word] >= 4]
    assert len(plain) > 2_500
    assert all(word in found for word in plain)
    # The public 3,159 words count the dev captions too, in a copy without punctuation.
    train |= dev
    both = [caption for name, caption in lines if name.split("#")[0] in train]
    assert abs(len(Vocabulary.build(both)) - 3_159) < 20
