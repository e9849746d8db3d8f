"""What live problems promise, wherever they are: in memory, in a file, in a real PostgreSQL, behind a
service.

A check takes a place and makes problems of its own in it; what is expected is written down, or computed by
other means. How a verb is reached (options, bodies, status codes) is tested elsewhere. A new place is a line
of `PLACES` in places.py.
"""

from tests.live.conformance import arms, contexts, decisions, looks, reports, stores
from tests.live.conformance.places import PLACES, Check, Place, in_a_file

__all__ = ["CHECKS", "CHECKS_OF_STORES", "PLACES", "Check", "Place", "in_a_file"]


def _checks(*modules: object) -> dict[str, Check]:
    return {
        name: one for module in modules for name, one in vars(module).items() if name.startswith("check_")
    }


CHECKS = _checks(decisions, contexts, reports, arms, looks)
CHECKS_OF_STORES = _checks(stores)
