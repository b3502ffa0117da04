"""VQA's public metric: how answers are made alike, and how many humans must agree.

Antol et al., VQA: Visual Question Answering, ICCV 2015; the rules are those of the evaluation code
that its authors publish, oddities included, since the figures of every paper come from it:

- Answers are made alike only where the ten humans do not all say the same.
- A punctuation mark becomes a blank, or nothing where any blank stands beside one such mark or a
  comma stands between two digits. A full stop goes unless a digit follows, the first 32 of them.
- After that case, the articles, number words up to ten ("none" is 0) and apostrophes that were
  left out; "somebody'd" loses its one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence


def _words(text: str) -> list[str]:
    return text.split()


PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
ARTICLES = frozenset(("a", "an", "the"))
NUMBERS = {"none": "0"} | {
    word: str(number)
    for number, word in enumerate(_words("zero one two three four five six seven eight nine ten"))
}
_FORMS = _words("""
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't
    haven't he'd he'd've he's how'd how'll how's isn't it'd it'd've it'll ma'am might've mightn't
    mightn't've must've mustn't needn't not've o'clock oughtn't 'ow's'at shan't she'd've should've
    shouldn't shouldn't've somebody'd've somebody'll somebody's someone'd someone'd've someone'll
    someone's something'd something'd've something'll that's there'd there'd've there're there's
    they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're
    what's what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're
    why's won't would've wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're
    you've
""")
_STOPS = 32  # how many full stops the public code takes away


def _without_one(form: str) -> list[str]:
    """Return a form with each of its apostrophes left out in turn."""
    places = [place for place, letter in enumerate(form) if letter == "'"]
    return [form[:place] + form[place + 1 :] for place in places]


CONTRACTIONS = {short: form for form in _FORMS for short in _without_one(form)}
CONTRACTIONS["somebody'd"] = "somebodyd"


def normalize_answer(text: str) -> str:
    """Return an answer as the public metric compares it.

    Example:
        >>> normalize_answer("The two dogs, dont bark.")
        "2 dogs don't bark"
    """
    words = (NUMBERS.get(word, word) for word in _without_punctuation(text).lower().split())
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ARTICLES)


def _without_punctuation(text: str) -> str:
    out, grouped = text, re.search(r"\d,\d", text) is not None
    for mark in PUNCTUATION:
        beside_blank = f"{mark} " in text or f" {mark}" in text
        out = out.replace(mark, "" if beside_blank or grouped else " ")
    return re.sub(r"\.(?!\d)", "", out, count=_STOPS)


def vqa_accuracy(said: str, humans: Sequence[str]) -> float:
    """Eq. 23 of DAN: min(humans that said the same / 3, 1), the mean over all but one of them.

    Args:
        said: the model's answer.
        humans: the human answers, ten in VQA, as they were written.

    Example:
        >>> vqa_accuracy("two", ["2"] * 3 + ["3"] * 7)
        0.9
    """
    said, given = _plain(said), [_plain(answer) for answer in humans]
    if len(set(given)) > 1:
        said, given = normalize_answer(said), [normalize_answer(answer) for answer in given]
    same = sum(answer == said for answer in given)
    # Of the n subsets without one human, `same` lack one who agrees; the others lack none.
    lacking = same * min((same - 1) / 3, 1.0) if same else 0.0
    others = (len(given) - same) * min(same / 3, 1.0)
    return (lacking + others) / len(given)


def _plain(text: str) -> str:
    return text.replace("\n", " ").replace("\t", " ").strip()
