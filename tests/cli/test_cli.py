"""The command line as a person meets it."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

from crossgaze import __version__, cli
from crossgaze.cli import VERBS, main
from crossgaze.cli.output import readable_bytes
from crossgaze.data.regions.writer import RegionWriter
from support import SHARED, needs_shared


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        Image.new("RGB", (50, 40), (80 * number, 10, 10)).save(folder / f"{number}.png")
    return folder


FAST = ["--backbone", "efficientnet-lite0", "--size", "64", "--grid", "2"]


def run(capsys, *words):
    """Return the exit code and what was printed."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


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
        (["extract"], "crossgaze extract: the following arguments are required: PHOTOS, OUT"),
        (["extract", "nowhere", "out"], "nowhere"),
        (["extract", "x", "out", "--bogus"], "unrecognized arguments: --bogus"),
        (["extract", "x", "out", "grit=2"], "unknown key 'grit' (did you mean 'grid'?)"),
        (["extract", "x", "out", "--grid", "big"], "grid: got 'big', wanted a whole number"),
        (["extract", "x", "out", "--shard", "0/2"], "shard: got '0/2'"),
        (["extract", "x", "out", "--recipe", "no.yaml"], "no.yaml: no such file"),
        (["store", "verify", "nowhere"], "nowhere: no such folder, wanted a region store"),
        (["store", "inf", "x"], "invalid choice: 'inf'"),
        (["store", "import", "nowhere", "out"], "nowhere: no such file or folder"),
        (["data", "nowhere"], "nowhere"),
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


def test_extract_prints_a_table_and_again_does_nothing(capsys, tmp_path, photos):
    (photos / "broken.jpg").write_bytes(b"no")
    code, out, _ = run(capsys, "extract", photos, tmp_path / "s", *FAST, "dtype=float32")
    assert code == 0
    assert re.search(r"extracted now +3 in", out)
    assert "unreadable: broken.jpg" in out
    code, out, _ = run(
        capsys, "extract", photos, tmp_path / "s", "dtype=float32", *FAST, "batch=2", "--json"
    )
    found = json.loads(out)
    assert found["report"]["already"] == 3
    assert found["store"]["dtype"] == "float32"
    assert found["store"]["made_by"]["grid"] == 2


def test_what_changed_and_what_is_gone_is_said(capsys, tmp_path, photos):
    run(capsys, "extract", photos, tmp_path / "s", *FAST)
    (photos / "0.png").unlink()
    Image.new("RGB", (5, 5)).save(photos / "1.png")
    for number in range(7):
        (photos / f"bad{number}.jpg").write_bytes(b"no")
    (photos / "notes.txt").write_text("x")
    out = run(capsys, "extract", photos, tmp_path / "s", *FAST)[1]
    assert "1 photographs have changed since" in out
    assert "1 images of the store are no longer in" in out
    assert "all 7 are listed in" in out
    assert "left out: 1 " in out


def test_shards_and_merge(capsys, tmp_path, photos):
    for number in (1, 2):
        run(capsys, "extract", photos, tmp_path / f"p{number}", *FAST, "--shard", f"{number}/2")
    parts = [tmp_path / "p1", tmp_path / "p2"]
    code, out, _ = run(capsys, "store", "merge", *parts, tmp_path / "all", "--json")
    assert (code, json.loads(out)["images"]) == (0, 3)
    code, _, err = run(capsys, "store", "merge", parts[0], tmp_path / "half")
    assert code == 2
    assert "shard 2/2 is not among the 1 stores" in err


def test_store_info_and_verify(capsys, tmp_path):
    with RegionWriter(tmp_path / "s", 3, 4, fields=[], made_by={"grid": 9}) as writer:
        writer.append(["a"], np.ones((1, 3, 4)))
    assert re.search(r"made by: grid +9", run(capsys, "store", "info", tmp_path / "s")[1])
    code, out, _ = run(capsys, "store", "verify", tmp_path / "s")
    assert code == 0
    assert "1 images, sound" in out
    (tmp_path / "s" / "features.bin").write_bytes(b"x" * 24)
    code, out, _ = run(capsys, "store", "verify", tmp_path / "s")
    assert code == 1
    assert "features.bin" in out
    code, out, _ = run(capsys, "store", "verify", tmp_path / "s", "--json")
    assert code == 1
    assert not json.loads(out)["sound"]


def test_store_import(capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 2, 4), np.float32))
    code, out, _ = run(capsys, "store", "import", tmp_path / "x.npy", tmp_path / "s")
    assert code == 0
    assert "x.npy" in out


def test_data_describes_captions_and_writes_a_vocabulary(capsys, tmp_path):
    rows = [f"{i}.jpg,a red dog number {i},{'train' if i else 'test'}" for i in range(5)]
    (tmp_path / "c.csv").write_text("image,caption,split\n" + "\n".join(rows) + "\n")
    vocabulary = tmp_path / "v.json"
    words = ["data", tmp_path / "c.csv", "--vocabulary", vocabulary, "--min-count", 4]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert re.search(r"train +4 +4", out)
    known = json.loads(vocabulary.read_text())["word2idx"]
    assert set(known) == {"<pad>", "<start>", "<end>", "<unk>", "a", "red", "dog", "number"}
    code, out, _ = run(capsys, *words, "--json")
    assert json.loads(out)["vocabulary"]["words"] == 8


def test_data_describes_questions(capsys):
    pytest.importorskip("easy_vqa")
    code, out, _ = run(capsys, "data", "easy-vqa")
    assert code == 0
    assert "38,575" in out


@needs_shared
def test_data_describes_the_real_sets(capsys):
    data = SHARED / "data"
    found = json.loads(run(capsys, "data", data / "flickr8k", "--json")[1])
    assert found["images"] == 8090
    assert found["captions"] == 40450
    found = json.loads(run(capsys, "data", data / "daquar", "--json")[1])
    assert found["questions"] == 12468


def test_a_machine_that_fails_is_one_line_and_code_one(capsys, monkeypatch):
    def fail(error):
        def run(args):
            raise error

        monkeypatch.setattr(import_module("crossgaze.cli.demo"), "run", run)

    fail(OSError(28, "No space left on device", "/full/disk"))
    assert run(capsys, "demo")[::2] == (1, "crossgaze: /full/disk: No space left on device\n")
    fail(MemoryError())
    assert run(capsys, "demo")[::2] == (1, "crossgaze: out of memory\n")
    fail(KeyboardInterrupt())
    code, _, err = run(capsys, "demo")
    assert code == 130
    assert "the same command goes on" in err


def test_output_into_a_closed_pipe_is_quiet(tmp_path):
    with RegionWriter(tmp_path / "s", 3, 4, fields=[]) as writer:
        writer.append(["a"], np.ones((1, 3, 4)))
    command = f"{sys.executable} -m crossgaze store info {shlex.quote(str(tmp_path / 's'))} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_help_and_import_load_nothing_heavy():
    """What makes a start slow must not be imported before a verb needs it."""
    script = (
        "import sys, crossgaze; from crossgaze.cli import main; main(['--help'])\n"
        "heavy = {'torch', 'numpy', 'PIL', 'yaml', 'rich', 'transformers'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_bar_where_a_person_watches_and_none_elsewhere(capfd, monkeypatch):
    from crossgaze.progress import progress_bar

    with progress_bar("Working") as step:
        step(1, 2)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("Working", "things") as step:
        step(0, 2)
        step(2, 2)
    err = capfd.readouterr().err
    assert "Working" in err
    assert "2/2" in err


def test_the_program_is_named_so_that_it_can_be_typed(tmp_path, monkeypatch):
    from crossgaze.cli import output

    monkeypatch.setattr(output.shutil, "which", lambda name: "/usr/bin/crossgaze")
    assert output.program() == "crossgaze"
    monkeypatch.setattr(output.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    assert output.program().endswith("python -m crossgaze")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "crossgaze").touch()
    assert output.program() == str(tmp_path / ".venv" / "bin" / "crossgaze")
    monkeypatch.chdir(tmp_path)
    assert output.program() == ".venv/bin/crossgaze"


def test_bytes_for_people():
    assert [readable_bytes(n) for n in (5, 1500, 2.5e6, 3e9, 4e12)] == [
        "5 bytes",
        "1.5 kB",
        "2.5 MB",
        "3.0 GB",
        "4.0 TB",
    ]


def test_python_dash_m(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "crossgaze", "--version"], capture_output=True, text=True
    )
    assert done.stdout == f"crossgaze {__version__}\n"
    assert os.path.basename(cli.__file__) == "__init__.py"  # noqa: PTH119
