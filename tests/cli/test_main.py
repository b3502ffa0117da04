"""The command line as a person meets it, whatever the verb."""

import re
import subprocess
import sys
from importlib import import_module

import pytest

from command_line import run, shell
from crossgaze import __version__
from crossgaze.cli import VERBS


def test_help_lists_every_verb_and_every_verb_explains_itself(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", out, re.MULTILINE)
        code, text, _ = run(capsys, verb, "--help")
        assert code == 0
        assert "Examples:" in text
        assert f"crossgaze {verb} " in text
    assert run(capsys, "--version")[1] == f"crossgaze {__version__}\n"
    assert run(capsys)[0] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["extrakt"], "unknown verb 'extrakt' (did you mean 'extract'?); see crossgaze --help"),
        ([""], "unknown verb ''"),
        (["extract"], "crossgaze extract: the following arguments are required: PHOTOS, OUT (see"),
        (["extract", "x"], "crossgaze extract: the following arguments are required: OUT (see"),
        (["extract", "", "out"], "crossgaze extract: photos is empty, wanted a value"),
        (["extract", "nowhere", "out"], "nowhere"),
        (["extract", "x", "out", "--bogus"], "unrecognized arguments: --bogus"),
        (["extract", "x", "out", "grit=2"], "unknown key 'grit' (did you mean 'grid'?)"),
        (["extract", "x", "out", "--grid", "big"], "grid: got 'big', wanted a whole number"),
        (["extract", "x", "out", "--shard", "0/2"], "shard: got '0/2'"),
        (["extract", "x", "out", "--shard", ""], "shard is empty"),
        (["extract", "x", "out", "--recipe", "no.yaml"], "no.yaml: no such file"),
        (["store"], "the following arguments are required: ACTION"),
        (["store", "verify", "nowhere"], "nowhere: no such folder, wanted a region store"),
        (["store", "verify", "."], ".: is not a region store, it has no head.json"),
        (["store", "info", "."], ".: is not a region store, it has no head.json"),
        (["store", "inf", "x"], "invalid choice: 'inf'"),
        (["store", "merge", "", "out"], "stores is empty"),
        (["store", "import", "nowhere", "out"], "nowhere: no such file or folder"),
        (["data", "nowhere"], "nowhere"),
        (["data", "nowhere", "--entities", ""], "entities is empty"),
        (["demo", "--into", ""], "into is empty"),
    ],
)
def test_bad_input_is_one_line_and_code_two(capsys, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.fixture
def fail(monkeypatch):
    """Make `crossgaze demo` raise an error."""

    def fail(error):
        def run(args):
            raise error

        monkeypatch.setattr(import_module("crossgaze.cli.demo"), "run", run)

    return fail


def test_what_a_verb_raises_becomes_one_line_and_a_code(capsys, fail):
    fail(OSError(28, "No space left on device", "/full/disk"))
    assert run(capsys, "demo") == (1, "", "crossgaze: /full/disk: No space left on device\n")
    fail(MemoryError())
    assert run(capsys, "demo") == (1, "", "crossgaze: out of memory\n")
    fail(KeyboardInterrupt())
    code, _, err = run(capsys, "demo")
    assert code == 130
    assert "the same command goes on" in err


def test_a_bug_is_one_line_and_its_place_is_shown_when_asked(capsys, fail, monkeypatch):
    monkeypatch.delenv("CROSSGAZE_DEBUG", raising=False)
    fail(ZeroDivisionError("division\nby zero"))
    code, _, err = run(capsys, "demo")
    assert code == 1
    assert err == (
        r"crossgaze: internal error: ZeroDivisionError: division\nby zero; "
        "this is a bug, CROSSGAZE_DEBUG=1 shows where\n"
    )
    monkeypatch.setenv("CROSSGAZE_DEBUG", "1")
    code, _, err = run(capsys, "demo")
    assert code == 1
    assert err.startswith("Traceback")
    assert "test_main.py" in err


def test_help_and_import_load_nothing_heavy():
    """What makes a start slow must not be imported before a verb needs it."""
    script = (
        "import sys, crossgaze; from crossgaze.cli import main; main(['--help'])\n"
        "heavy = {'torch', 'numpy', 'PIL', 'yaml', 'rich', 'transformers'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_python_dash_m_and_its_exit_codes():
    assert shell("crossgaze --version").stdout == f"crossgaze {__version__}\n"
    assert shell("crossgaze extract").returncode == 2
