"""Where a model lies: a folder, a short name of the zoo that ships, or an id on the Hub."""

from __future__ import annotations

import json
from pathlib import Path

from crossgaze.errors import InputError, MissingExtraError, require_path

FORMAT, VERSION = "crossgaze-model", 1
FILES = ("config.json", "model.safetensors", "vocab.json", "words.txt", "README.md")
ZOO = Path(__file__).parents[1] / "zoo"


def zoo_models() -> tuple[str, ...]:
    """Return the short names of the models that ship, in the order of the alphabet.

    The zoo holds region models, too, which `crossgaze extract` uses; those are not among them.
    """
    return tuple(sorted(path.parent.name for path in ZOO.glob("*/config.json") if _is_ours(path)))


def _is_ours(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text("utf-8"))["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False  # whoever asks for it by name is told that there is no such model


def find_folder(source: str | Path) -> Path:
    """Return the folder of a model.

    Args:
        source: a folder, which goes before a model of the zoo with the same name; a short name of
            the zoo; or "owner/name" on the Hub, which is the only one that needs a network.
    """
    path = require_path("model", source)
    if path.is_dir():
        return path
    names = zoo_models()
    if not path.exists() and str(source) in names:
        return ZOO / str(source)
    if path.exists() or str(source).count("/") != 1 or str(source).startswith((".", "/", "~")):
        raise InputError(
            f"{source}: no such folder, wanted a model's folder, a Hub id owner/name, or the name "
            f"of a model that ships: {', '.join(names) or 'none does yet'}"
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise MissingExtraError(f"the Hub id {source!r}", "huggingface_hub", "bert") from None
    try:
        patterns = [*FILES, *(f"*/{name}" for name in FILES)]  # an ensemble's members, too
        return Path(snapshot_download(str(source), allow_patterns=patterns))
    except Exception as error:  # noqa: BLE001 (the Hub's client raises many families)
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{source}: no such folder here, and as a Hub id it cannot be had: {first}"
        ) from None
