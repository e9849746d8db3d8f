"""The process: a socket, signals, and an end in good order.

SIGTERM or an interrupt stops accepting; what was asked for is done and committed, what is remembered is
written down, and the store is given back. Who has not said all by then, or asked for what takes longer than
some seconds, is told to ask again. A second one does not wait for those who still ask, or listen.
Either way the process ends with the code 0: it was told to stop, and it did.
"""

import logging
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn

from unfog.serve.app import application
from unfog.serve.connections import Bounded
from unfog.serve.service import Service

PATIENCE = 10  # seconds for requests that are under way when the service stops
IDLE = 30  # seconds after which a connection on which nothing is asked is ended
SWITCH = 0.0005  # seconds after which a thread that computes lets the one that answers have its turn


class Server(uvicorn.Server):
    """Says so once it listens, and ends in good order however often it is told to."""

    def __init__(self, service: Service, listening: Callable[[], None]) -> None:
        """`listening` is called once."""
        super().__init__(config(service))
        self._service, self._listening = service, listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        if self.started:
            self._listening()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """The first signal stops; the next one hurries. None is raised again when all is done."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """In a hurry stores are committed and given back as well.

        What others can serve is given back first: they do not wait for those who listen slowly here.
        """
        self._service.readers.leave()
        if not self._service.shelf.single:
            await self._service.stop()
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()


def config(service: Service, host: str = "127.0.0.1", port: int = 0) -> uvicorn.Config:
    """Without a log of requests: addresses hold names that are nobody's business."""
    return uvicorn.Config(
        application(service),
        host=host,
        port=port,
        http=Bounded,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,  # who asks is who is connected: a header may say anything
        timeout_graceful_shutdown=PATIENCE,
        timeout_keep_alive=IDLE,
        limit_concurrency=None,
        backlog=2048,
    )


def run(service: Service, opened: socket.socket, listening: Callable[[], None]) -> None:
    """Serve at a socket until a signal says to stop."""
    sys.setswitchinterval(SWITCH)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    Server(service, listening).run([opened])
