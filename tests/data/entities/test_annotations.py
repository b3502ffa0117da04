"""Flickr30k Entities' two files: hand-written ones, every malformed kind with its message."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.data.entities.annotations import Phrase, parse_sentence
from crossgaze.errors import FileFormatError, InputError
from entity_files import SENTENCES, XML, read, refusal


def objects(inside: str, size: str = "<size><width>100</width><height>200</height></size>") -> str:
    return f"<annotation>\n{size}\n{inside}\n</annotation>\n"


def box(*edges, name="5") -> str:
    tags = ("xmin", "ymin", "xmax", "ymax")
    inner = "".join(f"<{tag}>{edge}</{tag}>" for tag, edge in zip(tags, edges, strict=True))
    return objects(f"<object><name>{name}</name><bndbox>{inner}</bndbox></object>")


def test_reads_an_image_worked_out_by_hand(tmp_path):
    image = read(tmp_path)
    assert (image.id, image.width, image.height) == ("42", 100, 200)
    assert set(image.boxes) == {"5", "6"}
    # 1-based inclusive pixels become edges: only the lower corner moves.
    assert image.boxes["5"].tolist() == [[0, 0, 100, 200], [10, 20, 30, 60]]
    assert image.boxes["6"].tolist() == [[0, 0, 100, 200]]
    assert image.boxes["5"].dtype == np.float32
    assert image.scenes == {"7", "9"}
    assert image.no_box == {"8", "9"}
    first, second = image.sentences
    assert first.text == "Two pups chase each other near a lake ."
    assert first.phrases == (
        Phrase(0, 2, "5", ("people", "animals"), "Two pups"),
        Phrase(3, 5, "0", ("notvisual",), "each other"),
        Phrase(6, 8, "7", ("scene",), "a lake"),
    )
    assert second.words == ("Nothing", "here", "is", "marked", ".")
    assert second.phrases == ()


def test_boxes_scale_to_any_image_size(tmp_path):
    image = read(tmp_path)
    pups, other, lake = image.sentences[0].phrases
    assert image.boxes_of(pups, (50, 50)).tolist() == [[0, 0, 50, 50], [5, 5, 15, 15]]
    assert image.boxes_of(pups).tolist() == image.boxes["5"].tolist()
    assert image.boxes_of(pups).dtype == image.boxes_of(pups, (7, 3)).dtype == np.float32
    for phrase in (other, lake):
        assert image.boxes_of(phrase, (50, 50)).shape == (0, 4)
        assert image.boxes_of(phrase).dtype == np.float32
    image.boxes_of(pups)[:] = 0
    assert image.boxes["5"][0, 2] == 100, "a caller's change must not reach the annotation"


@pytest.mark.parametrize("size", [(0, 5), (5, -1), (float("nan"), 5), (5, float("inf"))])
def test_a_size_without_area_is_refused(tmp_path, size):
    image = read(tmp_path)
    with pytest.raises(InputError, match=r"size is .* wanted a width and a height above 0"):
        image.boxes_of(image.sentences[0].phrases[0], size)


def test_boxes_are_clipped_to_the_image(tmp_path):
    assert read(tmp_path, xml=box(0, -3, 900, 201)).boxes["5"].tolist() == [[0, 0, 100, 200]]
    assert read(tmp_path, xml=box(100, 200, 101, 201)).boxes["5"].tolist() == [[99, 199, 100, 200]]
    assert read(tmp_path, xml=box("2.5", 1, "4.5", 2)).boxes["5"].tolist() == [[1.5, 0, 4.5, 2]]


def test_several_boxes_in_one_object(tmp_path):
    one = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>{0}</xmax><ymax>2</ymax></bndbox>"
    inside = f"<object><name>5</name>{one.format(3)}{one.format(4)}</object>"
    assert read(tmp_path, xml=objects(inside)).boxes["5"].tolist() == [[0, 0, 3, 2], [0, 0, 4, 2]]


def test_windows_line_ends_and_a_byte_order_mark(tmp_path):
    text = SENTENCES.replace("\n", "\r\n").encode("utf-8-sig")
    image = read(tmp_path, xml=XML.encode("utf-8-sig"), sentences=text)
    assert [sentence.text for sentence in image.sentences] == [
        "Two pups chase each other near a lake .",
        "Nothing here is marked .",
    ]


def test_an_empty_line_keeps_its_number_as_an_empty_sentence(tmp_path):
    image = read(tmp_path, sentences="\n[/EN#5/people She] waves")
    assert [sentence.words for sentence in image.sentences] == [(), ("She", "waves")]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[/EN#5/people A man waves", "phrase '[/EN#5/people' is not closed by ']'"),
        ("A man] waves", "has a ']' that closes nothing"),
        ("[/EN#5/people A [/EN#6/people man]]", "has a '[' inside a phrase"),
        ("[A man] waves", "has a phrase that begins '[A', wanted '[/EN#ID/type'"),
        ("[/EN#/people A man]", "has a phrase that begins '[/EN#/people', wanted '[/EN#ID/type'"),
        ("[/EN#x/people A man]", "has a phrase that begins '[/EN#x/people', wanted"),
        ("[/EN#5 A man]", "has a phrase that begins '[/EN#5', wanted"),
        ("[ /EN#5/people A man]", "has a phrase that begins '[', wanted"),
        ("[/EN#5/people] waves", "phrase '[/EN#5/people' has no words"),
    ],
)
def test_a_malformed_sentence_names_file_and_line(tmp_path, line, problem):
    error = refusal(tmp_path, sentences=f"Fine .\n{line}\n")
    assert str(error).startswith(f"{tmp_path / 'Sentences' / '42.txt'}, line 2: {problem}")


def test_brackets_end_words():
    sentence = parse_sentence("see[/EN#1/people  the   man]'s hat")
    assert sentence.words == ("see", "the", "man", "'s", "hat")
    assert sentence.phrases == (Phrase(1, 3, "1", ("people",), "the man"),)


DECLARED = '<!DOCTYPE a [<!ENTITY b "c">]>'


@pytest.mark.parametrize(
    ("xml", "line", "problem"),
    [
        ("<annotation>\n<size>\n</annotation>", 3, "is not XML: mismatched tag"),
        ("", 1, "is not XML: no element found"),
        ("<a>&b;</a>", 1, "is not XML: undefined entity"),
        (f"<?xml version='1.0'?>\n{DECLARED}{XML}", 2, "declares a DOCTYPE, which is refused"),
        (f"\n\n{DECLARED.lower()}{XML}", 3, "declares a doctype, which is refused"),
        (f"<!ENTITY b 'c'>{XML}", 1, "declares a ENTITY, which is refused"),
        ("<html/>", None, "holds a <html>, wanted an <annotation>"),
        (objects("", size=""), None, "has no size element, wanted the image's width and height"),
        (objects("", size="<size><width>9</width></size>"), 2, "has height '', wanted a number"),
        (
            objects("", size="<size><width>0</width><height>9</height></size>"),
            2,
            "has the size 0 x 9, wanted whole pixels above 0",
        ),
        (
            objects("", size="\n<size><width>9</width><height>9.5</height></size>"),
            3,
            "has the size 9 x 9.5, wanted whole pixels above 0",
        ),
        (box(5, 1, 5, 9), 3, "this object has the box 5 1 5 9, wanted xmin < xmax and ymin < ymax"),
        (box(1, 9, 5, 8), 3, "this object has the box 1 9 5 8, wanted xmin < xmax and ymin < ymax"),
        (box(101, 1, 105, 9), 3, "this object has the box 101 1 105 9, which lies outside the 100"),
        (box(-9, 1, 0, 9), 3, "this object has the box -9 1 0 9, which lies outside the 100 x 200"),
        (box(1, 201, 9, 300), 3, "this object has the box 1 201 9 300, which lies outside"),
        (box(1, -3, 9, 0), 3, "this object has the box 1 -3 9 0, which lies outside"),
        (box("nan", 1, 5, 9), 3, "this object has xmin 'nan', wanted a number of pixels"),
        (box(1, 1, "1e9", 9), 3, "this object has xmax '1e9', wanted a number of pixels"),
        (box(1, 1, 9, 9, name=""), 3, "this object has the names [''], wanted one or more"),
        (box(1, 1, 9, 9, name="dog"), 3, "this object has the names ['dog'], wanted one or more"),
        (objects("<object><scene>1</scene></object>"), 3, "this object has the names [], wanted"),
        (
            XML.replace("<scene>0</scene><nobndbox>1</nobndbox>", ""),
            16,
            "this object has no bndbox, scene or nobndbox",
        ),
        (
            XML.replace("<nobndbox>0<", "<nobndbox>yes<"),
            15,
            "this object has nobndbox 'yes', wanted 0 or 1",
        ),
    ],
)
def test_a_malformed_annotation_names_file_and_line(tmp_path, xml, line, problem):
    error = refusal(tmp_path, xml=xml)
    where = f"{tmp_path / 'Annotations' / '42.xml'}" + (f", line {line}" if line else "")
    assert str(error).startswith(f"{where}: {problem}")


def test_a_document_type_cannot_hide_in_another_encoding(tmp_path):
    hidden = f"<?xml version='1.0' encoding='utf-16'?>{DECLARED}{XML}".encode("utf-16")
    assert "not UTF-8" in str(refusal(tmp_path, xml=hidden))
    bare = f"{DECLARED}{XML}".encode("utf-16-le")
    assert str(refusal(tmp_path, xml=bare)).endswith("line 1: has a NUL byte, wanted UTF-8 text")


def test_bad_bytes_and_empty_files_name_the_file(tmp_path):
    error = refusal(tmp_path, sentences=b"fine\nfine\nb\xff\n")
    assert (
        str(error) == f"{tmp_path / 'Sentences' / '42.txt'}, line 3: has bytes that are not UTF-8"
    )
    assert "is empty, wanted a sentence a line" in str(refusal(tmp_path, sentences="\n \n"))


WORD = st.text(
    st.characters(blacklist_characters="[]", blacklist_categories=("Cs", "Zs", "Zl", "Zp", "Cc")),
    min_size=1,
    max_size=6,
).filter(lambda word: len(word.split()) == 1)
TYPES = st.lists(st.sampled_from(["people", "animals", "scene", "other"]), min_size=1, max_size=3)
CHUNK = st.tuples(
    st.lists(WORD, min_size=1, max_size=4),
    st.none() | st.tuples(st.integers(0, 10**6).map(str), TYPES),
)


@given(st.lists(CHUNK, max_size=8))
def test_a_written_sentence_reads_back(chunks):
    words, phrases, line = [], [], []
    for chunk, tag in chunks:
        first = len(words)
        words += chunk
        if tag is None:
            line.append(" ".join(chunk))
        else:
            entity, types = tag
            line.append(f"[/EN#{entity}/{'/'.join(types)} {' '.join(chunk)}]")
            phrases.append(Phrase(first, len(words), entity, tuple(types), " ".join(chunk)))
    sentence = parse_sentence(" ".join(line))
    assert sentence.words == tuple(words)
    assert sentence.phrases == tuple(phrases)


@given(st.text(alphabet="[]/EN#1a \t", max_size=30))
def test_any_line_reads_or_is_refused_in_one_line(line):
    try:
        sentence = parse_sentence(line, Path("x.txt"), 4)
    except FileFormatError as error:
        outcome, sentence = str(error), None
    if sentence is None:
        assert outcome.startswith("x.txt, line 4: ")
        return
    for phrase in sentence.phrases:
        assert " ".join(sentence.words[phrase.first : phrase.last]) == phrase.text != ""
