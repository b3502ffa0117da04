"""Models on disk."""

import json
import os
import subprocess

import pytest
import torch
from safetensors.torch import load_file, save_file

import crossgaze
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import FileFormatError, InputError
from crossgaze.models import pretrained
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.families import FAMILIES, family
from crossgaze.models.pretrained import load, replacing_folder
from crossgaze.models.sparse_rows import pack
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from model_parts import save_bert

VOCAB = Vocabulary.build(["a dog runs", "two cats sleep"], 1)
TEXTS = ["a dog sleeps", "two cats"]


def small(name, **changes):
    """Build a small model of a family."""
    model_type, config_type = family(name)
    kind = "lstm" if name == "m-dan" else "gru"
    both = name not in ("vsrn", "vse++")
    text = TextConfig(kind=kind, word_size=4, bidirectional=both)
    extra = {"heads": 2, "filters": 3} if name == "mmca" else {}
    torch.manual_seed(0)
    config = config_type(**({"region_width": 5, "size": 6, "text": text} | extra | changes))
    return model_type(config, VOCAB).eval()


def scores(model, regions, texts=TEXTS):
    with torch.no_grad():
        return model.similarity(model.encode_images(regions), model.encode_texts(texts))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_loads_as_it_was_saved(tmp_path, name):
    model, regions = small(name), torch.randn(3, 4, 5)
    model.origin = {"run": "a test"}
    model.save_pretrained(tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again) is type(model)
    assert again.config == model.config
    assert again.origin == {"run": "a test"}
    assert not again.training
    torch.testing.assert_close(scores(again, regions), scores(model, regions), rtol=0, atol=0)
    names = sorted(path.name for path in (tmp_path / "m").iterdir())
    assert names == ["README.md", "config.json", "model.safetensors", "vocab.json"]
    card = (tmp_path / "m" / "README.md").read_text()
    assert f"# {name}" in card
    assert "run: a test" in card
    assert "| region_width | 5 |" in card
    assert "| text: word_size | 4 |" in card


def test_a_later_save_replaces_an_earlier_one(tmp_path):
    small("scan").save_pretrained(tmp_path / "m")
    small("scan", lambda1=4.0).save_pretrained(tmp_path / "m")
    assert load(tmp_path / "m").config.lambda1 == 4


def test_who_may_read_other_files_may_read_the_weights(tmp_path):
    tmp_path.joinpath("other").touch()
    small("scan").save_pretrained(tmp_path / "m")
    files = [tmp_path / "other", *(tmp_path / "m").iterdir()]
    assert len({file.stat().st_mode for file in files}) == 1


def test_a_save_that_fails_leaves_the_old_model(tmp_path, monkeypatch):
    import crossgaze.models.pretrained as module

    small("scan").save_pretrained(tmp_path / "m")

    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_tensors", full)
    with pytest.raises(OSError, match="No space left"):
        small("scan", lambda1=4.0).save_pretrained(tmp_path / "m")
    with pytest.raises(OSError, match="No space left"):
        small("scan").save_pretrained(tmp_path / "new")
    monkeypatch.undo()
    assert load(tmp_path / "m").config.lambda1 == 9
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    odd = small("scan", lambda1=4.0)
    odd.origin = {"loss": float("nan")}
    with pytest.raises(ValueError, match="JSON"):
        odd.save_pretrained(tmp_path / "m")
    assert load(tmp_path / "m").config.lambda1 == 9


def test_what_a_killed_save_left_behind_stands_in_nobodys_way(tmp_path):
    small("scan").save_pretrained(tmp_path / "m")
    (tmp_path / ".m.77.new").mkdir()
    (tmp_path / ".m.77.new" / "model.safetensors").write_text("half")
    small("scan", lambda1=4.0).save_pretrained(tmp_path / "m")
    assert load(tmp_path / "m").config.lambda1 == 4


def test_nothing_of_an_earlier_model_stays(tmp_path):
    Ensemble([small("scan"), small("scan")]).save_pretrained(tmp_path / "m")
    small("scan").save_pretrained(tmp_path / "m")
    names = sorted(path.name for path in (tmp_path / "m").iterdir())
    assert names == ["README.md", "config.json", "model.safetensors", "vocab.json"]
    Ensemble([small("scan"), small("scan")]).save_pretrained(tmp_path / "m")
    names = sorted(path.name for path in (tmp_path / "m").iterdir())
    assert names == ["0", "1", "README.md", "config.json"]


def test_the_vocabulary_must_be_the_one_it_was_saved_with(tmp_path):
    small("scan").save_pretrained(tmp_path / "m")
    path = tmp_path / "m" / "vocab.json"
    content = path.read_text()
    Vocabulary.build(["two cats sleep", "a dog runs"], 1).save(path)
    with pytest.raises(FileFormatError, match=r"vocab.json: is another vocabulary"):
        load(tmp_path / "m")
    path.unlink()
    with pytest.raises(FileFormatError, match=r"vocab.json: is missing"):
        load(tmp_path / "m")
    path.write_text(content)
    load(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 100_000}, "does not fit the model"),
        ({"size": 10**30}, "size: got .*, wanted a whole number"),
        ({"text": {"word_size": 10**6}}, "does not fit the model"),
        ({"text": {"layers": 10**6}}, "layers: got 1000000, wanted a whole number, 1 to 64"),
    ],
)
def test_a_head_that_asks_for_too_much_is_refused_before_memory_is_taken(tmp_path, change, message):
    small("scan").save_pretrained(tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    head = json.loads(path.read_text())
    head["config"] |= change
    path.write_text(json.dumps(head))
    with pytest.raises(InputError, match=message):
        load(tmp_path / "m")


def put_weights(weights, path):
    """Put other weights into a model's folder, as somebody does who means it."""
    save_file(weights, path)
    head = json.loads(path.with_name("config.json").read_text())
    path.with_name("config.json").write_text(json.dumps(head | {"weights": None}))


def small_bert(folder, **changes):
    """Write a VSE++ with words of its own that reads by a small BERT; return the model's folder."""
    folder.joinpath("bert").mkdir()
    save_bert(folder / "bert")
    torch.manual_seed(0)
    text = TextConfig(kind="bert", bert=str(folder / "bert"), own_words=3, **changes)
    model = Vse(VseConfig(region_width=5, size=6, text=text), None)
    with torch.no_grad():
        model.text.own[0].weight[6:8] = 1.0
    model.save_pretrained(folder / "m")
    return folder / "m"


def change_head(folder, **changes):
    path = folder / "config.json"
    head = json.loads(path.read_text())
    text = head["config"]["text"] | changes.pop("text", {})
    head["config"] |= changes | {"text": text}
    path.write_text(json.dumps(head))


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        {"size": 1 << 20, "region_width": 1 << 20},  # 4 TB, which no machine has
        {"size": 1 << 20, "text": {"own_words": 1 << 20}},
        {"text": {"own_words": 4}},
    ],
)
def test_with_a_bert_too_it_is_refused_before_memory_is_taken(tmp_path, change, frozen):
    folder = small_bert(tmp_path, frozen=frozen)
    assert load(folder).text.own[0].weight[:, 0].tolist() == [0] * 6 + [1] * 2 + [0] * 3
    change_head(folder, **change)
    with pytest.raises(FileFormatError, match=r"model.safetensors: does not fit the model: "):
        load(folder)


def test_rows_that_are_not_in_the_file_do_not_ask_for_any_size(tmp_path):
    folder, many = small_bert(tmp_path), 1 << 20
    path = folder / "model.safetensors"
    weights = load_file(path)
    put_weights(pack(weights), path)
    assert torch.equal(load(folder).text.own[0].weight, weights["text.own.0.weight"])
    change_head(folder, size=many, region_width=many)
    none = {"rows": torch.zeros(0, dtype=torch.int32), "values": torch.zeros(0, many)}
    packed = {f"regions.weight.{name}": tensor for name, tensor in none.items()}
    weights |= {name: torch.zeros(many) for name in ("regions.bias", "text.project.bias")}
    del weights["regions.weight"]
    put_weights(weights | packed, path)
    with pytest.raises(FileFormatError, match=r"its tables have 1,099,511,627,776 numbers when"):
        load(folder)


def test_weights_that_are_no_numbers_are_named(tmp_path):
    small("scan").save_pretrained(tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    weights = load_file(path)
    put_weights(weights | {"regions.bias": torch.full((6,), torch.nan)}, path)
    with pytest.raises(FileFormatError, match=r"regions.bias holds values that are not finite"):
        load(tmp_path / "m")
    put_weights(weights | {"regions.bias": torch.ones(6, dtype=torch.int64)}, path)
    with pytest.raises(FileFormatError, match=r"regions.bias holds torch.int64, wanted floating"):
        load(tmp_path / "m")


def test_half_precision_on_disk_is_full_in_memory(tmp_path):
    model = small("scan")
    model.save_pretrained(tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    put_weights({key: value.half() for key, value in load_file(path).items()}, path)
    again = load(tmp_path / "m")
    assert {p.dtype for p in again.parameters()} == {torch.float32}
    regions = torch.randn(2, 3, 5)
    torch.testing.assert_close(scores(again, regions), scores(model, regions), atol=1e-2, rtol=1e-2)


def test_an_ensemble_is_the_mean_of_its_members(tmp_path):
    one, two = small("scan"), small("scan", direction="i-t", pooling="LSE")
    three, regions = small("bfan"), torch.randn(3, 4, 5)
    both = Ensemble([one, two, three])
    expected = (scores(one, regions) + scores(two, regions) + scores(three, regions)) / 3
    torch.testing.assert_close(scores(both, regions), expected)
    both.save_pretrained(tmp_path / "m")
    again = crossgaze.load(tmp_path / "m")
    assert isinstance(again, Ensemble)
    torch.testing.assert_close(scores(again, regions), expected)
    assert not again.embeds
    assert Ensemble([small("vsrn"), small("vsrn")]).embeds
    images, texts = both.encode_images(regions), both.encode_texts(TEXTS)
    assert len(both.attention(images[:2], texts)) == 3
    assert both.device == torch.device("cpu")
    assert len(texts) == 2
    ids, lengths = torch.tensor([[1, 4, 2]]), [3]
    assert both.similarity(images, both.encode_tokens(ids, lengths)).shape == (3, 1)


def test_models_that_do_not_go_together_are_refused():
    with pytest.raises(InputError, match="got no model"):
        Ensemble([])
    with pytest.raises(InputError, match=r"regions of widths \[5, 7\]"):
        Ensemble([small("scan"), small("scan", region_width=7)])
    other = small("scan")
    other.text.vocabulary = Vocabulary.build(["x y"], 1)
    with pytest.raises(InputError, match="different vocabularies"):
        Ensemble([small("scan"), other]).encode_tokens(torch.tensor([[1]]), [1])
    numbered = [family("scan")[0](small("scan").config, words) for words in (13, 99)]
    with pytest.raises(InputError, match="different vocabularies"):
        Ensemble(numbered).encode_tokens(torch.tensor([[1]]), [1])
    with pytest.raises(InputError, match="member 0 is a Ensemble, wanted a single model"):
        Ensemble([Ensemble([small("scan")])])


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", "{", "does not read as a model's head"),
        ("config.json", "[]", "does not read as a model's head"),
        ("config.json", '{"format": "x", "version": 1, "family": "scan"}', "is 'x' version 1"),
        ("config.json", '{"format": "x", "family": "scan"}', "does not read as a model's head"),
        (
            "config.json",
            '{"format": "crossgaze-model", "version": 1, "family": "scan"}',
            "has no 'config'",
        ),
        (
            "config.json",
            '{"format": "crossgaze-model", "version": 1, "family": ["scan"], "config": {}}',
            "family is not a text",
        ),
        (
            "config.json",
            '{"format": "crossgaze-model", "version": 1, "family": "ensemble", "members": "01"}',
            "has no 'members'",
        ),
        (
            "config.json",
            '{"format": "crossgaze-model", "version": 1, "family": "scan", "config": {}, '
            '"words": -1}',
            "words is -1",
        ),
        (
            "config.json",
            '{"format": "crossgaze-model", "version": 1, "family": "scam", "config": {}}',
            r"unknown name 'scam' \(did you mean 'scan'\?\)",
        ),
        (
            "config.json",
            '{"format": "crossgaze-model", "version": 1, "family": "scan", "config": {"siz": 1}}',
            r"unknown key 'siz' \(did you mean 'size'\?\)",
        ),
        (
            "config.json",
            '{"format": "crossgaze-model", "version": 1, "family": "ensemble", '
            '"members": ["../x"]}',
            r"names the member '../x'",
        ),
        ("model.safetensors", "garbage", "does not read as safetensors"),
        ("model.safetensors", None, "is missing, the model's weights"),
    ],
)
def test_a_damaged_folder_is_named(tmp_path, file, content, message):
    small("scan").save_pretrained(tmp_path / "m")
    path = tmp_path / "m" / file
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "m")


def test_weights_of_another_model_are_named(tmp_path):
    small("scan").save_pretrained(tmp_path / "m")
    head = json.loads((tmp_path / "m" / "config.json").read_text())
    head["config"]["size"] = 8
    (tmp_path / "m" / "config.json").write_text(json.dumps(head))
    with pytest.raises(
        FileFormatError,
        match=r"regions.weight has shape .*; .*rnn.bias_hh_l0_reverse has",
    ):
        load(tmp_path / "m")


def test_folders_that_are_something_else_are_left_alone(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("x")
    with pytest.raises(InputError, match=r"holds 'cat.jpg'"):
        small("scan").save_pretrained(tmp_path / "photos")
    with pytest.raises(InputError, match="is a file, wanted a folder"):
        small("scan").save_pretrained(tmp_path / "photos" / "cat.jpg")
    with pytest.raises(InputError, match=r"it has no config.json"):
        load(tmp_path / "photos")
    for source in (tmp_path / "no", "./no", "name", "a/b/c"):
        with pytest.raises(InputError, match="no such folder, wanted a model's folder, a Hub id"):
            load(source)


def test_a_hub_id_that_cannot_be_had_is_one_line(monkeypatch):
    hub = pytest.importorskip("huggingface_hub")

    def fail(*args, **options):
        raise OSError("no network\nand more")

    monkeypatch.setattr(hub, "snapshot_download", fail)
    with pytest.raises(InputError, match=r"^owner/name: .* it cannot be had: no network$"):
        load("owner/name")


def test_the_packages_names_are_where_they_should_be():
    assert crossgaze.load is load
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        crossgaze.lode  # noqa: B018


def test_a_gigantic_head_is_refused_unread(tmp_path):
    small("scan").save_pretrained(tmp_path / "m")
    with (tmp_path / "m" / "config.json").open("r+b") as file:
        file.truncate(1 << 34)  # 16 GB of nothing
    with pytest.raises(
        InputError, match=r"config.json: has 17,179,869,184 bytes, a model's head may"
    ):
        load(tmp_path / "m")


def test_a_model_that_a_killed_process_put_aside_comes_back(tmp_path):
    """Where the system cannot exchange two folders, a kill can come between two renamings."""
    model, gone = small("scan"), subprocess.Popen(["true"])
    gone.wait()
    model.save_pretrained(tmp_path / "m")
    (tmp_path / "m").rename(tmp_path / f".m.{gone.pid}.old")
    with pytest.raises(ZeroDivisionError), replacing_folder(tmp_path / "m"):
        raise ZeroDivisionError
    assert load(tmp_path / "m").config == model.config
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_what_killed_saves_left_behind_is_removed(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = [f".m.{gone.pid}.new", f".m.{gone.pid}.old"]
    # Of a process that runs, of another model, and nobody's.
    kept = [f".m.{os.getppid()}.new", f".m.5.{gone.pid}.old", ".m.backup.new", f".m.{10**12}.new"]
    small("scan").save_pretrained(tmp_path / "m")
    for name in left + kept:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_text("half")
    small("scan", lambda1=4.0).save_pretrained(tmp_path / "m")
    assert load(tmp_path / "m").config.lambda1 == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["m", *kept])


def test_a_process_may_have_the_number_of_the_killed_one(tmp_path):
    """In a container it often has."""
    model = small("scan")
    model.save_pretrained(tmp_path / "m")
    (tmp_path / "m").rename(tmp_path / f".m.{os.getpid()}.old")
    with pytest.raises(ZeroDivisionError), replacing_folder(tmp_path / "m"):
        raise ZeroDivisionError
    assert load(tmp_path / "m").config == model.config


@pytest.mark.parametrize("can", [True, False])
def test_a_model_is_replaced_with_and_without_the_systems_help(tmp_path, monkeypatch, can):
    if not can:
        monkeypatch.setattr(pretrained, "exchange", lambda one, other: False)
    small("scan").save_pretrained(tmp_path / "m")
    small("vse++").save_pretrained(tmp_path / "m")
    assert load(tmp_path / "m").family == "vse++"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_eight_bit_numbers_are_refused(tmp_path):
    model = small("scan")
    model.save_pretrained(tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    weights = {key: value.to(torch.float8_e4m3fn) for key, value in load_file(path).items()}
    put_weights(weights, path)
    with pytest.raises(FileFormatError, match=r"holds torch.float8_e4m3fn, wanted floating point"):
        load(tmp_path / "m")
