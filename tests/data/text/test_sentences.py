"""Hand-worked cases of Punkt's decisions; test_words.py compares with NLTK's live splitter."""

import pytest

from crossgaze.data.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n\t ", []),
        ("a dog", ["a dog"]),
        ("a dog runs. \n", ["a dog runs."]),
        ("  a dog", ["  a dog"]),
        (
            "a dog runs. it barks!  why? who knows.",
            ["a dog runs.", "it barks!", "why?", "who knows."],
        ),
        ("a dog . a cat .", ["a dog .", "a cat ."]),
        ("wow!!! a dog", ["wow!!!", "a dog"]),
        # abbreviations go on, also at the end of a hyphened word
        ("mr. potato head", ["mr. potato head"]),
        ("in the u.s. army", ["in the u.s. army"]),
        ("the mini-st. bernard", ["the mini-st. bernard"]),
        ("at 5 p.m. a man", ["at 5 p.m. a man"]),
        # rows of dots go on
        ("a dog... a cat", ["a dog... a cat"]),
        ("a dog .. a cat", ["a dog .. a cat"]),
        # a single letter or a number before a lower-case word or a mark goes on
        ("plan b. works", ["plan b. works"]),
        ("number 5. is it", ["number 5. is it"]),
        ("number 5. , or", ["number 5. , or"]),
        ("number 5. 6 is next", ["number 5.", "6 is next"]),
        ("plan b. 6 is next", ["plan b.", "6 is next"]),
        ("a player _. runs", ["a player _. runs"]),
        ("plan b. administrators run", ["plan b.", "administrators run"]),
        ("plan b. administrators. run", ["plan b.", "administrators.", "run"]),
        # a capital decides after these, if the word is one that begins sentences
        ("A man at 5 p.m. The sun sets", ["A man at 5 p.m.", "The sun sets"]),
        ("A man in the U.S. Navy", ["A man in the U.S. Navy"]),
        ("Dogs... Someone runs", ["Dogs...", "Someone runs"]),
        ("Dogs... Rex runs", ["Dogs... Rex runs"]),
        ("Here is B. Zyxel", ["Here is B. Zyxel"]),
        ("Here is plan B. Children run", ["Here is plan B.", "Children run"]),
        ("Here is C. The dog runs", ["Here is C. The dog runs"]),
        ("Page 5. Dogs run", ["Page 5.", "Dogs run"]),
        ("Page 5. Credit cards", ["Page 5. Credit cards"]),
        # closing marks belong to the sentence before them
        ('he says "stop." she stops', ['he says "stop."', "she stops"]),
        ("(a dog runs.) it barks", ["(a dog runs.)", "it barks"]),
        ("(a dog runs.)--it barks", ["(a dog runs.)", "--it barks"]),
        ("(a dog runs.)it barks", ["(a dog runs.", ")it barks"]),
        ('a dog runs."', ['a dog runs."']),
        ("a dog\u201ds here.\u201d it", ["a dog\u201ds here.\u201d", "it"]),
        # a period inside a word is no end, a question mark inside one is
        ("see dogs.com now", ["see dogs.com now"]),
        ("dogs?cats. or birds", ["dogs?cats.", "or birds"]),
        # marks at the start of a stretch end a sentence of their own
        ('."." it', [".", '"."', "it"]),
        ('a ."." it', ["a .", '"."', "it"]),
        (' ."." it', [' ."."', "it"]),
        ("mr. smith!) runs", ["mr.", "smith!)", "runs"]),
    ],
)
def test_cases_worked_by_hand(text, sentences):
    assert split_sentences(text) == sentences
