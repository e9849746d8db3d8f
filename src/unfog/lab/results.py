"""Results as an xarray Dataset, and back to plain arrays with the settings of a sweep on one axis.

a run without a sweep   (agent, trial, round)
a grid                  (FIELD, ..., agent, trial, round), a dimension for each field
a list of settings      (setting, agent, trial, round), each field a coordinate along `setting`
"""

import io
import json
from collections.abc import Hashable
from typing import Any, NamedTuple

import xarray as xr

from unfog.lab import sweep as sweeps
from unfog.maths.arrays import Array, Ints
from unfog.simulation import Curves

OWN = ("agent", "trial", "round", "curve")  # dimensions that are not those of a sweep


class Flat(NamedTuple):
    """A run with all settings on the first axis; a run without a sweep has one, which has no name."""

    settings: list[dict[str, str]]  # S, the fields of each and their values in words
    agents: list[str]  # A
    rounds: Ints  # (P,)
    losses: dict[str, Array]  # name -> (S, A, trials, P)
    curve: Ints  # (Q,)
    moments: dict[str, Array]  # name_mean, name_se -> (S, A, Q)

    @property
    def labels(self) -> list[str]:
        """What is appended to the agents' names in each setting."""
        return [sweeps.label(setting) for setting in self.settings]

    @property
    def trials(self) -> int:
        """Of every agent."""
        return next(iter(self.losses.values())).shape[2]


def dataset(curves: Curves, sweep: sweeps.Sweep) -> xr.Dataset:
    """The curves of all settings, none of them copied."""
    swept = sweeps.axes(sweep)
    dims, along = (*swept.dims, "agent", "trial", "round"), (*swept.dims, "agent", "curve")
    apart = {name: x.reshape(*swept.shape, *x.shape[1:]) for name, x in curves.values.items()}
    trials = next(iter(curves.values.values())).shape[2]
    coords = {**swept.coords, "agent": curves.agents, "trial": range(trials), "round": curves.rounds}
    data = xr.Dataset({name: (dims, values) for name, values in apart.items()}, coords)
    for kind, found in (("mean", curves.mean), ("se", curves.se)):
        data = data.assign(
            {f"{name}_{kind}": (along, x.reshape(*swept.shape, *x.shape[1:])) for name, x in found.items()}
        )
    return data.assign_coords(curve=curves.curve) if len(curves.curve) else data


def opened(content: bytes) -> xr.Dataset:
    """From the bytes of a file; text as text, which comes from there as objects."""
    data = xr.load_dataset(io.BytesIO(content), engine="scipy")
    return data.assign_coords({n: x.astype(str) for n, x in data.coords.items() if x.dtype == object})


def flat(data: xr.Dataset) -> Flat:
    """All that tables and figures need."""
    dims = [dim for dim in data["regret"].dims if dim not in OWN]
    losses = {str(n): _flat(x, dims, "trial", "round") for n, x in data.items() if "round" in x.dims}
    moments = {str(n): _flat(x, dims, "curve") for n, x in data.items() if "curve" in x.dims}
    return Flat(
        _settings(data, dims),
        [str(name) for name in data["agent"].values],
        data["round"].values,
        losses,
        data["curve"].values if moments else data["round"].values[:0],
        moments,
    )


def _flat(values: xr.DataArray, dims: list[Hashable], *rest: str) -> Array:
    found = values.transpose(*dims, "agent", *rest).values
    return found.reshape(-1, *found.shape[len(dims) :])


def _settings(data: xr.Dataset, dims: list[Hashable]) -> list[dict[str, str]]:
    """The settings that are there, in their order, with values as the spec spells them."""
    spelled = sweeps.values(json.loads(data.attrs["spec"]).get("sweep", {}))
    if dims == [sweeps.SETTING]:
        along = [name for name in spelled if name in data.coords]
        each = {name: _words(data[name].values.tolist(), spelled[name]) for name in along}
        return [{name: each[name][i] for name in along} for i in range(data.sizes[sweeps.SETTING])]
    return sweeps.settings(
        {str(dim): _words(data[dim].values.tolist(), spelled.get(str(dim), [])) for dim in dims}
    )


def _words(found: list[Any], told: list[Any]) -> list[str]:
    """Numbers as the spec has them: 1, where a coordinate of several numbers says 1.0."""
    as_told = {value: str(value) for value in told} if sweeps.numeric(told) else {}
    return [as_told.get(value, str(value)) for value in found]
