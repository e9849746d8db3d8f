"""Double precision in JAX, the same hypothesis cases every time, and a problem on which formulas can fail.

Where several processes run the tests, the files that take longest come first.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# Here programs are compiled far more often than they run: most of the time goes to what makes them fast.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    " --xla_cpu_use_fusion_emitters=false",
)

import jax
import numpy as np
import pytest
from hypothesis import settings

from tests.problems import random_knowledge
from tests.services import postgres, postgres_database
from unfog.channel.knowledge import Knowledge
from unfog.simulation.engines import jax as jax_engine

__all__ = ["postgres", "postgres_database"]  # fixtures for all

jax.config.update("jax_enable_x64", True)
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")

LONGEST = (  # files that take ten seconds or more, except the last few
    "docs/test_site_seen.py",
    "simulation/engines/test_jax.py",
    "docs/test_snippets.py",
    "simulation/executors/test_local_processes.py",
    "agents/baselines/test_every_baseline.py",
    "simulation/engines/numba/test_engine.py",
    "simulation/executors/test_ray.py",
    "simulation/executors/test_dask.py",
    "simulation/test_play.py",
    "simulation/engines/test_cuda.py",
    "docs/test_gallery.py",
    "live/test_recovery.py",
    "cli/test_commands.py",
    "packaging/test_package.py",
    "lab/datasets/test_movielens_worlds.py",
    "agents/test_engine_neutral.py",
    "paper/test_posterior.py",
    "lab/test_runs.py",
    "serve/test_page_used.py",
    "serve/test_kill.py",
    "docs/test_notebook.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Several processes then end at the same time: next come files with many slow tests, then all others."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    tests = Path(__file__).parent
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    ranks = {tests / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (ranks.get(item.path, len(ranks)), -slow[item.path]))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240711)


@pytest.fixture
def known() -> Knowledge:
    """Three dimensions, nine features: correlated, anisotropic, not centred."""
    return random_knowledge(seed=5)


@pytest.fixture(scope="session", autouse=True)
def _compiled_programs_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that the tests compile do not go into the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", autouse=True)
def _compiled_programs_do_not_pile_up() -> Iterator[None]:
    """A process that runs many files would otherwise hold the programs of all of them in memory."""
    yield
    jax_engine._program.cache_clear()
    jax.clear_caches()
