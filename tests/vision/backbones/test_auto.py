"""Backbones of the transformers library, from a folder."""

import json
import sys

import pytest
import torch

from crossgaze.errors import FileFormatError, InputError, MissingExtraError
from crossgaze.vision.backbones import load_backbone
from crossgaze.vision.backbones.auto import AutoBackbone

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A ResNet of the library's own making, small, with random weights."""
    path = tmp_path_factory.mktemp("resnet")
    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], layer_type="basic"
    )
    transformers.ResNetModel(config).save_pretrained(path)
    return path


def test_a_folder_gives_the_last_map_of_the_model_in_it(folder):
    model = load_backbone(str(folder))
    assert (model.width, model.stride, model.size) == (32, 32, 448)
    pixels = torch.randint(0, 256, (2, 448, 448, 3), dtype=torch.uint8)
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = ((pixels.float() / 255 - mean) / deviation).permute(0, 3, 1, 2)
    plain = transformers.ResNetModel.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = plain(x).last_hidden_state
        ours = model(pixels)
    assert ours.shape == (2, 32, 14, 14)
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-3)


def test_the_models_own_preprocessing_is_taken(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    file = tmp_path / "preprocessor_config.json"
    file.write_text(json.dumps({"image_mean": [0.5] * 3, "image_std": [0.25] * 3}))
    model = AutoBackbone(str(tmp_path))
    assert model.mean.flatten().tolist() == pytest.approx([127.5] * 3)
    assert model.scale.flatten().tolist() == pytest.approx([63.75] * 3)
    for text in ("{}", "[", '{"image_mean": [1], "image_std": [1]}'):
        file.write_text(text)
        with pytest.raises(FileFormatError, match=r"preprocessor_config.json"):
            AutoBackbone(str(tmp_path))


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(InputError, match="backbone"):
        load_backbone(str(tmp_path))


def test_transformers_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match="needs the package transformers"):
        AutoBackbone("microsoft/resnet-152")


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"did you mean 'efficientnet-lite2'"):
        load_backbone("efficientnet-light2")
    with pytest.raises(InputError, match="only vgg19 takes a weights file"):
        load_backbone("efficientnet-lite2", "x.pth")
