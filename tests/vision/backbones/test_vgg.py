"""VGG-19 from a weights file."""

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from crossgaze.errors import FileFormatError, InputError
from crossgaze.vision.backbones import load_backbone
from crossgaze.vision.backbones.vgg import Vgg19

CHANNELS = [64, 64, 0, 128, 128, 0, *[256] * 4, 0, *[512] * 4, 0, *[512] * 4, 0]  # 0: pooling


@pytest.fixture(scope="module")
def weights():
    """Random weights in the order of the network's convolutions, kept small by a He scale."""
    generator = torch.Generator().manual_seed(0)
    layers, wide = [], 3
    for out in filter(None, CHANNELS):
        scale = (2 / (9 * wide)) ** 0.5
        weight = torch.randn(out, wide, 3, 3, generator=generator) * scale
        layers.append((weight, torch.randn(out, generator=generator) * 0.1))
        wide = out
    return layers


def torchvision_state(weights):
    """torchvision numbers convolution, ReLU and pooling alike: conv n is at 2 n + pools before."""
    state, place, layer = {}, 0, iter(weights)
    for out in CHANNELS:
        if out:
            state[f"features.{place}.weight"], state[f"features.{place}.bias"] = next(layer)
            place += 2
        else:
            place += 1
    return state


def caffe_state(weights):
    state, layer, block, number = {}, iter(weights), 1, 1
    for out in CHANNELS:
        if out:
            name = f"conv{block}_{number}"
            state[f"{name}.weight"], state[f"{name}.bias"] = next(layer)
            number += 1
        else:
            block, number = block + 1, 1
    return state


def pool5(weights, x):
    layer = iter(weights)
    for out in CHANNELS:
        x = F.relu(F.conv2d(x, *next(layer), padding=1)) if out else F.max_pool2d(x, 2)
    return x


def test_torchvision_weights_give_pool5(tmp_path, weights):
    torch.save(torchvision_state(weights), tmp_path / "vgg19.pth")
    pixels = torch.randint(0, 256, (1, 64, 96, 3), dtype=torch.uint8)
    model = load_backbone("vgg19", tmp_path / "vgg19.pth")
    mean = torch.tensor([0.485, 0.456, 0.406])
    deviation = torch.tensor([0.229, 0.224, 0.225])
    x = ((pixels.float() / 255 - mean) / deviation).permute(0, 3, 1, 2)
    with torch.no_grad():
        ours = model(pixels)
    assert ours.shape == (1, 512, 2, 3)
    torch.testing.assert_close(ours, pool5(weights, x), atol=1e-4, rtol=1e-3)


def test_caffe_weights_take_bgr_less_the_mean(tmp_path, weights):
    save_file(caffe_state(weights), tmp_path / "vgg19.safetensors")
    pixels = torch.randint(0, 256, (1, 32, 32, 3), dtype=torch.uint8)
    bgr = pixels.float()[..., [2, 1, 0]] - torch.tensor([103.939, 116.779, 123.68])
    with torch.no_grad():
        ours = Vgg19(tmp_path / "vgg19.safetensors")(pixels)
    torch.testing.assert_close(ours, pool5(weights, bgr.permute(0, 3, 1, 2)), atol=1e-2, rtol=1e-3)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"features.0.weight": torch.zeros(64, 3, 3, 3)}, r"has no features.0.bias"),
        (
            {"features.0.weight": torch.zeros(64, 3, 5, 5), "features.0.bias": torch.zeros(64)},
            r"features.0.weight has shape \(64, 3, 5, 5\), wanted \(64, 3, 3, 3\)",
        ),
        ([1, 2], "what it holds is not named tensors"),
        ({"a": 1}, "what it holds is not named tensors"),
    ],
)
def test_other_weights_are_refused(tmp_path, state, message):
    torch.save(state, tmp_path / "w.pth")
    with pytest.raises(FileFormatError, match=message):
        Vgg19(tmp_path / "w.pth")


SHAPE = (64, 3, 3, 3)
ODD = {
    "without numbers": lambda: torch.empty(SHAPE, device="meta"),
    "sparse": lambda: torch.zeros(SHAPE).to_sparse(),
    "quantised": lambda: torch.quantize_per_tensor(torch.zeros(SHAPE), 1.0, 0, torch.qint8),
    "complex": lambda: torch.zeros(SHAPE, dtype=torch.complex64),
    "one number for all": lambda: torch.zeros(1, 1, 1, 1).expand(SHAPE),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning"
)  # torch's, of kinds
def test_weights_of_odd_kinds_are_refused(tmp_path, weights, kind):
    state = torchvision_state(weights) | {"features.0.weight": ODD[kind]()}
    torch.save(state, tmp_path / "w.pth")
    message = (
        r"w\.pth: (its features.0.weight is not a plain, whole|does not read as a weights file)"
    )
    with pytest.raises(FileFormatError, match=message):
        Vgg19(tmp_path / "w.pth")


class Malice:
    def __reduce__(self):
        return (print, ("run",))


def test_a_malicious_pickle_is_refused_and_not_run(tmp_path, capsys):
    torch.save(Malice(), tmp_path / "w.pth")
    with pytest.raises(FileFormatError, match="does not read as a weights file"):
        Vgg19(tmp_path / "w.pth")
    assert capsys.readouterr().out == ""


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(InputError, match="no such file, wanted VGG-19's weights"):
        Vgg19(tmp_path / "no.pth")
    with pytest.raises(InputError, match="needs its weights file"):
        load_backbone("vgg19")
    (tmp_path / "bad.safetensors").write_bytes(b"x")
    with pytest.raises(FileFormatError, match="does not read as a weights file"):
        Vgg19(tmp_path / "bad.safetensors")
