"""The engine compiled by numba; importing the folder imports no numba."""
