"""A browser and a service with something to see, one of each for all tests of a process."""

from tests.serve.browser import browser, page
from tests.serve.clinic import clinic

__all__ = ["browser", "clinic", "page"]
