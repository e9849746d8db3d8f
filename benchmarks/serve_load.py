"""Decisions and rewards at a fixed rate, whatever the service does: serve_load.py PORT RATE SECONDS.

Each decision has a time at which it is to be asked for, and its reward one a second later. Latencies are from
these times, so that a service that stands still is charged for all that should have come meanwhile. The
standard output has one line of JSON: [second, kind, status, latency] of every request.
"""

import asyncio
import json
import random
import sys
from time import perf_counter
from typing import Any

DELAY = 1.0  # seconds from a decision to its reward


class Pool:
    """Connections; as many as are in use at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """One request; status 0 where there is no answer."""
        raw = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        try:
            pair = await self._pair()
            pair[1].write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(raw) + raw)
            found = await self._answer(pair[0])
        except (OSError, asyncio.IncompleteReadError):
            return 0, None
        self._free.append(pair)
        return found

    async def _pair(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """One that is free and was not ended meanwhile, or a new one."""
        while self._free:
            pair = self._free.pop()
            if not pair[0].at_eof():
                return pair
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, Any]:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        body = await reader.readexactly(size)
        return int(head.split()[1]), json.loads(body) if size else None


class Load:
    """What was asked for, and how it went."""

    def __init__(self, port: int) -> None:
        self.pool, self.started = Pool(port), perf_counter()
        self.rows: list[tuple[float, str, int, float]] = []
        self.dice = random.Random(1)
        self.under_way: set[asyncio.Task[None]] = set()

    async def run(self, rate: float, seconds: float) -> None:
        """So many decisions a second, for so long, and their rewards."""
        for i in range(int(rate * seconds)):
            at = i / rate
            await self._until(at)
            self._begin(self._round(at))
        while self.under_way:
            await asyncio.wait(self.under_way)

    def _begin(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)

    async def _until(self, at: float) -> None:
        left = self.started + at - perf_counter()
        if left > 0:
            await asyncio.sleep(left)

    async def _round(self, at: float) -> None:
        body = {"context": {"steps": self.dice.gauss(1, 2), "sleep": self.dice.gauss(-2, 1)}}
        made = await self._timed("decide", at, "/v1/problems/walks/decide", body)
        if made is None:
            return
        await self._until(at + DELAY)
        path = f"/v1/problems/walks/decisions/{made['id']}/reward"
        await self._timed("reward", at + DELAY, path, {"value": self.dice.gauss(0, 1)})

    async def _timed(self, kind: str, at: float, path: str, body: dict[str, Any]) -> Any:
        status, told = await self.pool.ask(path, body)
        self.rows.append((round(at, 3), kind, status, perf_counter() - self.started - at))
        return told if status == 200 else None


def main(port: int, rate: float, seconds: float) -> None:
    """Run it, and say how it went."""

    async def whole() -> list[tuple[float, str, int, float]]:
        load = Load(port)
        await load.run(rate, seconds)
        return load.rows

    print(json.dumps(asyncio.run(whole())))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
