"""Configuration: frozen dataclasses inside, YAML recipes and `key=value` at the edge.

A recipe is a YAML mapping whose keys are a dataclass's fields; a field that is itself a dataclass
is a nested mapping, reached from the command line with dots (`model.steps=2`). A key that no field
has is refused with the nearest that exists, and a value of the wrong type is refused by name.
"""

from __future__ import annotations

import dataclasses
import reprlib
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from crossgaze.errors import FileFormatError, InputError, nearest, require_file

T = TypeVar("T")
RECIPE_LIMIT = 1 << 18  # bytes; a recipe is a page, not a data set, and YAML is slow to read


def load_recipe(kind: type[T], path: str | Path | None = None, overrides: Iterable[str] = ()) -> T:
    """Read a recipe and apply `key=value` overrides, checking every key and value.

    Args:
        kind: the frozen dataclass to build.
        path: a YAML file; None starts from the defaults.
        overrides: "key=value" or "outer.inner=value"; text and paths are taken as they stand,
            numbers as Python writes them, lists and mappings as YAML.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Settings:
        ...     rate: float = 0.1
        >>> load_recipe(Settings, overrides=["rate=0.5"]).rate
        0.5
    """
    tree: dict[str, Any] = {} if path is None else _read_yaml(path)
    if path is not None:
        # A mistake in the file is the file's, whatever the overrides make of it.
        _build(kind, tree, "", str(path), partial=True)
    given = list(overrides)
    for override in given:
        _apply(kind, tree, override)
    return _build(kind, tree, "", "" if given or path is None else str(path))


def build(kind: type[T], tree: object, *, source: str = "") -> T:
    """Build a dataclass from a mapping as YAML or JSON gives it.

    Args:
        kind: the dataclass.
        tree: its fields' values; nested dataclasses are nested mappings. Anything but a mapping is
            refused.
        source: the file they came from, for messages.
    """
    return _build(kind, tree, "", source)


def to_dict(config: Any) -> dict[str, Any]:  # noqa: ANN401 (any dataclass)
    """Return a configuration as plain values that JSON and YAML can hold, `build`'s inverse."""
    return {field.name: _plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


def _plain(value: Any) -> Any:  # noqa: ANN401
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, Path) else value


def _read_yaml(path: str | Path) -> dict[str, Any]:
    file = require_file(path, "a YAML recipe")
    size = file.stat().st_size
    if size > RECIPE_LIMIT:
        raise FileFormatError(file, f"has {size:,} bytes, a recipe has at most {RECIPE_LIMIT:,}")
    try:
        tree = yaml.load(file.read_text("utf-8"), _Loader)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        line = None if mark is None else mark.line + 1
        raise FileFormatError(file, f"is not valid YAML: {problem}", line=line) from None
    except UnicodeDecodeError as error:
        raise FileFormatError(file, f"is not UTF-8 text: {error.reason}") from None
    except RecursionError:
        raise FileFormatError(file, "is nested too deeply for a recipe") from None
    except ValueError as error:  # a date or number that is none
        raise FileFormatError(file, f"is not valid YAML: {error}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise FileFormatError(file, f"holds a {type(tree).__name__}, wanted keys and values")
    return tree


class _Loader(yaml.SafeLoader):
    """YAML without tags (objects), without aliases (bombs), without a key twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401
        """Refuse aliases and tags; even harmless tags fail in many ways on a wrong value."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        found = f"alias *{event.anchor}" if isinstance(event, yaml.AliasEvent) else ""
        if getattr(event, "tag", None) is not None:
            found = f"tag {_short(event.tag)}"
        if found:
            raise yaml.composer.ComposerError(
                None, None, f"the {found} is not taken in a recipe", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ANN401
        """Refuse a key that comes twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key.value, str):  # any other is refused when it is built
                if key.value in seen:
                    told = f"the key {_short(key.value)} comes twice"
                    raise yaml.constructor.ConstructorError(None, None, told, key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _apply(kind: Any, tree: dict[str, Any], override: str) -> None:  # noqa: ANN401
    """Set one `outer.inner=value` in the tree."""
    key, sign, text = override.partition("=")
    if not sign or not key:
        raise InputError(f"{override!r}: wanted key=value")
    *outer, last = key.split(".")
    for part in outer:
        kind = (
            _options(get_type_hints(kind).get(part))[0] if dataclasses.is_dataclass(kind) else None
        )
        if tree.get(part) is None:
            tree[part] = {}
        if not isinstance(tree[part], dict):
            raise InputError(f"{override!r}: {part} is a single value, it has no {last!r}")
        tree = tree[part]
    tree[last] = _parse(override, text, _hint(kind, last))


def _hint(kind: Any, field: str) -> Any:  # noqa: ANN401
    """Return the type of a dataclass's field, or None where there is no such field."""
    return get_type_hints(kind).get(field) if dataclasses.is_dataclass(kind) else None


def _options(hint: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Return the types that a hint admits, without None."""
    union = get_origin(hint) in (Union, types.UnionType)
    return tuple(o for o in get_args(hint) if o is not type(None)) if union else (hint,)


def _parse(override: str, text: str, hint: Any) -> Any:  # noqa: ANN401
    """Read an override's value as its type is written, so that a path may hold any sign."""
    options = _options(hint)
    if text in ("null", "") and type(None) in get_args(hint):
        return None
    several = any(get_origin(option) is tuple for option in options)
    listed = several and text.startswith("[") and text.endswith("]")  # one path, or a list of them
    plain = any(option in (str, Path) or get_origin(option) is Literal for option in options)
    if plain and not listed:
        return text
    for option in options:
        if option in (int, float):
            try:
                return option(text) if option is float or text.strip() != text else int(text, 10)
            except ValueError:
                continue
    if any(option in (int, float) for option in options):
        return text  # refused by name when it is built
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise InputError(f"{_short(override)}: the value is not valid YAML") from None


def _build(
    kind: type[T],
    tree: Any,  # noqa: ANN401
    prefix: str,
    source: str = "",
    *,
    partial: bool = False,
) -> T:
    """Build a dataclass; with `partial` only check what is there, a missing key may come later."""
    try:
        values = _values(kind, tree, prefix)
        if partial:
            return None  # type: ignore[return-value]
        for field in dataclasses.fields(kind):  # type: ignore[arg-type]
            has_default = (
                field.default is not dataclasses.MISSING
                or field.default_factory is not dataclasses.MISSING
            )
            if field.init and field.name not in values and not has_default:
                raise InputError(f"key '{prefix}{field.name}' is missing and has no default")
        return kind(**values)
    except InputError as error:
        if not source:
            raise
        raise InputError(f"{source}: {error}") from None


def _values(kind: Any, tree: Any, prefix: str) -> dict[str, Any]:  # noqa: ANN401
    """Return a dataclass's values converted, every key known."""
    if not isinstance(tree, Mapping):
        named = f"{prefix.rstrip('.')}: " if prefix else ""
        raise InputError(f"{named}got {_short(tree)}, wanted keys and values")
    hints = get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind) if field.init]
    for key in tree:
        if key not in known:
            raise InputError(
                f"unknown key '{prefix}{str(key)[:80]}'{nearest(str(key), known)}; "
                f"known keys: {', '.join(known)}"
            )
    return {key: _convert(hints[key], value, f"{prefix}{key}") for key, value in tree.items()}


def _short(value: object) -> str:
    """Return a value for a message, however large it is."""
    return reprlib.repr(value)


def _convert(hint: Any, value: Any, name: str) -> Any:  # noqa: ANN401
    """Return `value` as the type `hint` asks for, or say what was wanted."""
    origin, options = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else _build(hint, value, f"{name}.")  # type: ignore[arg-type]
    if origin is Literal:
        if any(value == option and type(value) is type(option) for option in options):
            return value
        wanted = ", ".join(str(option) for option in options)
        hint_text = nearest(str(value), [str(option) for option in options])
        raise InputError(f"{name}: got {_short(value)}{hint_text}, wanted one of {wanted}")
    if origin in (Union, types.UnionType):
        if value is None and type(None) in options:
            return None
        inner = [option for option in options if option is not type(None)]
        if len(inner) == 1 and dataclasses.is_dataclass(inner[0]):
            return _convert(inner[0], value, name)
        for option in options:
            try:
                return _convert(option, value, name)
            except InputError:
                continue
    if hint is type(None) and value is None:
        return None
    if origin is tuple and isinstance(value, list | tuple):
        return _convert_tuple(options, value, name)
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {key: _convert(options[1], item, f"{name}.{key}") for key, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:  # more digits than a number has
            raise InputError(f"{name}: got {_short(value)}, wanted a number") from None
    if hint is float and isinstance(value, str):  # YAML 1.1 reads 1e-4 as text
        try:
            return float(value)
        except ValueError:
            pass
    if hint is Path and isinstance(value, str | Path):
        return Path(value)
    if hint in (int, float, str, bool) and type(value) is hint:
        return value
    raise InputError(f"{name}: got {_short(value)}, wanted {_describe(hint)}")


def _convert_tuple(options: tuple[Any, ...], value: list[Any] | tuple[Any, ...], name: str) -> Any:  # noqa: ANN401
    if len(options) == 2 and options[1] is Ellipsis:
        return tuple(_convert(options[0], item, f"{name}[{i}]") for i, item in enumerate(value))
    if len(value) != len(options):
        raise InputError(f"{name}: got {len(value)} values, wanted {len(options)}")
    return tuple(
        _convert(option, item, f"{name}[{i}]")
        for i, (option, item) in enumerate(zip(options, value, strict=True))
    )


def _describe(hint: Any) -> str:  # noqa: ANN401
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_describe(option) for option in get_args(hint))
    if get_origin(hint) is tuple:
        return "a list"
    if get_origin(hint) is Literal:
        return " or ".join(str(option) for option in get_args(hint))
    if hint is type(None):
        return "nothing (null)"
    return words.get(hint, "a path" if hint is Path else str(getattr(hint, "__name__", hint)))
