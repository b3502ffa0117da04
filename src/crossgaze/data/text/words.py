"""Captions to words, as the public code splits them, without NLTK and its downloads.

SCAN, VSRN and their kin call NLTK's `word_tokenize` on lower-cased captions, so their vocabularies
and checkpoints only fit words that are split the same way. The rules are the Penn Treebank's:
marks stand alone, quotation marks become `` and '', a contraction is two words (ca n't, it 's,
gon na), and of all periods only the one that ends a sentence is a word of its own.

Each rule puts spaces around what it finds; a rule sees what the rules before it have done, so
their order counts. None looks back over what it has read: time grows with the length of the text.
"""

from __future__ import annotations

import re

from crossgaze.data.text.sentences import split_sentences

# Quotes and marks that only some captions have, so that the others skip their rules.
_ANY_QUOTE = re.compile("[\"'`\xab\xbb\u2018\u2019\u201c\u201d\u201e]")
_ANY_MARK = re.compile(r"\.\.|--|[:,;@#$%&?!*\[\](){}<>\u2012-\u2015]")

# Opening quotes. An accent may be a character of its own (U+0300 to U+036F), inside its word.
_OPENING_SIGN = re.compile("[\xab\u2018\u201c\u201e]|`{1,2}")
_OPENING_DOUBLE = re.compile(r"(?<=[ (\[{<])(?:\"|'')")
_LETTER = r"[\w\u0300-\u036f]"
_OPENING_SINGLE = re.compile(
    rf"(?<!{_LETTER})'(?={_LETTER})(?!(?:[mtsdn]|re|ve|ll)(?!{_LETTER}))", re.IGNORECASE
)

_FINAL_PERIOD = re.compile(r"(?<=[^.])\.(?=[\])}>\"'\xbb\u2019\u201d ]*+\s*+$)")

# A comma or colon stays inside 1,000 and 3:30. The mark after one is taken with it and so not
# looked at again: ',,x' is ',' and ',x'.
_COMMA = re.compile(r"([:,])(\D)")
_LAST_COMMA = re.compile(r"[:,]$")
_MARK = re.compile(r"\.{2,}|[;@#$%&?!\u2012-\u2015]")
_BRACKET = re.compile(r"[\[\](){}<>*]|--")

# Closing quotes, and what an apostrophe joins to a word.
_LOOSE_QUOTE = re.compile(r"(?<=[^'])'(?= )")
_CLOSING_SIGN = re.compile("[\xbb\u2019\u201d]")
_SHORT_ENDING = re.compile(r"(?<=[^' ])'[smdSMD]?(?= )")
_LONG_ENDING = re.compile(r"(?<=[^' ])(?:'ll|'LL|'re|'RE|'ve|'VE|n't|N'T)(?= )")

_TWO_IN_ONE = re.compile(
    r"\b(can(?=not)|d(?='ye)|gim(?=me)|gon(?=na)|got(?=ta)|lem(?=me)|more(?='n)|wan(?=na\s))"
    r"(not|'ye|me|na|ta|'n)\b",
    re.IGNORECASE,
)
_IT_IS = re.compile(r" ('t)(is)\b", re.IGNORECASE)
_IT_WAS = re.compile(r" ('t)(was)\b", re.IGNORECASE)


def caption_words(caption: str) -> list[str]:
    """Return the words of a caption in lower case, as the public code's vocabularies hold them.

    Example:
        >>> caption_words("The dog can't swim.")
        ['the', 'dog', 'ca', "n't", 'swim', '.']
    """
    return split_words(caption.lower())


def split_words(text: str) -> list[str]:
    r"""Return the words of `text`, one sentence after the other, equal to NLTK's `word_tokenize`.

    Example:
        >>> split_words('Mr. Smith said "hello". He\'s gone.')
        ['Mr.', 'Smith', 'said', '``', 'hello', "''", '.', 'He', "'s", 'gone', '.']
    """
    return [word for sentence in split_sentences(text) for word in sentence_words(sentence)]


def sentence_words(sentence: str) -> list[str]:
    """Return the words of one sentence, in which only the last period may stand alone.

    Example:
        >>> sentence_words("It cost $3.50 (or 1,000 yen)... in St. Paul.")
        ['It', 'cost', '$', '3.50', '(', 'or', '1,000', 'yen', ')', '...', 'in', 'St.', 'Paul', '.']
    """
    quoted = _ANY_QUOTE.search(sentence) is not None
    marked = _ANY_MARK.search(sentence) is not None
    text = _open_quotes(sentence) if quoted else sentence
    text = _FINAL_PERIOD.sub(" . ", text)
    if marked:
        text = _COMMA.sub(r" \1 \2", text)
        text = _LAST_COMMA.sub(r" \g<0> ", text)
        text = _MARK.sub(r" \g<0> ", text)
    if quoted:
        text = _LOOSE_QUOTE.sub(" '", text)
    if marked:
        text = _BRACKET.sub(r" \g<0> ", text)
    text = _close_quotes(text) if quoted else f" {text} "
    text = _TWO_IN_ONE.sub(r" \1 \2 ", text)
    if quoted:
        text = _IT_WAS.sub(r" \1 \2 ", _IT_IS.sub(r" \1 \2 ", text))
    return text.split()


def _open_quotes(text: str) -> str:
    text = _OPENING_SIGN.sub(r" \g<0> ", text)
    if text.startswith('"'):
        text = f" `` {text[1:]}"
    text = _OPENING_DOUBLE.sub(" `` ", text)
    return _OPENING_SINGLE.sub("' ", text)


def _close_quotes(text: str) -> str:
    text = _CLOSING_SIGN.sub(r" \g<0> ", text)
    text = text.replace("''", " '' ").replace('"', " '' ")
    text = f" {' '.join(text.split())} "
    text = _SHORT_ENDING.sub(r" \g<0>", text)
    return _LONG_ENDING.sub(r" \g<0>", text)
