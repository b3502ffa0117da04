"""VSRN's caption generator, which learns with the matching model and writes captions.

Kunpeng Li, Yulun Zhang, Kai Li, Yuanyuan Li, Yun Fu. Visual Semantic Reasoning for Image-Text
Matching. ICCV 2019, section 3.4, eq. 9. The model is that of Venugopalan et al., Sequence to
Sequence - Video to Text, ICCV 2015, with attention, as in the public code of VSRN; its weights are
not in VSRN's checkpoints, so the names here are our own.

With V* = {v*_1 ... v*_k} from `Vsrn` (`Encoded.features`), y_0 = <start> and H = hidden:

    e_i = GRU(W v*_i + b, e_{i-1})                          (dropout before the GRU, in training)
    a_ti = softmax_i( w' tanh(W_e e_i + W_h h_{t-1} + b) )  (additive attention)
    h_t = GRU([word y_{t-1}; sum_i a_ti e_i], h_{t-1})      (h_0 = e_k)
    log p(y_t | y_<t, V*) = log softmax(W_o h_t + b_o)

| paper | code | shape |
| --- | --- | --- |
| V* | `features` | (N, k, D), D = size |
| Y = (y_1 ... y_l) | `ids` without its first | (N, n - 1), ends with <end> |
| e_i | `_Read.states` | (N, k, H) |
| h_t | `state` | (N, b, H), b captions begun for each image |
| theta | the parameters of `Captioner` | |
| L_G | `Captioner.loss` | () |
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from crossgaze.config import build, to_dict
from crossgaze.data.text.vocabulary import END, PAD, START, Vocabulary
from crossgaze.data.textfiles import read_json
from crossgaze.errors import FileFormatError, InputError, require_file, require_folder
from crossgaze.files import write_json
from crossgaze.models.checks import require_positive, require_share, require_whole
from crossgaze.models.companion import Companion
from crossgaze.models.encoded import Encoded, real
from crossgaze.models.fitting import load_weights, require_fit
from crossgaze.models.norms import masked_softmax
from crossgaze.models.pretrained import replacing_folder
from crossgaze.models.text import last_word
from crossgaze.torchfiles import save_tensors

FORMAT = "crossgaze-captioner"


@dataclass(frozen=True)
class CaptionerConfig:
    """What a caption generator is.

    Args:
        size: width D of V*, the matching model's `size`.
        hidden: width H of both GRUs.
        word_size: width of the word embedding.
        dropout: share of the projected features set to zero in training.
        max_length: most words of a caption, <start> and <end> among them; the rest is not learned.
        weight: what L_G is multiplied by in training.
    """

    size: int = 2048
    hidden: int = 512
    word_size: int = 300
    dropout: float = 0.2
    max_length: int = 60
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("hidden", 1), ("word_size", 1), ("max_length", 2)):
            require_whole(name, getattr(self, name), least)
        require_share("dropout", self.dropout)
        require_positive("weight", self.weight)


@dataclass(frozen=True)
class _Read:
    """The regions as the encoder read them: `states` and `keys` (N, k, H), `mask` (N, k)."""

    states: Tensor
    keys: Tensor
    mask: Tensor
    last: Tensor  # (N, H)


class Captioner(Companion):
    """Learns to write captions from V*, and writes them.

    Example:
        >>> vocabulary = Vocabulary.build(["a dog runs"], min_count=1)
        >>> captioner = Captioner(CaptionerConfig(size=8, hidden=4, word_size=3), vocabulary)
        >>> captions = captioner.beam(torch.rand(2, 3, 8), torch.tensor([3, 2]), width=2)
        >>> len(captions)
        2
    """

    def __init__(self, config: CaptionerConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        hidden = config.hidden
        self.project = nn.Linear(config.size, hidden)
        self.reader = nn.GRU(hidden, hidden, batch_first=True)
        # One linear layer over [e_i; h], kept as its two halves: the first is computed once an
        # image, not once a word.
        self.attend_region = nn.Linear(hidden, hidden)
        self.attend_state = nn.Linear(hidden, hidden, bias=False)
        self.attend = nn.Linear(hidden, 1, bias=False)
        self.embed = nn.Embedding(len(vocabulary), config.word_size)
        self.writer = nn.GRUCell(config.word_size + hidden, hidden)
        self.out = nn.Linear(hidden, len(vocabulary))

    # Learning ---------------------------------------------------------------------------------

    def terms(self, images: Encoded, ids: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        """Eq. 10: L = L_M + L_G; this is L_G, by its weight (1 in the paper)."""
        if images.features is None:
            raise InputError("images: got no region features, wanted VSRN's own")
        loss = self.loss(images.features, images.counts, ids, lengths)
        return {"captions": self.config.weight * loss}

    def loss(self, features: Tensor, counts: Tensor, ids: Tensor, lengths: Tensor) -> Tensor:
        """Eq. 9: L_G = - sum_t log p(y_t | y_{t-1}, V*), summed over words, averaged over captions.

        As the public code does, the sum over all real words is divided by the batch size and not by
        the number of words. Every word is given the true words before it (teacher forcing).

        Args:
            features: (N, k, D) V*.
            counts: (N,) how many regions are real.
            ids: (N, n) each image's caption, <start> first, padded on the right with anything.
            lengths: (N,) how many words are real, at least 2.

        Returns:
            () the loss.
        """
        return -self.log_likelihood(features, counts, ids, lengths).mean()

    def log_likelihood(
        self, features: Tensor, counts: Tensor, ids: Tensor, lengths: Tensor
    ) -> Tensor:
        """Return log p(caption | image) of N pairs, (N,); the arguments are those of `loss`."""
        _require_counts("lengths", lengths, ids, least=2)
        if len(ids) != len(features):
            raise InputError(f"ids: got {len(ids)} captions, wanted {len(features)}, one an image")
        lengths = lengths.clamp(max=self.config.max_length)
        ids = ids[:, : int(lengths.max()) if len(ids) else 2]  # (N, n)
        known = real(lengths, ids.shape[1])  # (N, n)
        ids = ids.masked_fill(~known, PAD)
        if ((ids < 0) | (ids >= len(self.vocabulary))).any():
            raise InputError(f"ids: got numbers of no word, wanted 0 to {len(self.vocabulary) - 1}")
        read = self._read(features, counts, dropout=self.training)
        state, states = read.last[:, None], []  # (N, 1, H)
        for t in range(ids.shape[1] - 1):
            state = self._step(read, state, ids[:, t : t + 1])
            states.append(state)
        wanted = known[:, 1:]  # (N, n - 1)
        # Padding is left out before the largest matrix product of all, hidden x vocabulary.
        logits: Tensor = self.out(torch.cat(states, 1)[wanted])  # (words, V)
        log_p = logits.log_softmax(-1).gather(1, ids[:, 1:][wanted][:, None])  # (words, 1)
        return log_p.new_zeros(wanted.shape).masked_scatter(wanted, log_p).sum(1)

    # Writing ----------------------------------------------------------------------------------

    def greedy(
        self, features: Tensor, counts: Tensor, max_length: int | None = None
    ) -> list[list[str]]:
        """Write a caption for each image, taking the likeliest word each time.

        Args:
            features: (N, k, D) V*.
            counts: (N,) how many regions are real.
            max_length: most words to write, <end> among them; the configuration's, less <start>,
                if not given.

        Returns:
            N lists of words, without <start> and <end>.
        """
        return self.beam(features, counts, 1, max_length)

    @torch.no_grad()
    def beam(
        self, features: Tensor, counts: Tensor, width: int = 3, max_length: int | None = None
    ) -> list[list[str]]:
        """Write a caption for each image, keeping the `width` likeliest beginnings each time.

        A beginning is rated by its log-probability, a finished caption too; <pad> and <start> are
        never written. There is no dropout here, whatever mode the module is in.

        Args:
            features: (N, k, D) V*.
            counts: (N,) how many regions are real.
            width: beginnings kept; 1 is `greedy`.
            max_length: as in `greedy`.

        Returns:
            N lists of words, without <start> and <end>.
        """
        steps = self.config.max_length - 1 if max_length is None else max_length
        for name, value in (("width", width), ("max_length", steps)):
            if value < 1:
                raise InputError(f"{name}: got {value}, wanted 1 or more")
        read = self._read(features, counts, dropout=False)
        words = torch.full((len(features), width, 1), START, device=features.device)  # (N, b, t)
        state = read.last[:, None].expand(-1, width, -1)  # (N, b, H)
        score = state.new_full((len(features), width), -torch.inf)
        score[:, 0] = 0.0  # one beginning, not `width` equal ones
        done = torch.zeros_like(score, dtype=torch.bool)
        for _ in range(steps):
            state = self._step(read, state, words[..., -1])
            log_p = self.out(state).log_softmax(-1)  # (N, b, V)
            log_p[..., [PAD, START]] = -torch.inf
            # What is finished goes on in one way only, by padding that costs nothing.
            log_p = log_p.masked_fill(done[..., None], -torch.inf)
            log_p[..., PAD] = log_p[..., PAD].masked_fill(done, 0.0)
            total = score[..., None] + log_p  # (N, b, V)
            score, best = total.flatten(1).topk(width)  # (N, b), the likeliest first
            parent, word = best // total.shape[-1], best % total.shape[-1]  # (N, b)
            words = words.gather(1, parent[..., None].expand_as(words))
            words = torch.cat([words, word[..., None]], -1)
            state = state.gather(1, parent[..., None].expand_as(state))
            done = done.gather(1, parent) | (word == END)
            if done[:, 0].all():  # log-probabilities only fall: nothing can overtake these
                break
        return [self.vocabulary.decode(row) for row in words[:, 0].tolist()]

    # Keeping ----------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write it to a folder that `Captioner.load` reads, without any pickle."""
        with replacing_folder(Path(folder)) as out:
            weights = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
            save_tensors(out / "model.safetensors", weights)
            self.vocabulary.save(out / "vocab.json")
            head = {"format": FORMAT, "version": 1, "config": to_dict(self.config)}
            write_json(out / "config.json", head)

    @classmethod
    def load(cls, folder: str | Path) -> Captioner:
        """Read what `save` wrote, ready to write captions (evaluation mode)."""
        folder = require_folder(folder, "a caption generator")
        head = read_json(folder / "config.json", "a caption generator's head")
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise FileFormatError(folder / "config.json", f"is not of a {FORMAT}")
        config = build(CaptionerConfig, head.get("config"), source=str(folder / "config.json"))
        vocabulary = Vocabulary.load(folder / "vocab.json")
        path = require_file(folder / "model.safetensors", "a caption generator's weights")
        try:
            weights = load_file(path)
        except (SafetensorError, OSError) as error:
            raise FileFormatError(path, f"does not read as safetensors: {error}") from None
        with torch.device("meta"):  # its shapes, before any memory is taken
            skeleton = cls(config, vocabulary).state_dict()
        wanted = {key: tuple(value.shape) for key, value in skeleton.items()}
        require_fit(wanted, {key: tuple(value.shape) for key, value in weights.items()}, path)
        made = cls(config, vocabulary)
        load_weights(made, weights, path)
        return made.eval()

    # Both -------------------------------------------------------------------------------------

    def _read(self, features: Tensor, counts: Tensor, *, dropout: bool) -> _Read:
        """Read the (N, k, D) regions, one by one, `counts` (N,) of them real."""
        if features.ndim != 3 or features.shape[2] != self.config.size:
            got, size = tuple(features.shape), self.config.size
            raise InputError(f"features: got shape {got}, wanted (N, k, {size})")
        _require_counts("counts", counts, features, least=1)
        mask = real(counts, features.shape[1])  # (N, k)
        x = self.project(features.masked_fill(~mask[..., None], 0.0))  # (N, k, H)
        x = F.dropout(x, self.config.dropout, training=dropout)
        states = self.reader(x)[0]  # (N, k, H); padding is read last, so real states are untouched
        return _Read(states, self.attend_region(states), mask, last_word(states, counts))

    def _step(self, read: _Read, state: Tensor, word: Tensor) -> Tensor:
        """Return the next states (N, b, H) from `state` (N, b, H) and the last `word` (N, b)."""
        query = self.attend_state(state)  # (N, b, H)
        energy = self.attend(torch.tanh(read.keys[:, None] + query[:, :, None]))  # (N, b, k, 1)
        weights = masked_softmax(energy.squeeze(-1), read.mask[:, None])  # (N, b, k)
        x = torch.cat([self.embed(word), weights @ read.states], -1)  # (N, b, word_size + H)
        after: Tensor = self.writer(x.flatten(0, 1), state.flatten(0, 1))  # (N b, H)
        return after.view(state.shape)  # (N, b, H)


def _require_counts(name: str, counts: Tensor, rows: Tensor, least: int) -> None:
    """Refuse `counts` that are not (N,) numbers from `least` to the width of `rows` (N, n, ...)."""
    if rows.ndim < 2 or counts.shape != rows.shape[:1]:
        got, of = tuple(counts.shape), tuple(rows.shape)
        raise InputError(f"{name}: got shape {got} for rows of shape {of}, wanted one a row")
    if len(counts) and (int(counts.min()) < least or int(counts.max()) > rows.shape[1]):
        raise InputError(
            f"{name}: go from {int(counts.min())} to {int(counts.max())}, "
            f"wanted {least} to {rows.shape[1]}"
        )
