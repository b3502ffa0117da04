"""NLTK's own tokenizer is the oracle: its word rules need no data, its sentence splitter does."""

import importlib.util
import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.text.words import caption_words, sentence_words, split_words
from support import SHARED, needs_shared


@pytest.fixture(scope="module")
def nltk_rules():
    pytest.importorskip("nltk", reason="needs nltk, the oracle")
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer().tokenize


@pytest.fixture(scope="module")
def nltk_words():
    """word_tokenize with the sentence model that the package llama-index-core carries."""
    nltk = pytest.importorskip("nltk", reason="needs nltk, the oracle")
    found = importlib.util.find_spec("llama_index")
    folders = list(found.submodule_search_locations or []) if found else []
    models = [Path(folder, "core/_static/nltk_cache") for folder in folders]
    models = [model for model in models if (model / "tokenizers/punkt_tab/english").is_dir()]
    if not models:
        pytest.skip("needs llama-index-core (pip install --no-deps), whose files hold punkt_tab")
    before = list(nltk.data.path)
    nltk.data.path.insert(0, str(models[0]))
    yield nltk.word_tokenize
    nltk.data.path[:] = before


SENTENCES = {
    # text: words, separated by |
    "A dog runs.": "A|dog|runs|.",
    "a dog runs .": "a|dog|runs|.",
    "can't won't cannot don't isn't": "ca|n't|wo|n't|can|not|do|n't|is|n't",
    "DON'T N't Don'T": "DO|N'T|N't|Don'T",
    "gonna wanna gotta gimme lemme": "gon|na|wan|na|got|ta|gim|me|lem|me",
    "wanna-be gonna-be more'n d'ye": "wanna-be|gon|na|-be|more|'n|d|'ye",
    "gonna'tis'twas": "gon|na|'t|is|'t|was",
    "the dog's toy, the dogs' toys": "the|dog|'s|toy|,|the|dogs|'|toys",
    "I'm he'd we'll they're I've": "I|'m|he|'d|we|'ll|they|'re|I|'ve",
    "he'd've don't's": "he'd|'ve|do|n't|'s",
    "o'clock rock'n'roll 'em 'tis": "o'clock|rock'n'roll|'|em|'|tis",
    "'hello' said the man": "'|hello|'|said|the|man",
    'a sign "stop" here': "a|sign|``|stop|''|here",
    '"stop" he says': "``|stop|''|he|says",
    '""stop': "``|``|stop",
    "''stop'' he": "''|stop|''|he",
    "a ''stop'' (\"go\")": "a|``|stop|''|(|``|go|''|)",
    "``a'' ```b": "``|a|''|``|`|b",
    "\u201cstop\u201d \xabno\xbb": "\u201c|stop|\u201d|\xab|no|\xbb",
    "\u2018go\u2019 \u201ehm\u201d": "\u2018|go|\u2019|\u201e|hm|\u201d",
    "1,000 men at 3:30, and 4:": "1,000|men|at|3:30|,|and|4|:",
    "a,b a,,b a,5 a,": "a|,|b|a|,|,b|a,5|a|,",
    "dogs.. cats... .": "dogs|..|cats|...|.",
    "a--b a---b a-b": "a|--|b|a|--|-b|a-b",
    "a \u2013 b\u2014c": "a|\u2013|b|\u2014|c",
    "$3.50 50% a&b a@b #1 a;b": "$|3.50|50|%|a|&|b|a|@|b|#|1|a|;|b",
    "[a] {b} <c> (d) e*": "[|a|]|{|b|}|<|c|>|(|d|)|e|*",
    "why?! no!": "why|?|!|no|!",
    'the end."': "the|end|.|''",
    "the end.')": "the|end|.|'|)",
    "mr. smith": "mr.|smith",
    "and/or a_b c=d e+f": "and/or|a_b|c=d|e+f",
    "x's' y": "x|'s|'|y",
    "the cafe\u0301'x": "the|cafe\u0301'x",
    "": "",
    "   ": "",
}


@pytest.mark.parametrize("text", SENTENCES)
def test_word_rules_by_hand(text):
    assert sentence_words(text) == [word for word in SENTENCES[text].split("|") if word]


@pytest.mark.parametrize("text", SENTENCES)
def test_word_rules_equal_nltk(text, nltk_rules):
    assert sentence_words(text) == nltk_rules(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A dog runs. It barks.", "A|dog|runs|.|It|barks|."),
        ("Mr. Smith sits.", "Mr.|Smith|sits|."),
        ("a dog .. it runs. \n", "a|dog|..|it|runs|."),
        ('he says "stop." she stops.', "he|says|``|stop|.|''|she|stops|."),
        ("at 5 p.m. a man runs", "at|5|p.m.|a|man|runs"),
        ("at 5 p.m.", "at|5|p.m|."),
        ("Isn't it? Yes!", "Is|n't|it|?|Yes|!"),
        ("", ""),
    ],
)
def test_words_of_several_sentences(text, words, nltk_words):
    assert split_words(text) == [word for word in words.split("|") if word]
    assert split_words(text) == nltk_words(text)


def test_caption_words_are_lower_case():
    assert caption_words("The U.S. flag, CAN'T wave. Na\xefve!") == [
        *("the", "u.s.", "flag", ",", "ca", "n't", "wave", "."),
        *("na\xefve", "!"),
    ]


LOWER = """
a the man dogs dog's dogs' can't cannot gonna wanna gimme lemme gotta d'ye more'n 'tis 'twas 'em
it's o'clock rock'n'roll he'd've n't i'm 'll mr dr st u.s u.s.a e.g p.m ph.d ft vs no j b c i q x
3 1,000 3.5 4:30 2nd -7 t-shirt mini-st caf\xe9 cafe\u0301 \u732b zyxel administrators b-week
DON'T Cannot
"""
CASED = """
Mr Dr St U.S J B C I A The He It There When Boys Girls Someone Dogs Train Two Man Children Street
Their Zyxel Quux Pikachu Credit HE'LL I'm IT'S
"""
MARKS = [*".,;:!?'\"`()[]{}<>*@#$%&-_/\\+=~^|", "..", "...", "--", "---", "''", "``", "'s", "n't"]
MARKS += [*"\u201c\u201d\u2018\u2019\u201e\xab\xbb\u2013\u2014\u2026", ". . .", '."', ".)", "?!"]
SPACES = ["", "", " ", " ", " ", "  ", "\n", "\t", "\xa0"]


def texts(words):
    pieces = st.tuples(
        st.sampled_from([*words.split(), *MARKS, ".", ".", " . "]), st.sampled_from(SPACES)
    )
    return st.lists(pieces, max_size=14).map(lambda parts: "".join(a + b for a, b in parts))


@settings(max_examples=500, deadline=None)
@given(text=texts(LOWER + CASED))
def test_random_sentences_equal_nltk(text, nltk_rules):
    assert sentence_words(text) == nltk_rules(text)


@settings(max_examples=500, deadline=None)
@given(text=texts(LOWER))
def test_random_lower_case_captions_equal_nltk(text, nltk_words):
    assert caption_words(text) == nltk_words(text.lower())


def spaced(words):
    """Cased words stay whole: glued together they are rare words, which only Punkt's data knows."""
    return st.lists(
        st.sampled_from([*words.split(), "3", "...", ".", ",", '"', "(", ")"]), max_size=12
    ).map(lambda parts: re.sub(r" (?=[.])", "", " ".join(parts)))


@settings(max_examples=500, deadline=None)
@given(text=spaced(CASED))
def test_random_captions_as_written_equal_nltk(text, nltk_words):
    assert split_words(text) == nltk_words(text)


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_keeps_its_letters(text):
    def letters(value):
        return re.sub(r"[\s\"'`]", "", value)

    assert letters("".join(split_words(text))) == letters(text)


@pytest.mark.parametrize(
    "piece", ["dog ", "a. ", "a.", "a", "'", '"', "`", ".", " ", "' ", ".)", "\t", ",", "-", "x's'"]
)
def test_a_long_caption_takes_no_longer_than_its_length(piece):
    start = time.process_time()
    words = split_words("b." + piece * 200_000 + "c .")
    # Linear time is under two seconds; a rule that looks back would take hours.
    assert time.process_time() - start < 20
    assert words[-1] == "."


def real_captions():
    data = SHARED / "data"
    lines = (data / "flickr8k/Flickr8k.token.txt").read_text("utf-8").splitlines()
    yield from (line.split("\t", 1)[1] for line in lines)
    for path in sorted((data / "coco").glob("captions_*.json")):
        yield from (entry["caption"] for entry in json.loads(path.read_text())["annotations"])
    for path in sorted((data / "f30k_precomp").glob("*_caps.txt")):
        yield from path.read_text("utf-8").splitlines()
    yield from (data / "daquar/all_qa_pairs.txt").read_text("utf-8").splitlines()


@needs_shared
def test_real_captions_equal_nltk(nltk_words):
    # All 93,550 are equal too; those with marks inside are the hard ones, the rest a sample.
    hard = re.compile(r"[.?!].*\w|[^\w\s.,?]|\d,")
    captions = list(dict.fromkeys(real_captions()))
    asked = [caption for caption in captions if hard.search(caption)]
    asked += [caption for caption in captions if not hard.search(caption)][::40]
    assert len(asked) > 4_000
    different = [text for text in asked if caption_words(text) != nltk_words(text.lower())]
    different += [text for text in asked[::3] if split_words(text) != nltk_words(text)]
    assert different == []
