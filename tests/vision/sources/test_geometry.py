"""Where regions lie, at the end of their features."""

import numpy as np
from PIL import Image

from command_line import run
from crossgaze.data.regions.store import RegionStore


def test_edges_and_area_stand_behind_the_feature(tmp_path, capsys):
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.new("RGB", (60, 40), "red").save(photos / "a.png")
    stores = []
    for flags in ((), ("--geometry",)):
        out = tmp_path / f"regions{len(flags)}"
        words = ("extract", photos, out, "--regions", "grid", "--grid", 2, "--whole", *flags)
        code, _, err = run(capsys, *words)
        assert code == 0, err
        stores.append(RegionStore(out))
    plain, longer = (np.asarray(store.features[0]) for store in stores)
    assert longer.shape == (5, plain.shape[1] + 5)
    np.testing.assert_array_equal(longer[:, :-5], plain)
    half = 0.5
    wanted = [
        [0, 0, half, half, 0.25],
        [half, 0, 1, half, 0.25],
        [0, half, half, 1, 0.25],
        [half, half, 1, 1, 0.25],
        [0, 0, 1, 1, 1],
    ]
    np.testing.assert_array_equal(longer[:, -5:], wanted)
    assert stores[1].head.made_by["geometry"] is True
    code, _, err = run(capsys, "extract", photos, tmp_path / "regions1", "--regions", "grid")
    assert code != 0
    assert "regions1" in err  # other settings are not mixed into one store
