"""Connections to a Milvus, a file's or a server's, and what goes wrong with them in one line."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crossgaze.errors import FileFormatError, InputError, MissingExtraError

TOKEN = "CROSSGAZE_MILVUS_TOKEN"  # the environment's variable: a secret is no part of an index

# By pymilvus' default a client asks every 10 seconds whether the server is there. Milvus Lite takes
# that for too many pings: it hangs up, and gRPC says so on stderr. Here it never asks.
UNASKED = {"grpc.keepalive_time_ms": 2**31 - 1, "grpc.keepalive_permit_without_calls": False}

# How many engines of this process use a file: Milvus Lite serves one process at a time.
_open: Counter[str] = Counter()

# How Milvus Lite, which is Python, writes what the system said, and what of it is the disk's fault.
_ERRNO = re.compile(r"\[Errno ([0-9]+)\]", re.IGNORECASE)
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def connect(uri: str) -> Any:  # noqa: ANN401 (pymilvus's client, imported when first used)
    """Open a client for a file's path or a URL."""
    try:
        from pymilvus import MilvusClient
    except ImportError:
        raise MissingExtraError("an index in Milvus", "pymilvus", "search") from None
    # They would log every error with its trace, and what becomes of it here is one line.
    for name in ("pymilvus", "milvus_lite"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with explained(uri):
        if "://" in uri:
            return MilvusClient(uri, token=os.environ.get(TOKEN, ""), timeout=30)
        require_manifests(Path(uri))
        client = MilvusClient(uri, grpc_options=UNASKED)
        _open[uri] += 1
        return client


def require_manifests(file: Path) -> None:
    """Refuse a Milvus Lite that has lost what lists its files, before it is opened.

    Milvus Lite takes an older list then, or none, and deletes all files that this does not name.

    Args:
        file: Milvus Lite's, which is a folder since its version 3.
    """
    for collection in sorted(file.glob("collections/*/")):
        path = collection / "manifest.json"
        try:
            whole = isinstance(json.loads(path.read_bytes()), dict)
        except (FileNotFoundError, ValueError, RecursionError):
            whole = False
        if not whole:
            raise FileFormatError(
                path,
                "is missing or damaged, Milvus Lite's list of the files that hold the index; put "
                "it back from a copy, or delete the index and index the photographs again",
            )


def left_in_log(uri: str, name: str) -> bool:
    """Return whether Milvus Lite was stopped before it had cleared a collection's log.

    It reads the log again then, and has each entry twice that it had just written out: counts,
    lists and finds it twice, until it next writes out something new.
    """
    return "://" not in uri and any(Path(uri).glob(f"collections/{name}/wal/*"))


def release(uri: str) -> None:
    """Let other processes have Milvus Lite's file once nothing here uses it."""
    if "://" in uri:
        return
    _open[uri] -= 1
    if _open[uri] <= 0:
        from milvus_lite.server_manager import server_manager_instance

        server_manager_instance.release_server(uri)


@contextmanager
def explained(uri: str) -> Iterator[None]:
    """Turn what pymilvus says into one line that names the server or file."""
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except ModuleNotFoundError:
        raise MissingExtraError("Milvus Lite's file", "milvus-lite", "milvus-lite") from None
    except MilvusException as error:
        if "milvus-lite" in str(error) and "required" in str(error):
            raise MissingExtraError("Milvus Lite's file", "milvus-lite", "milvus-lite") from None
        if "Open local milvus failed" in str(error):
            if not os.access(Path(uri).parent, os.W_OK):
                raise InputError(
                    f"{uri}: lies where nothing may be written, and Milvus Lite writes while it "
                    "searches; copy the index, or move it to LanceDB (crossgaze index --from)"
                ) from error
            raise InputError(
                f"{uri}: cannot be opened; is another process using it? Milvus Lite serves one at "
                "a time: wait for it, or move the index to a server"
            ) from error
        said = " ".join(str(error.message or error).split())
        number = _ERRNO.search(said) if "://" not in uri else None  # of a server's disk, its own
        if number and int(number[1]) in _OF_THE_DISK:
            raise OSError(int(number[1]), os.strerror(int(number[1])), uri) from error
        raise InputError(f"{uri}: Milvus says: {said[:300]}") from error


def read_note(uri: str, name: str) -> dict[str, Any]:
    """Return what an index wrote into the description of its collection."""
    client = connect(uri)
    try:
        with explained(uri):
            if not client.has_collection(name):
                known = ", ".join(sorted(client.list_collections())[:8]) or "none"
                raise InputError(f"{uri}: has no index there; its collections: {known}")
            text = client.describe_collection(name).get("description", "")
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError(text)
        return found
    except ValueError:
        raise InputError(f"{uri}: collection {name!r} was not made by crossgaze") from None
    finally:
        client.close()


def parse_note(note: str) -> dict[str, Any]:
    """Return what a collection's description says, nothing if it is no index's."""
    try:
        found = json.loads(note)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
