"""A process that serves the problems it owns, for tests to kill and stop: owning.py DSN.

It listens on a port of its own, prints its url, and answers lines of JSON. A request names a verb and a key;
the answer is `done`, or `elsewhere` with a url, or `error`: then nothing is acknowledged.
"""

import json
import socketserver
import sys
from typing import Any

from tests.live.ground import ARMS, CHANNEL, COORDINATES
from unfog.live.errors import NotFoundError, ServedElsewhereError, StoreError
from unfog.live.postgres.ownership import Shared

NAME = "walks"


def answered(shared: Shared, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        walks = shared.store(NAME).problem(NAME)
        if asked["do"] == "decide":
            made = walks.decide(asked["context"], key=asked["key"])
            return {"done": [made.id, made.arm, made.number]}
        walks.reward(asked["decision"], asked["value"], key=asked["key"])
        return {"done": []}
    except NotFoundError:
        return {"error": "there is no such problem"}
    except ServedElsewhereError as error:
        return {"elsewhere": error.url}
    except StoreError as error:
        return {"error": str(error)}


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    shared: Shared


class Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Server)
        for line in self.rfile:
            said = answered(self.server.shared, json.loads(line))
            self.wfile.write(json.dumps(said).encode() + b"\n")


def main(dsn: str) -> None:
    with Server(("127.0.0.1", 0), Handler) as server:
        url = f"tcp://127.0.0.1:{server.server_address[1]}"
        server.shared = Shared(dsn, url)
        if NAME not in server.shared.names():
            terms: dict[str, Any] = {"context": COORDINATES, "arms": ARMS, "channel": CHANNEL, "seed": 11}
            server.shared.place(NAME).problem(NAME, **terms)
        print(url, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
