"""The process: a socket, signals, and an end in good order.

SIGTERM or an interrupt stops accepting; what was asked for is done and committed, what is remembered is
written down, and the store is given back.
"""

import signal
import sys
from types import FrameType

import uvicorn

from unfog.serve.app import application
from unfog.serve.service import Service

PATIENCE = 10  # seconds for requests that are under way when the service stops
SWITCH = 0.0005  # seconds after which a thread that computes lets the one that answers have its turn


class Server(uvicorn.Server):
    """Ends well when it is told to end; uvicorn's own would die of the signal after all."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop in good order; an interrupt while that goes on stops at once."""
        self.force_exit |= self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def config(service: Service, host: str, port: int) -> uvicorn.Config:
    """Without a log of requests: addresses hold names that are nobody's business."""
    return uvicorn.Config(
        application(service),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=PATIENCE,
        limit_concurrency=None,
        backlog=2048,
        h11_max_incomplete_event_size=64 << 10,
    )


def run(service: Service, host: str, port: int) -> None:
    """Serve until a signal says to stop."""
    sys.setswitchinterval(SWITCH)
    Server(config(service, host, port)).run()
