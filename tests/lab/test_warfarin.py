"""Warfarin: the record read, doses as arms, the published algorithms, errors, what agents are told, a log."""

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from unfog.agents.catalogue import named
from unfog.inputs import InputError
from unfog.lab import warfarin
from unfog.lab.datasets import DATASETS
from unfog.lab.warfarin import CLINICAL, COORDINATES, PHARMACOGENETIC, Errors, Patients, doses, policies
from unfog.lab.warfarin.policies import POLICIES, Scene, scene
from unfog.lab.warfarin.record import CALLED, INDUCERS, NEIGHBOURS, PATIENTS
from unfog.lab.warfarin.told import moments, told
from unfog.maths.arrays import Array

FILE = DATASETS["warfarin"].file
PLACE = {name: place for place, name in enumerate(COORDINATES)}
NAMES = [
    "PharmGKB Subject ID", "Gender", "Race", "Age", "Height (cm)", "Weight (kg)", "Amiodarone (Cordarone)",
    *INDUCERS, warfarin.record.STABLE, warfarin.record.DOSE, "CYP2C9 consensus",
    *(name for name, _, _ in NEIGHBOURS),
    *(column.format(one) for _, column, names in CALLED for one in names),
]  # fmt: skip


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data set's file on this machine; without one a test is skipped, with a wrong one it fails."""
    folder = Path(os.environ.get("UNFOG_DATA") or Path(__file__).parents[3] / "shared/data")
    if not (folder / FILE).exists():
        pytest.skip("no IWPC warfarin on this machine: neither in UNFOG_DATA nor in ../shared/data")
    monkeypatch.setenv("UNFOG_DATA", str(folder))
    return folder / FILE


def written(folder: Path, *rows: dict[str, str]) -> Path:
    """A file with these patients; what is not said of one is not known."""
    path = folder / "made.csv"
    usual = dict.fromkeys(NAMES, "NA") | {warfarin.record.STABLE: "1", warfarin.record.DOSE: "30"}
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.DictWriter(file, NAMES)
        table.writeheader()
        table.writerows(usual | row for row in rows)
    return path


def made(n: int, seed: int = 3, gaps: float = 0.0) -> Patients:
    """Patients whose contexts hang together, on scales of their own; the dose is a function of them."""
    rng = np.random.default_rng(seed)
    asian = rng.random(n) < 0.3
    black = ~asian & (rng.random(n) < 0.15)
    male = rng.random(n) < 0.6
    height = 163 + 12 * male - 5 * asian + 6 * rng.standard_normal(n)
    weight = 75 + 1.1 * (height - 168) + 14 * rng.standard_normal(n)
    alleles = [rng.binomial(2, np.where(asian, 0.9, 0.4)), rng.binomial(1, 0.2, n), rng.binomial(1, 0.15, n)]
    age, taken = np.clip(np.round(6 + 1.4 * rng.standard_normal(n)), 1, 9), rng.random((2, n)) < 0.08
    contexts = np.stack([age, height, weight, male, asian, black, *alleles, *taken], 1).astype(float)
    root = 5.5 - 0.25 * age + 0.022 * weight - 0.85 * alleles[0] - 0.5 * alleles[1] - 0.9 * alleles[2]
    contexts[rng.random(contexts.shape) < gaps] = np.nan
    return Patients(contexts, (np.maximum(root, 1.5) + 0.9 * rng.standard_normal(n)) ** 2 + 2)


def played(people: Patients, errors: Errors, **fields: Any) -> Scene:
    usual: dict[str, Any] = {"orders": 3, "apart": 300, "reward": "bucket", "seed": 5}
    return scene(people, errors, **usual | fields)


def test_a_patient_is_read(tmp_path: Path) -> None:
    one = {"Gender": "female", "Race": "Asian", "Age": "90+", "Height (cm)": "150.5", "Weight (kg)": "48"}
    one |= {"CYP2C9 consensus": "*2/*3", "VKORC1 -1639 consensus": "A/G", INDUCERS[1]: "1"}
    two = {"Gender": "male", "Race": "Unknown", "Age": "10 - 19", "CYP2C9 consensus": "*1/*11"}
    two |= {"Amiodarone (Cordarone)": "1", warfarin.record.DOSE: "52.5"}
    found = warfarin.read(written(tmp_path, one, two))
    gap = np.nan
    first = [9, 150.5, 48, 0, 1, 0, 1, 1, 1, 0, 1]
    np.testing.assert_array_equal(found.contexts, [first, [1, gap, gap, 1, gap, gap, gap, 0, 0, 1, 0]])
    assert found.dose.tolist() == [30, 52.5]


def test_without_a_stable_dose_one_is_left_out(tmp_path: Path) -> None:
    stable, dose = warfarin.record.STABLE, warfarin.record.DOSE
    rows = [{stable: "0"}, {stable: "NA"}, {dose: "NA"}, {dose: ""}, {dose: "17"}]
    assert warfarin.read(written(tmp_path, *rows)).dose.tolist() == [17]
    with pytest.raises(InputError, match=r"^data: made\.csv has no patient with a stable dose"):
        warfarin.read(written(tmp_path, *rows[:4]))


@pytest.mark.parametrize(
    ("race", "marker", "genotype", "alleles"),
    [
        ("White", 1, "C/T", 1), ("Asian", 1, "T/T", 2), ("Unknown", 1, "T/T", np.nan),
        ("Black or African American", 2, "C/C", 0), ("Unknown", 2, "T/T", 2),
        ("White", 3, "C/C", 2), ("Asian", 3, "G/G", 0), ("Black or African American", 3, "C/C", np.nan),
    ],
)  # fmt: skip
def test_a_neighbour_on_the_gene_stands_in(
    race: str, marker: int, genotype: str, alleles: float, tmp_path: Path
) -> None:
    path = written(tmp_path, {"Race": race, NEIGHBOURS[marker][0]: genotype})
    np.testing.assert_equal(warfarin.read(path).contexts[0, PLACE["vkorc1"]], alleles)
    assert np.isnan(warfarin.read(path, neighbours=False).contexts[0, PLACE["vkorc1"]])


def test_files_of_another_form_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"Height (cm)": "tall", "PharmGKB Subject ID": "PA7"})
    with pytest.raises(
        InputError, match=r"^data: Height \(cm\) is 'tall' for patient PA7; allowed: a number"
    ):
        warfarin.read(path)
    path.write_text("Age,Race\n60 - 69,White\n", "utf-8")
    with pytest.raises(InputError, match=r"^data: made\.csv has no column 'Therapeutic Dose of Warfarin'"):
        warfarin.read(path)
    path.write_text("Age,Race\n", "utf-8")
    with pytest.raises(InputError, match=r"^data: made\.csv has no rows"):
        warfarin.read(path)


def test_the_record_is_that_of_the_paper(data: Path) -> None:
    found = warfarin.patients()
    assert found.contexts.shape == (PATIENTS, len(COORDINATES))
    share = np.isnan(found.contexts).mean(0)
    named = [PLACE[name] for name in ("height", "weight", "vkorc1")]
    assert np.round(share[named], 2).tolist() == [0.19, 0.05, 0.02]
    alone = warfarin.patients(neighbours=False)
    assert round(float(np.isnan(alone.contexts[:, PLACE["vkorc1"]]).mean()), 2) == 0.27
    # Table 2 of the paper has mean errors of 8.5, 9.9 and 13.0 mg a week on its fifth set apart.
    said = [warfarin.weekly_dose(rule, found.contexts) for rule in (PHARMACOGENETIC, CLINICAL)]
    for dose, published in zip([*said, np.full(PATIENTS, 35.0)], (8.5, 9.9, 13.0), strict=True):
        assert abs(np.abs(dose - found.dose).mean() - published) < 0.3


def test_neighbours_agree_where_both_are_known(data: Path) -> None:
    """The rule by which a gap is read off a neighbour, held against patients who have no gap."""
    with data.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    (target, genotypes, _), *others = NEIGHBOURS
    for name, codes, by_race in others:
        able = [row for row in rows if row[target] in genotypes and row[name] in codes]
        able = [row for row in able if not by_race or row["Race"] in ("White", "Asian")]
        agree = [genotypes.index(row[target]) == codes.index(row[name]) for row in able]
        assert len(agree) > 900
        assert np.mean(agree) > 0.97


def test_second_genotyping(data: Path) -> None:
    found = warfarin.repeated()
    assert {name: tuple(one) for name, one in found.items()} == {"vkorc1": (313, 9), "cyp2c9": (473, 17)}
    assert found["vkorc1"].rate == 9 / 313


def test_doses_and_rewards() -> None:
    stable = np.array([20.9, 21.0, 49.0, 49.1])
    assert doses.bucket(stable).tolist() == [0, 1, 1, 2]
    assert doses.rewards(stable)[[0, 2]].tolist() == [[0, -1, -1], [-1, 0, -1]]
    graded = doses.rewards(np.array([28.0]), "graded")
    np.testing.assert_allclose(graded, [[-np.log(2), -np.log(1.25), -np.log(2)]])
    wrong, severe = warfarin.mistakes(stable, np.array([2, 2, 1, 0]))
    assert (wrong.tolist(), severe.tolist()) == ([True, True, False, True], [True, False, False, True])
    with pytest.raises(InputError, match=r"^reward: 'sharp'; allowed: bucket, graded"):
        doses.rewards(stable, "sharp")


def test_the_algorithms_by_hand() -> None:
    """A man of 63, 175 cm and 80 kg, on amiodarone: the published sums, written out."""
    man = np.array([6, 175, 80, 1, 0, 0, 1, 1, 0, 1, 0], float)
    root = 5.6044 - 0.2614 * 6 + 0.0087 * 175 + 0.0128 * 80 - 0.8677 - 0.5211 - 0.5503
    np.testing.assert_allclose(warfarin.weekly_dose(PHARMACOGENETIC, man), root**2)
    root = 4.0376 - 0.2546 * 6 + 0.0118 * 175 + 0.0134 * 80 - 0.5695
    np.testing.assert_allclose(warfarin.weekly_dose(CLINICAL, man), root**2)
    unknown = man.copy()
    unknown[[PLACE[name] for name in ("asian", "black", "vkorc1", "cyp2c9_2", "cyp2c9_3")]] = np.nan
    root = 5.6044 - 0.2614 * 6 + 0.0087 * 175 + 0.0128 * 80 - 0.1032 - 0.4854 - 0.2188 - 0.5503
    np.testing.assert_allclose(warfarin.weekly_dose(PHARMACOGENETIC, unknown), root**2)


def test_expected_alleles_give_the_expected_root() -> None:
    base = np.array([5, 168, 70, 0, 1, 0, 0, 0, 0, 0, 1], float)

    def root(**alleles: float) -> float:
        context = base.copy()
        for name, number in alleles.items():
            context[PLACE[name]] = number
        return float(np.sqrt(warfarin.weekly_dose(PHARMACOGENETIC, context)))

    mixed = 0.3 * root(vkorc1=1) + 0.7 * root(vkorc1=2)
    assert abs(root(vkorc1=1.7) - mixed) < 1e-12
    corners = [[root(cyp2c9_2=two, cyp2c9_3=three) for three in (0, 1)] for two in (0, 1)]
    expected = np.array([0.6, 0.4]) @ np.array(corners) @ np.array([0.9, 0.1])
    assert abs(root(cyp2c9_2=0.4, cyp2c9_3=0.1) - expected) < 1e-12
    assert root(vkorc1=-0.2) == root(vkorc1=0)


def test_errors_are_as_stated() -> None:
    people, n = made(40_000, gaps=0.1), 40_000
    seen = Errors(reported=2.0, miscalled=0.1, lost=0.3).noisy(people.contexts, np.random.default_rng(1))
    off = seen - people.contexts
    for name, mean, spread in (("height", 2.0, 6.0), ("weight", -2.0, 8.0)):
        error = off[:, PLACE[name]][~np.isnan(off[:, PLACE[name]])]
        assert abs(error.mean() - mean) < 5 * spread / np.sqrt(len(error))  # 5 standard errors here and below
        assert abs(error.std() - spread) < 5 * spread / np.sqrt(2 * len(error))
        assert abs(np.isnan(seen[:, PLACE[name]]).mean() - 0.37) < 5 * np.sqrt(0.37 * 0.63 / n)
    calls = off[:, PLACE["vkorc1"]][~np.isnan(off[:, PLACE["vkorc1"]])]
    assert {*np.unique(calls)} == {-1.0, 0.0, 1.0}
    assert abs((calls != 0).mean() - 0.1) < 5 * np.sqrt(0.09 / len(calls))
    alleles = seen[:, PLACE["vkorc1"]]
    assert [float(np.nanmin(alleles)), float(np.nanmax(alleles))] == [0, 2]
    untouched = [PLACE[name] for name in ("age", "male", "asian", "black", "amiodarone", "inducer")]
    np.testing.assert_array_equal(seen[:, untouched], people.contexts[:, untouched])


def test_a_lost_test_takes_both_its_numbers_and_none_is_the_record() -> None:
    people = made(500)
    seen = Errors(lost=0.5).noisy(people.contexts, np.random.default_rng(2))
    gone = np.isnan(seen)
    np.testing.assert_array_equal(gone[:, PLACE["cyp2c9_2"]], gone[:, PLACE["cyp2c9_3"]])
    assert (gone[:, PLACE["height"]] != gone[:, PLACE["weight"]]).any()
    np.testing.assert_array_equal(Errors().noisy(people.contexts, np.random.default_rng(2)), people.contexts)


@pytest.mark.parametrize(("name", "value"), [("reported", -1.0), ("miscalled", 0.6), ("lost", 1.0)])
def test_bad_errors_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"^{name}: "):
        Errors(**{name: value})


def rows_with_gaps(n: int) -> Array:
    rng = np.random.default_rng(8)
    root = np.array([[2.0, 0.0, 0.0], [-1.5, 0.7, 0.0], [0.3, 0.2, 0.4]])
    rows = np.array([5.0, -3.0, 1.0]) + rng.standard_normal((n, 3)) @ root.T
    rows[rng.random((n, 3)) < 0.3] = np.nan
    return rows[~np.isnan(rows).all(1)]


def test_moments_with_gaps_are_those_of_the_greatest_likelihood() -> None:
    rows = rows_with_gaps(100)

    def likelihood(mean: Array, cov: Array) -> float:
        """Row by row, of what is there of it."""
        seen = [(row[known], known) for row in rows for known in [~np.isnan(row)]]
        return sum(multivariate_normal(mean[k], cov[np.ix_(k, k)]).logpdf(x) for x, k in seen)

    mean, cov = moments(rows, steps=300)
    best, step = likelihood(mean, cov), 0.01
    for i in range(3):
        moved = mean + step * np.sqrt(cov[i, i]) * np.eye(3)[i]
        assert likelihood(moved, cov) < best
        assert likelihood(2 * mean - moved, cov) < best
        for j in range(i + 1):
            bump = np.zeros((3, 3))
            bump[i, j] = bump[j, i] = step * np.sqrt(cov[i, i] * cov[j, j])
            assert likelihood(mean, cov + bump) < best
            assert likelihood(mean, cov - bump) < best


def test_moments_without_gaps_are_the_usual_ones() -> None:
    rows = rows_with_gaps(400)
    whole = rows[~np.isnan(rows).any(1)]
    mean, cov = moments(whole)
    np.testing.assert_allclose(mean, whole.mean(0), rtol=1e-9)
    np.testing.assert_allclose(cov, np.cov(whole.T, ddof=0), rtol=1e-4, atol=1e-6)


def test_what_is_told_undoes_the_channel() -> None:
    people = made(6000, gaps=0.05)
    seen = Errors(reported=1.5, miscalled=0.2).noisy(people.contexts, np.random.default_rng(4))
    found = told(people.contexts, seen)
    off = found.record.outside(found.noisy.inside(seen)) - people.contexts
    sizes = found.record.scale
    for name in ("height", "vkorc1"):
        error, true = off[:, PLACE[name]], people.contexts[:, PLACE[name]]
        known = ~np.isnan(error)
        # The error of a line turned around has no mean, and nothing to do with the truth.
        assert abs(error[known].mean()) < 1e-9 * sizes[PLACE[name]]
        assert abs(np.corrcoef(error[known], true[known])[0, 1]) < 1e-9
        told_sd = np.sqrt(found.noise_cov[PLACE[name], PLACE[name]]) * sizes[PLACE[name]]
        assert abs(error[known].std() / told_sd - 1) < 1e-6
    assert np.diag(found.noise_cov)[PLACE["age"]] < 1e-5


def test_denoised_contexts_are_conditional_means() -> None:
    people = made(900, gaps=0.2)
    seen = Errors(reported=2.0, miscalled=0.1).noisy(people.contexts, np.random.default_rng(4))
    found = told(people.contexts, seen)
    inside, filled = found.noisy.inside(seen), found.denoised(seen)
    for row in range(5):
        known = np.flatnonzero(~np.isnan(inside[row]))
        cov = (found.context_cov + found.noise_cov)[np.ix_(known, known)]
        away = np.linalg.solve(cov, inside[row, known] - found.context_mean[known])
        expected = found.context_mean + found.context_cov[:, known] @ away
        np.testing.assert_allclose(filled[row], expected, atol=1e-8)


def test_a_line_absorbs_what_is_affine() -> None:
    """Where nothing is missing, denoising is one affine map for all: the best lines choose the same arms."""
    found = played(made(1200), Errors(reported=3.0, miscalled=0.2))
    np.testing.assert_array_equal(POLICIES["line-naive"](found), POLICIES["line-denoised"](found))
    gappy = played(made(1200), Errors(lost=0.4))
    assert (POLICIES["line-naive"](gappy) != POLICIES["line-denoised"](gappy)).mean() > 0.02


def test_without_errors_the_noisy_line_is_that_of_the_record() -> None:
    found = played(made(1200), Errors())
    np.testing.assert_array_equal(POLICIES["line-naive"](found), POLICIES["line-record"](found))


def test_the_best_line_is_the_least_squares_fit() -> None:
    found = played(made(800), Errors(), reward="graded")
    contexts = found.record[1]
    design = np.column_stack([np.ones(len(contexts)), contexts])
    expected = design @ np.linalg.lstsq(design, found.paid[1], rcond=None)[0]
    np.testing.assert_array_equal(POLICIES["line-record"](found)[1], expected.argmax(1))


@pytest.mark.slow
def test_agents_learn_and_are_shown_the_arm_given_alone() -> None:
    """An arm that is never given cannot matter: its rewards are changed, and nothing else is."""
    found = played(made(1000), Errors(lost=0.2))
    for name in ("naive", "denoised"):
        arms = POLICIES[name](found)
        given = np.eye(3, dtype=bool)[arms]
        other = found._replace(paid=np.where(given, found.paid, 55.0))
        np.testing.assert_array_equal(POLICIES[name](other), arms)
        wrong = doses.mistakes(found.dose, arms).wrong
        chance = doses.mistakes(found.dose, POLICIES["medium"](found)).wrong.mean()
        assert wrong[:, -300:].mean() < chance - 0.05


def test_complete_cases_are_those_it_decides_for_and_learns_from() -> None:
    found = played(made(700), Errors(lost=0.2))
    lacks = np.asarray(np.isnan(found.noisy).any(-1))
    arms = POLICIES["complete"](found)
    assert (arms[lacks] == doses.MEDIUM).all()
    assert (arms[~lacks] != doses.MEDIUM).any()
    other = found._replace(paid=np.where(lacks[..., None], -9.0, found.paid))
    np.testing.assert_array_equal(POLICIES["complete"](other), arms)
    whole = played(made(500), Errors())
    np.testing.assert_array_equal(POLICIES["complete"](whole), POLICIES["naive"](whole))


def test_orders_are_paired_and_seeded() -> None:
    people = made(600)
    few, more = (played(people, Errors(lost=0.3), orders=orders) for orders in (2, 3))
    np.testing.assert_array_equal(few.noisy, more.noisy[:2])
    assert not np.array_equal(few.dose[0], few.dose[1])
    assert sorted(np.concat([few.dose[0], few.dose[1]])) != sorted(
        2 * few.dose[0].tolist()
    )  # others set apart
    asked: dict[str, Any] = {"policies": ["naive", "medium"], "orders": 2, "apart": 300}
    once, again, other = (warfarin.compare(people, seed=seed, **asked) for seed in (1, 1, 2))
    assert np.array_equal(once["naive"].wrong, again["naive"].wrong)
    assert not np.array_equal(once["naive"].wrong, other["naive"].wrong)


def test_those_set_apart_tell_of_the_channel() -> None:
    people = made(1600)
    found = played(people, Errors(reported=2.0), apart=1500)
    assert found.noisy.shape == (3, 100, len(COORDINATES))
    place = PLACE["height"]
    size = 6.0 / people.contexts[:, place].std()
    # 1,500 pairs: 5 standard errors of a deviation.
    assert (np.abs(np.sqrt(found.told.noise_cov[:, place, place]) / size - 1) < 5 / np.sqrt(3000)).all()


def test_outcomes_are_shares_of_patients() -> None:
    found = played(made(700), Errors())._replace(dose=np.tile([10.0, 30.0, 60.0, 60.0], (3, 100)))
    found = found._replace(paid=doses.rewards(found.dose))
    result = warfarin.comparing.outcome(found, np.tile([2, 1, 1, 0], (3, 100)))
    assert [part.tolist() for part in result[:3]] == [[0.75] * 3, [0.5] * 3, [-0.75] * 3]
    mean, half = warfarin.interval(np.array([1.0, 2.0, 3.0, 6.0]))
    assert (mean, round(half, 6)) == (3.0, round(1.96 * np.sqrt(14 / 3) / 2, 6))


@pytest.mark.parametrize(
    ("name", "value"),
    [("orders", 1), ("apart", 50), ("apart", 600), ("policies", ["best"]), ("reward", "sharp")],
)
def test_bad_comparisons_are_refused(name: str, value: Any) -> None:
    asked: dict[str, Any] = {"orders": 2, "apart": 300, "policies": ["medium"]}
    with pytest.raises(InputError, match=f"^{name}: "):
        warfarin.compare(made(600), **asked | {name: value})


@pytest.mark.slow
def test_gaps_are_worth_filling_and_errors_not(data: Path) -> None:
    """What the page says, of what needs no learning."""
    names = ["pharmacogenetic", "pharmacogenetic-denoised", "line-naive", "line-denoised"]
    asked: dict[str, Any] = {"orders": 6, "policies": names}
    lost = warfarin.compare(warfarin.patients(), Errors(lost=0.5), **asked)
    for one, other in (("pharmacogenetic", "pharmacogenetic-denoised"), ("line-naive", "line-denoised")):
        saved = warfarin.interval(lost[one].less(lost[other]).wrong)
        assert saved.mean > 1.5 * saved.half  # 3 standard errors; 5 or more are expected
    own = warfarin.compare(warfarin.patients(), **asked)
    assert abs(own["line-naive"].less(own["line-denoised"]).wrong.mean()) < 0.002


@pytest.mark.slow
def test_denoising_helps_an_agent_where_values_are_lost(data: Path) -> None:
    asked: dict[str, Any] = {
        "orders": 10,
        "apart": 2400,
        "policies": ["naive", "denoised"],
        "reward": "graded",
    }
    found = warfarin.compare(warfarin.patients(), Errors(lost=0.3), **asked)
    saved = found["denoised"].less(found["naive"]).reward
    # With 60 orders it was 10 standard errors, so about 4 with 10; asked for are 2 (2e-2 without any gain).
    assert saved.mean() > 2 * saved.std(ddof=1) / np.sqrt(len(saved))


@pytest.mark.parametrize("floor", [1.0, 0.2])
def test_a_log_says_with_which_probability(floor: float) -> None:
    people, errors = made(6000, gaps=0.1), Errors(reported=1.0, lost=0.2)
    found = warfarin.log(people, errors, floor=floor, seed=4)
    assert found.probabilities is not None
    np.testing.assert_allclose(found.probabilities.sum(1), 1)
    np.testing.assert_allclose(found.probabilities.min(1), floor / 3)
    np.testing.assert_array_equal(found.probability, found.probabilities[np.arange(found.rounds), found.arm])
    drawn, expected = np.bincount(found.arm, minlength=3), found.probabilities.sum(0)
    spread = (found.probabilities * (1 - found.probabilities)).sum(0)
    assert (np.abs(drawn - expected) < 4 * np.sqrt(spread)).all()  # fails by chance with 2e-4
    usual = doses.bucket(warfarin.weekly_dose(CLINICAL, found.noisy))
    assert floor == 1 or (found.probabilities.argmax(1) == usual).all()


def test_a_log_weighs_out_to_the_value_of_any_policy() -> None:
    """The right dose of all is known, so what each fixed arm would have earned is, too."""
    people = made(20_000)
    found = warfarin.log(people, floor=0.5, reward="graded", seed=9)
    for arm in range(3):
        weighed = np.where(found.arm == arm, found.reward / found.probability, 0.0)
        value = doses.rewards(people.dose, "graded")[:, arm].mean()
        assert abs(weighed.mean() - value) < 4 * weighed.std() / np.sqrt(len(weighed))  # 2e-4 in all
    assert found.true is not None
    assert np.array_equal(found.true, found.noisy)
    assert not np.array_equal(found.arm, warfarin.log(people, floor=0.5, seed=10).arm)


@pytest.mark.parametrize("floor", [0.0, 1.5])
def test_bad_floors_are_refused(floor: float) -> None:
    with pytest.raises(InputError, match=r"^floor: "):
        warfarin.log(made(50), floor=floor)


def test_the_catalogue_has_the_agents() -> None:
    naive, denoised = named([policies.NAIVE, policies.DENOISED])
    assert type(naive.learner) is type(denoised.learner)
    assert type(naive.chooser) is type(denoised.chooser)
    assert denoised.takes_gaps
    assert not naive.takes_gaps
