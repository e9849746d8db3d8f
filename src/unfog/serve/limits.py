"""How often one caller may ask: a bucket of tokens for each, which fills at a steady rate."""

from collections import OrderedDict
from collections.abc import Callable
from math import ceil
from time import monotonic

from unfog.serve.refusals import Refused

MOST = 10_000  # callers that are remembered; of more, those who asked longest ago are forgotten


class Buckets:
    """Of all callers; used by the event loop alone."""

    def __init__(self, rate: float, most: int = MOST, clock: Callable[[], float] = monotonic) -> None:
        """So many requests a second, of which a second's worth may come at once."""
        self._rate, self._full, self._most, self._clock = rate, max(rate, 1.0), most, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when

    def take(self, who: str) -> None:
        """One token; a complaint where there is none."""
        now = self._clock()
        tokens, then = self._left.get(who, (self._full, now))
        tokens = min(tokens + (now - then) * self._rate, self._full)
        enough = tokens >= 1
        self._left[who] = (tokens - 1 if enough else tokens, now)
        self._left.move_to_end(who)
        if len(self._left) > self._most:
            self._left.popitem(last=False)
        if not enough:
            wait = ceil((1 - tokens) / self._rate)
            said = f"More than {self._rate:g} requests a second; nothing was done."
            raise Refused(429, said, {"Retry-After": str(max(wait, 1))})
