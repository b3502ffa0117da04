import json

import pytest

from crossgaze.data.captions.karpathy import read_karpathy
from crossgaze.errors import FileFormatError, InputError


def entry(name, split="train", *raws, **more):
    sentences = [{"raw": raw, "tokens": raw.split()} for raw in raws or (f"About {name}",)]
    return {"filename": name, "split": split, "sentences": sentences, **more}


def write(tmp_path, *entries, **more):
    path = tmp_path / "dataset_toy.json"
    path.write_text(json.dumps({"images": list(entries), **more}))
    return path


def test_splits_and_captions(tmp_path):
    path = write(
        tmp_path,
        entry("a.jpg", "train", "A cat. ", "Cats!"),
        entry("b.jpg", "val", filepath="val2014"),
        entry("c.jpg", "test"),
        entry("d.jpg", "restval"),
        dataset="toyset",
    )
    found = read_karpathy(path)
    assert found.name == "toyset"
    assert found.images == ("a.jpg", "b.jpg", "c.jpg", "d.jpg")
    assert found.splits == ("train", "dev", "test", "train")
    assert found.captions_of(0) == ("A cat.", "Cats!")
    assert found.notes == (
        "1 images of the split restval are added to train; restval='restval' keeps them apart",
    )
    apart = read_karpathy(path, restval="restval")
    assert apart.splits == ("train", "dev", "test", "restval")
    assert apart.notes == read_karpathy(write(tmp_path, entry("a.jpg"))).notes == ()
    assert read_karpathy(write(tmp_path, entry("a.jpg"))).name == "dataset_toy"


def test_filepath_counts_only_where_its_folder_is(tmp_path):
    path = write(
        tmp_path,
        entry("a.jpg", filepath="val2014"),
        entry("b.jpg", filepath="train2014"),
        entry("c.jpg", filepath=""),
        entry("gone.jpg", filepath="val2014"),
    )
    images = tmp_path / "images"
    (images / "val2014").mkdir(parents=True)
    for name in ("val2014/a.jpg", "b.jpg", "c.jpg", "val2014/extra.jpg"):
        (images / name).touch()
    found = read_karpathy(path, images=images)
    assert found.images == ("val2014/a.jpg", "b.jpg", "c.jpg")
    assert found.folder == images
    assert [str(left) for left in found.left_out] == [
        f"1 images without a file in {images} (val2014/gone.jpg)",
        f"1 image files in {images} that no caption names (val2014/extra.jpg)",
    ]


def test_the_same_name_in_two_folders_is_two_images(tmp_path):
    path = write(tmp_path, entry("a.jpg", filepath="x"), entry("a.jpg", filepath="y"))
    for name in "xy":
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jpg").touch()
    assert read_karpathy(path, images=tmp_path).images == ("x/a.jpg", "y/a.jpg")
    with pytest.raises(FileFormatError, match=r"images\[1\]: 'a.jpg' is already images\[0\]"):
        read_karpathy(path)


def test_blank_sentences_are_counted(tmp_path):
    found = read_karpathy(write(tmp_path, entry("a.jpg", "train", "One.", " ", "Two.")))
    assert found.captions == ("One.", "Two.")
    assert [str(left) for left in found.left_out] == ["1 blank sentences (a.jpg)"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("x", "is a text, wanted an object"),
        (entry(None), "filename is null, wanted a text"),
        (entry("../x.jpg"), "filename is '../x.jpg', which leads out of its folder"),
        (entry("b.jpg", "trian"), "split is 'trian' (did you mean 'train'?), wanted one of "
         "['train', 'val', 'test', 'restval']"),
        (entry("b.jpg", None), "split is None, wanted one of"),
        (entry("b.jpg", ["val"]), "split is ['val']"),
        (entry("b.jpg", filepath=3), "filepath is a number, wanted a text"),
        (entry("b.jpg") | {"sentences": None}, "sentences is null, wanted a list"),
        (entry("b.jpg") | {"sentences": []}, "'b.jpg' has no sentence"),
        (entry("b.jpg", "val", " "), "'b.jpg' has no sentence"),
        (entry("b.jpg") | {"sentences": [{"raw": "x"}, "y"]}, "sentences[1] is a text, wanted an "
         "object with 'raw'"),
        (entry("b.jpg") | {"sentences": [{"tokens": []}]}, "sentences[0] raw is null, wanted"),
        (entry("a.jpg"), "'a.jpg' is already images[0]"),
    ],
)  # fmt: skip
def test_malformed_entries_are_named(tmp_path, bad, message):
    path = write(tmp_path, entry("a.jpg"), bad)
    with pytest.raises(FileFormatError) as caught:
        read_karpathy(path, images=tmp_path)
    assert f"dataset_toy.json: images[1]: {message}" in str(caught.value)


@pytest.mark.parametrize("text", ["[]", "{}", '{"images": {}}', '{"images": []}'])
def test_not_karpathys_json(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"x.json: is not Karpathy's JSON: wanted an object"):
        read_karpathy(path)


def test_bad_arguments(tmp_path):
    path = write(tmp_path, entry("a.jpg"))
    with pytest.raises(InputError, match="restval is 'dev', wanted 'train' or 'restval'"):
        read_karpathy(path, restval="dev")
    with pytest.raises(InputError, match="none: no such folder, wanted the folder of images"):
        read_karpathy(path, images=tmp_path / "none")
    with pytest.raises(InputError, match=r"none.json: no such file, wanted Karpathy's JSON"):
        read_karpathy(tmp_path / "none.json")
