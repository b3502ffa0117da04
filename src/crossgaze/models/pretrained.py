"""Models on disk: a folder of `config.json`, `model.safetensors`, `vocab.json` and a card.

A model that reads by a BERT has no `vocab.json`, and where it knows them `words.txt`, the words
that it was trained with.

No pickle anywhere, and no network unless a Hub id is asked for, by the caller or as the BERT that a
model reads words with. A model is written beside its place and moved there whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from crossgaze import __version__
from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.data.textfiles import parse_head
from crossgaze.errors import FileFormatError, InputError
from crossgaze.files import exchange, is_special, sync_folder, write_atomically, write_json
from crossgaze.models.base import Model
from crossgaze.models.card import model_card
from crossgaze.models.families import family
from crossgaze.models.finding import FILES, FORMAT, VERSION, find_folder
from crossgaze.models.fitting import build_fitting, load_weights
from crossgaze.models.matcher import Matcher
from crossgaze.models.seen_words import read_words_file, write_words
from crossgaze.models.sparse_rows import unpack
from crossgaze.torchfiles import save_tensors

if TYPE_CHECKING:
    from crossgaze.models.answerer import Answerer
    from crossgaze.models.ensemble import Ensemble


def save_pretrained(model: Model, folder: str | Path) -> None:
    """Write a model to a folder that `load` reads.

    Args:
        model: any model.
        folder: new, empty, or holding an earlier save, which stays until this one is whole.
    """
    with replacing_folder(Path(folder)) as out:
        _write(model, out)


def save_ensemble(model: Ensemble, folder: str | Path) -> None:
    """Write each member of an ensemble to a folder `0/`, `1/`, ... and a head that names them."""
    with replacing_folder(Path(folder)) as out:
        names = []
        for number, member in enumerate(model.matchers):
            (out / str(number)).mkdir()
            _write(member, out / str(number))
            names.append(str(number))
        kinds = ", ".join(member.family for member in model.matchers)
        write_atomically(
            out / "README.md",
            f"# ensemble\n\nA crossgaze model, the mean of its members' similarities: {kinds}. "
            "Each has a card in its own folder.\n",
        )
        head = {"format": FORMAT, "version": VERSION, "family": "ensemble", "members": names}
        write_json(out / "config.json", head | {"crossgaze": __version__})


def _write(model: Model, out: Path) -> None:
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_tensors(out / "model.safetensors", weights)
    digest = None
    if model.vocabulary is not None:
        model.vocabulary.save(out / "vocab.json")
        digest = digest_of(out / "vocab.json")
    if model.text.seen is not None:
        write_words(out, model.text.seen)
    write_atomically(out / "README.md", model_card(model))
    write_json(
        out / "config.json",
        {
            "format": FORMAT,
            "version": VERSION,
            "family": model.family,
            "config": to_dict(model.config),
            "words": model.text.words,
            "vocabulary": digest,
            "weights": digest_of(out / "model.safetensors"),
            "origin": model.origin,
            "crossgaze": __version__,
        },
    )


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Give a new folder beside `folder` and, once it is filled, put it in its place.

    If anything fails or the process is killed before that, what was there is there still.
    """
    if folder.is_file():
        raise InputError(f"{folder}: is a file, wanted a folder for the model")
    if is_special(folder):
        raise InputError(f"{folder}: is a pipe, socket or device, wanted a folder for the model")
    folder = folder.resolve()
    if folder.is_dir() and any(folder.iterdir()) and not _is_model(folder):
        first = sorted(path.name for path in folder.iterdir())[0]
        raise InputError(f"{folder}: holds {first!r}, wanted a new folder or one with a model")
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{end}") for end in ("new", "old"))
    if not folder.exists():
        _bring_back(folder)
    # With nothing in its place, what was put aside may be all that there is of a model.
    for end in ("new", "old") if folder.exists() else ("new",):
        for leftover, dead in _beside(folder, end):
            if dead:
                shutil.rmtree(leftover, ignore_errors=True)
    fresh.mkdir()
    try:
        yield fresh
        sync_folder(fresh)
        if not folder.exists():
            fresh.rename(folder)
        elif exchange(fresh, folder):
            fresh.rename(old)
        else:  # a kill between these two leaves the old one under another name
            folder.rename(old)
            fresh.rename(folder)
    except BaseException:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    sync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _bring_back(folder: Path) -> None:
    """Give a model its name again that a killed process had put aside to replace it."""
    aside = _beside(folder, "old")
    if aside and all(dead for _, dead in aside):
        aside[0][0].rename(folder)


def _beside(folder: Path, end: str) -> list[tuple[Path, bool]]:
    """Return the folders `.NAME.PID.END` of saves, and whether the process of each is gone.

    This one has none under way: in a container, a killed one may have had the same number.
    """
    name = re.compile(rf"\.{re.escape(folder.name)}\.([0-9]{{1,9}})\.{end}")
    found = [(path, name.fullmatch(path.name)) for path in sorted(folder.parent.iterdir())]
    numbers = [(path, int(match[1])) for path, match in found if match]
    return [(path, pid == os.getpid() or not _is_running(pid)) for path, pid in numbers]


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _is_model(folder: Path) -> bool:
    """Whether a folder holds a model and nothing else, so that it may be replaced."""
    names = {path.name for path in folder.iterdir()}
    members = {name for name in names if (folder / name / "config.json").is_file()}
    return "config.json" in names and not names - members - set(FILES)


def load(source: str | Path, *, device: str | torch.device = "cpu") -> Matcher | Ensemble:
    """Load a model that matches from a folder or a Hub id, ready to score (evaluation mode).

    One that answers questions is loaded, too; for a type checker see `load_answerer`.

    Args:
        source: a folder that `save_pretrained` or `crossgaze import` wrote, the short name of a
            model that ships (`crossgaze.models.finding.zoo_models`), or "owner/name" on the Hub.
        device: where to put it.
    """
    return _load(find_folder(source), device)  # type: ignore[return-value]


def load_answerer(source: str | Path, *, device: str | torch.device = "cpu") -> Answerer:
    """Load a model that answers questions (r-DAN), and refuse any other."""
    from crossgaze.models.answerer import Answerer

    found = _load(find_folder(source), device)
    if not isinstance(found, Answerer):
        raise InputError(
            f"{source}: is a {found.family}, which answers no questions; wanted an r-dan"
        )
    return found


def family_of(source: str | Path) -> str:
    """Return the family of a saved model without loading it."""
    return str(_read_head(find_folder(source) / "config.json")["family"])


def _load(folder: Path, device: str | torch.device) -> Model | Ensemble:
    head = _read_head(folder / "config.json")
    if head["family"] == "ensemble":
        from crossgaze.models.ensemble import Ensemble

        members = [_load(folder / _plain(folder, name), device) for name in head["members"]]
        return Ensemble(members).eval()  # type: ignore[arg-type]
    model_type, config_type = family(head["family"])
    config = build(config_type, head["config"], source=str(folder / "config.json"))
    vocabulary = _vocabulary(folder, head)
    path = folder / "model.safetensors"
    if not path.is_file():
        raise FileFormatError(path, "is missing, the model's weights lie in it")
    try:
        with safe_open(path, "pt") as file:
            shapes = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
        model = build_fitting(model_type, config, vocabulary, shapes, path)
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise FileFormatError(path, f"does not read as safetensors: {error}") from None
    if head.get("weights") is not None and digest_of(path) != head["weights"]:
        raise FileFormatError(
            path, "is damaged, or has other weights than config.json was written with"
        )
    model.origin = head.get("origin") or {}
    model.text.seen = read_words_file(folder)
    load_weights(model, unpack(weights, model.state_dict(), path), path)
    return model.eval().to(device)


def _vocabulary(folder: Path, head: Mapping[str, Any]) -> Vocabulary | int | None:
    """Return the model's words, or how many, checked against what was saved."""
    path, words, digest = folder / "vocab.json", head.get("words"), head.get("vocabulary")
    if not (words is None or (type(words) is int and 0 < words < 1 << 31)):
        raise FileFormatError(folder / "config.json", f"words is {words!r}, wanted how many")
    if digest is None:
        return words
    if not path.is_file():
        raise FileFormatError(path, "is missing, the model's words lie in it")
    if digest_of(path) != digest:
        raise FileFormatError(path, "is another vocabulary than the model was saved with")
    return Vocabulary.load(path)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, as a model's head keeps it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_head(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"{path.parent}: is not a model's folder, it has no config.json")
    try:
        head = parse_head(path, "a model's head")
        kind, version = head["format"], head["version"]
        wanted = {"members": list} if head["family"] == "ensemble" else {"config": dict}
        missing = [key for key, kind in wanted.items() if not isinstance(head.get(key), kind)]
        if not isinstance(head["family"], str) or not isinstance(head.get("origin", {}), dict):
            raise TypeError("family is not a text, or origin not keys and values")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileFormatError(path, f"does not read as a model's head: {error!r}") from None
    if kind != FORMAT or version != VERSION:
        found = f"{kind!r} version {version!r}"
        raise FileFormatError(path, f"is {found}, this crossgaze reads {FORMAT!r} {VERSION}")
    if missing:
        raise FileFormatError(path, f"has no {missing[0]!r} of the kind that it should be")
    return dict(head)


def _plain(folder: Path, name: object) -> str:
    if not isinstance(name, str) or not name.isdigit():
        raise FileFormatError(folder / "config.json", f"names the member {name!r}, wanted a number")
    return name
