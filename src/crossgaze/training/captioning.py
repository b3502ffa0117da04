"""VSRN's second objective: the caption generator that learns beside the matching model.

Li, Zhang, Li, Li, Fu: Visual Semantic Reasoning for Image-Text Matching, ICCV 2019, section 3.4.
L_M (eq. 8) is `crossgaze.training.losses.Hardest`, L_G (eq. 9) is `Captioner.loss`, here is what
joins them. The generator's parameters are trained with the model's and are no part of it: VSRN is
saved and scored without them.

As in the public code L_M is summed over a batch and L_G averaged over its captions.
"""

from __future__ import annotations

from torch import Tensor

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.models.matcher import Matcher
from crossgaze.models.vsrn_captioner import Captioner, CaptionerConfig


def make_captioner(
    model: Matcher,
    vocabulary: Vocabulary | None = None,
    *,
    hidden: int = 512,
    word_size: int = 300,
    dropout: float = 0.2,
    max_length: int = 60,
) -> Captioner:
    """Return a caption generator for a model's region features, on the model's device.

    Args:
        model: a VSRN, or any whose images carry `features` of width `config.size`.
        vocabulary: the words to write; the model's own if not given.
        hidden: width of its GRUs.
        word_size: width of its word embedding.
        dropout: share of the projected features set to zero in training.
        max_length: most words of a caption.
    """
    words = vocabulary or model.vocabulary
    if words is None:
        raise InputError("vocabulary: got none, and the model reads word pieces or numbers only")
    config = CaptionerConfig(model.config.size, hidden, word_size, dropout, max_length)
    parameter = next(model.parameters())
    return Captioner(config, words).to(parameter.device, parameter.dtype)


def generation_loss(captioner: Captioner, images: Encoded, ids: Tensor, lengths: Tensor) -> Tensor:
    """Return L_G of N images with their captions, ().

    Args:
        captioner: which generator.
        images: N images with `features`, V*.
        ids: (N, n) numbers of words in the captioner's vocabulary, <start> first, <end> last.
        lengths: (N,) how many are real.
    """
    if images.features is None:
        raise InputError("images: have no region features, wanted those of a VSRN")
    device = images.features.device
    return captioner.loss(images.features, images.counts, ids.to(device), lengths.to(device))


def joint_loss(matching: Tensor, generation: Tensor, weight: float = 1.0) -> Tensor:
    """Return the whole loss of VSRN, ().

    Eq. 10 of VSRN: L = L_M + L_G; `weight` of L_G is 1 there.
    """
    return matching + weight * generation
