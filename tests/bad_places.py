"""Folders on disks of the test's own, and a checkpoint to bring there."""

import argparse
import shutil
import subprocess

import pytest
import torch


def _may_mount():
    if shutil.which("unshare") is None:
        return False
    words = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


needs_mounts = pytest.mark.skipif(not _may_mount(), reason="needs leave to mount (unshare -rm)")


def checkpoint(path, value=0.25, size=4):
    """Write a checkpoint of the public SCAN all of whose numbers are one."""
    opt = {"img_dim": 6, "embed_size": size, "word_dim": 4, "cross_attn": "t2i"}
    opt |= {"agg_func": "Mean", "lambda_softmax": 9.0, "raw_feature_norm": "clipped_l2norm"}
    image = {"fc.weight": torch.full((size, 6), value), "fc.bias": torch.full((size,), value)}
    gru = torch.nn.GRU(4, size).state_dict()
    text = {f"rnn.{key}": torch.full_like(tensor, value) for key, tensor in gru.items()}
    text["embed.weight"] = torch.full((9, 4), value)
    raw = {"epoch": 1, "model": [image, text], "opt": argparse.Namespace(**opt)}
    torch.save(raw, path)
    return path
