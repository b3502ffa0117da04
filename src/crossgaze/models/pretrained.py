"""Models on disk: a folder of `config.json`, `model.safetensors`, `vocab.json` and a card.

No pickle anywhere, and no network unless a Hub id is asked for. `config.json` is written last: a
folder that has one is whole.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from crossgaze import __version__
from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import FileFormatError, InputError, MissingExtraError
from crossgaze.files import write_atomically, write_json
from crossgaze.models.families import family
from crossgaze.models.matcher import Matcher

if TYPE_CHECKING:
    from crossgaze.models.ensemble import Ensemble

FORMAT, VERSION = "crossgaze-model", 1
FILES = {"config.json", "model.safetensors", "vocab.json", "README.md"}


def save_pretrained(model: Matcher, folder: str | Path) -> None:
    """Write a model to a folder that `load` reads.

    Args:
        model: any matcher.
        folder: new, empty, or holding an earlier save, which is replaced.
    """
    out = _target(folder)
    config = out / "config.json"
    config.unlink(missing_ok=True)  # until the new one is whole there is no model here
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    partial = out / ".model.safetensors.partial"
    try:
        save_file(weights, partial, metadata={"format": "pt"})
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(out / "model.safetensors")
    finally:
        partial.unlink(missing_ok=True)
    if model.vocabulary is not None:
        model.vocabulary.save(out / "vocab.json")
    else:
        (out / "vocab.json").unlink(missing_ok=True)
    write_atomically(out / "README.md", model_card(model))
    write_json(
        config,
        {
            "format": FORMAT,
            "version": VERSION,
            "family": model.family,
            "config": to_dict(model.config),
            "words": model.text.words,
            "origin": model.origin,
            "crossgaze": __version__,
        },
    )


def save_ensemble(model: Ensemble, folder: str | Path) -> None:
    """Write each member of an ensemble to a folder `0/`, `1/`, ... and a head that names them."""
    out = _target(folder)
    (out / "config.json").unlink(missing_ok=True)
    names = [str(number) for number in range(len(model.members))]
    for name, member in zip(names, model.members, strict=True):
        member.save_pretrained(out / name)  # type: ignore[operator]
    head = {"format": FORMAT, "version": VERSION, "family": "ensemble", "members": names}
    write_json(out / "config.json", head | {"crossgaze": __version__})


def _target(folder: str | Path) -> Path:
    out = Path(folder)
    if out.is_file():
        raise InputError(f"{out}: is a file, wanted a folder for the model")
    if out.is_dir():
        strangers = [p.name for p in out.iterdir() if p.name not in FILES and not p.name.isdigit()]
        if strangers:
            raise InputError(
                f"{out}: holds {sorted(strangers)[0]!r}, wanted a new folder or one with a model"
            )
    out.mkdir(parents=True, exist_ok=True)
    return out


def load(source: str | Path, *, device: str | torch.device = "cpu") -> Matcher | Ensemble:
    """Load a model from a folder or a Hub id, ready to score (evaluation mode).

    Args:
        source: a folder that `save_pretrained` or `crossgaze import` wrote, or "owner/name".
        device: where to put it.
    """
    folder = _folder(source)
    head = _read_head(folder / "config.json")
    if head["family"] == "ensemble":
        from crossgaze.models.ensemble import Ensemble

        members = [load(folder / _plain(folder, name), device=device) for name in head["members"]]
        return Ensemble([member for member in members if isinstance(member, Matcher)]).eval()
    model_type, config_type = family(head["family"])
    config = build(config_type, head["config"], source=str(folder / "config.json"))
    vocabulary: Vocabulary | int | None = head.get("words")
    if (folder / "vocab.json").is_file():
        vocabulary = Vocabulary.load(folder / "vocab.json")
    model = model_type(config, vocabulary)  # type: ignore[call-arg]
    model.origin = head.get("origin") or {}
    path = folder / "model.safetensors"
    if not path.is_file():
        raise FileFormatError(path, "is missing, the model's weights lie in it")
    try:
        weights = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise FileFormatError(path, f"does not read as safetensors: {error}") from None
    load_weights(model, weights, path)
    return model.eval().to(device)


def load_weights(model: Matcher, weights: dict[str, Tensor], path: Path) -> None:
    """Copy weights into a model, naming every key that is missing, too many or of another shape."""
    wanted = model.state_dict()
    problems = [f"missing {key}" for key in wanted if key not in weights]
    problems += [f"unexpected {key}" for key in weights if key not in wanted]
    problems += [
        f"{key} has shape {tuple(weights[key].shape)}, wanted {tuple(wanted[key].shape)}"
        for key in wanted
        if key in weights and weights[key].shape != wanted[key].shape
    ]
    if problems:
        raise FileFormatError(path, f"does not fit the model: {'; '.join(problems)}")
    # Weights may be kept in half precision on disk; the model computes in its own.
    model.load_state_dict({key: weights[key].to(wanted[key].dtype) for key in wanted})


def _folder(source: str | Path) -> Path:
    path = Path(source)
    if path.is_dir():
        return path
    if path.exists() or str(source).count("/") != 1 or str(source).startswith((".", "/", "~")):
        raise InputError(
            f"{source}: no such folder, wanted a model's folder or a Hub id owner/name"
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise MissingExtraError(f"the Hub id {source!r}", "huggingface_hub", "bert") from None
    try:
        return Path(snapshot_download(str(source), allow_patterns=[*FILES]))
    except Exception as error:  # noqa: BLE001 (the Hub's client raises many families)
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{source}: no such folder here, and as a Hub id it cannot be had: {first}"
        ) from None


def _read_head(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"{path.parent}: is not a model's folder, it has no config.json")
    try:
        head = json.loads(path.read_text("utf-8"))
        wrong = head["format"] != FORMAT or head["version"] != VERSION
        wanted = ["members"] if head["family"] == "ensemble" else ["config"]
        missing = [key for key in wanted if key not in head]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileFormatError(path, f"does not read as a model's head: {error!r}") from None
    if wrong:
        found = f"{head['format']!r} version {head['version']!r}"
        raise FileFormatError(path, f"is {found}, this crossgaze reads {FORMAT!r} {VERSION}")
    if missing:
        raise FileFormatError(path, f"has no {missing[0]!r}")
    return dict(head)


def _plain(folder: Path, name: object) -> str:
    if not isinstance(name, str) or not name.isdigit():
        raise FileFormatError(folder / "config.json", f"names the member {name!r}, wanted a number")
    return name


def model_card(model: Matcher) -> str:
    """Return a card that says what the model is, how to use it, and where it came from."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    settings = "\n".join(f"| {key} | {value} |" for key, value in to_dict(model.config).items())
    known = "word pieces" if model.vocabulary is None else f"{len(model.vocabulary):,} words"
    origin = "\n".join(f"- {key}: {value}" for key, value in model.origin.items())
    return f"""# {model.family}

A crossgaze model: {parameters:,} parameters, {known}, regions of width {model.config.region_width}.

```python
import crossgaze

model = crossgaze.load("THIS-FOLDER")
scores = model.similarity(model.encode_images(regions), model.encode_texts(["two dogs"]))
```

| setting | value |
| --- | --- |
{settings}

## Where it came from

{origin or "Nothing was recorded."}

Made with crossgaze {__version__}. What data it was trained on decides what it may be used for.
"""
