"""What is printed, and how."""

import json
import sys

from crossgaze.cli import output
from crossgaze.cli.output import print_json, print_table, readable_bytes, say


def test_the_program_is_named_so_that_it_can_be_typed(tmp_path, monkeypatch):
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


def test_json_holds_no_sign_that_a_terminal_obeys(capsys):
    text = "a\x1b[31m \x7f \x9b31m \u202e \u2028 \ud800 \u00e9 \U0001f436"
    print_json({"text": text})
    out = capsys.readouterr().out
    assert json.loads(out) == {"text": text}
    assert not any(sign in out for sign in "\x1b\x7f\x9b\u202e\u2028\ud800")
    assert "\u00e9 \U0001f436" in out


def test_a_table_off_a_terminal_is_whole_and_takes_names_as_they_are(capsys):
    name = "[bold]not markup[/] " + "x" * 120
    print_table([(name, 1234567)], header=["file", "count"], title="[red]t")
    out = capsys.readouterr().out
    assert name in out
    assert "1,234,567" in out


def test_a_long_path_is_on_one_line_off_a_terminal(capsys):
    path = "/home/me/" + "photographs and more/" * 30 + "a.jpg"
    print_table([(1, "0.5", path), (2, "0.4", "b.jpg")], header=["", "score", "photograph"])
    print_table([("on disk", "5 bytes")], title=path)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert sum(path in line for line in lines) == 2
    assert not any("\u2026" in line for line in lines)


def test_a_long_path_is_folded_in_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for name, value in {"COLUMNS": "80", "LINES": "25", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    path = "/" + "/".join(f"folder{number}" for number in range(40)) + ".jpg"
    print_table([(1, "0.5", path)], header=["", "score", "photograph"])
    out = capsys.readouterr().out
    assert "\u2026" not in out
    lines = out.splitlines()[1:]
    assert max(map(len, lines)) <= 80
    assert "".join("".join(lines).split()) == "10.5" + path


NASTY = "a\x1b[31m\nb\r\u202eg.jpg"


def test_names_in_a_table_and_a_line_give_a_terminal_no_orders(capsys):
    print_table([(1, NASTY), (2, "b.jpg")], header=["", "photograph"], title=f"in {NASTY}")
    say(f"  unreadable: {NASTY.replace(chr(10), '')}\n")
    out = capsys.readouterr().out
    assert out.count(r"a\x1b[31m\nb\r\u202eg.jpg") == 2
    assert r"unreadable: a\x1b[31mb\r" in out
    assert not [sign for sign in out if not sign.isprintable() and sign != "\n"]
    assert len(out.splitlines()) == 6  # title, header, two rows, a line and the empty one after it


def test_json_has_names_as_they_are(capsys):
    print_json({"name": NASTY})
    assert json.loads(capsys.readouterr().out) == {"name": NASTY}


def test_json_keeps_letters_where_stdout_can_show_them(capsys):
    print_json({"name": "caf\u00e9"})
    out = capsys.readouterr().out
    assert "caf\u00e9" in out
    assert json.loads(out) == {"name": "caf\u00e9"}
