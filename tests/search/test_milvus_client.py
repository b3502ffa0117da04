"""What goes wrong with a Milvus, in a line."""

import errno
import os

import pytest

from crossgaze.cli.failures import explain
from crossgaze.errors import InputError
from crossgaze.search.milvus_client import connect, explained, release

exceptions = pytest.importorskip("pymilvus.exceptions", reason="needs crossgaze[search]")
FILE = "/index/milvus.db"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("errno_", ["Errno", "errno"])  # Python's, Arrow's
def test_a_disk_that_fails_under_milvus_lite_is_the_machines_fault(number, errno_):
    said = f"[{errno_} {number}] {os.strerror(number)}: '{FILE}/collections/x/wal'"
    with pytest.raises(OSError, match=os.strerror(number)) as caught, explained(FILE):
        raise exceptions.MilvusException(message=said)
    assert explain(caught.value, []) == (1, f"{FILE}: {os.strerror(number)}")


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        (FILE, "[Errno 13] Permission denied"),
        (FILE, "field x is too long"),
        ("http://host:19530", "[Errno 28] No space left on device"),  # another machine's
    ],
)
def test_what_else_milvus_says_is_passed_on(uri, said):
    with pytest.raises(InputError) as caught, explained(uri):
        raise exceptions.MilvusException(message=said)
    assert str(caught.value) == f"{uri}: Milvus says: {said}"


def test_an_idle_milvus_lite_is_not_asked_whether_it_is_there(tmp_path, monkeypatch):
    # Asked every 10 seconds, pymilvus' default, it hangs up after some 40 and gRPC complains.
    pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    grpc = pytest.importorskip("grpc")
    opened, insecure = [], grpc.insecure_channel

    def opening(target, options=(), **more):
        opened.append(dict(options))
        return insecure(target, options=options, **more)

    monkeypatch.setattr(grpc, "insecure_channel", opening)
    file = str(tmp_path / "milvus.db")
    connect(file).close()
    release(file)
    assert [found["grpc.keepalive_time_ms"] for found in opened] == [2**31 - 1]
