"""The papers' own checkpoints (`.pth.tar` of the public SCAN, BFAN, VSRN and VSE++ code).

A checkpoint is a dict of `epoch, model, best_rsum, opt, Eiters`; `model` is [image state, text
state] and `opt` an `argparse.Namespace`. It is read by torch's own unpickler for weights, with that
one class allowed beside tensors and plain values: anything else in the pickle is refused by name
and never run. Every option that shapes the model is taken from `opt`; options of its training are
kept as they are in the model's `origin`.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from reprlib import repr as shown
from typing import Any, get_args

import torch
from torch import Tensor

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import FileFormatError, InputError, nearest, require_file
from crossgaze.models.base import Model
from crossgaze.models.bfan import BfanConfig
from crossgaze.models.cross_attention import FeatureNorm
from crossgaze.models.families import family as family_of
from crossgaze.models.fitting import build_fitting, load_weights
from crossgaze.models.matcher import Matcher
from crossgaze.models.scan import ScanConfig
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import VseConfig
from crossgaze.models.vsrn import VsrnConfig
from crossgaze.torchfiles import load_torch, named_tensors

POOLING = {"LogSumExp": "LSE", "Mean": "AVG", "Sum": "SUM", "Max": "MAX"}
DIRECTION = {"t2i": "t-i", "i2t": "i-t"}
PUBLIC_NORMS = [norm for norm in get_args(FeatureNorm) if norm != "paper"]


class Options:
    """The options of a checkpoint, read by name; one that is missing or odd is named."""

    def __init__(self, path: Path, values: Mapping[str, Any]) -> None:
        self.path, self.values = path, values

    def __call__(self, name: str, *default: Any) -> Any:  # noqa: ANN401 (an option is anything)
        """Return an option, or the default where one is given and the checkpoint has none."""
        if name in self.values:
            return self.values[name]
        if default:
            return default[0]
        there = shown(sorted(self.values))
        raise FileFormatError(self.path, f"its opt has no {name!r}, it has {there}")

    def number(self, name: str, *default: float) -> float:
        """Return a number; the public code's scripts may have kept it as text."""
        value = self(name, *default)
        try:
            plain = isinstance(value, int | float | str) and not isinstance(value, bool)
            number = float(value) if plain else math.nan
        except (ValueError, OverflowError):  # a text that is none; more digits than a number has
            number = math.nan
        if not math.isfinite(number):
            raise FileFormatError(
                self.path, f"its opt has {name} = {shown(value)}, wanted a number"
            )
        return number

    def whole(self, name: str, *default: int) -> int:
        """Return a whole number."""
        number = self.number(name, *default)
        if number != int(number):
            raise FileFormatError(
                self.path, f"its opt has {name} = {number}, wanted a whole number"
            )
        return int(number)

    def switch(self, name: str, default: bool) -> bool:
        """Return a switch; a text such as 'False' would count as on, so it is refused."""
        value = self(name, default)
        if not (isinstance(value, bool | int) and value in (True, False)):
            raise FileFormatError(
                self.path, f"its opt has {name} = {shown(value)}, wanted True or False"
            )
        return bool(value)

    def choice(self, name: str, known: Mapping[str, str]) -> str:
        """Return our name for one of the public code's choices."""
        value = self(name)
        if not isinstance(value, str) or value not in known:
            raise FileFormatError(
                self.path, f"its opt has {name} = {shown(value)}, wanted one of {', '.join(known)}"
            )
        return known[value]


def _encoder(opt: Options, *, bidirectional: bool) -> dict[str, Any]:
    """Return the settings that all four families share."""
    return {
        "region_width": opt.whole("img_dim"),
        "size": opt.whole("embed_size"),
        "text": TextConfig(
            kind="gru",
            word_size=opt.whole("word_dim"),
            layers=opt.whole("num_layers", 1),
            bidirectional=bidirectional,
        ),
        "normalize_images": not opt.switch("no_imgnorm", False),
    }


def _fragments(opt: Options, *, bidirectional: bool) -> dict[str, Any]:
    kinds = {"basic": "basic", "weight_norm": "weight_norm"}
    return _encoder(opt, bidirectional=bidirectional) | {
        "normalize_texts": not opt.switch("no_txtnorm", False),
        "projection": opt.choice("precomp_enc_type", kinds)
        if "precomp_enc_type" in opt.values
        else "basic",
    }


def _vectors(opt: Options) -> dict[str, Any]:
    """Return the settings of the two families that compare vectors."""
    measure = opt("measure", "cosine")
    if not isinstance(measure, str) or measure != "cosine":
        raise FileFormatError(
            opt.path,
            f"its opt has measure = {shown(opt('measure'))}, crossgaze has the inner product "
            "(cosine)",
        )
    absolute = opt.switch("use_abs", False)
    return _encoder(opt, bidirectional=False) | {"absolute": absolute}


def _scan(opt: Options) -> ScanConfig:
    return ScanConfig(
        **_fragments(opt, bidirectional=opt.switch("bi_gru", False)),
        direction=opt.choice("cross_attn", DIRECTION),  # type: ignore[arg-type]
        pooling=opt.choice("agg_func", POOLING),  # type: ignore[arg-type]
        lambda1=opt.number("lambda_softmax"),
        lambda2=opt.number("lambda_lse", 6.0),
        feature_norm=opt.choice("raw_feature_norm", {norm: norm for norm in PUBLIC_NORMS}),  # type: ignore[arg-type]
    )


def _bfan(opt: Options) -> BfanConfig:
    # BFAN's code has no such option: it always reads both ways.
    both = opt.switch("bi_gru", True)
    return BfanConfig(
        **_fragments(opt, bidirectional=both),
        lambda1=opt.number("lambda_softmax"),
        focal=opt.choice("focal_type", {"equal": "equal", "prob": "prob"}),  # type: ignore[arg-type]
    )


def _vsrn(opt: Options) -> VsrnConfig:
    name = opt("data_name")
    variant = "f30k" if isinstance(name, str) and name == "f30k_precomp" else "coco"
    return VsrnConfig(**_vectors(opt), variant=variant)  # type: ignore[arg-type]


def _vse(opt: Options) -> VseConfig:
    return VseConfig(**_vectors(opt))


CONFIGS: dict[str, Callable[[Options], Any]] = {
    "scan": _scan,
    "bfan": _bfan,
    "vsrn": _vsrn,
    "vse++": _vse,
}


def import_checkpoint(path: str | Path, family: str, vocab: str | Path | None = None) -> Matcher:
    """Read a checkpoint of the public code as a model that scores as that code does.

    Args:
        path: the `.pth.tar` file.
        family: "scan", "bfan", "vsrn" or "vse++".
        vocab: its vocabulary, SCAN's JSON or VSRN's pickle; without it the model reads numbers of
            words (`encode_tokens`) but no text.

    Example:
        ```python
        model = import_checkpoint("model_best.pth.tar", "scan", "f30k_precomp_vocab.json")
        model.save_pretrained("scan-f30k")
        ```
    """
    if family not in CONFIGS:
        raise InputError(
            f"family: got {family!r}{nearest(str(family), CONFIGS)}, "
            f"wanted one of {', '.join(CONFIGS)}"
        )
    path = require_file(path, "a checkpoint of the public code (.pth.tar)")
    raw = _read(path)
    image, text = (_state(path, state) for state in _states(path, raw))
    opt = Options(path, _options(path, raw))
    embedding = text.get("embed.weight")
    if embedding is None or embedding.ndim != 2:
        raise FileFormatError(path, "its text state has no embed.weight, wanted a text encoder")
    words: Vocabulary | int = len(embedding)
    if vocab is not None:
        words = Vocabulary.load(vocab)
        if len(words) != len(embedding):
            raise InputError(
                f"{vocab}: has {len(words):,} words, the checkpoint's embedding {len(embedding):,}"
            )
    try:
        config = CONFIGS[family](opt)
    except FileFormatError:
        raise
    except InputError as error:  # a value of an option that no model takes
        raise FileFormatError(path, f"its opt does not make a model: {error}") from None
    model_type, _ = family_of(family)
    with torch.device("meta"):  # its names and shapes, before any memory is taken
        skeleton = model_type(config, words)  # type: ignore[call-arg]
    weights = _ours(skeleton, image, text)
    shapes = {key: tuple(value.shape) for key, value in weights.items()}
    model = build_fitting(model_type, config, words, shapes, path)
    load_weights(model, weights, path)
    assert isinstance(model, Matcher)  # as every family of CONFIGS
    model.origin = {
        "imported from": path.name,
        "code": f"the public {family} code",
        **{key: raw[key] for key in ("epoch", "best_rsum") if key in raw and _is_plain(raw[key])},
        "opt": {key: value for key, value in sorted(opt.values.items()) if _is_plain(value)},
    }
    return model.eval()


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = load_torch(path, classes=[argparse.Namespace])
    except FileFormatError:
        raise
    except Exception as error:  # noqa: BLE001 (torch, zip and pickle each raise their own)
        named = re.search(r"GLOBAL ([\w.]+)|Unsupported (?:global|class) ([\w.]+)", str(error))
        asked = next((name for name in named.groups() if name), "") if named else ""
        reason = f"the pickle asks for {asked}" if asked else f"{type(error).__name__} on reading"
        raise FileFormatError(
            path, f"refused: {reason}; wanted tensors, plain values and argparse.Namespace only"
        ) from None
    if not isinstance(raw, dict) or "model" not in raw or "opt" not in raw:
        found = shown(sorted(map(str, raw))) if isinstance(raw, dict) else type(raw).__name__
        raise FileFormatError(path, f"holds {found}, wanted a checkpoint with 'model' and 'opt'")
    return raw


def _states(path: Path, raw: Mapping[str, Any]) -> list[Any]:
    states = raw["model"]
    if not isinstance(states, list | tuple) or len(states) != 2:
        raise FileFormatError(
            path, f"its model is a {type(states).__name__}, wanted [image state, text state]"
        )
    return list(states)


def _state(path: Path, state: Any) -> dict[str, Tensor]:  # noqa: ANN401
    """Return a state with plain keys: DataParallel puts `module.` in front of them."""
    named = named_tensors(path, state, "its model's states are")
    plain = {key.removeprefix("module."): value for key, value in named.items()}
    if len(plain) < len(state):
        raise FileFormatError(path, "its model has keys both with and without 'module.'")
    return plain


def _options(path: Path, raw: Mapping[str, Any]) -> dict[str, Any]:
    opt = raw["opt"]
    if isinstance(opt, argparse.Namespace):
        return {str(key): value for key, value in vars(opt).items()}
    if isinstance(opt, Mapping):
        return {str(key): value for key, value in opt.items()}
    raise FileFormatError(path, f"its opt is a {type(opt).__name__}, wanted argparse.Namespace")


def _ours(
    model: Model, image: Mapping[str, Tensor], text: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the weights under our names; counters that old torch did not keep start at zero."""
    projection = "fc." if model.family == "vsrn" else "regions."
    weights = {
        (projection + key[3:] if key.startswith("fc.") else key): value
        for key, value in image.items()
    }
    weights |= {f"text.{key}": value for key, value in text.items()}
    for key, value in model.state_dict().items():
        if key.endswith("num_batches_tracked"):
            weights.setdefault(key, torch.zeros(value.shape, dtype=value.dtype))
        if value.ndim == 0 and key in weights and weights[key].numel() == 1:
            weights[key] = weights[key].reshape(())  # old torch wrote a single number as (1,)
    return weights


def _is_plain(value: object, depth: int = 0) -> bool:
    """Whether JSON can hold it: an option of the training is kept as it was, where it can be.

    A list of a pickle may hold itself, and a whole number have more digits than Python writes.
    """
    if isinstance(value, list | tuple):
        return depth < 8 and all(_is_plain(item, depth + 1) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) < 1 << 64
    return value is None or isinstance(value, str)
