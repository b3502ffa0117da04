"""Serve an index that lies in a bad place, and let the page add photographs to it.

    python serving_child.py WORLD

Prints how a sentence is answered, then how adding ended, then how a sentence is answered now.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import web_parts


def say(line):
    sys.stdout.write(f"{line}\n")


def main(world):
    with (
        web_parts.reopen(world) as index,
        web_parts.client_of(index, folders=(world / "photos",)) as client,
    ):
        say(client.get("/search", params={"q": web_parts.QUERY}).status_code)
        client.post("/index", json={"folder": str(world / "photos")})
        while (job := client.get("/index").json()["job"])["state"] == "running":
            time.sleep(0.02)
        say(client.get("/search", params={"q": web_parts.QUERY}).status_code)
        say(f"{job['state']} {job['words']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
