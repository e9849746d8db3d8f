"""Errors that depend on the truth are noted with their size, and those that do not are let be."""

import numpy as np
import pytest

from tests.channel.studies import CONTEXT, D, Draw, Sensor, heavy
from unfog.channel.calibration import _slopes, affine, calibrate, dependence
from unfog.maths.arrays import Array, Ints

normal: Draw = np.random.Generator.standard_normal
GAIN = np.array([[0.6, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def noted(sensor: Sensor, n: int, mix: Array, scale: float = 1.0) -> tuple[str, ...]:
    true = sensor.contexts(n)
    noisy = true @ mix.T + sensor.read(true) - true
    return calibrate(scale * noisy, scale * true).design.notes


@pytest.mark.parametrize("draw", [normal, heavy])
def test_a_gain_is_noted_with_its_size(draw: Draw) -> None:
    for scale in (1.0, 1e6):
        [said] = noted(Sensor(np.random.default_rng(2), draw), 2000, GAIN, scale)
        assert said.startswith(
            "Errors depend on the truth: where that of coordinate 0 moves by 1, the reading "
        )
        value, error = (float(word) for word in said.split("moves by ")[2].split(",")[0].split(" ± "))
        assert abs(value - 0.6) < 4 * error < 0.2  # fails by chance with 6e-5


def test_an_error_that_moves_with_another_coordinate_is_noted() -> None:
    mix = np.eye(D)
    mix[2, 1] = 0.8
    [said] = noted(Sensor(np.random.default_rng(3)), 2000, mix)
    size = 0.8 * np.sqrt(CONTEXT[1, 1] / CONTEXT[2, 2])
    assert said.startswith("Errors depend on the truth: that of coordinate 2 moves by ")
    assert "where coordinate 1 moves by one" in said
    value, error = (float(word) for word in said.split("moves by ")[1].split(" dev")[0].split(" ± "))
    assert abs(value - size) < 4 * error


def test_readings_turned_around_have_nothing_to_note() -> None:
    sensor = Sensor(np.random.default_rng(4))
    true = sensor.contexts(500)
    raw = true * [0.5, 2.0, 1.0] + sensor.read(true) - true
    assert calibrate(raw, true).design.notes
    assert calibrate(affine(raw, true).contexts(raw), true).design.notes == ()


@pytest.mark.parametrize("draw", [normal, heavy])
def test_sensors_that_are_right_are_let_be(draw: Draw) -> None:
    """Errors with other spreads at other contexts, too: 400 studies of 60 pairs, 0.3 % of which are noted."""
    found = 0
    for seed in range(400):
        sensor = Sensor(np.random.default_rng(seed), draw)
        true = sensor.contexts(60)
        away = np.abs(true - true.mean(0))
        errors = (sensor.read(true) - true) * (away[:, :1] if seed % 2 else 1.0)
        found += bool(dependence(true, errors, np.zeros(60, np.intp)))
    assert found <= 6  # at 0.3 % more than 6 come by chance with 3e-4


def test_pairs_that_stay_alike_are_seldom_noted() -> None:
    """Contexts and errors that keep 0.9 from row to row: HC3 alone notes 86 of these 100."""
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        held = np.zeros((2, 300, D))
        for t in range(1, 300):
            held[:, t] = 0.9 * held[:, t - 1] + rng.standard_normal((2, D))
        found += bool(dependence(held[0], held[1], np.zeros(300, np.intp)))
    assert found <= 16  # 5 % are expected; 3e-5


def grouped(sizes: list[int], seed: int = 5) -> tuple[Array, Array, Ints]:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    sensor = Sensor(np.random.default_rng(seed))
    true = sensor.contexts(len(labels)) + 5.0 * labels[:, None]
    return true, sensor.read(true) - true - 2.0 * labels[:, None], labels


def test_biases_of_groups_are_no_dependence() -> None:
    """Devices that stand at other places and are off by other amounts; one of them was read once."""
    true, errors, labels = grouped([40, 1, 70, 30])
    assert dependence(true, errors, labels) == ()
    assert dependence(true, errors, np.zeros_like(labels))  # taken for one device it would be
    assert dependence(true, errors - 0.7 * true, labels)


def test_slopes_and_errors_are_those_of_a_regression_with_a_constant_for_each_group() -> None:
    """HC3 by its definition: leave-one-out residuals, in the design with all dummies."""
    true, errors, labels = grouped([13, 20, 18])
    design = np.column_stack([true, np.eye(3)[labels]])
    fit = np.linalg.pinv(design)
    rest = (errors - design @ fit @ errors) / (1 - np.diag(design @ fit))[:, None]
    means = np.array([[part[labels == g].mean(0) for g in range(3)] for part in (true, errors)])
    away, within = true - means[0][labels], errors - means[1][labels]
    slope, error = _slopes(away, within, 1 / np.bincount(labels)[labels])
    np.testing.assert_allclose(slope, (fit @ errors)[:D].T, rtol=1e-9)
    least = np.sqrt((rest**2).T @ (fit[:D] ** 2).T)
    assert (error > least * (1 - 1e-9)).all()
    blocks = [(rest[rows].T @ fit[:D, rows].T) ** 2 for rows in np.array_split(np.arange(51), 10)]
    assert (error > np.sqrt(np.sum(blocks, 0)) * (1 - 1e-9)).all()
    assert np.isclose(error, least, rtol=1e-9).any()


def test_few_pairs_and_contexts_that_stay_the_same_say_nothing() -> None:
    true, errors, labels = grouped([40, 60])
    assert dependence(true[:29], (errors - true)[:29], np.zeros(29, np.intp)) == ()
    still = np.where(np.arange(D) == 1, 5.0 * labels[:, None], true)
    assert dependence(still, errors - still, labels) == ()
    twin = np.where(np.arange(D) == 1, 2 * true[:, :1] + labels[:, None], true)
    assert dependence(twin, errors - twin, labels) == ()
