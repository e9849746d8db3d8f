"""The site, built once for all of its tests, and a browser to look at it."""

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
    """As `make docs` builds it, in a folder of its own; a warning is a failure."""
    folder = tmp_path_factory.mktemp("site")
    told = [*COMMAND, *ONE, "-d", str(folder / "doctrees"), "docs", str(folder / "html")]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *told], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return Site(folder / "html")
