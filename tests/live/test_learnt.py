"""What a problem says it has learnt: its numbers against formulas of their own, its words as written out."""

from math import comb
from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from unfog.live.words import in_words, write
from unfog.maths.statistics import binomial_p_value

MEAN, CONTEXT = np.array([7000.0, 7.0]), np.array([[4e6, 800.0], [800.0, 1.0]])
NOISE, BIAS = np.array([1.5e6, 0.5]), np.array([9e5, 0.2])
CHANNEL = {"context_mean": MEAN, "context_cov": CONTEXT, "noise_cov": NOISE, "bias_cov": BIAS}
REACH = 1.6448536269514722  # of 90 % intervals


def played(number: int, units: int = 8, **terms: Any) -> unfog.Bandit:
    """Decisions on steps that phones read 800 too low, give or take 700; calls lose with every step."""
    rng = np.random.default_rng(2)
    context = {
        "steps": 1200,
        "mood": 0.6,
        "hour": 0,
        "day": unfog.Category(["am", "pm"]),
        "clock": unfog.Cycle(24),
    }
    arms = ["send", "wait", "call"]
    usual: dict[str, Any] = {"arms": arms, "context": context, "seed": 1, "epsilon": 0.1}
    bandit = unfog.Bandit(**usual | terms)
    phones = rng.normal(-800, 700, units)
    for i in range(number):
        steps, mood, hour = rng.normal(7000, 1500), rng.normal(3, 1), rng.uniform(8, 22)
        row = {
            "steps": steps + phones[i % units] + rng.normal(0, 1200),
            "mood": None if i % 5 == 0 else mood + rng.normal(0, 0.6),
            "hour": hour,
            "day": "am" if hour < 12 else "pm",
            "clock": hour,
        }
        d = bandit.decide({name: row[name] for name in bandit.terms.coordinates}, unit=f"phone {i % units}")
        effect = {"send": 50.0, "wait": 0.0, "call": -120.0}[d.arm]
        bandit.reward(d.id, 300 + effect * (steps - 7000) / 1500 + rng.normal(0, 100))
        if i % 3 == 0:
            bandit.reveal(d.id, {"steps": steps})
    return bandit


def stated(**terms: Any) -> unfog.Bandit:
    """An agent that is told its channel, after 200 rewards; half of them near 1 for send, 0 for wait."""
    rng = np.random.default_rng(4)
    context = ["steps", "sleep"]
    usual: dict[str, Any] = {"arms": ["send", "wait"], "context": context, "channel": CHANNEL, "seed": 3}
    bandit = unfog.Bandit(**usual | terms)
    for i in range(200):
        reading = rng.multivariate_normal(MEAN, CONTEXT + np.diag(NOISE))
        d = bandit.decide(reading, unit="ann")
        score = (reading[0] - 7000) / 3000 if d.arm == "send" else 0.3
        bandit.reward(
            d.id, float(rng.random() < 0.5 + score / 2) if bandit.terms.is_binary else score + i % 2
        )
    return bandit


def test_arms_in_an_average_context_and_what_exploration_costs_follow_from_the_belief() -> None:
    """By the belief in the caller's units, and a million draws of denoised contexts."""
    bandit = stated(epsilon=0.1, agent="unfog")
    learnt, belief = bandit.describe()["learnt"], bandit.belief("ann")
    theta, sd = belief["theta"].values, belief["theta_sd"].values
    cov = CONTEXT @ np.linalg.inv(CONTEXT + np.diag(NOISE)) @ CONTEXT
    contexts = np.random.default_rng(0).multivariate_normal(MEAN, cov, 1_000_000)
    scores = theta[:, 0] + contexts @ theta[:, 1:].T
    loss = (scores.max(1) - scores.mean(1)).mean()
    assert learnt["exploration"]["loss"] == pytest.approx(loss, rel=0.05)
    assert learnt["exploration"]["cost"] == pytest.approx(0.1 * learnt["exploration"]["loss"])
    standard_sd = belief["theta_standard_sd"].values
    for i, arm in enumerate(bandit.terms.arms):
        about = learnt["arms"][arm]
        mean = theta[i] @ [1, *MEAN]
        assert [about[x] for x in ("mean", "low", "high")] == pytest.approx(
            [mean, mean - REACH * standard_sd[i, 0], mean + REACH * standard_sd[i, 0]], rel=1e-9
        )
        for j, name in enumerate(bandit.terms.context, 1):
            effect, unit = about["effects"][name], CONTEXT[j - 1, j - 1] ** 0.5
            ends = theta[i, j] * unit, (theta[i, j] - REACH * sd[i, j]) * unit
            assert (effect["mean"], effect["low"]) == pytest.approx(ends, rel=1e-9)


def test_an_agent_that_learns_all_says_what_it_believes_over_its_candidates() -> None:
    bandit = played(400)
    learnt, belief = bandit.describe()["learnt"], bandit.belief("phone 1")
    steps = learnt["context"]["steps"]
    found = [steps[name] for name in ("mean", "sd", "bias", "bias_sd")]
    assert found == pytest.approx([7000, 1500, -800, 700], rel=0.35)
    assert (steps["noise_sd"], steps["units_revealed"], steps["missing"]) == (1200, 8, 0)
    assert learnt["context"]["mood"]["missing"] == pytest.approx(0.2)
    is_exact = {name: one["exact"] for name, one in learnt["context"].items()}
    assert is_exact == {"steps": False, "mood": False, "hour": True, "day": True, "clock": True}
    assert sum(learnt["context"]["day"]["levels"].values()) == pytest.approx(1)
    assert learnt["candidates"] == dict(
        zip(belief["hypothesis"].values, belief["weight"].values, strict=True)
    )
    assert learnt["rewards"]["noise_sd"] == pytest.approx(100, rel=0.25)
    assert learnt["wanted"] is None
    call = learnt["arms"]["call"]["effects"]
    assert call["steps"]["high"] < 0
    days = belief["theta"].sel(arm="call", term=["day=am", "day=pm"]).values
    shares = np.array([*learnt["context"]["day"]["levels"].values()])
    contrast = days - days @ shares
    assert [call[f"day={x}"]["mean"] for x in ("am", "pm")] == pytest.approx(contrast, rel=0.15, abs=1)
    wave = belief["theta"].sel(arm="call", term=["clock.cos", "clock.sin"]).values
    assert call["clock"]["mean"] == pytest.approx(np.hypot(*wave), rel=1e-6)
    assert call["clock"]["highest"] == pytest.approx(np.arctan2(wave[1], wave[0]) / 2 / np.pi % 1 * 24)
    theta = belief["theta"].values
    events = [one["context"].values() for one in bandit.events() if one["kind"] == "decide"]
    rows = np.array([[3.0 if x is None else x for x in one] for one in events])
    scores = theta[:, 0] + rows @ theta[:, 1:].T  # at readings: about what it sees
    assert learnt["exploration"]["loss"] == pytest.approx((scores.max(1) - scores.mean(1)).mean(), rel=0.4)


def test_the_bias_of_a_phone_and_the_spread_of_readings_are_shown() -> None:
    bandit = played(400)
    belief, diagnostics, history = bandit.belief("phone 1"), bandit.diagnostics(), bandit.history("phone 1")
    phones = np.random.default_rng(2).normal(-800, 700, 8)
    away = belief["bias"].sel(coordinate="steps").item() - phones[1]
    assert abs(away) < 3 * belief["bias_sd"].sel(coordinate="steps").item()
    assert belief["bias_sd"].sel(coordinate="hour").item() == 0
    assert belief.attrs["bias_label"] == "unit phone 1"
    assert history["tracks"]["bias"]["steps"][-1] == pytest.approx(belief["bias"].values[0])
    squares = diagnostics["z_mean_square"].sel(coordinate=["steps", "mood", "hour"]).values
    assert squares == pytest.approx(1, abs=0.25)
    assert (diagnostics.attrs["alarm"], diagnostics.attrs["alarmed"]) == ([], 0)
    assert np.isnan(diagnostics["e_value"]).all()  # moments that are learnt are not tested
    assert bandit.replay(verify=True).same


def test_an_exact_coordinate_stays_as_it_was_read_whatever_its_mean_is_said_to_be() -> None:
    readings = (
        unfog.Reading(0, mean=5.0),
        unfog.Reading(0, mean=5.0, sd=2.0),
        unfog.Reading(1e-9, 0.0, mean=5.0),
    )
    for reading in readings:
        bandit = played(0, context={"x": reading})
        assert [bandit.decide({"x": 9.0}, unit=i).denoised["x"] for i in range(6)] == pytest.approx([9.0] * 6)


def test_before_there_are_rewards_enough_all_is_provisional() -> None:
    bandit = played(3)
    lines = str(bandit).splitlines()
    assert lines[:2] == [
        "bandit (agent hedged): 3 decisions for 3 units, 3 rewards learnt, 1 true context shown",
        "provisional: arms are drawn by lot until 5 more rewards have come",
    ]
    assert "offsets of units: nothing is known so far of whose they are" in lines
    assert not any("exploration" in line for line in lines)
    assert "  mood: noise 0.6, no reading so far" in str(played(0)).splitlines()


def test_rewards_of_0_and_1_are_told_as_probabilities() -> None:
    for agent in ("unfog", "hedged"):
        learnt = stated(agent=agent, rewards="binary", channel=CHANNEL).describe()["learnt"]
        about = learnt["arms"]["send"]
        assert 0 <= about["low"] < about["mean"] < about["high"] <= 1
        assert abs(about["effects"]["steps"]["mean"]) < 1
        assert 0 < learnt["exploration"]["loss"] < 1
        assert learnt["coverage"] is None


def test_what_does_not_look_right_is_said() -> None:
    loud = played(60, context={"steps": 50_000})
    assert "a noise of 50,000 was stated, but readings of one unit do not spread that far" in str(loud)
    quiet = stated(agent="unfog", reward_sd=5.0)
    coverage = quiet.describe()["learnt"]["coverage"]
    assert (coverage["rewards"], coverage["inside"]) == (200, 200)
    assert coverage["p_value"] == pytest.approx(2 * 0.9**200)
    assert str(quiet).splitlines()[-2:] == [
        "what does not look right",
        "  90 % intervals of rewards held 100 % of 200",
    ]


def test_every_kind_of_agent_says_what_it_can() -> None:
    ordinary = str(stated(agent="naive", channel=None))
    assert "  steps: exact\n" in ordinary
    assert "an arm brings, on average of its own rewards (90 % intervals)" in ordinary
    assert "an ordinary contextual bandit" in ordinary
    late = str(stated(agent="late"))
    assert "steps: stated to be usually 7,000, with a spread of 2,000; noise 1,225; the device reads" in late
    vectors = unfog.Bandit(
        arms={"a": [1.0, 0.0], "b": [0.0, 1.0]}, context=["x", "y"], features="product", seed=1
    )
    assert "  a: unknown; chosen 0 times" in str(vectors)


def test_the_text_as_it_is_written_out() -> None:
    arm = {"chosen": 70, "rewards": 60, "at_average": True}
    effects = {
        "steps": {"mean": 41.26, "low": 20.0, "high": 62.0},
        "mood": {"mean": 5.0, "low": -5.0, "high": 15.0},
        "clock": {"mean": 20.0, "low": 5.0, "high": 35.0, "highest": 9.5},
        "day=pm": {"mean": -30.0, "low": -55.0, "high": -5.0},
    }
    number = {"kind": "number", "exact": False, "stated": False}
    steps = {
        "mean": 6912.3,
        "sd": 1500.0,
        "between_sd": 402.0,
        "bias": -310.0,
        "bias_sd": 92.0,
        "noise_sd": 1200.0,
    }
    exact = {"exact": True, "stated": False, "missing": 0.0}
    learnt = {
        "wanted": None, "revealed": 1, "late": 0, "expired": 2, "cancelled": 0, "late_contexts": 0,
        "dropped": 0,
        "context": {
            "steps": {**number, **steps, "units_revealed": 4.0, "noise_is_cut": 1.0, "missing": 0.2},
            "day": {"kind": "category", **exact, "levels": {"am": 0.25, "pm": 0.75}},
            "clock": {"kind": "cycle", **exact, "period": 24.0},
        },
        "candidates": {"read": 0.02, "device": 0.97, "person": 0.004, "both": 0.006},
        "arms": {
            "send": {**arm, "mean": 320.4, "low": 300.1, "high": 340.7, "effects": effects},
            "wait": {**arm, "chosen": 1, "mean": None, "low": None, "high": None, "effects": {}},
        },
        "rewards": {"mean": 301.2, "sd": 250.0, "noise_sd": 243.4},
        "exploration": {"loss": 40.0, "cost": 0.8},
        "coverage": {"level": 0.9, "rewards": 1000, "inside": 800, "p_value": 1e-9},
    }  # fmt: skip
    description = {
        "name": "walks", "agent": "hedged", "units_total": 12, "decisions": 1200, "rewards": 1, "pending": 3,
        "pinned": None, "epsilon": 0.02, "note": "A note.", "alarm": [], "learnt": learnt,
    }  # fmt: skip
    assert in_words(description) == "\n".join(
        [
            "walks (agent hedged): 1,200 decisions for 12 units, 1 reward learnt, "
            "3 decisions waiting for a reward, 1 true context shown, 2 decisions without a reward in time",
            "readings",
            "  steps: usually 6,910; differs from time to time by 1,500; people differ by 402; noise 1,200; "
            "devices read 310 too low on average, by the truths of 4 units; devices differ by 92.0; "
            "missing in 20 %",
            "  day: exact; pm 75 %, am 25 %",
            "  clock: exact; a cycle of 24",
            "offsets of units are the devices': 97 %; left as they are: 2 %",
            "an arm brings, in an average context (90 % intervals)",
            "  send: 320 (300 to 341); chosen 70 times; +41.3 for one sd of steps; -30.0 where day=pm; "
            "up to 20.0 more at clock 9.50",
            "  wait: unknown; chosen once",
            "rewards are about 301, and spread by 250, with a noise of 243 once context and arm are known",
            "exploration: 2 % of decisions are drawn by lot, which costs about 0.800 a decision",
            "what does not look right",
            "  90 % intervals of rewards held 80 % of 1,000",
            "  steps: a noise of 1,200 was stated, but readings of one unit do not spread that far: "
            "less is assumed",
            "note: A note.",
        ]
    )


@each("number, size, text", [
    (0.0, None, "0"), (-0.012345, None, "-0.0123"), (1234567.0, None, "1,230,000"), (7003.25, 2.0, "7,003.2"),
    (301.0, 243.0, "301"), (1e-9, None, "1e-09"), (None, None, "unknown"),
])  # fmt: skip
def test_numbers_have_three_digits_or_as_many_as_count(
    number: float | None, size: float | None, text: str
) -> None:
    assert write(number, size) == text


def test_p_values_are_those_of_the_binomial() -> None:
    tail = sum(comb(40, k) * 0.9**k * 0.1 ** (40 - k) for k in range(31))
    assert binomial_p_value(30, 40, 0.9) == pytest.approx(2 * tail)
    assert binomial_p_value(36, 40, 0.9) == 1
    tail = sum(comb(1001, k) * 9**k for k in range(881)) / 10**1001
    assert binomial_p_value(880, 1001, 0.9) == pytest.approx(2 * tail, rel=0.15)  # by the normal law
