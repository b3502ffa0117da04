import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.data.captions.own import read_own
from crossgaze.errors import FileFormatError, InputError

WORDS = st.text(st.characters(exclude_categories=["C"]), min_size=1).filter(str.strip)
NAMES = st.text(st.sampled_from("abcé 1_-"), min_size=1).filter(str.strip).map(str.strip)


def put(tmp_path, text, name="captions.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_a_table_with_splits(tmp_path):
    path = put(
        tmp_path,
        'FILE;Sentence;split;id\r\nb.jpg;"A dog; two";Val;1\r\n./a.jpg;Cats;;2\r\n'
        "b.jpg;Dogs;validation;3\r\n",
    )
    found = read_own(path)
    assert (found.name, found.images) == ("captions", ("b.jpg", "a.jpg"))
    assert found.captions == ("A dog; two", "Dogs", "Cats")
    assert found.splits == ("dev", "")
    assert found.notes == (f"{path} has fields that are not read: id",)
    assert found.folder is None


def test_json_lines_with_one_caption_or_several(tmp_path):
    lines = [
        {"image": "a.jpg", "caption": "One", "split": "test", "score": 3},
        {"file_name": "b.jpg", "captions": ["Two", " Three "], "split": None},
        {"image": "a.jpg", "text": "Four", "split": "test"},
    ]
    path = put(tmp_path, "\n".join(map(json.dumps, lines)), "mine.jsonl")
    found = read_own(path)
    assert (found.images, found.splits) == (("a.jpg", "b.jpg"), ("test", ""))
    assert found.captions == ("One", "Four", "Two", "Three")
    assert found.notes == (f"{path} has fields that are not read: score",)


@given(
    st.lists(st.tuples(NAMES, WORDS), min_size=1, max_size=10),
    st.sampled_from([",", "\t", ";"]),
)
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows, mark):
    text = io.StringIO()
    csv.writer(text, delimiter=mark).writerows([("image", "caption"), *rows])
    path = put(tmp_path_factory.mktemp("own"), text.getvalue())
    found = read_own(path)
    expected = {}
    for image, caption in rows:
        expected.setdefault(image, []).append(caption.strip())
    got = {found.images[i]: list(found.captions_of(i)) for i in range(len(found))}
    assert got == expected


def test_where_images_are_looked_for(tmp_path):
    path = put(tmp_path, "image,caption\na.jpg,One\nsub/b.jpg,Two\n")
    assert read_own(path).folder is None
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b.jpg").touch()
    with pytest.raises(InputError, match="1 of the 2 images of captions have no file there, the"):
        read_own(path)
    (tmp_path / "a.jpg").touch()
    assert read_own(path).folder == tmp_path
    (tmp_path / "images/sub").mkdir(parents=True)
    (tmp_path / "images/a.jpg").touch()
    with pytest.raises(InputError, match=r"images: 1 of the 2 images .* the first is 'sub/b.jpg'"):
        read_own(path)
    found = read_own(path, missing="leave-out")
    assert (found.images, found.folder) == (("a.jpg",), tmp_path / "images")
    assert [left.examples for left in found.left_out] == [("sub/b.jpg",)]
    assert read_own(path, images=tmp_path).images == ("a.jpg", "sub/b.jpg")


def test_image_files_that_no_line_names_are_counted(tmp_path):
    path = put(tmp_path, "image,caption\na.jpg,One\n")
    for name in ("a.jpg", "b.jpg", "c.JPG"):
        (tmp_path / name).touch()
    assert [str(left) for left in read_own(path).left_out] == [
        f"2 image files in {tmp_path} that no caption names (b.jpg, c.JPG)"
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("b.jpg,,train", "the caption is blank"),
        (",Two,train", "the image name is blank"),
        ("/b.jpg,Two,train", "the image name is '/b.jpg', an absolute path"),
        ("x/../../b.jpg,Two,train", "the image name is 'x/../../b.jpg', which leads out of its"),
        ("./,Two,train", "the image name is './', a folder"),
        ("b.jpg,Two,tset", "split is 'tset' (did you mean 'test'?), wanted train, dev, test or"),
        ("a.jpg,Two,test", "image 'a.jpg' is in split 'test', but in 'train' on line 2"),
        ("b.jpg,Two, three,train", "has 4 fields, the header has 3"),
    ],
)
def test_bad_rows_name_their_line(tmp_path, row, message):
    path = put(tmp_path, f"image,caption,split\na.jpg,One,train\n\n{row}\n")
    with pytest.raises(FileFormatError) as caught:
        read_own(path)
    assert f"captions.csv, line 4: {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"caption": "x"}, "has the keys ['caption'], wanted one of image, filename, file"),
        ({"image": "a"}, "has the keys ['image'], wanted one of caption, text"),
        ({"image": "a", "caption": "x", "captions": ["y"]}, "has 'caption' and 'captions', wanted"),
        ({"image": 3, "caption": "x"}, "the image name is a number, wanted a text"),
        ({"image": "b", "caption": ["x"]}, "the caption is a list, wanted a text"),
        ({"image": "b", "captions": "x"}, "captions is a text, wanted a list of texts"),
        ({"image": "b", "captions": []}, "captions is empty, wanted a list of texts"),
        ({"image": "b", "captions": ["x", " "]}, "the caption is blank"),
        ({"image": "b", "caption": "x", "split": 1}, "split is 1, wanted train, dev, test"),
        ([], "is a list, wanted an object"),
    ],
)
def test_bad_json_lines_name_their_line(tmp_path, line, message):
    path = put(tmp_path, '{"image": "a", "caption": "x"}\n' + json.dumps(line), "mine.ndjson")
    with pytest.raises(FileFormatError) as caught:
        read_own(path)
    assert f"mine.ndjson, line 2: {message}" in str(caught.value)


def test_nothing_to_read(tmp_path):
    with pytest.raises(FileFormatError, match=r"captions.csv: holds no caption"):
        read_own(put(tmp_path, "image,caption\n"))
    with pytest.raises(FileFormatError, match=r"x.jsonl: holds no caption"):
        read_own(put(tmp_path, "\n", "x.jsonl"))
    with pytest.raises(InputError, match=r"none.csv: no such file, wanted a table of captions"):
        read_own(tmp_path / "none.csv")
    with pytest.raises(InputError, match="missing is 'skip', wanted 'error' or 'leave-out'"):
        read_own(tmp_path / "none.csv", missing="skip")
