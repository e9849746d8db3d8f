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
        """The number of trials of every agent."""
        return next(iter(self.losses.values())).shape[2]


def dataset(curves: Curves, sweep: sweeps.Sweep) -> xr.Dataset:
    """The curves of all settings, none of them copied."""
    swept = sweeps.axes(sweep)
    dims, curve_dims = (*swept.dims, "agent", "trial", "round"), (*swept.dims, "agent", "curve")
    by_setting = {name: x.reshape(*swept.shape, *x.shape[1:]) for name, x in curves.values.items()}
    trials = next(iter(curves.values.values())).shape[2]
    coords = {**swept.coords, "agent": curves.agents, "trial": range(trials), "round": curves.rounds}
    data = xr.Dataset({name: (dims, values) for name, values in by_setting.items()}, coords)
    for kind, moments in (("mean", curves.mean), ("se", curves.se)):
        data = data.assign(
            {
                f"{name}_{kind}": (curve_dims, x.reshape(*swept.shape, *x.shape[1:]))
                for name, x in moments.items()
            }
        )
    return data.assign_coords(curve=curves.curve) if len(curves.curve) else data


def opened(content: bytes) -> xr.Dataset:
    """Read a Dataset from the bytes of a file; text, which is stored as objects, becomes text again."""
    data = xr.load_dataset(io.BytesIO(content), engine="scipy")
    return data.assign_coords({n: x.astype(str) for n, x in data.coords.items() if x.dtype == object})


def flat(data: xr.Dataset) -> Flat:
    """The arrays that tables and figures need, with all settings on one axis."""
    dims = [dim for dim in data["regret"].dims if dim not in OWN]
    losses = {str(n): _flatten(x, dims, "trial", "round") for n, x in data.items() if "round" in x.dims}
    moments = {str(n): _flatten(x, dims, "curve") for n, x in data.items() if "curve" in x.dims}
    return Flat(
        _read_settings(data, dims),
        [str(name) for name in data["agent"].values],
        data["round"].values,
        losses,
        data["curve"].values if moments else data["round"].values[:0],
        moments,
    )


def _flatten(values: xr.DataArray, dims: list[Hashable], *rest: str) -> Array:
    array = values.transpose(*dims, "agent", *rest).values
    return array.reshape(-1, *array.shape[len(dims) :])


def _read_settings(data: xr.Dataset, dims: list[Hashable]) -> list[dict[str, str]]:
    """The settings that are there, in their order, with values as the spec spells them."""
    spelled = sweeps.values(json.loads(data.attrs["spec"]).get("sweep", {}))
    if dims == [sweeps.SETTING]:
        names = [name for name in spelled if name in data.coords]
        texts = {name: _spell(data[name].values.tolist(), spelled[name]) for name in names}
        return [{name: texts[name][i] for name in names} for i in range(data.sizes[sweeps.SETTING])]
    return sweeps.settings(
        {str(dim): _spell(data[dim].values.tolist(), spelled.get(str(dim), [])) for dim in dims}
    )


def _spell(stored: list[Any], spelled: list[Any]) -> list[str]:
    """Numbers as the spec has them: 1, where a coordinate of several numbers says 1.0."""
    as_spelled = {value: str(value) for value in spelled} if sweeps.numeric(spelled) else {}
    return [as_spelled.get(value, str(value)) for value in stored]
