"""Features that users already have, seen from the source."""

import json

import numpy as np
import pytest

from crossgaze.data.captions.precomp import read_precomp
from crossgaze.data.regions.import_report import read_import_report
from crossgaze.data.regions.importing import import_regions
from crossgaze.data.regions.merge import merge_stores
from crossgaze.data.regions.renaming import renamed_by_number
from crossgaze.errors import FileFormatError, InputError
from feature_files import RNG, lxmert_line, random_image, save, tsv_line


@pytest.fixture
def precomp(tmp_path):
    folder = tmp_path / "x_precomp"
    folder.mkdir()
    array = RNG.normal(size=(3, 2, 4)).astype(np.float32)
    np.save(folder / "test_ims.npy", array.repeat(5, axis=0))
    (folder / "test_caps.txt").write_text("".join(f"caption {i}\n" for i in range(15)))
    return folder


def test_a_precomp_split_has_the_ids_of_its_captions(precomp, tmp_path):
    store = import_regions(precomp, tmp_path / "s", split="test")
    captioned = read_precomp(precomp)
    assert store.ids == captioned.images
    array = np.load(precomp / "test_ims.npy")[::5]
    np.testing.assert_array_equal(store.read(captioned.images).features, array)
    with pytest.raises(InputError, match="split: wanted one of test"):
        import_regions(precomp, tmp_path / "t")
    (precomp / "dev_caps.txt").write_text("caption\n" * 5)
    with pytest.raises(InputError, match=r"has no dev_ims.npy"):
        import_regions(precomp, tmp_path / "t", split="dev")


def test_rows_of_different_images_are_not_taken_for_five_of_one(precomp, tmp_path):
    np.save(precomp / "test_ims.npy", RNG.normal(size=(15, 2, 4)))
    with pytest.raises(FileFormatError, match=r"test_ims.npy: .* rows 0 and 1 differ"):
        import_regions(precomp, tmp_path / "s", split="test")


def test_files_and_folders_of_tsv(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    images = [random_image(3) for _ in range(12)]
    for number, image in enumerate(images):
        (folder / f"train.tsv.{number}").write_text(lxmert_line(f"{number}", *image))
    store = import_regions(folder, tmp_path / "s", regions=2, dtype="float32")
    assert store.ids == tuple(f"{number}" for number in range(12))
    np.testing.assert_array_equal(store.features[11], images[11][1][:2])
    assert read_import_report(tmp_path / "s").regions_cut == 12
    one = import_regions(folder / "train.tsv.3", tmp_path / "t")
    assert (one.ids, one.features.dtype) == (("3",), np.float16)
    np.savez(folder / "a.npz", x=np.ones((2, 3)))
    with pytest.raises(InputError, match=r"parts: holds .npz and .tsv files, wanted a folder of"):
        import_regions(folder, tmp_path / "u")


def test_npy_and_npz(tmp_path):
    array = RNG.normal(size=(4, 3, 2)).astype(np.float32)
    npy = save(tmp_path / "x.npy", array)
    assert import_regions(npy, tmp_path / "s").features.dtype == np.float32
    assert import_regions(npy, tmp_path / "t", dtype="float16").features.dtype == np.float16
    np.savez(tmp_path / "a.npz", x=array[0])
    assert import_regions(tmp_path, tmp_path / "u", regions=1).features.shape == (1, 1, 2)


def test_options_without_use_are_named(precomp, tmp_path):
    npy = save(tmp_path / "x.npy", np.zeros((2, 2, 2), np.float32))
    (tmp_path / "x.tsv").write_text(tsv_line("1", *random_image(2)))
    (tmp_path / "n").mkdir()
    np.savez(tmp_path / "n" / "a.npz", x=np.ones((2, 3)))
    for source in (npy, tmp_path / "x.tsv", tmp_path / "n"):
        with pytest.raises(InputError, match=r"^split: .* has no splits, only a \*_precomp folder"):
            import_regions(source, tmp_path / "s", split="test")
    for source, options in ((npy, {}), (precomp, {"split": "test"})):
        with pytest.raises(InputError, match=r"^regions: all regions of .* are kept, only .tsv"):
            import_regions(source, tmp_path / "s", regions=2, **options)
    assert not (tmp_path / "s").exists()


def test_merging_imports_says_that_they_differ(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.tsv").write_text(tsv_line(name, *random_image(2)))
        import_regions(tmp_path / f"{name}.tsv", tmp_path / name)
    with pytest.raises(InputError, match="merge: made_by is "):
        merge_stores([tmp_path / "a", tmp_path / "b"], tmp_path / "c")


def test_sources_that_are_nothing_are_named(tmp_path):
    (tmp_path / "x.txt").write_text("")
    (tmp_path / "empty").mkdir()
    for source in ("x.txt", "empty"):
        with pytest.raises(
            InputError, match=rf"{source}: wanted a folder with \*_ims.npy, .npz or"
        ):
            import_regions(tmp_path / source, tmp_path / "s")
    with pytest.raises(InputError, match="no such file or folder"):
        import_regions(tmp_path / "no", tmp_path / "s")


def test_bare_numbers_become_the_names_that_captions_have(tmp_path):
    names = ["COCO_val2014_000000391895.jpg", "COCO_train2014_000000000007.jpg", "other.jpg"]
    lines = [json.dumps({"image": name, "caption": "a dog", "split": "train"}) for name in names]
    (tmp_path / "captions.jsonl").write_text("\n".join(lines))
    ids = ["391895", "7", "12"]  # the last is nobody's
    rows = [tsv_line(one, *random_image(3)) for one in ids]
    (tmp_path / "f.tsv").write_text("".join(rows))
    store = import_regions(tmp_path / "f.tsv", tmp_path / "s", names=tmp_path / "captions.jsonl")
    assert list(store.ids) == [*names[:2], "12"]
    plain = import_regions(tmp_path / "f.tsv", tmp_path / "t")
    assert list(plain.ids) == ids
    np.testing.assert_array_equal(plain.features[:], store.features[:])
    np.save(tmp_path / "f.npy", np.ones((3, 2, 4), np.float32))
    with pytest.raises(InputError, match=r"names: .*f\.npy has no ids of its own"):
        import_regions(tmp_path / "f.npy", tmp_path / "u", names=tmp_path / "captions.jsonl")


def test_names_that_numbers_do_not_tell_apart_are_refused():
    with pytest.raises(InputError, match=r"val_07\.jpg and train_7\.jpg end in the same number"):
        renamed_by_number(["train_7.jpg", "val_07.jpg"])
    with pytest.raises(InputError, match="no image's name ends in a number"):
        renamed_by_number(["a.jpg"])
