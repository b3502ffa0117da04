"""Region features that users already have, whatever their format, as a region store."""

from __future__ import annotations

from pathlib import Path

from crossgaze.data.captions.precomp import precomp_layout, read_precomp
from crossgaze.data.captions.reading import read_captions
from crossgaze.data.regions.import_batches import Progress
from crossgaze.data.regions.import_npy import import_npy
from crossgaze.data.regions.import_npz import import_npz
from crossgaze.data.regions.import_tsv import import_tsv, is_tsv, tsv_files
from crossgaze.data.regions.renaming import renamed_by_number
from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError


def import_regions(
    source: str | Path,
    out: str | Path,
    *,
    split: str | None = None,
    regions: int | None = None,
    dtype: str | None = None,
    names: str | Path | None = None,
    on_progress: Progress | None = None,
) -> RegionStore:
    """Make a store of features that are there already; what they are is seen from the source.

    Args:
        source: a `*_precomp` folder (with `split`), an `.npy` file, a bottom-up-attention `.tsv`
            (or a numbered part, `.tsv.0`), a folder of such, or a folder of `.npz` files.
        out: the store's folder.
        split: which split of a `*_precomp` folder; its ids are those of `read_precomp`.
        regions: regions kept an image, for `.tsv` and `.npz`.
        dtype: "float16" or "float32" to convert; None keeps an `.npy` file as it is.
        names: captions whose images' names the ids become, where ids are bare numbers, for `.tsv`
            and `.npz`: 391895 is COCO_val2014_000000391895.jpg.
        on_progress: called with (done, total).
    """
    path = Path(source)
    kind = _kind(path)
    if names is not None and kind in ("precomp", "npy"):
        raise InputError(f"names: {path} has no ids of its own, only .tsv and .npz files have")
    rename = None if names is None else renamed_by_number(read_captions(names).images)
    if split is not None and kind != "precomp":
        raise InputError(f"split: {path} has no splits, only a *_precomp folder has")
    if regions is not None and kind in ("precomp", "npy"):
        raise InputError(
            f"regions: all regions of {path} are kept, only .tsv and .npz files can be cut"
        )
    if kind == "precomp":
        return import_precomp(path, out, split, dtype=dtype, on_progress=on_progress)
    if kind == "npy":
        return import_npy(path, out, dtype=dtype, on_progress=on_progress)
    number = dtype or "float16"
    if kind == "npz":
        return import_npz(
            path, out, regions=regions, dtype=number, on_progress=on_progress, rename=rename
        )
    files = tsv_files(path) if path.is_dir() else [path]
    return import_tsv(
        files, out, regions=regions, dtype=number, on_progress=on_progress, rename=rename
    )


def _kind(path: Path) -> str:
    """Return which kind of features there are: "precomp", "npz", "tsv" or "npy"."""
    if path.is_dir():
        patterns = {"precomp": "*_ims.npy", "npz": "*.npz", "tsv": "*.tsv*"}
        found = [kind for kind, pattern in patterns.items() if any(path.glob(pattern))]
        if found == ["npz", "tsv"]:
            raise InputError(f"{path}: holds .npz and .tsv files, wanted a folder of one kind")
        if found:
            return found[0]
    elif path.suffix == ".npy":
        return "npy"
    elif is_tsv(path):
        return "tsv"
    elif not path.exists():
        raise InputError(f"{path}: no such file or folder, wanted region features to import")
    raise InputError(
        f"{path}: wanted a folder with *_ims.npy, .npz or .tsv files, or a file ending in .npy "
        "or .tsv"
    )


def import_precomp(
    folder: str | Path,
    out: str | Path,
    split: str | None,
    *,
    dtype: str | None = None,
    on_progress: Progress | None = None,
) -> RegionStore:
    """Make a store of one split of a `*_precomp` folder, with the ids that `read_precomp` gives."""
    if split is None:
        there = sorted(p.name.removesuffix("_ims.npy") for p in Path(folder).glob("*_ims.npy"))
        raise InputError(f"{folder}: split: wanted one of {', '.join(there)}")
    layout = precomp_layout(folder, split)
    if layout.features is None:
        raise InputError(f"{folder}: has no {split}_ims.npy, only captions")
    captioned = read_precomp(folder, splits=[split])
    return import_npy(
        layout.features,
        out,
        ids=captioned.images,
        row_step=layout.row_step,
        dtype=dtype,
        on_progress=on_progress,
    )
