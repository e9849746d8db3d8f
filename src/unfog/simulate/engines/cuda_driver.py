"""Compile and launch one CUDA kernel, by the driver and NVRTC alone, which come with JAX for GPUs.

Arrays are JAX's own: its context is the device's primary one, which a kernel of ours shares, so that a
pointer is all there is to hand over. Compiled kernels are kept beside JAX's (`XDG_CACHE_HOME/unfog/cuda`).
"""

import ctypes
import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from unfog.simulate.engines.cuda_source import Block
from unfog.validation import InputError

OPTIONS = ("--prec-div=false", "--prec-sqrt=false", "--std=c++17")
CAPABILITY = (75, 76)  # attributes of a device: major, minor
BLOCK_SHARED_MOST = 97  # likewise: bytes of shared memory that a block can have, if a function asks for them
SHARED_MOST = 8  # attribute of a function: bytes of shared memory that a launch may ask for
NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


class Kernel:
    """A loaded kernel; the pointers go into one structure."""

    def __init__(self, cubin: bytes, block: Block) -> None:
        """Load it into the primary context."""
        module, self._function, self._block = ctypes.c_void_p(), ctypes.c_void_p(), block
        _enter()
        _check(_driver().cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
        _check(_driver().cuModuleGetFunction(ctypes.byref(self._function), module, b"play"), "play")
        _check(_driver().cuFuncSetAttribute(self._function, SHARED_MOST, block.shared), "cuFuncSetAttribute")

    def __call__(self, pointers: Sequence[int], trials: int, rounds: int, first: int) -> None:
        """Play, and wait for the end of it."""
        _enter()
        together = (ctypes.c_void_p * len(pointers))(*pointers)
        counts = [ctypes.c_int(number) for number in (trials, rounds, first)]
        told = (ctypes.c_void_p * 4)(*(ctypes.addressof(x) for x in (together, *counts)))
        threads, shared = self._block
        grid = (-(-trials // threads), 1, 1, threads, 1, 1)
        launched = _driver().cuLaunchKernel(self._function, *grid, shared, None, told, None)
        _check(launched, "cuLaunchKernel")
        _check(_driver().cuCtxSynchronize(), "the kernel")


@lru_cache(maxsize=64)
def compiled(source: str, block: Block) -> Kernel:
    """The kernel of a source, compiled for the device that is there, or kept from another time."""
    target = f"sm_{_capability()}"
    digest = hashlib.sha256("\n".join([source, target, *OPTIONS]).encode()).hexdigest()
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unfog" / "cuda" / digest
    cubin = _read(kept)
    if cubin is None:
        cubin = _compile(source, target)
        _write(kept, cubin)
    return Kernel(cubin, block)


def _read(path: Path) -> bytes | None:
    """What is kept there, if it is whole: the hash of the rest stands in front."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content[32:] if hashlib.sha256(content[32:]).digest() == content[:32] else None


def _write(path: Path, cubin: bytes) -> None:
    """Keep it, where that can be done."""
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(hashlib.sha256(cubin).digest() + cubin)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)


def _compile(source: str, target: str) -> bytes:
    rtc, program = _nvrtc(), ctypes.c_void_p()
    _check(
        rtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None), "NVRTC"
    )
    options = [option.encode() for option in (f"--gpu-architecture={target}", *OPTIONS)]
    failed = rtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    if failed:
        log = _text(rtc, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
        raise RuntimeError(f"the kernel does not compile: {log.decode(errors='replace')}")
    return _text(rtc, program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")


def _text(rtc: Any, program: Any, size_of: str, get: str) -> bytes:
    size = ctypes.c_size_t()
    _check(rtc[size_of](program, ctypes.byref(size)), size_of)
    text = ctypes.create_string_buffer(size.value)
    _check(rtc[get](program, text), get)
    return text.raw


def _capability() -> str:
    return "".join(str(_attribute(which)) for which in CAPABILITY)


def most_shared() -> int:
    """Bytes of shared memory that a block can have on the device that is there."""
    return _attribute(BLOCK_SHARED_MOST)


def _attribute(which: int) -> int:
    device, found = ctypes.c_int(), ctypes.c_int()
    _check(_driver().cuInit(0), "cuInit")
    _check(_driver().cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    _check(_driver().cuDeviceGetAttribute(ctypes.byref(found), which, device), "cuDeviceGetAttribute")
    return found.value


@lru_cache(maxsize=1)
def _primary() -> ctypes.c_void_p:
    context = ctypes.c_void_p()
    _check(_driver().cuInit(0), "cuInit")
    _check(_driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    return context


def _enter() -> None:
    """Into the context that JAX's arrays live in."""
    _check(_driver().cuCtxSetCurrent(_primary()), "cuCtxSetCurrent")


@lru_cache(maxsize=1)
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise InputError("engine", "cuda needs NVIDIA's driver", "numpy, numba, jax, auto") from None


@lru_cache(maxsize=1)
def _nvrtc() -> Any:
    """The compiler: the system's, or the one among the packages that JAX needs on a GPU."""
    for place in (*NAMES, *_packaged()):
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    allowed = "numpy, numba, jax, auto; it comes with JAX for GPUs: pip install 'jax[cuda13]'"
    raise InputError("engine", "cuda needs NVIDIA's compiler NVRTC", allowed)


def _packaged() -> list[str]:
    spec = find_spec("nvidia")
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []
    return [str(file) for folder in folders for file in sorted(folder.glob("*/lib/libnvrtc.so.*"))]


def _check(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"{what} failed on the GPU (error {code})")
