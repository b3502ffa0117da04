"""The last layers of a BERT, trained along while the layers below them stay as they are.

Between a frozen BERT and one that is trained whole: what the lower layers give for a caption is a
fixed function, run once and kept (`crossgaze.models.bert`), and a step pays for the last k layers
alone. With H = BERT_{1..L-k}(caption) kept,

    BERT(caption) = layer_L(... layer_{L-k+1}(H)),

which before training is what the whole BERT gives. How much slower than the rest these layers
learn says `optimiser.pretrained`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from crossgaze.errors import InputError
from crossgaze.models.encoded import real

PART = 32  # captions of like length that a CPU reads at once: little padding


class TunedLayers(nn.Module):
    """The last layers of a BERT, which they are taken off.

    Args:
        bert: a `transformers` BertModel; it keeps the layers below.
        count: how many.
    """

    def __init__(self, bert: Any, count: int) -> None:  # noqa: ANN401 (transformers is an extra)
        super().__init__()
        layers = bert.encoder.layer
        if count > len(layers):
            raise InputError(
                f"text.tuned: is {count}, wanted {len(layers)}, BERT's layers, or less"
            )
        below = len(layers) - count
        self.layers = nn.ModuleList(layers[below:])
        bert.encoder.layer = layers[:below]

    def forward(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """Map what the layers below gave to the last layer's output.

        Args:
            hidden: (N, n, hidden).
            lengths: (N,) how many pieces are real, 1 or more; the others are not attended to.

        Returns:
            (N, n, hidden); rows past the real ones: anything.
        """
        if not len(hidden):
            return hidden
        order = torch.argsort(lengths, stable=True)
        part = PART if hidden.device.type == "cpu" else len(order)
        back = torch.argsort(order)
        return torch.cat([self._part(hidden[i], lengths[i]) for i in torch.split(order, part)])[
            back
        ]

    def _part(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        longest = int(lengths.max())
        mask = real(lengths, longest)[:, None, None, :]  # (N, heads, asks, is asked)
        lowest = torch.finfo(hidden.dtype).min
        mask = torch.zeros_like(mask, dtype=hidden.dtype).masked_fill(~mask, lowest)
        out = hidden[:, :longest]
        for layer in self.layers:
            given = layer(out, mask)
            out = given[0] if isinstance(given, tuple) else given  # transformers 4 gives a tuple
        return nn.functional.pad(out, (0, 0, 0, hidden.shape[1] - longest))
