"""A data set as JSON has it: nested mappings by names, and null for what is not a number."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr


def plain(data: "xr.Dataset") -> dict[str, Any]:
    """Attributes and variables by name; a variable is a mapping by the names along its dimensions."""
    values = {
        str(name): _by_name(data, data[name].dims, data[name].values.tolist()) for name in data.data_vars
    }
    return {**{str(name): _value(value) for name, value in data.attrs.items()}, **values}


def whole(data: "xr.Dataset") -> dict[str, Any]:
    """Likewise, with what it takes to make the data set again: dimensions, and what stands along them."""
    dims = {str(name): [str(dim) for dim in data[name].dims] for name in data.data_vars}
    return {
        **plain(data),
        "dims": dims,
        "coordinates": {str(name): _value(data[name].values.tolist()) for name in data.coords},
    }


def dataset(told: dict[str, Any]) -> "xr.Dataset":
    """The data set that `whole` has told of."""
    import numpy as np
    import xarray as xr

    dims: dict[str, list[str]] = told["dims"]
    values = {
        name: (along, np.array(_listed(told[name], len(along)), dtype=np.float64))
        for name, along in dims.items()
    }
    rest = {
        name: float("nan") if x is None else x
        for name, x in told.items()
        if name not in (*dims, "dims", "coordinates")
    }
    return xr.Dataset(values, told["coordinates"], rest)


def _listed(value: Any, depth: int) -> Any:
    """Without names; not a number for null."""
    if depth:
        return [_listed(one, depth - 1) for one in value.values()]
    return float("nan") if value is None else value


def _by_name(data: "xr.Dataset", dims: Any, values: Any) -> Any:
    if not dims:
        return _value(values)
    first = dims[0]
    keys = data[first].values.tolist() if first in data.coords else range(len(values))
    return {str(key): _by_name(data, dims[1:], value) for key, value in zip(keys, values, strict=True)}


def _value(value: Any) -> Any:
    """Plain, and null where it is not a number or has no end."""
    if isinstance(value, list | tuple):
        return [_value(one) for one in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
