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
from typing import NoReturn

from crossgaze import __version__
from crossgaze.errors import InputError, nearest

# verb -> what it does; the verb's module is crossgaze.cli.<verb>
VERBS = {
    "extract": "turn a folder of photographs into region features",
    "store": "look at, verify, import and merge region stores",
    "data": "read a data set and say what is in it",
    "import": "bring a checkpoint of the papers' public code",
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code: 0, 2 for bad input, 1 for a machine that failed."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return 0 if words else 2
    if words[0] == "--version":
        sys.stdout.write(f"crossgaze {__version__}\n")
        return 0
    verb, rest = words[0], words[1:]
    if verb not in VERBS:
        return _complain(f"unknown verb {verb!r}{nearest(verb, VERBS)}; see crossgaze --help", 2)
    module = import_module(f"crossgaze.cli.{verb}{'_' if iskeyword(verb) else ''}")
    parser = Parser(
        prog=f"crossgaze {verb}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    try:
        # Settings may stand before or behind the options; actions of a verb rule that out.
        parse = parser.parse_args if hasattr(module, "ACTIONS") else parser.parse_intermixed_args
        return int(module.run(parse(rest)))
    except InputError as error:
        return _complain(str(error), 2)
    except KeyboardInterrupt:
        return _complain(
            "stopped; what was finished is kept, the same command goes on from there", 130
        )
    except BrokenPipeError:  # `crossgaze ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError) as error:
        where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        why = getattr(error, "strerror", None) or str(error) or "out of memory"
        return _complain(f"{where}{why}", 1)


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"crossgaze: {message}\n")
    return code
