"""The command line: a table of verbs, each a thin wrapper over public functions.

A verb's module is imported only when that verb is called, so `crossgaze --help` stays fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from crossgaze import __version__

# Not under its own name: once the verb `explain` is imported, that name here is the verb's module.
from crossgaze.cli.failures import explain as explain_failure
from crossgaze.cli.failures import is_unexpected
from crossgaze.cli.streams import close_output, complain, open_output, write
from crossgaze.errors import InputError, nearest

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# verb -> what it does; the verb's module is crossgaze.cli.<verb>
VERBS = {
    "extract": "turn a folder of photographs into region features",
    "store": "look at, verify, import and merge region stores",
    "data": "read a data set and say what is in it",
    "import": "bring a checkpoint of the papers' public code",
    "train": "train a model by a recipe",
    "evaluate": "measure a model: recall, attention, intervals, beside the papers' numbers",
    "index": "make an index of photographs to search, and keep it up to date",
    "search": "find photographs by a sentence, or those like a picture",
    "serve": "search in a web page, and over HTTP",
    "ask": "ask a question about a photograph",
    "explain": "see which words looked at which regions, and what an evaluation found",
    "demo": "try it on photographs that come with Python packages",
}

USAGE = f"""\
usage: crossgaze VERB ...

Match images and sentences by looking closely: which words belong to which regions.

{chr(10).join(f"  {verb:<10} {does}" for verb, does in VERBS.items())}

Every verb explains itself:  crossgaze extract --help
Version {__version__}
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        """Print the complaint and where to find help, and exit with code 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; argparse's own would call it printed on a full disk, too."""
        write(self.format_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code.

    0 is success, 2 bad input, 1 a machine that failed, damage that was found, or a bug.
    """
    open_output()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
    except SystemExit as stop:  # argparse has printed help or a complaint
        code = int(stop.code or 0)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (a traceback helps no user)
        if is_unexpected(error) and os.environ.get("CROSSGAZE_DEBUG"):
            import traceback

            traceback.print_exc()
        code, line = explain_failure(error, words)
        complain(line)
    return close_output(code)


def parse(verb: str, words: Sequence[str]) -> argparse.Namespace:
    """Read the words behind a verb, as its module describes them."""
    module = module_of(verb)
    parser = Parser(
        prog=f"crossgaze {verb}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    # Settings may stand before or behind the options; actions of a verb rule that out.
    actions = hasattr(module, "ACTIONS")
    args = (parser.parse_args if actions else parser.parse_intermixed_args)(words)
    for name, value in vars(args).items():
        # Mostly "$VARIABLE" that is not set; as a path it would mean the current folder.
        if value == "" or (isinstance(value, list) and "" in value):
            parser.error(f"{name.replace('_', '-')} is empty, wanted a value")
    return args


def _run(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        write(USAGE)
        return 0 if words else 2
    verb, *rest = words
    if verb == "--version":
        write(f"crossgaze {__version__}\n")
        return 0
    if verb not in VERBS:
        raise InputError(f"unknown verb {verb!r}{nearest(verb, VERBS)}; see crossgaze --help")
    args = parse(verb, rest)
    return int(module_of(verb).run(args))


def module_of(verb: str) -> ModuleType:
    """Import a verb's module; a verb that is a word of Python has a _ behind it there."""
    return import_module(f"crossgaze.cli.{verb}{'_' if iskeyword(verb) else ''}")
