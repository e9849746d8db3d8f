"""Damage to files, at random but the same every time: what a disk, a copy or a person does to them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

Rng = np.random.Generator
Hurt = Callable[[bytes, Rng], bytes]


def flipped(content: bytes, rng: Rng) -> bytes:
    """One bit, or a few."""
    hurt = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        hurt[int(rng.integers(len(hurt)))] ^= 1 << int(rng.integers(8))
    return bytes(hurt)


def overwritten(content: bytes, rng: Rng) -> bytes:
    """A byte made any other: digits and spaces by others, where a file is text."""
    hurt = bytearray(content)
    at = int(rng.integers(len(hurt)))
    hurt[at] = rng.choice(list(b'0123456789 \n\t"{}[],.aefE-')) if rng.random() < 0.5 else rng.integers(256)
    return bytes(hurt)


def cut(content: bytes, rng: Rng) -> bytes:
    """The end, the beginning, or something between."""
    first, last = sorted(rng.integers(0, len(content) + 1, 2).tolist())
    return [content[:first], content[last:], content[:first] + content[last:]][int(rng.integers(3))]


def put_in(content: bytes, rng: Rng) -> bytes:
    """Some bytes, a space, or a copy of a part."""
    at, first = rng.integers(0, len(content) + 1, 2).tolist()
    more = [rng.bytes(int(rng.integers(1, 9))), b" ", content[first : first + 64]][int(rng.integers(3))]
    return content[:at] + more + content[at:]


def zeroed(content: bytes, rng: Rng) -> bytes:
    """A range that was never written out."""
    first, last = sorted(rng.integers(0, len(content) + 1, 2).tolist())
    return content[:first] + bytes(last - first) + content[last:]


WAYS: tuple[Hurt, ...] = (flipped, overwritten, cut, put_in, zeroed)


def damaged(content: bytes, rng: Rng) -> bytes:
    """Other bytes than these."""
    while True:
        way = WAYS[int(rng.integers(len(WAYS)))] if content else put_in
        if (found := way(content, rng)) != content:
            return found


class Kept:
    """A folder as it was, to be put back after each damage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def hurt(self, rng: Rng, others: Sequence["Kept"] = (), *, spare: str = "lock") -> str:
        """Damage one file, or put another one in its place, from here or elsewhere; say which it was."""
        names = sorted(name for name in self.files if name.name != spare)
        victim = names[int(rng.integers(len(names)))]
        content = damaged(self.files[victim], rng)
        if rng.random() < 0.15:
            whose = [self, *others][int(rng.integers(1 + len(others)))]
            content = list(whose.files.values())[int(rng.integers(len(whose.files)))]
        if content == self.files[victim]:
            return self.hurt(rng, others, spare=spare)
        (self.folder / victim).write_bytes(content)
        return str(victim)

    def put_back(self) -> None:
        """All files, and nothing else."""
        for path in sorted(self.folder.rglob("*"), reverse=True) if self.folder.exists() else ():
            if path.is_dir():
                path.rmdir() if not any(path.iterdir()) else None
            elif path.relative_to(self.folder) not in self.files:
                path.unlink()
        for name, content in self.files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)
