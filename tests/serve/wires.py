"""Requests as bytes on a socket, well formed or not, and the answers to them."""

import json
import socket
from collections.abc import Iterable
from typing import Any, NamedTuple

DECIDE = "/v1/problems/walks/decide"


class Reply(NamedTuple):
    """An answer; status 0: the connection was ended without one."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> Any:
        """What a refusal says."""
        assert self.headers["content-type"] == "application/problem+json", self
        return json.loads(self.body)


def request(
    path: str = DECIDE,
    body: bytes = b"",
    method: str = "POST",
    kind: str | None = "application/json",
    headers: Iterable[str] = (),
    host: str = "localhost",
) -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    if kind is not None:
        lines.append(f"Content-Type: {kind}")
    if not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body


def exchanged(port: int, *parts: bytes, number: int = 1, ends: bool = False) -> list[Reply]:
    """Send it, part by part, and read so many answers; `ends`: then nothing more is sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as found:
        try:
            for part in parts:
                found.sendall(part)
            if ends:
                found.shutdown(socket.SHUT_WR)
        except OSError:  # it has heard enough
            pass
        with found.makefile("rb") as answers:
            head = parts[0].startswith(b"HEAD")
            return [_one(answers, head) for _ in range(number)]


def _one(answers: Any, head: bool) -> Reply:
    try:
        first = answers.readline()
        if not first:
            return Reply(0, {}, b"")
        status, headers = int(first.split()[1]), {}
        while line := answers.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return Reply(status, headers, b"" if head else answers.read(int(headers.get("content-length", 0))))
    except ConnectionResetError:
        return Reply(0, {}, b"")
