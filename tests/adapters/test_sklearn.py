"""The transformer is one of scikit-learn's: its checks, its pipelines, its names; bad input is refused."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import unfog
from tests.adapters.denoising.channels import DIM, MEAN, NOISE_COV, TOLD, readings, with_gaps
from tests.each import each
from unfog import calibrate
from unfog.adapters.sklearn import Denoiser
from unfog.agents.denoise.exact import Exact
from unfog.channel.knowledge import Knowledge
from unfog.validation import InputError

NAMES = ["age", "dose", "weight"]
ESTIMATORS = [
    Denoiser(),
    Denoiser(noise_cov=0.3),
    Denoiser(noise_cov=0.3, output="mean+sd"),
    Denoiser(noise_cov=0.3, bias_cov=0.5, context_mean=1.0, context_cov=2.0),
    Denoiser(noise_cov=0.3, kind="drift", walk_cov=0.01),
    Denoiser(noise_cov=0.3, output="draws", draws=2, random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_checks_of_scikit_learn(estimator: Any) -> None:
    """All of them: none is expected to fail."""
    done = check_estimator(estimator, on_skip=None)
    assert sum(one["status"] == "passed" for one in done) > 35
    assert {one["status"] for one in done} <= {"passed", "skipped"}


def frame(rows: int = 40, gaps: float = 0.2) -> Any:
    return pd.DataFrame(with_gaps(readings(rows, seed=1).noisy, gaps, 2), columns=NAMES)


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("mean", NAMES),
        ("mean+sd", [*NAMES, "age_sd", "dose_sd", "weight_sd"]),
        ("draws", ["age_draw1", "dose_draw1", "weight_draw1", "age_draw2", "dose_draw2", "weight_draw2"]),
    ],
)
def test_frames_in_and_out(output: str, names: list[str]) -> None:
    data = frame()
    found = Denoiser(NOISE_COV, output=output, draws=2, random_state=1)
    plain = found.fit(data).transform(data)
    out = found.set_output(transform="pandas").transform(data)
    assert list(out.columns) == names
    np.testing.assert_array_equal(out.to_numpy(), plain)
    np.testing.assert_array_equal(found.fit_transform(data).to_numpy(), plain)


def test_clones_and_pickles() -> None:
    noisy = readings(40, seed=3, devices=2).noisy
    found = Denoiser(**TOLD, output="mean+sd").fit(noisy, groups=["a", "b"] * 20)
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    np.testing.assert_array_equal(
        again.transform_one(noisy[0], group="b"), found.transform_one(noisy[0], group="b")
    )
    fresh = clone(found)
    assert fresh.get_params()["noise_cov"] is not None
    with pytest.raises(NotFittedError):
        fresh.transform(noisy)


def test_inside_a_pipeline_and_a_column_transformer() -> None:
    """What is left of the columns goes by; fit parameters reach the step by its name."""
    data, rewards = frame(), np.arange(40.0)
    pipe = make_pipeline(Denoiser(NOISE_COV), StandardScaler(), Ridge())
    pipe.fit(data, rewards, denoiser__groups=["a", "b"] * 20)
    assert pipe[0].bias_of("a").mean.any()
    assert np.isfinite(pipe.predict(data)).all()
    both = ColumnTransformer([("two", Denoiser([0.5, 0.5]), NAMES[:2])], remainder="passthrough")
    out = both.set_output(transform="pandas").fit_transform(data)
    assert list(out.columns) == ["two__age", "two__dose", "remainder__weight"]
    alone = Denoiser([0.5, 0.5]).fit_transform(data[NAMES[:2]])
    np.testing.assert_array_equal(out.to_numpy()[:, :2], alone)


def test_noises_of_rows_are_routed() -> None:
    data, sizes = frame(gaps=0.0), np.random.default_rng(1).random((40, DIM))
    with sklearn.config_context(enable_metadata_routing=True):
        step = Denoiser().set_fit_request(noise_cov=True).set_transform_request(noise_cov=True)
        pipe = make_pipeline(step, Ridge())
        pipe.fit(data, np.arange(40.0), noise_cov=sizes)
        predicted = pipe.predict(data, noise_cov=sizes)
    contexts = Denoiser().fit_transform(data, noise_cov=sizes)
    np.testing.assert_allclose(predicted, Ridge().fit(contexts, np.arange(40.0)).predict(contexts))
    assert np.abs(contexts - data.to_numpy()).max() > 0.01


def test_a_coordinate_without_noise_stays() -> None:
    """And helps the others, also where pairs of it are seen."""
    drawn = readings(60, seed=4)
    found = Denoiser([0.0, 4.0, 30.0], bias_cov=1.0).fit(drawn.noisy, true=drawn.true)
    np.testing.assert_allclose(found.bias_[0], (drawn.noisy - drawn.true)[:, 0].mean(), rtol=1e-6)
    free = Denoiser([0.0, 4.0, 30.0]).fit(drawn.noisy)
    np.testing.assert_allclose(free.transform(drawn.noisy)[:, 0], drawn.noisy[:, 0], rtol=1e-10)


X = readings(20, seed=5).noisy


@each(
    "settings, told, words",
    [
        ({"kind": "robust"}, {}, r"^kind: 'robust'; allowed: exact, drift"),
        ({"output": "sd"}, {}, r"^output: 'sd'; allowed: mean, mean\+sd, draws"),
        ({"draws": 0}, {}, r"^draws: 0; allowed: a whole number"),
        ({"kind": "drift"}, {}, r"^walk_cov: None; allowed: the covariance of a step"),
        ({"walk_cov": 1.0}, {}, r"^walk_cov: 1.0; allowed: .*None for others"),
        ({"noise_cov": [1.0, -1.0, 1.0]}, {}, r"^noise_cov: is .* no covariance"),
        ({"noise_cov": [[1, 2, 0], [2, 1, 0], [0, 0, 1]]}, {}, r"^noise_cov: is .* no covariance"),
        ({"noise_cov": [[1, 0, 0], [0.5, 1, 0], [0, 0, 1]]}, {}, r"^noise_cov: is .* no covariance"),
        ({"noise_cov": [[0, 0.1, 0], [0.1, 1, 0], [0, 0, 1]]}, {}, r"^noise_cov: is .* no covariance"),
        ({"noise_cov": np.ones((20, 3))}, {}, r"^noise_cov: has shape \(20, 3\); .* for all rows$"),
        ({"bias_cov": -1.0}, {}, r"^bias_cov: "),
        ({"context_mean": [1.0, 2.0]}, {}, r"^context_mean: "),
        ({"context_cov": -1.0}, {}, r"^context_cov: "),
        ({"bias": [1.0, 2.0]}, {}, r"^bias: .* allowed: a number or a list of 3 numbers"),
        ({}, {"noise_cov": np.ones((19, 3))}, r"^noise_cov: has shape \(19, 3\)"),
        ({}, {"noise_cov": np.full((20, 3), -1.0)}, r"^noise_cov: row 0, column 0 is -1"),
        ({}, {"noise_cov": np.full((20, 3, 3), 2.0)}, r"^noise_cov: row 0 has .* no covariance"),
        ({}, {"groups": ["a"] * 19}, r"^groups: has shape \(19,\); allowed: a label for each of the 20 rows"),
        ({}, {"groups": [1.0] * 19 + [np.nan]}, r"^groups: row 19 has nan"),
        ({}, {"groups": [*["a"] * 19, None]}, r"^groups: row 19 has None"),
        ({}, {"true": X[:19]}, r"^true: has shape \(19, 3\)"),
        ({}, {"true": X + 1.0}, r"^X: column 0 is apart from true by a constant"),
        (
            {},
            {"true": np.full(X.shape, np.nan)},
            r"^true: 0 whole pairs; allowed: at least 4",
        ),
    ],
)
def test_bad_input_is_refused(settings: dict[str, Any], told: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Denoiser(**settings).fit(X, **told)


def test_bad_readings_are_refused_one_by_one_and_change_nothing() -> None:
    found = Denoiser(**TOLD)
    for reading in ([1.0, np.inf, 2.0], [[1.0, 2.0, 3.0]], [], 1.0):
        with pytest.raises(InputError, match=r"^x: .*; allowed: the numbers of one reading"):
            found.transform_one(reading)
    found.transform_one(MEAN)
    before = found.bias_
    with pytest.raises(InputError, match="3 numbers, as were fitted"):
        found.transform_one([1.0, 2.0])
    with pytest.raises(InputError, match=r"^group: "):
        found.transform_one(MEAN, group=["a"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^noise_cov: "):
        found.transform_one(MEAN, noise_cov=[1.0, -1.0, 1.0])
    np.testing.assert_array_equal(found.bias_, before)


def test_what_must_be_told_before_the_first_reading_is_said() -> None:
    with pytest.raises(NotFittedError, match="fit first, or tell context_mean and context_cov"):
        Denoiser(NOISE_COV).transform_one(MEAN)
    walks = Denoiser(NOISE_COV, kind="drift", walk_cov=0.1)
    with pytest.raises(
        InputError, match=r"^context_mean: .* first piece alone.*allowed: told with context_mean"
    ):
        walks.partial_fit(X).partial_fit(X)
    clone(walks).fit(X).partial_fit(X)


def test_a_known_bias_is_taken_off() -> None:
    """As if readings had come without it, to the last thing said."""
    known = np.array([3.0, -5.0, 40.0])
    for settings in ({"noise_cov": NOISE_COV}, TOLD):
        found = Denoiser(**settings, bias=known, output="mean+sd").fit(X + known)
        np.testing.assert_allclose(
            found.transform(X + known), Denoiser(**settings, output="mean+sd").fit_transform(X), rtol=1e-9
        )
    np.testing.assert_allclose(Denoiser(bias=known).fit_transform(X), X - known, rtol=1e-12)
    np.testing.assert_allclose(Denoiser(NOISE_COV, bias=known).fit(X).bias_, known, rtol=1e-12)


def test_a_calibrated_channel_goes_straight_in() -> None:
    """Its contexts are those of an agent that is told the same channel."""
    drawn = readings(200, seed=6)
    channel = calibrate(drawn.noisy, drawn.true).channel
    found = Denoiser.from_channel(channel, output="mean+sd")
    knowledge = Knowledge(*channel[:4], np.zeros(1), np.eye(1))
    agent: Any = Exact()
    parameters = agent.setup(knowledge, None)
    state = agent.start(parameters)
    for reading in readings(20, seed=7).noisy:
        mean, cov = agent.predict(parameters, state, reading - channel.bias)
        np.testing.assert_allclose(found.transform_one(reading), [*mean, *np.sqrt(np.diag(cov))], rtol=1e-9)
        state = agent.update(parameters, state, reading - channel.bias, None)
    plain = Denoiser.from_channel(channel.to_json()).fit(drawn.noisy)
    np.testing.assert_allclose(plain.bias_, Denoiser.from_channel(channel).fit(drawn.noisy).bias_)
    with pytest.raises(InputError, match=r"^channel: .*; allowed: the channel of a calibration"):
        Denoiser.from_channel(3.0)
    with pytest.raises(InputError, match=r"^channel.context_cov: missing"):
        Denoiser.from_channel({"context_mean": MEAN})


def test_a_reading_with_names_is_read_by_them() -> None:
    data = frame(gaps=0.0)
    row = data.iloc[3]
    expected = Denoiser(NOISE_COV).fit(data).transform_one(row.to_numpy())
    for named in (row, row[NAMES[::-1]], row[NAMES[::-1]].to_dict(), row.astype("Float64")):
        np.testing.assert_array_equal(Denoiser(NOISE_COV).fit(data).transform_one(named), expected)
    with pytest.raises(
        InputError, match=r"^x: has age, dose; allowed: a number for each of age, dose, weight"
    ):
        Denoiser(NOISE_COV).fit(data).transform_one(row[NAMES[:2]])
    with pytest.raises(InputError, match=r"^x: .* in the order of the columns: none of them has a name"):
        Denoiser(NOISE_COV).fit(X).transform_one(row.to_dict())
    with pytest.raises(InputError, match=r"^x: \['a', 1, 2\]; allowed: the numbers of one reading"):
        Denoiser(NOISE_COV).fit(X).transform_one(["a", 1, 2])


def test_true_contexts_may_have_the_gaps_of_pandas() -> None:
    drawn = readings(60, seed=8)
    true = pd.DataFrame(drawn.true, columns=NAMES).astype("Float64")
    true.iloc[30:] = pd.NA
    gaps = np.where(np.arange(60)[:, None] < 30, drawn.true, np.nan)
    expected = Denoiser().fit(drawn.noisy, true=gaps).bias_
    np.testing.assert_array_equal(Denoiser().fit(drawn.noisy, true=true).bias_, expected)
    with pytest.raises(InputError, match=r"^true: "):
        Denoiser().fit(drawn.noisy, true=[["a"] * DIM] * 60)


@each("gap", [0.0, np.nan])
def test_readings_that_overflow_are_refused(gap: float) -> None:
    huge = X * 1e160
    huge[0, 0] = gap
    with pytest.raises(InputError, match=r"^X: row 0, column 1 is .*; allowed: numbers of at most 1e\+50"):
        Denoiser().fit(huge)
    with pytest.raises(InputError, match=r"^X: row 0, column 1 is "):
        Denoiser().fit(X).transform(huge)


def test_frames_of_all_kinds_with_gaps(rng: np.random.Generator) -> None:
    noisy = rng.normal(size=(30, 2))
    cells: list[float | None] = noisy[:, 1].tolist()
    noisy[3, 1], cells[3] = np.nan, None
    columns = {"steps": noisy[:, 0].tolist(), "mood": cells}
    expected = Denoiser(noise_cov=1.0).fit_transform(noisy)
    nullable = pd.DataFrame(columns).convert_dtypes()
    for frame in (pd.DataFrame(columns), nullable, pl.DataFrame(columns), pa.table(columns)):
        denoiser = Denoiser(noise_cov=1.0)
        np.testing.assert_allclose(denoiser.fit_transform(frame), expected, rtol=1e-12)
        assert denoiser.get_feature_names_out().tolist() == ["steps", "mood"]
        assert np.isfinite(denoiser.transform_one({"mood": pd.NA, "steps": 1})).all()


def test_exact_columns_come_out_as_they_went_in() -> None:
    """Told, found from pairs, from some pairs, or said of one reading: as live answers them."""
    rng = np.random.default_rng(8)
    true = rng.normal([0.0, 3.0], [1.0, 2.0], (200, 2))
    noisy = true + rng.normal(size=(200, 2)) * [1.0, 0.0]
    some = np.where(np.arange(200)[:, None] < 80, true, np.nan)
    channel = unfog.calibrate(noisy, true).channel
    for denoiser in (
        Denoiser(noise_cov=[1.0, 0.0]).fit(noisy),
        Denoiser().fit(noisy, true=true),
        Denoiser().fit(noisy, true=some),
        Denoiser.from_channel(channel).fit(noisy),
    ):
        assert denoiser.noise_cov_[1].tolist() == [0.0, 0.0]
        better = denoiser.transform(noisy)
        np.testing.assert_allclose(better[:, 1], noisy[:, 1], atol=1e-7)
        assert ((better[:, 0] - true[:, 0]) ** 2).mean() < 0.8
    one = Denoiser(noise_cov=[1.0, 0.0]).fit(noisy).transform_one(noisy[0], noise_cov=[0.0, 0.0])
    np.testing.assert_allclose(one, noisy[0], atol=1e-9)
    with pytest.raises(InputError, match="column 1 is apart from true by a constant"):
        Denoiser().fit(noisy + np.array([0.0, 1.0]), true=true)
