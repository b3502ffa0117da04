"""The attention blocks of Dual Attention Networks, which m-DAN and r-DAN share.

Nam, Ha, Kim: Dual Attention Networks for Multimodal Reasoning and Matching, CVPR 2017,
section 3.2 (eqs. 3-10) and the global contexts of section 3.3 (eqs. 13-14).

| paper | here | shape |
| --- | --- | --- |
| v_n, N regions | `regions` | (B, k, d) |
| u_t, T words | `words` | (B, n, D) |
| m_v^(k-1), m_u^(k-1) | `memory` | (B, D) |
| h_{v,n}^(k), h_{u,t}^(k) | `hidden` | (B, k or n, D) |
| alpha_{v,n}^(k), alpha_{u,t}^(k) | `weights` | (B, k or n) |
| v^(k), u^(k) | what the blocks return first | (B, D) |
| W_v, W_{v,m}, W_{v,h}, W_u, W_{u,m}, W_{u,h} | `fragment`, `memory`, `score` of `Weights` | |
| P^(k), P^(0) | `embed` | (D, d) |

D is the size of every hidden layer (512 in the paper). The paper leaves biases out "for
simplicity"; every layer has one (that of `score` cancels in the softmax). It gives a dropout ratio
of 0.5 and not its place: here on h (eqs. 4 and 8) and on what P reads (eqs. 6 and 13).
"""

from __future__ import annotations

from torch import Tensor, nn

from crossgaze.models.norms import masked_softmax


class Weights(nn.Module):
    """How much each fragment counts, given the memory: a 2-layer network and a softmax.

    Args:
        width: width of a fragment: d of a region, D of a word.
        size: D, of the memory and of the hidden layer.
        dropout: ratio on the hidden layer.
    """

    def __init__(self, width: int, size: int, dropout: float) -> None:
        super().__init__()
        self.fragment = nn.Linear(width, size)
        self.memory = nn.Linear(size, size)
        self.score = nn.Linear(size, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, fragments: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """Map fragments (B, n, width) and memory (B, D) to weights (B, n), zero off the mask."""
        # Eq. 4 for regions, Eq. 8 for words: one layer over each, multiplied.
        hidden = self.fragment(fragments).tanh() * self.memory(memory).tanh()[:, None]  # (B, n, D)
        # Eq. 5 for regions, Eq. 9 for words.
        scores = self.score(self.dropout(hidden)).squeeze(-1)  # (B, n)
        return masked_softmax(scores, mask)


class VisualAttention(nn.Module):
    """V_Att: one step's look at the regions.

    Args:
        width: d, of a region.
        size: D, of memory and context.
        dropout: ratio.
    """

    def __init__(self, width: int, size: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.weights = Weights(width, size, dropout)
        self.embed = nn.Linear(width, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, regions: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. 3: the visual context v^(k) of this step, and its weights (eqs. 4-5).

        Args:
            regions: (B, k, d), finite also where not real.
            memory: (B, D) what was attended to so far.
            mask: (B, k) bool, which regions are real.

        Returns:
            (B, D) context and (B, k) weights.
        """
        weights = self.weights(regions, memory, mask)  # (B, k)
        # Eq. 6: P brings the pretrained region features to the space of the words.
        mean = (weights[:, None] @ regions).squeeze(1)  # (B, 1, k) @ (B, k, d) -> (B, d)
        return self.embed(self.dropout(mean)).tanh(), weights


class TextualAttention(nn.Module):
    """T_Att: one step's look at the words.

    Args:
        size: D, of words, memory and context.
        dropout: ratio.
    """

    def __init__(self, size: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.weights = Weights(size, size, dropout)

    def forward(self, words: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. 7: the textual context u^(k) of this step, and its weights (eqs. 8-9).

        Args:
            words: (B, n, D), finite also where not real.
            memory: (B, D) what was attended to so far.
            mask: (B, n) bool, which words are real.

        Returns:
            (B, D) context and (B, n) weights.
        """
        weights = self.weights(words, memory, mask)  # (B, n)
        # Eq. 10: no further layer, the words are trained end to end.
        return (weights[:, None] @ words).squeeze(1), weights  # (B, 1, n) @ (B, n, D) -> (B, D)


class VisualContext(nn.Module):
    """The global context of an image, before any attention.

    Args:
        width: d, of a region.
        size: D, of the context.
        dropout: ratio.
    """

    def __init__(self, width: int, size: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.embed = nn.Linear(width, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, regions: Tensor, mask: Tensor) -> Tensor:
        """Eq. 13: v^(0) = tanh(P^(0) mean of the real regions), (B, k, d) to (B, D)."""
        context: Tensor = self.embed(self.dropout(real_mean(regions, mask))).tanh()
        return context


def textual_context(words: Tensor, mask: Tensor) -> Tensor:
    """Eq. 14: u^(0), the mean of the real words, (B, n, D) to (B, D)."""
    return real_mean(words, mask)


def real_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over the fragments where `mask` (B, n) is True, (B, n, D) to (B, D)."""
    return x.masked_fill(~mask[..., None], 0.0).sum(1) / mask.sum(1, keepdim=True)
