"""Checkpoints as the papers' public code writes them, small and with random weights."""

import argparse
import pickle
import sys
from types import ModuleType

import torch

from crossgaze.data.text.vocabulary import Vocabulary

D_IN, D, WORD = 7, 6, 5
CAPTIONS = [f"w{i} w{(i * 3) % 11} w{(i * 5) % 11}" for i in range(11)]
VOCAB = Vocabulary.build(CAPTIONS, 1)


def rand(*shape):
    return torch.randn(*shape) * 0.5


def text_state(bi=True):
    state = {"embed.weight": rand(len(VOCAB), WORD)}
    for end in ("", "_reverse") if bi else ("",):
        state |= {
            f"rnn.weight_ih_l0{end}": rand(3 * D, WORD),
            f"rnn.weight_hh_l0{end}": rand(3 * D, D),
            f"rnn.bias_ih_l0{end}": rand(3 * D),
            f"rnn.bias_hh_l0{end}": rand(3 * D),
        }
    return state


def vsrn_state(f30k):
    state = {"fc.weight": rand(D, D_IN), "fc.bias": rand(D)}
    norms = ["bn"] if f30k else []
    for layer in range(1, 5):
        for part in ("g", "theta", "phi", "W.0"):
            state[f"Rs_GCN_{layer}.{part}.weight"] = rand(D, D, 1)
            state[f"Rs_GCN_{layer}.{part}.bias"] = rand(D)
        norms.append(f"Rs_GCN_{layer}.W.1")
    for name in norms:
        state |= {f"{name}.weight": rand(D), f"{name}.bias": rand(D)}
        state |= {f"{name}.running_mean": rand(D), f"{name}.running_var": rand(D).abs() + 0.5}
    for part in ("weight_ih", "weight_hh"):
        state[f"img_rnn.{part}_l0"] = rand(3 * D, D)
    for part in ("bias_ih", "bias_hh"):
        state[f"img_rnn.{part}_l0"] = rand(3 * D)
    return state


def options(**changes):
    base = {
        "img_dim": D_IN, "embed_size": D, "word_dim": WORD, "num_layers": 1, "bi_gru": True,
        "no_imgnorm": False, "no_txtnorm": False, "precomp_enc_type": "basic",
        "cross_attn": "t2i", "agg_func": "Mean", "lambda_lse": 6.0, "lambda_softmax": 9.0,
        "raw_feature_norm": "clipped_l2norm", "focal_type": "equal", "data_name": "f30k_precomp",
        "margin": 0.2, "max_violation": True, "learning_rate": 2e-4,
    }  # fmt: skip
    return argparse.Namespace(**(base | changes))


def save(path, states, opt, prefix="", zipped=True):
    states = [{prefix + k: v for k, v in state.items()} for state in states]
    raw = {"epoch": 3, "model": states, "best_rsum": 321.5, "opt": opt, "Eiters": 99}
    torch.save(raw, path, _use_new_zipfile_serialization=zipped)
    return path


def plain_states(bi=True, weight_norm=False):
    image = {"fc.weight": rand(D, D_IN), "fc.bias": rand(D)}
    if weight_norm:
        image = {"fc.weight_g": torch.tensor(1.7), "fc.weight_v": rand(D, D_IN), "fc.bias": rand(D)}
    return [image, text_state(bi)]


def pickle_vocabulary(path, vocabulary=VOCAB):
    """Write VSRN's file of words: a pickled object of a module that is not installed here."""
    module = ModuleType("vocab")
    kind = type("Vocabulary", (), {"__module__": "vocab"})
    module.Vocabulary = kind
    words = kind()
    words.word2idx = {word: number for number, word in enumerate(vocabulary.words)}
    words.idx2word = dict(enumerate(vocabulary.words))
    words.idx = len(vocabulary)
    sys.modules["vocab"] = module
    try:
        path.write_bytes(pickle.dumps(words))
    finally:
        del sys.modules["vocab"]
    return path
