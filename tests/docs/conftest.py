"""The site, built once for all of its tests, and a browser to look at it."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.site import Site
from tests.serve.browser import browser, page

__all__ = ["browser", "page"]

ROOT = Path(__file__).parents[2]
ONE = ("-D", "sphinx_gallery_conf.filename_pattern=/plot_cost_of_noise")  # tests of the gallery run them all
COMMAND = ("-m", "sphinx", "-b", "html", "-W", "--keep-going", "--quiet")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """As `make docs` builds it; a warning is a failure. The first process to come builds it for all."""
    own = tmp_path_factory.getbasetemp()
    root = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with (root / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "site" / "built").exists():
            _build(root / "site")
            (root / "site" / "built").touch()
    return Site(root / "site" / "html")


def _build(folder: Path) -> None:
    told = [*COMMAND, *ONE, "-d", str(folder / "doctrees"), "docs", str(folder / "html")]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *told], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    phases = [line.split()[:2] for line in done.stdout.splitlines()]
    assert phases == [["docs:", phase] for phase in ("running", "reading", "resolving", "copying")]
