"""Where a sentence ends, decided as the Punkt splitter (Kiss and Strunk, 2006) decides for English.

The word rules split a period off only at the end of a sentence, so the vocabularies of the public
code depend on this: 'mr. potato head sits.' is one sentence with one period split off, while
'a dog sits. it barks.' is two. A period ends a sentence unless its word is a known abbreviation
('mr.'), a row of dots, or a single letter or a number before a lower-case word ('j. smith').

On lower-cased text, which is all that the public code splits, the decision is Punkt's own. On text
as written, Punkt also asks how it saw a capitalised word used in a large news corpus; only common
caption words are kept here, so the two can differ where a rarer one follows an abbreviation, a row
of dots or a single letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_SPACE = r" \t\n\r\x0b\x0c"
_CURLY = "\u2018\u2019\u201c\u201d\xab\xbb"  # quotation marks beyond ASCII
_BREAKS_A_WORD = rf")\"';:@*?!({{}}\[\]{_CURLY}"

_INNER_STOP = re.compile(r"[.?!]")

# A mark that could end a sentence, with what follows it; and a stretch without spaces up to the
# last such mark in it, looked for from the start of the stretch only, so that each is read once.
_MARK = rf"[.?!](?=(?P<after>[{_BREAKS_A_WORD}]|\s+(?P<next>\S+)))"
_FIRST_MARK = re.compile(_MARK)
_LAST_MARK = re.compile(rf"(?<![^{_SPACE}])[^{_SPACE}]*{_MARK}")

# A row of dashes or dots; a word, up to a mark that cannot stand inside one; any other mark.
_WORD_END = rf"[\s{_BREAKS_A_WORD}]|$|--|\.\."
_TOKEN = re.compile(
    rf"-{{2,}}|\.{{2,}}|[^\s(\"`{{\[:;&#*@)}}\]\-,]\S*?(?={_WORD_END}|,(?:{_WORD_END}))|\S"
)

# Closing marks after the end of a sentence still belong to it.
_CLOSERS = re.compile(rf"[\"')\]}}{_CURLY}]++(?=\s|--|$)")

_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ABBREVIATIONS = _set(
    """
    c d e f g h k l m n p r s t v w
    adm ala ariz aug ave bros calif chg cie co col colo conn corp cos ct dec dr feb fla fri ft ga
    gen ill inc jan jr kan ky lt ltd maj messrs mg mich minn mr mrs ms nev nov oct ok okla ore pa
    prof rep reps sen sep sept sr st sw tenn tues va vs vt wash wed wis yr
    a.m a.m.e c.i.t c.o.m.b d.c i.m.s l.a m.b.a m.d.c n.c n.d n.h n.j n.m n.y p.a.m p.m ph.d r.i
    s.a s.a.y s.c s.p.a u.k u.n u.s u.s.a u.s.s.r w.va
    a.a a.c a.d a.g a.h a.s a.t b.f b.v c.v d.h d.w e.f e.h e.l e.m f.g f.j g.d g.f g.k h.c h.f h.m
    j.b j.c j.j j.k j.p j.r l.f l.p m.j n.v r.a r.h r.j r.k r.t s.g s.s t.j w.c w.r w.w
    """
)

# Capitalised, these begin a sentence even after an abbreviation.
_FREQUENT_STARTERS = _set(
    """
    according although among both but despite even he however i if in indeed instead it many
    meanwhile moreover most nevertheless nonetheless nor sales separately similarly since so some
    the there these they this though thus under when while yet
    """
)

# Caption words that news text capitalises only where a sentence begins.
_STARTERS = _FREQUENT_STARTERS | _set(
    """
    above abreast adult adults airplane along animal animals arm bag band baseball bat bed behind
    being bench between bicycle blanket blond boats body bottle box boy boys brick bright bunch bus
    camera car carries carrying cell chair chairs climbing clock clothes clothing coat colored
    colorful concrete corner counter couple course covered crossing crowd crowded dancing dark desk
    different dirt display distance does dogs doing door dress dressed drink drinking eating edge
    elderly elephant elephants empty female fence filled fishing flag floor flowers flying gathered
    giraffe girl girls glasses going ground guitar guy hair hands hanging hats her him holds horse
    hot inside into jacket jeans jumping jumps kid kids kitchen laptop lawn laying leaning leaping
    leisure letters lights living looking lot lying male microphone mouth nearby notable number
    object ocean older onto outdoor pants parked parking path performing person phone piece pink
    plane plastic plate play player playing plays pole pool poses posing potato preparing pulling
    racing restaurant rides riding right rocks runs sand sandwich setting shallow shirt shirts
    shoes shore shorts sink sit sits sitting ski skiing skis sliding smile smiles smiling snow
    snowy someone stage stand standing stands stick stuffed sunglasses sunny surrounded swimming
    swing swinging taking tall team them through throwing tie together toilet towards tracks trail
    train trees trick tricks trying umbrella uniform uniforms using vehicle very waiting walk
    walking walks watches watching wave waves wearing wears wet window wooden working
    """
)

# Caption words that news text also capitalises inside a sentence (names, titles), but not always:
# they are no surname, so a single letter before them ends its sentence.
_NOT_A_NAME = (_STARTERS - {"i"}) | _set(
    """
    a across against air an and another are area around as at b baby back background ball
    basketball beach big black blue board boat brown building business by c cat catch child
    children city commodities computer credit d dividend dog down each face field financing food
    football for four from front game gray green group hand has head high his holding insider
    international is its jump lady lake large light little long look looks man men mountain near
    next of off old on one open other out outside over park people photo picture players race red
    review road rock room run running s several side sign small something street suit table talking
    tennis that their three to top toy track tree truck two up wall water white who with woman
    women young z
    """
)

# Words that Punkt saw follow a number and a period without a new sentence, in spite of a capital.
_AFTER_NUMBER = _set(
    """
    abreast aes business cbot colgate commodities cooper corrections credit dividend financing
    genentech henley insider international leisure letters notable pay-fone pegasus pepper review
    rj wedgestone who zimmer
    """
)

# The only words that Punkt saw begin a sentence in lower case and never with a capital.
_LOWER_STARTERS = _set("administrators b-week r-revised z-holiday")


def split_sentences(text: str) -> list[str]:
    """Split `text` into sentences, without the white space between and after them.

    Example:
        >>> split_sentences("mr. potato head sits. he waves.")
        ['mr. potato head sits.', 'he waves.']
    """
    if not _INNER_STOP.search(text, 0, len(text) - 1):
        text = text.rstrip()
        return [text] if text else []
    stops, starts = [], [0]
    for found in _candidates(text):
        if _holds_a_break(found.group() + found["after"]):
            stops.append(found.end())
            starts.append(found.start("next") if found["next"] else found.end())
    stops.append(len(text.rstrip()))
    for i in range(1, len(starts)):
        closers = _CLOSERS.match(text, starts[i], stops[i])
        if closers:
            stops[i - 1] = closers.end()
            starts[i] = closers.end()
            while starts[i] < stops[i] and text[starts[i]].isspace():
                starts[i] += 1
    return [text[a:b] for a, b in zip(starts, stops, strict=True) if a < b]


def _candidates(text: str) -> Iterator[re.Match[str]]:
    """Yield where a sentence may end: once in a stretch without spaces, at its last mark.

    A stretch that begins with a mark has a second candidate there, as in Punkt, which takes the
    nothing before that mark for a word; but not behind a single space that begins the text.
    """
    for last in _LAST_MARK.finditer(text):
        first = _FIRST_MARK.match(text, last.start())
        if first and first.end() < last.end() and first.start() != 1:
            yield first
        yield last


def _holds_a_break(context: str) -> bool:
    """Tell whether a sentence ends at any word of `context` but the last."""
    return any(_ends(word, following) for word, following in pairwise(_TOKEN.findall(context)))


def _ends(word: str, following: str) -> bool:
    """Tell whether a sentence ends at `word` when `following` is the next word."""
    if word in (".", "?", "!"):
        return True
    if not word.endswith("."):
        return False
    if word.startswith(".."):
        return _starts_a_sentence(following)
    stem = word[:-1].lower()
    abbreviation = _is_abbreviation(stem)
    if len(word) == 2 and (word[0].isalpha() or word[0] == "_"):
        return not abbreviation and not _continues(following) and not _may_be_a_name(following)
    if _NUMBER.fullmatch(stem):
        return not _continues(following) and _bare(following) not in _AFTER_NUMBER
    return not abbreviation or _starts_a_sentence(following)


def _is_abbreviation(stem: str) -> bool:
    return stem in _ABBREVIATIONS or stem.rpartition("-")[2] in _ABBREVIATIONS


def _bare(word: str) -> str:
    """Return `word` in lower case, without a period that would end a sentence."""
    word = word.lower()
    if len(word) > 1 and word.endswith(".") and not _is_abbreviation(word[:-1]):
        return word[:-1]
    return word


def _continues(word: str) -> bool:
    """Tell whether `word` shows that the sentence goes on: it is a mark or begins in lower case."""
    return word in (";", ":", ",", ".", "!", "?") or (
        word[0].islower() and _bare(word) not in _LOWER_STARTERS
    )


def _starts_a_sentence(word: str) -> bool:
    """Tell whether `word` begins a sentence even after an abbreviation or a row of dots."""
    return word[0].isupper() and _bare(word) in _STARTERS


def _may_be_a_name(word: str) -> bool:
    """Tell whether `word` may be the name that a single letter stands before."""
    return word[0].isupper() and _bare(word) not in _NOT_A_NAME
