"""The service under load: 16 clients for 60 s on loopback, against the bars.

    python benchmarks/bench_serve.py [--seconds 60] [--clients 16] [--photographs 256] [--small]

Makes synthetic photographs and an index of them with the models that ship (`default-embedder`,
`default`, their region model; `daquar` answers), starts `crossgaze serve` in a process of its own,
and lets every client ask one thing after the other: of 20 requests 10 searches as streams, 5
thumbnails, 2 explanations, 1 question, 1 page of all photographs and 1 picture that is sent.
Sentences are drawn anew each time, so that what is kept of them would show. Before that one client
asks alone, for a quarter of the time. Reported by kind, for both: p50 and p95 in milliseconds, what
is not 200, and of a search also the time to its first line, which is what a person sees first.
"loading the page" is its HTML, style and scripts, one after the other. Of the server: resident
memory over time. Bars: no error; memory in the last quarter at most 5 % above that of the second.
--small runs 5 s with 16 photographs, to see that it works; it writes no result.
"""

import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from bench_extract import make_photographs
from common import write
from crossgaze.search.index import Index
from crossgaze.search.ranking import CANDIDATES

SAID = """a the two man woman dog child red blue green small large runs jumps sits plays in on by
with grass snow water street house tree ball bicycle hat shirt"""
WORDS = SAID.split()
STATIC = Path(__file__).parents[1] / "src" / "crossgaze" / "web" / "static"
PAGE = ("/", *(f"/static/{one.name}" for one in sorted(STATIC.glob("*.[cj]s*"))))
FIRST, LOADING = "search, first line", "loading the page"
MIX = ("search",) * 10 + ("thumbnail",) * 5 + ("explain",) * 2 + ("ask", "page", "picture")
GROWTH = 1.05


def make_index(folder, count):
    (folder / "photos").mkdir()
    make_photographs(folder / "photos", count)
    with Index.create(folder / "index") as index:
        index.add(folder / "photos")
    return next((folder / "photos").iterdir()).read_bytes()


class Client(threading.Thread):
    """Asks one thing after the other until the time is over."""

    def __init__(self, address, picture, photographs, until, seed):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
        self.picture, self.photographs, self.until = picture, photographs, until
        self.random = random.Random(seed)
        self.taken, self.wrong = [], []
        self.first = None  # when the first line of the last search came

    def run(self):
        """Ask and note how long it took."""
        while time.monotonic() < self.until:
            kind = self.random.choice(MIX)
            started = time.monotonic()
            try:
                status, body = self.ask(kind)
                took = time.monotonic() - started
                if status != 200 or (kind == "search" and b'"stage":"ranked"' not in body):
                    self.wrong.append(f"{kind}: {status} {body[:120]!r}")
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(f"{kind}: {error!r}")
                self.connection.close()
                took = time.monotonic() - started
            self.taken.append((kind, took))
            if kind == "search" and self.first is not None:
                self.taken.append((FIRST, self.first - started))

    def ask(self, kind):
        """Return an answer's status and body."""
        self.first = None
        sentence = " ".join(self.random.choices(WORDS, k=self.random.randint(3, 9)))
        uid = self.random.randint(1, self.photographs)
        question = json.dumps({"id": uid, "question": f"what is {sentence}?"})
        path, method, body, headers = {
            "search": (f"/search?{urlencode({'q': sentence, 'stream': 'true'})}", "GET", None, {}),
            "thumbnail": (f"/images/{uid}/thumbnail", "GET", None, {}),
            "explain": (f"/explain?{urlencode({'id': uid, 'q': sentence})}", "GET", None, {}),
            "ask": ("/ask", "POST", question, {"Content-Type": "application/json"}),
            "page": ("/images?limit=40", "GET", None, {}),
            "picture": ("/search?limit=20", "POST", self.picture, {"Content-Type": "image/jpeg"}),
        }[kind]
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        line = response.readline() if kind == "search" else b""
        self.first = time.monotonic() if line else None
        return response.status, line + response.read()

    def load(self):
        """Fetch all that the page is made of, some times, and note how long each took."""
        for _ in range(20):
            started = time.monotonic()
            for path in PAGE:
                self.connection.request("GET", path)
                response = self.connection.getresponse()
                response.read()
                if response.status != 200:
                    self.wrong.append(f"{path}: {response.status}")
            self.taken.append((LOADING, time.monotonic() - started))


def resident(pid):
    """Return a process's resident memory in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def by_kind(clients):
    taken = {}
    for kind, seconds in (one for client in clients for one in client.taken):
        taken.setdefault(kind, []).append(1e3 * seconds)
    return taken, [line for client in clients for line in client.wrong]


def alone(address, picture, args):
    """Let one client ask with nobody beside it."""
    until = time.monotonic() + args.seconds / 4
    client = Client(address, picture, args.photographs, until, args.clients)
    client.load()
    client.run()
    return by_kind([client])


def load(address, pid, picture, args):
    until = time.monotonic() + args.seconds
    clients = [
        Client(address, picture, args.photographs, until, seed) for seed in range(args.clients)
    ]
    for client in clients:
        client.start()
    memory = []
    while any(client.is_alive() for client in clients):
        memory.append(round(resident(pid), 1))
        time.sleep(0.5)
    return *by_kind(clients), memory


def summary(milliseconds):
    ordered = sorted(milliseconds)
    return {
        "requests": len(ordered),
        "p50 ms": round(statistics.median(ordered), 1),
        "p95 ms": round(ordered[min(int(0.95 * len(ordered)), len(ordered) - 1)], 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--photographs", type=int, default=256)
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    if args.small:
        args.seconds, args.photographs = min(args.seconds, 5), 16
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        picture = make_index(folder, args.photographs)
        command = [sys.executable, "-m", "crossgaze", "serve", str(folder / "index"), "--port", "0"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment
        ) as server:
            try:
                address = server.stdout.readline().split(" at ")[1].split()[0]
                warm = Client(address, picture, args.photographs, 0, 0)
                for kind in set(MIX):
                    warm.ask(kind)
                single, failed = alone(address, picture, args)
                taken, wrong, memory = load(address, server.pid, picture, args)
                wrong = failed + wrong
            finally:
                server.terminate()
    quarter = max(len(memory) // 4, 1)
    second, last = (
        statistics.median(part)
        for part in (memory[quarter : 2 * quarter] or memory, memory[-quarter:])
    )
    every = [one for kind, times in taken.items() if kind != FIRST for one in times]
    found = {
        "clients": args.clients,
        "seconds": args.seconds,
        "photographs": args.photographs,
        "photographs are": "synthetic",
        "candidates": CANDIDATES,
        "one client alone": {kind: summary(times) for kind, times in sorted(single.items())},
        "all": {**summary(every), "a second": round(len(every) / args.seconds, 1)},
        "by kind": {kind: summary(times) for kind, times in sorted(taken.items())},
        "errors": len(wrong),
        "first errors": wrong[:5],
        "resident MB, every 0.5 s": memory,
        "growth from the second quarter to the last": round(last / second, 3),
        "bars": {"no error": not wrong, "memory flat": last <= GROWTH * second},
    }
    print(json.dumps({key: found[key] for key in found if "every" not in key}, indent=2))
    if not args.small:
        write("serve", "crossgaze serve under load on loopback", **found)


if __name__ == "__main__":
    main()
