"""Recipes and overrides."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.config import build, load_recipe, to_dict
from crossgaze.errors import InputError


@dataclass(frozen=True)
class Inner:
    steps: int = 2
    kind: Literal["soft", "hard"] = "soft"


@dataclass(frozen=True)
class Outer:
    name: str
    rate: float = 0.1
    deep: bool = False
    size: int | None = None
    folder: Path | None = None
    sizes: tuple[int, ...] = (1, 2)
    pair: tuple[int, str] = (1, "a")
    weights: dict[str, float] = field(default_factory=dict)
    anything: Any = None
    inner: Inner = field(default_factory=Inner)


def recipe(tmp_path, text):
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    return path


def test_a_recipe_becomes_a_dataclass(tmp_path):
    text = "name: x\nrate: 1e-4\nsizes: [3, 4, 5]\nfolder: a/b\ninner: {steps: 3, kind: hard}\n"
    config = load_recipe(Outer, recipe(tmp_path, text))
    assert config == Outer(
        "x", rate=1e-4, sizes=(3, 4, 5), folder=Path("a/b"), inner=Inner(3, "hard")
    )


def test_overrides_win_and_reach_inside(tmp_path):
    config = load_recipe(
        Outer,
        recipe(tmp_path, "name: x\nrate: 1\n"),
        ["rate=2", "inner.steps=5", "deep=true", "size=null", "pair=[2, b]", "weights={a: 1}"],
    )
    assert (config.rate, config.inner.steps, config.deep) == (2.0, 5, True)
    assert config.size is None
    assert config.pair == (2, "b")
    assert config.weights == {"a": 1.0}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["rat=1"], r"unknown key 'rat' \(did you mean 'rate'\?\); known keys: name, rate"),
        (["inner.step=1"], r"unknown key 'inner.step' \(did you mean 'steps'\?\)"),
        (["inner.kind=sof"], r"inner.kind: got 'sof' \(did you mean 'soft'\?\), wanted one of"),
        (["rate=fast"], r"rate: got 'fast', wanted a number"),
        (["deep=1"], r"deep: got 1, wanted true or false"),
        (["size=1.5"], r"size: got '1.5', wanted a whole number or nothing \(null\)"),
        (["size=true"], r"size: got 'true', wanted a whole number"),
        (["sizes=3"], r"sizes: got 3, wanted a list"),
        (["sizes=[1, x]"], r"sizes\[1\]: got 'x', wanted a whole number"),
        (["pair=[1]"], r"pair: got 1 values, wanted 2"),
        (["inner=3"], r"inner: got 3, wanted keys and values"),
        (["rate.x=1", "name=a"], r"rate: got \{'x': 1\}, wanted a number"),
        (["name=a", "name.x=1"], r"'name.x=1': name is a single value"),
        (["rate"], r"'rate': wanted key=value"),
        (["=1"], r"'=1': wanted key=value"),
        (["sizes=[1"], r"'sizes=\[1': the value is not valid YAML"),
        (["sizes=" + "[" * 3000], r"the value is not valid YAML"),
        (["sizes=2024-13-45"], r"the value is not valid YAML"),
        (["size=0x10"], r"size: got '0x10', wanted a whole number"),
        (["size=4:20"], r"size: got '4:20', wanted a whole number"),
        (["size=" + "9" * 5000], r"size: got '99"),
    ],
)
def test_what_is_wrong_is_named(overrides, message):
    with pytest.raises(InputError, match=message):
        load_recipe(Outer, None, ["name=x", *overrides] if "name=a" not in overrides else overrides)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", r"recipe.yaml, line \d+: is not valid YAML"),
        ("- 1\n", "holds a list, wanted keys and values"),
        ("", "key 'name' is missing and has no default"),
        ("name: !!python/object/apply:os.system [echo]", "is not valid YAML"),
        ("nam: x", r"recipe.yaml: unknown key 'nam' \(did you mean 'name'\?\)"),
        ("name: x\nx: " + "a" * (1 << 20), "a recipe has at most"),
        ("name: x\nrate: 1\nrate: 2\n", r"line 3: is not valid YAML: the key 'rate' comes twice"),
        ("name: &a x\nanything: *a\n", r"line 2: is not valid YAML: the alias \*a is not taken"),
        ("name: 2024-13-45", "is not valid YAML: month must be in"),
        ("name: x\nsize: " + "9" * 5000, "is not valid YAML"),
        ('name: !!int "abc"', "is not valid YAML"),
        ('name: !!int ""', "the tag 'tag:yaml.org,2002:int' is not taken"),
        ("name: !!bool x", "line 1: is not valid YAML: the tag"),
        ("name: !!timestamp x", "the tag"),
        ("name: ! x", "the tag '!' is not taken"),
        ("name: !<x> y", "the tag 'x' is not taken"),
        ("name: x\n? [a, b]\n: c", "is not valid YAML"),
        ("name: x\nrate: " + "9" * 400, "rate: got 9999.*, wanted a number"),
        ("a" * 900 + ": 1", "unknown key 'a{80}'"),
        ("name: 3\nfolder: 3\n", "name: got 3, wanted text"),
        ("[" * 3000, "nested too deeply|not valid YAML"),
    ],
)
def test_recipes_that_are_none_are_named(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        load_recipe(Outer, recipe(tmp_path, text))


def test_bytes_that_are_not_text_are_named(tmp_path):
    (tmp_path / "r.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(InputError, match=r"is not UTF-8 text|not valid YAML"):
        load_recipe(Outer, tmp_path / "r.yaml")
    with pytest.raises(InputError, match="no such file, wanted a YAML recipe"):
        load_recipe(Outer, tmp_path / "no.yaml")


def test_text_and_paths_are_taken_as_they_stand():
    config = load_recipe(
        Outer, None, ["name=my run #2: [x", "folder=/data/run #1/~.pth", "size=0400"]
    )
    assert config.name == "my run #2: [x"
    assert config.folder == Path("/data/run #1/~.pth")
    assert config.size == 400
    assert load_recipe(Outer, None, ["name=2014"]).name == "2014"
    assert load_recipe(Outer, None, ["name=x", "folder=null"]).folder is None


def test_one_path_or_a_list_of_them():
    @dataclass(frozen=True)
    class Sources:
        places: Path | tuple[Path, ...] = ()

    def read(text):
        return load_recipe(Sources, overrides=[f"places={text}"]).places

    assert read("a, b") == Path("a, b")
    assert read("[a, b c]") == (Path("a"), Path("b c"))
    assert read("[a") == Path("[a")


def test_a_mistake_is_blamed_on_where_it_was_made(tmp_path):
    path = recipe(tmp_path, "name: x\n")
    with pytest.raises(InputError, match=r"^unknown key 'rat'"):
        load_recipe(Outer, path, ["rat=1"])
    path = recipe(tmp_path, "rat: 1\n")
    with pytest.raises(InputError, match=r"recipe.yaml: unknown key 'rat'"):
        load_recipe(Outer, path, ["name=x"])


def test_an_empty_inner_part_can_be_filled_from_outside(tmp_path):
    config = load_recipe(Outer, recipe(tmp_path, "name: x\ninner: {}\n"), ["inner.steps=3"])
    assert config.inner.steps == 3


@given(
    rate=st.floats(allow_nan=False, allow_infinity=False),
    sizes=st.lists(st.integers(), max_size=4),
    size=st.none() | st.integers(),
    steps=st.integers(),
)
def test_a_dictionary_builds_the_same_configuration(rate, sizes, size, steps):
    config = Outer("x", rate, sizes=tuple(sizes), size=size, inner=Inner(steps), folder=Path("f"))
    assert build(Outer, to_dict(config)) == config


def test_many_keys_take_no_longer_than_few(tmp_path):
    text = "".join(f"k{number}: 1\n" for number in range(20_000))  # once it was their square
    started = time.process_time()
    with pytest.raises(InputError, match="unknown key 'k0'"):
        load_recipe(Outer, recipe(tmp_path, text))
    assert time.process_time() - started < 30
