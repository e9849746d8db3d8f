"""Ratings and their factors, against loops, a second factorisation, and the conditions of an optimum."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from tests.each import each
from unfog.lab.datasets import movielens
from unfog.lab.datasets.files import DATASETS, locate
from unfog.lab.datasets.movielens import Factors, cached, factorise, load, stand_in
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError

LINES = [f"{i % 943 + 1}\t{i // 943 + 1}\t{i % 5 + 1}\t{880_000_000 + i}" for i in range(100_000)]
STAND_IN = "c28305fbe4fea0f53da97113b35eef87d9870b5b78f4a81265da4d35c218c428"
Parts = tuple[Array, Array, Ints]  # rows of W, columns of H, clusters


@pytest.fixture(scope="module")
def made() -> Array:
    return stand_in()


@pytest.fixture(scope="module")
def parts(made: Array) -> Parts:
    users, items = movielens._nmf(made, 3)
    return users, items, movielens._labels(items, 20)


@pytest.fixture(scope="module")
def found(made: Array) -> Factors:
    return factorise(made)


def file_here(name: str) -> Path:
    """A data set's file on this machine; without one a test is skipped, with a wrong one it fails."""
    folder = Path(os.environ.get("UNFOG_DATA") or Path(__file__).parents[4] / "shared/data")
    file = Path(DATASETS[name].file)
    if not (folder / file).exists() and not (folder / file.name).exists():
        pytest.skip(f"no {DATASETS[name].title} on this machine: neither in UNFOG_DATA nor in ../shared/data")
    return locate(name, folder)


@pytest.fixture(scope="module")
def real() -> Array:
    return load(file_here("movielens"))


# The file


def written(folder: Path, lines: list[str]) -> Path:
    path = folder / "u.data"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_file_becomes_a_matrix(tmp_path: Path) -> None:
    order = np.random.default_rng(0).permutation(len(LINES))
    matrix = load(written(tmp_path, [LINES[i] for i in order]))
    expected = np.zeros((943, 1682))
    for line in LINES:
        user, item, rating, _ = map(int, line.split("\t"))
        expected[user - 1, item - 1] = rating
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix, expected)


BAD_LINES: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "too few": (lambda lines: lines[:99_722], "99,722 lines of 4"),
    "user": (lambda lines: [*lines[:-1], "944\t1\t3\t0"], "users from 1 to 944"),
    "item": (lambda lines: [*lines[:-1], "1\t0\t3\t0"], "items from 0 to"),
    "rating": (lambda lines: [*lines[:-1], "1\t1682\t6\t0"], "ratings from 1 to 6"),
    "twice": (lambda lines: [*lines[:-1], lines[0]], "rates an item twice"),
    "text": (lambda lines: [*lines[:-1], "1\t1682\tfive\t0"], "cannot be read"),
    "half a star": (lambda lines: [*lines[:-1], "1\t1682\t3.5\t0"], "cannot be read"),
    "ragged": (lambda lines: [*lines[:-1], "1\t1682\t3"], "cannot be read"),
    "page": (lambda lines: ["<html>", *lines[:9]], "cannot be read"),
    "three columns": (lambda lines: [line.rpartition("\t")[0] for line in lines], "100,000 lines of 3"),
}


@each("case", BAD_LINES)
def test_other_files_are_refused(case: str, tmp_path: Path) -> None:
    change, complaint = BAD_LINES[case]
    with pytest.raises(InputError, match=rf"^data: u\.data .*{complaint}"):
        load(written(tmp_path, change(LINES)))


def test_files_that_are_not_there_or_empty_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "u.data")
    with pytest.raises(InputError, match=r"u\.data cannot be read \(it is empty\)"):
        load(written(tmp_path, []))


# The stand-in


def test_the_stand_in_is_always_the_same(made: Array) -> None:
    assert made.shape == (943, 1682)
    assert made.dtype == np.float64
    whole = made.astype(np.uint8)
    np.testing.assert_array_equal(whole, made)
    assert hashlib.sha256(whole.tobytes()).hexdigest() == STAND_IN
    np.testing.assert_array_equal(stand_in(), made)
    assert "not MovieLens" in movielens.STAND_IN


def test_the_stand_in_has_the_promised_counts(made: Array) -> None:
    rated = made > 0
    assert rated.sum() == 100_000
    assert set(np.unique(made)) == {0, 1, 2, 3, 4, 5}
    assert rated.sum(axis=1).min() == 20
    assert rated.sum(axis=0).min() >= 1


def spectrum(matrix: Array) -> Array:
    """The ten largest singular values."""
    values = svds(csr_array(matrix), 10, return_singular_vectors=False, rng=np.random.default_rng(0))
    return np.sort(np.asarray(values))[::-1]


def marginals(matrix: Array) -> dict[str, Array]:
    rated = matrix > 0
    values = matrix[rated]
    return {
        "users": np.quantile(rated.sum(axis=1), [0.25, 0.5, 0.75, 0.9, 0.99]),
        "items": np.quantile(rated.sum(axis=0), [0.25, 0.5, 0.75, 0.9, 0.99]),
        "mean and sd": np.array([values.mean(), values.std()]),
        "singular values": spectrum(matrix)[:3],
    }


# MovieLens-100K's own marginals: facts about the data, not the data.
MARGINALS = {
    "users": [33, 65, 148, 244.4, 442.54],
    "items": [6, 27, 80, 169, 369.09],
    "mean and sd": [3.52986, 1.12567],
    "singular values": [640.633, 244.832, 217.847],
}


def test_the_stand_in_is_like_the_data(made: Array) -> None:
    for name, values in marginals(made).items():
        assert np.abs(values / MARGINALS[name] - 1).max() < 0.25, name


def test_the_stand_in_has_three_factors_and_noise(made: Array) -> None:
    values = spectrum(made)
    assert values[2] > 1.5 * values[3]
    assert values[3:].min() > 0.5 * values[3]


# Factors


def test_factors_have_the_promised_shapes(found: Factors) -> None:
    assert [part.shape for part in found] == [(943, 3), (20, 3), (20, 3), (20,)]
    assert found.sizes.sum() == 1682
    assert np.all(np.diff(found.sizes) <= 0)
    assert np.all(found.users >= 0)
    assert np.all(found.centroids >= 0)
    assert np.all(found.variances > 0)


@pytest.mark.slow
def test_factors_are_the_same_again(found: Factors, made: Array) -> None:
    for first, second in zip(found, factorise(made.astype(np.int64)), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_the_factors_are_at_an_optimum(made: Array, parts: Parts) -> None:
    """Karush, Kuhn, Tucker: where a factor is zero the slope is up, elsewhere there is none."""
    users, items, _ = parts
    error = users @ items.T - made
    for factor, slope, scale in (
        (users, error @ items, np.linalg.norm(made @ items, axis=0)),
        (items, error.T @ users, np.linalg.norm(made.T @ users, axis=0)),
    ):
        assert np.all(slope > -1e-5 * scale)
        assert np.abs(slope[factor > 0] / np.broadcast_to(scale, slope.shape)[factor > 0]).max() < 1e-5


def multiplicative(matrix: Array, factors: int, steps: int, seed: int) -> float:
    """The error that Lee and Seung's updates reach."""
    rng, sparse = np.random.default_rng(seed), csr_array(matrix)
    w, h = rng.random((matrix.shape[0], factors)), rng.random((factors, matrix.shape[1]))
    for _ in range(steps):
        h = h * (sparse.T @ w).T / np.maximum(w.T @ w @ h, 1e-12)
        w = w * (sparse @ h.T) / np.maximum(w @ (h @ h.T), 1e-12)
    return float(np.linalg.norm(matrix - w @ h))


def test_another_method_finds_nothing_better(made: Array, parts: Parts) -> None:
    users, items, _ = parts
    error = np.linalg.norm(made - users @ items.T)
    others = [multiplicative(made, 3, 150, seed) for seed in (0, 1)]
    assert min(others) > 0.995 * error
    assert min(others) < 1.005 * error  # or it would not be a test


def test_clusters_are_recomputed_by_hand(found: Factors, parts: Parts) -> None:
    users, items, labels = parts
    np.testing.assert_array_equal(users, found.users)
    rows = []
    for label in range(20):
        group = [item for item, own in zip(items, labels, strict=True) if own == label]
        mean = sum(group) / len(group)
        spread = sum((item - mean) ** 2 for item in group) / len(group)
        rows.append((-len(group), *mean, *spread))
    by_hand = np.array(sorted(rows))
    np.testing.assert_array_equal(found.sizes, -by_hand[:, 0])
    np.testing.assert_allclose(found.centroids, by_hand[:, 1:4], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.variances, by_hand[:, 4:], rtol=1e-9, atol=1e-15)


def lloyd(points: Array, clusters: int, seed: int) -> float:
    """The sum of squares that plain K-means reaches from points drawn at random."""
    centres = np.random.default_rng(seed).permutation(points)[:clusters]
    for _ in range(100):
        distances = ((points[:, None] - centres) ** 2).sum(axis=2)
        near = distances.argmin(axis=1)
        centres = np.array(
            [points[near == k].mean(axis=0) if np.any(near == k) else centres[k] for k in range(clusters)]
        )
    return float(distances.min(axis=1).sum())


@pytest.mark.slow
def test_the_clustering_is_a_good_one(found: Factors, parts: Parts) -> None:
    _, items, labels = parts
    distances = ((items[:, None] - found.centroids) ** 2).sum(axis=2)
    near = distances.argmin(axis=1)
    assert len(set(zip(labels, near, strict=True))) == 20  # every item is nearest to its own centre
    assert distances.min(axis=1).sum() < 1.02 * min(lloyd(items, 20, seed) for seed in range(5))


def test_a_lone_item_gets_a_small_variance() -> None:
    items = np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 2.0], [9.0, 0.0, 4.0]])
    made = movielens._summary(np.ones((2, 3)), items, np.array([1, 1, 0]))
    np.testing.assert_array_equal(made.sizes, [2, 1])
    np.testing.assert_allclose(made.centroids, [[2, 0, 2], [9, 0, 4]])
    floor = 1e-3 * np.array([items[:, 0].var(), 1.0, items[:, 2].var()])
    np.testing.assert_allclose(made.variances, np.stack([[1.0, floor[1], floor[2]], floor]))


def test_clusters_of_one_size_are_ordered_by_their_centres() -> None:
    items = np.array([[5.0, 1.0], [2.0, 9.0], [2.0, 3.0], [7.0, 0.0], [7.0, 0.0]])
    expected = [[7, 0], [2, 3], [2, 9], [5, 1]]
    for labels in ([0, 1, 2, 3, 3], [2, 0, 3, 1, 1], [3, 2, 1, 0, 0]):
        made = movielens._summary(np.ones((1, 2)), items, np.array(labels))
        np.testing.assert_array_equal(made.centroids, expected)


BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "one factor": ({"factors": 1}, "factors: 1; allowed: .* at least 2 and at most 4"),
    "too many factors": ({"factors": 5}, "factors: 5; allowed: .* at most 4"),
    "half a factor": ({"factors": 2.5}, "factors: 2.5"),
    "true": ({"factors": True}, "factors: True"),
    "no clusters": ({"clusters": 0}, "clusters: 0"),
    "more clusters than items": ({"clusters": 7}, "clusters: 7; allowed: .* at most 6"),
    "text": ({"clusters": "20"}, "clusters: '20'"),
    "negative": ({"ratings": -np.eye(6)}, "ratings: .*none negative"),
    "nothing": ({"ratings": np.zeros((6, 6))}, "ratings: .*not all zero"),
    "a list": ({"ratings": np.ones(6)}, "ratings: float64 of shape"),
    "a block": ({"ratings": np.ones((6, 6, 6))}, "ratings: float64 of shape"),
    "empty": ({"ratings": np.ones((0, 6))}, "ratings: float64 of shape"),
    "words": ({"ratings": np.full((6, 6), "a")}, "ratings: .* finite numbers"),
    "not finite": ({"ratings": np.full((6, 6), np.nan)}, "ratings: .* finite numbers"),
}


@each("function", [factorise, cached])
@each("case", BAD_SETTINGS)
def test_bad_settings_are_refused_by_name(case: str, function: Callable[..., Factors]) -> None:
    given, complaint = BAD_SETTINGS[case]
    matrix = np.arange(24.0).reshape(4, 6) % 6
    with pytest.raises(InputError, match=rf"^{complaint}"):
        function(**{"ratings": matrix, "factors": 2, "clusters": 2, **given})


def test_more_clusters_than_different_items_are_refused() -> None:
    same = np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 2.0, 2.0])
    with pytest.raises(InputError, match=r"^clusters: 4; allowed: at most [23]: "):
        factorise(same, 2, 4)


# The cache


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Asked factorisations; what they give is made up."""
    seen: list[tuple[int, int]] = []

    def counted(matrix: Array, factors: int = 3, clusters: int = 20) -> Factors:
        seen.append((factors, clusters))
        values = np.random.default_rng(len(seen) and 5).random((9, factors))
        return Factors(values[:4], values[4:6], values[6:8], np.array([3, 2]))

    monkeypatch.setattr(movielens, "factorise", counted)
    return seen


SMALL = np.arange(24.0).reshape(4, 6) % 5


def same(first: Factors, second: Factors) -> bool:
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(first, second, strict=True))


def test_a_second_call_is_answered_from_the_cache(calls: list[Any], tmp_path: Path) -> None:
    first = cached(SMALL, 2, 2, tmp_path)
    second = cached(SMALL.astype(np.int64), 2, 2, tmp_path)
    assert same(first, second)
    assert calls == [(2, 2)]
    [path] = tmp_path.iterdir()
    assert path.suffix == ".npz"


def test_the_cache_is_the_users_unless_told(
    calls: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for _ in range(2):
        cached(SMALL, 2, 2)
    assert len(calls) == 1
    assert len(list((tmp_path / "unfog/factors").glob("*.npz"))) == 1


def test_all_that_decides_the_factors_is_in_the_key(
    calls: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = SMALL.copy()
    other[0, 0] += 1
    cached(SMALL, 2, 2, tmp_path)
    cached(other, 2, 2, tmp_path)
    cached(SMALL.reshape(6, 4), 2, 2, tmp_path)
    cached(SMALL, 3, 2, tmp_path)
    cached(SMALL, 2, 3, tmp_path)
    monkeypatch.setattr(movielens, "FORMAT", 0)
    cached(SMALL, 2, 2, tmp_path)
    monkeypatch.setattr(movielens, "_version", lambda: "0.1")
    cached(SMALL, 2, 2, tmp_path)
    assert len(calls) == len(list(tmp_path.iterdir())) == 7


def test_damaged_and_foreign_files_are_recomputed(calls: list[Any], tmp_path: Path) -> None:
    right = cached(SMALL, 2, 2, tmp_path)
    [path] = tmp_path.iterdir()
    whole = path.read_bytes()
    np.save(tmp_path / "array.npy", SMALL)
    np.savez(tmp_path / "other.npz", users=SMALL)
    np.savez(tmp_path / "another.npz", key=np.array("0"), **right._asdict())
    foreign = [(tmp_path / name).read_bytes() for name in ("array.npy", "other.npz", "another.npz")]
    for content in (b"", b"<html>", whole[:-1], whole[:100], whole[1:], *foreign):
        calls.clear()
        path.write_bytes(content)
        assert same(cached(SMALL, 2, 2, tmp_path), right)
        assert calls == [(2, 2)]
        assert same(cached(SMALL, 2, 2, tmp_path), right)
        assert calls == [(2, 2)]


@pytest.mark.slow
def test_a_flipped_bit_never_gets_through(calls: list[Any], tmp_path: Path) -> None:
    right = cached(SMALL, 2, 2, tmp_path)
    [path] = tmp_path.iterdir()
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(whole), 300):
        hurt = bytearray(whole)
        hurt[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(hurt)
        assert same(cached(SMALL, 2, 2, tmp_path), right)
    assert len(calls) > 150


def failing(error: Exception) -> Callable[..., None]:
    def fail(*given: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("trouble", ["a file in the way", "a folder in the way", "full", "no home"])
def test_a_cache_that_cannot_be_written_is_no_error(
    trouble: str, calls: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder: Path | None = tmp_path / "factors"
    if trouble == "a file in the way":
        (tmp_path / "factors").write_text("here")
    elif trouble == "a folder in the way":
        (tmp_path / "factors" / f"{movielens._key(SMALL, 2, 2)}.npz").mkdir(parents=True)
    elif trouble == "full":
        monkeypatch.setattr(os, "fsync", failing(OSError(28, "No space left on device")))
    else:
        folder = None
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", failing(RuntimeError("Could not determine home directory.")))
    for _ in range(2):
        assert cached(SMALL, 2, 2, folder).sizes.sum() == 5
    assert len(calls) == 2
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "factors"]


@pytest.mark.slow
def test_scikit_learn_waits_until_it_is_needed(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np; from pathlib import Path; from unfog.lab.datasets import movielens\n"
        "movielens.cached(np.arange(24.0).reshape(4, 6) % 5, 2, 2, Path(sys.argv[1]))\n"
        "print('sklearn' in sys.modules)"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert said == ["True\n", "False\n"]


# The data themselves


def test_the_data_have_the_marginals_the_stand_in_is_held_to(real: Array) -> None:
    assert np.count_nonzero(real) == 100_000
    for name, values in marginals(real).items():
        assert values == pytest.approx(MARGINALS[name], rel=1e-4), name


@pytest.mark.slow
def test_the_datas_factors(real: Array) -> None:
    """Values of scikit-learn 1.9; other versions may start NMF a little differently."""
    made = factorise(real)
    np.testing.assert_allclose(made.users.mean(axis=0), [0.33, 0.3345, 0.2839], atol=0.005)
    np.testing.assert_allclose(made.users.std(axis=0), [0.456, 0.2756, 0.4041], atol=0.005)
    assert list(made.sizes[:5]) == pytest.approx([840, 162, 111, 98, 81], rel=0.15)
    assert made.variances.min() > 1.5e-3  # five times the floor, which changes nothing here


def test_altered_data_are_refused(tmp_path: Path) -> None:
    content = file_here("movielens").read_bytes()
    position = content.index(b"\t5\t") + 1
    (tmp_path / "u.data").write_bytes(content[:position] + b"4" + content[position + 1 :])
    with pytest.raises(InputError, match="differs"):
        locate("movielens", tmp_path)


@pytest.mark.slow
def test_factors_changed_in_the_cache_are_not_believed(tmp_path: Path) -> None:
    """The key says what they were made from; only their own hash says that they are what was made."""
    matrix = np.abs(np.random.default_rng(0).normal(size=(30, 40))).round(1)
    right = movielens.cached(matrix, 2, 4, tmp_path)
    [path] = tmp_path.glob("*.npz")
    with np.load(path) as saved:
        parts = {name: saved[name] for name in saved.files}
    for wrong in (2 * parts["users"], np.nan * parts["users"], parts["users"][:, :1], np.array(3.0)):
        np.savez(path, **{**parts, "users": wrong})
        found = movielens.cached(matrix, 2, 4, tmp_path)
        assert np.array_equal(found.users, right.users)
