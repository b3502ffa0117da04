"""The features of a `*_precomp` folder, read where they lie."""

import numpy as np
import pytest

from crossgaze.data.regions.importing import import_precomp
from crossgaze.data.regions.precomp import is_precomp, open_precomp
from crossgaze.errors import InputError
from feature_files import RNG, save


@pytest.fixture
def folder(tmp_path):
    for split, images in (("train", 4), ("dev", 2)):
        (tmp_path / f"{split}_caps.txt").write_text("a cat\n" * 5 * images)
    save(tmp_path / "train_ims.npy", RNG.normal(size=(4, 3, 6)).astype(np.float32))
    save(tmp_path / "dev_ims.npy", RNG.normal(size=(2, 3, 6)).astype(np.float32).repeat(5, axis=0))
    return tmp_path


@pytest.mark.parametrize("split", ["train", "dev"])
def test_it_is_what_an_import_gives_and_nothing_is_written(folder, split, tmp_path_factory):
    files = sorted(folder.iterdir())
    found = open_precomp(folder, split)
    wanted = import_precomp(folder, tmp_path_factory.mktemp("out") / "store", split)
    assert sorted(folder.iterdir()) == files
    assert (found.ids, found.head) == (wanted.ids, wanted.head)
    assert found.folder == folder
    np.testing.assert_array_equal(found.features, wanted.features)
    np.testing.assert_array_equal(found.counts, [3] * len(found))
    last = found.ids[-1]
    np.testing.assert_array_equal(found.read([last]).features, wanted.read([last]).features)


def test_a_folder_of_features_is_told_from_a_store(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    import_precomp(folder, out / "store", "train")
    assert is_precomp(folder)
    assert not is_precomp(out / "store")
    assert not is_precomp(out)


def test_what_cannot_be_mapped_is_refused_with_what_to_do(folder):
    np.save(folder / "train_ims.npy", RNG.normal(size=(4, 3, 6)))
    with pytest.raises(InputError, match=r"holds float64.*crossgaze store import"):
        open_precomp(folder, "train")
    (folder / "dev_ims.npy").unlink()
    with pytest.raises(InputError, match=r"has no dev_ims.npy, only captions"):
        open_precomp(folder, "dev")
