"""The four designs against the truth and against each other: unbiased, and as good as they say they are."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.channel import studies
from tests.channel.studies import RIGHT, Sensor, heavy
from tests.problems import within
from unfog.channel.calibration import Calibration
from unfog.channel.studies import calibrate_subset
from unfog.maths.arrays import Array
from unfog.validation import covariance

STUDIES: dict[str, Callable[[Sensor], Calibration]] = {
    "pairs": studies.pairs,
    "replicates": studies.replicates,
    "subset": studies.subset,
    "chosen by the reading": lambda sensor: calibrate_subset(*studies.chosen(sensor, 1500, 400)),
    "external": studies.external,
}


def told(found: Calibration, part: str) -> bool:
    """Whether the study shows this part, and so has an error for it."""
    return bool(np.isfinite(getattr(found.errors, part)).all())


def values(found: list[Calibration], part: str) -> tuple[Array, Array]:
    """Estimates and their stated errors, study by study."""
    return np.array([getattr(one, part) for one in found]), np.array(
        [getattr(one.errors, part) for one in found]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_estimates_are_unbiased_and_errors_are_stated_rightly(name: str, rng: np.random.Generator) -> None:
    sensor, repeats = Sensor(rng), 400
    found = [STUDIES[name](sensor) for _ in range(repeats)]
    for part, right in RIGHT.items():
        if not told(found[0], part):
            continue
        got, stated = values(found, part)
        # At most 24 numbers a study at 5 standard errors: 1e-5.
        assert within(got.mean(0), right, got.std(0) / np.sqrt(repeats)), part
        # A spread of 400 is good to 1 in 28; 4.5 of these and 5 % for what a study this small leaves out.
        ratio = np.sqrt((stated**2).mean(0)) / got.std(0)
        assert np.abs(ratio - 1).max() < 0.21, (part, ratio)


@pytest.mark.parametrize("name", ["pairs", "replicates", "subset"])
def test_heavy_tails_make_errors_larger(name: str, rng: np.random.Generator) -> None:
    sensor, repeats = Sensor(rng, heavy), 300
    found = [STUDIES[name](sensor) for _ in range(repeats)]
    for part in ("context_cov", "noise_cov"):
        got, stated = values(found, part)
        ratio = np.sqrt((stated**2).mean(0) / got.var(0))
        # A Gaussian formula would state errors of variances at sqrt(2 / 5) = 0.63 of what they are for axes
        # of their own, 0.7 to 0.8 for mixtures of them. The mean ratio of six entries is good to 1 in 30.
        assert 0.88 < ratio.mean() < 1.12, (part, ratio)


def test_four_studies_of_one_sensor_agree(rng: np.random.Generator) -> None:
    sensor = Sensor(rng)
    found = {
        "pairs": studies.pairs(sensor, 2000),
        "replicates": studies.replicates(sensor, 2000),
        "subset": studies.subset(sensor, 4000, 1000),
        "external": studies.external(sensor, 4000, 1000),
    }
    for name, one in found.items():
        assert one.design.name == name
        assert all((one.design.assumed, one.design.unknown, one.design.used))
        for part, right in RIGHT.items():
            if told(one, part):  # 93 numbers at 5 standard errors: 5e-5
                assert within(getattr(one, part), right, getattr(one.errors, part)), (name, part)
        for part in ("context_cov", "noise_cov", "bias_cov"):
            covariance(part, getattr(one, part), studies.D)
    assert not told(found["replicates"], "bias")


def test_a_calibration_is_shown_with_its_errors(rng: np.random.Generator) -> None:
    one = studies.replicates(Sensor(rng))
    lines = str(one).splitlines()
    mean, error = one.context_mean[0], one.errors.context_mean[0]
    assert lines[0].startswith(f"context mean {mean:.4g} ± {error:.2g} ")
    deviation = np.sqrt(one.noise_cov[2, 2])
    assert lines[3].endswith(f"{deviation:.4g} ± {one.errors.noise_cov[2, 2] / 2 / deviation:.2g}")
    assert lines[2].split() == ["bias", "0.7", "-0.4", "1.5"]  # told, not shown by the study
    assert lines[4].startswith("replicates: ")
    assert lines[6].startswith("not known: The bias.")
