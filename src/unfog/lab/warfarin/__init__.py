"""Warfarin dosing as a bandit: real patients, their right doses known, contexts with gaps and errors."""

from unfog.lab.warfarin.comparing import Outcome, compare, interval
from unfog.lab.warfarin.doses import ARMS, REWARDS, mistakes, rewards
from unfog.lab.warfarin.errors import Errors
from unfog.lab.warfarin.logged import log
from unfog.lab.warfarin.policies import POLICIES
from unfog.lab.warfarin.record import COORDINATES, Patients, patients, read, repeated
from unfog.lab.warfarin.rules import CLINICAL, PHARMACOGENETIC, weekly_dose

__all__ = [
    "ARMS",
    "CLINICAL",
    "COORDINATES",
    "PHARMACOGENETIC",
    "POLICIES",
    "REWARDS",
    "Errors",
    "Outcome",
    "Patients",
    "compare",
    "interval",
    "log",
    "mistakes",
    "patients",
    "read",
    "repeated",
    "rewards",
    "weekly_dose",
]
