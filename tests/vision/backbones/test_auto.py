"""Backbones of the transformers library, from a folder."""

import json
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

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
    assert (model.width, model.stride) == (32, 32)
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
    zero = '{"image_mean": [0, 0, 0], "image_std": [1, 0, 1]}'
    for text in ("{}", "[", '{"image_mean": [1], "image_std": [1]}', zero):
        file.write_text(text)
        with pytest.raises(FileFormatError, match=r"preprocessor_config.json"):
            AutoBackbone(str(tmp_path))


def copy(folder, target):
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_weights_that_are_not_there_are_never_random(folder, tmp_path):
    state = load_file(folder / "model.safetensors")
    kept = {key: value for key, value in state.items() if "stages.3" not in key}
    save_file(kept, copy(folder, tmp_path) / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"its weights lack \d+ tensors, the first is '.*stages.3"):
        AutoBackbone(str(tmp_path))


def test_damaged_weights_and_configurations_are_one_line(folder, tmp_path):
    copy(folder, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"garbage")
    with pytest.raises(InputError, match=r"backbone '.*': "):
        AutoBackbone(str(tmp_path))
    config = json.loads((folder / "config.json").read_text())
    for change in ({"hidden_sizes": "abc"}, {"depths": None}, {"num_channels": 1}):
        copy(folder, tmp_path)
        (tmp_path / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(InputError, match=r"backbone '.*': ") as caught:
            AutoBackbone(str(tmp_path))
        assert "\n" not in str(caught.value)


def test_code_in_a_folder_is_never_run(folder, tmp_path, capsys, monkeypatch):
    copy(folder, tmp_path)
    (tmp_path / "x.py").write_text("print('PWNED')")
    config = {"model_type": "mine", "auto_map": {"AutoConfig": "x.C", "AutoBackbone": "x.B"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("builtins.input", lambda *a: "y")
    with pytest.raises(InputError, match="backbone"):
        AutoBackbone(str(tmp_path))
    assert "PWNED" not in capsys.readouterr().out


def test_half_precision_weights_are_read(folder, tmp_path):
    state = {key: value.half() for key, value in load_file(folder / "model.safetensors").items()}
    config = json.loads((folder / "config.json").read_text()) | {"dtype": "float16"}
    copy(folder, tmp_path)
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_text(json.dumps(config))
    pixels = torch.randint(0, 256, (1, 64, 64, 3), dtype=torch.uint8)
    with torch.no_grad():
        half, full = AutoBackbone(str(tmp_path))(pixels), AutoBackbone(str(folder))(pixels)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, full, atol=0.05, rtol=0.05)


def test_the_fingerprint_knows_the_preprocessing(folder, tmp_path):
    copy(folder, tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(
        json.dumps({"do_normalize": False, "do_rescale": False})
    )
    other = AutoBackbone(str(tmp_path))
    assert other.mean.flatten().tolist() == [0, 0, 0]
    assert other.scale.flatten().tolist() == [1, 1, 1]
    other.name = AutoBackbone(str(folder)).name
    assert other.fingerprint() != AutoBackbone(str(folder)).fingerprint()


def test_loading_is_silent(folder, capfd):
    AutoBackbone(str(folder))
    assert capfd.readouterr() == ("", "")


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(InputError, match="backbone"):
        load_backbone(str(tmp_path))
    with pytest.raises(InputError, match="no such folder"):
        load_backbone("./nofolder")


def test_transformers_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match="needs the package transformers"):
        AutoBackbone("microsoft/resnet-152")


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"did you mean 'efficientnet-lite2'"):
        load_backbone("efficientnet-light2")
    with pytest.raises(InputError, match="only vgg19 takes a weights file"):
        load_backbone("efficientnet-lite2", "x.pth")
