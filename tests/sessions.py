"""Commands as a guide or a help text shows them, run one after the other in the current folder."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from crossgaze.cli import main

# Ctrl-C means what it means in a terminal, also where the tests run in the background.
START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from crossgaze.cli import main; sys.exit(main())"
)
# Of a Milvus, in examples: these need a server and are not run here. What they do is tested over
# the server that tests/search/test_milvus_server.py starts, at a port of its own.
SERVER = "http://127.0.0.1:19530"


def blocks(page, language):
    """Return the blocks of code of a Markdown page, each as it is printed."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )


def shown(text):
    """Return the lines that call crossgaze, without remarks in brackets behind them."""
    lines = (line.strip() for line in text.splitlines())
    return [re.sub(r" {2,}\(.*\)$", "", line) for line in lines if line.startswith("crossgaze ")]


def help_of(words, capsys):
    """Return the help of a verb, or of an action of it."""
    capsys.readouterr()
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


def examples(verb, capsys):
    """Return what a verb's help itself shows."""
    return shown(help_of([verb], capsys))


def run_here(line, capsys):
    """Run a line of a session, and return what it printed; what never ends is stopped as by Ctrl-C.

    A line that cannot be run here is none of a session: see `SERVER`.
    """
    words = shlex.split(line, comments=True)[1:]
    if words[0] == "serve":
        return _until_stopped([*words, "--port", "0"])
    watches = "--watch" in words
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patched:
        if watches:  # Ctrl-C comes when it has looked and waits
            patched.setattr(time, "sleep", _press_ctrl_c)
        code = main(words)
    out, err = capsys.readouterr()
    assert code == 0, f"{line}\n{err}"
    assert not watches or "stopped; the index is whole" in out, out
    return out


def _press_ctrl_c(seconds):
    raise KeyboardInterrupt


def _until_stopped(words):
    """Run a server in a process of its own, ask it, stop it as it says, and return its output."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    said = []
    with subprocess.Popen(
        [sys.executable, "-c", START, *words], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            for line in process.stdout:
                said.append(line)
                if "top with Ctrl-C" in line:
                    break
            assert said, words
            assert "top with Ctrl-C" in said[-1], said
            port = re.search(r" at http://[^:]+:(\d+)/", said[-1])[1]
            assert urllib.request.urlopen(f"http://127.0.0.1:{port}/health").status == 200
            process.send_signal(signal.SIGINT)
            said += process.stdout.readlines()
            assert process.wait(600) == 0, words
        finally:
            process.kill()
    assert any(line.startswith("stopped") for line in said), said
    return "".join(said)
