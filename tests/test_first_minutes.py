"""The page of a stranger's first minutes: what is kept of what a command printed."""

import pytest

tool = pytest.importorskip("first_minutes", reason="needs tools/")


def test_what_was_written_over_and_colours_are_left_out():
    text = "\x1b[32mdone\x1b[0m  \nread 1\rread 2\rread\nWARNING: Location 'file:///x' is\nend\n"
    assert tool.shorten(text, 0) == "done\nread\nend"
    assert tool.shorten("a\r\nb\r\n", 0) == "a\nb"


def test_a_failure_is_said():
    assert tool.shorten("no\n", 2) == "no\n(exit code 2)"


@pytest.mark.parametrize("more", [0, 1, 2, 100])
def test_the_middle_of_much_is_left_out_and_counted(more):
    lines = [f"line {number}" for number in range(tool.SHOWN + more)]
    shown = tool.shorten("\n".join(lines) + "\n", 0).splitlines()
    assert len(shown) == tool.SHOWN
    if not more:
        assert shown == lines
        return
    (gap,) = [place for place, line in enumerate(shown) if line.startswith("...")]
    first, last = shown[:gap], shown[gap + 1 :]
    assert abs(len(first) - len(last)) <= 1
    assert first == lines[: len(first)]
    assert last == lines[-len(last) :]
    assert shown[gap] == f"... {len(lines) - len(first) - len(last)} lines ..."


def test_what_a_command_writes_over_is_not_kept(tmp_path):
    (tmp_path / "say.py").write_text(r'import sys; sys.stdout.write("1 of 2\r2 of 2\nend\n")')
    _, shown = tool.run("python3 say.py", tmp_path)
    assert shown == "2 of 2\nend"


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (574.6, "9 min 35 s")]
)
def test_times(seconds, said):
    assert tool.said(seconds) == said


def test_the_page_ends_as_the_tool_would_write_it():
    assert tool.PAGE.read_text("utf-8").endswith(tool.TAIL), "run tools/first_minutes.py"
