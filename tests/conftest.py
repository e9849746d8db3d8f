"""Double precision in JAX, the same hypothesis cases every time, and a problem on which formulas can fail."""

import os
from collections.abc import Iterator

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
