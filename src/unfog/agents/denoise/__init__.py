"""Denoisers: from this noisy context and earlier ones to a belief about the true context."""

from unfog.agents.denoise.adaptive import Adaptive
from unfog.agents.denoise.drift import Drift
from unfog.agents.denoise.exact import Exact, PlugIn
from unfog.agents.denoise.fleet import Fleet
from unfog.agents.denoise.incomplete import Incomplete
from unfog.agents.denoise.mixture import Empirical, Mixture
from unfog.agents.denoise.reference import Identity, KnownBias, KnownBiasAtoms, PriorOnly
from unfog.agents.denoise.robust import Robust
from unfog.agents.denoise.temporal import Temporal
from unfog.agents.denoise.temporal_bank import TemporalBank
from unfog.agents.denoise.unknown_noise import UnknownNoise

__all__ = [
    "Adaptive",
    "Drift",
    "Empirical",
    "Exact",
    "Fleet",
    "Identity",
    "Incomplete",
    "KnownBias",
    "KnownBiasAtoms",
    "Mixture",
    "PlugIn",
    "PriorOnly",
    "Robust",
    "Temporal",
    "TemporalBank",
    "UnknownNoise",
]
