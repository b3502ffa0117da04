"""Sentences in an index: of which files they are, and how they go."""

import pytest

from crossgaze.errors import InputError
from search_parts import create

pytest.importorskip("lancedb", reason="needs crossgaze[search]")


@pytest.fixture
def index(world):
    made = create(world)
    made.add(world / "photos" / "07.png")
    return made


def sentences(world, index):
    found = index.search(world / "photos" / "07.png", k=9).sentences
    return sorted(one.text for one in found)


def test_a_sentence_of_two_files_stays_as_long_as_one_of_them_holds_it(world, index):
    one, two = world / "one.txt", world / "two.txt"
    one.write_text("a dog runs\nthe snow\n")
    two.write_text("a dog runs\na red cat\n")
    index.add_sentences(one)
    report = index.add_sentences(two)
    assert (report.added, report.touched, report.removed, report.unchanged) == (1, 1, 0, 0)
    assert index.add_sentences(two).unchanged == 2

    one.write_text("the snow\n")
    report = index.add_sentences(one)
    assert (report.touched, report.removed, report.unchanged) == (1, 0, 1)
    assert sentences(world, index) == ["a dog runs", "a red cat", "the snow"]
    two.write_text("a red cat\n")
    assert index.add_sentences(two).removed == 1
    assert sentences(world, index) == ["a red cat", "the snow"]


def test_an_emptied_file_takes_its_sentences_out_and_one_that_never_held_any_is_refused(
    world, index
):
    one, two = world / "one.txt", world / "two.txt"
    one.write_text("a dog runs\nthe snow\n")
    two.write_text("the snow\n")
    index.add_sentences(one)
    index.add_sentences(two)
    one.write_text("\n...\n")
    report = index.add_sentences(one)
    assert (report.found, report.removed, report.touched) == (0, 1, 1)
    assert sentences(world, index) == ["the snow"]
    with pytest.raises(InputError, match=r"one\.txt: holds no sentence, wanted one a line"):
        index.add_sentences(one)


def test_the_sentences_of_a_file_that_is_gone_can_be_taken_out(world, index):
    one, two = world / "one.txt", world / "two.txt"
    one.write_text("a dog runs\nthe snow\n")
    index.add_sentences(one)
    one.rename(two)
    two.write_text("the snow\na red cat\n")
    index.add_sentences(two)
    assert sentences(world, index) == ["a dog runs", "a red cat", "the snow"]
    assert index.forget_sentences(one) == 1
    assert sentences(world, index) == ["a red cat", "the snow"]
    with pytest.raises(
        InputError, match=r"one\.txt: the index holds no sentence of it; .*two\.txt$"
    ):
        index.forget_sentences(one)
    assert index.forget_sentences(str(two)) == 2
    assert sentences(world, index) == []
