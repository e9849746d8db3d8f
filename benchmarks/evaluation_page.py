"""The measured parts of docs/notebook/evaluation.md, from benchmarks/results/evaluation.json alone.

    python benchmarks/evaluation_page.py    # writes what stands between markers of the page

A part stands between `<!-- measured: NAME -->` and `<!-- end -->`; what is around it is written by hand.
`benchmarks/evaluation.py` measures.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.wording import RESULTS, ROOT, Row, said, short, table

PAGE = ROOT / "docs" / "notebook" / "evaluation.md"
GUIDE = ROOT / "docs" / "guide" / "evaluation.md"  # repeats a few of the numbers
FOUND = RESULTS / "evaluation.json"
NOISE = {
    "ips": "`ips`, probabilities given noisy contexts",
    "dm_slopes": "direct method on readings, no intercept",
    "dm": "direct method on readings, with intercept",
    "dr": "`dr` with the latter",
    "dm_denoised": "direct method through the denoiser, no intercept",
    "dm_mixed": "direct method fitted on true contexts, **fed with readings**",
    "dm_true": "direct method fitted on true contexts, fed with true ones",
}
SETTINGS = {
    "": "as above",
    ", 10 % revealed": "one true context in ten is known",
    ", 50 % revealed": "one true context in two is known",
    ", 20 % lost": "one coordinate in five is lost",
    ", 100 devices": "100 devices, each with a bias of its own",
    ", mean four times as far": "the mean of contexts four times as far from zero",
}
MAPS = {"per_arm": "an intercept and slopes for each arm", "product": "a * c, no intercept"}
CURVES = {
    "model": "the one that the model says",
    "linear": "a line",
    "quadratic": "a quadratic",
    "cubic": "a cubic",
}


def off(found: Row) -> str:
    """A bias with its standard error."""
    return f"{found['bias']:+.3f} ({found['bias_se']:.3f})"


def noise(found: Row) -> str:
    """What noise does to each way of valuing."""
    part = found["noise"]
    rows = [[text, off(part[name]), f"{part[name]['rmse']:.3f}"] for name, text in NOISE.items()]
    mistake = part["dm_mixed"]["bias"]
    below = said(f"""{part["logs"]:,} logs of {part["rounds"]:,} rounds, five arms, three coordinates;
        contexts have mean zero, noise is as large as they vary, its bias is (.8, -.5, .3). Each arm pays
        slopes times the context. The policy takes the best arm for the denoised context. Its true value is
        {part["truth"]:.3f}, and the mistake promises {mistake:.3f} more. Standard errors of a bias are in
        brackets.""")
    return f"{table(['estimator', 'bias', 'root mean squared error'], rows)}\n\n{below}"


def estimates(found: Row) -> str:
    """Bias, error and coverage of every estimator, for both kinds of loggers."""
    part = found["estimates"]
    head = ["estimator", "fixed: bias", "error", "hold, %", "learning: bias", "error", "hold, %"]

    def cells(one: Row) -> list[str]:
        return [off(one), f"{one['rmse']:.3f}", f"{100 * one['coverage']:.1f}"]

    kinds = [part[kind]["adaptive"] for kind in ("fixed", "learning")]
    rows = [[f"`{name}`", *(cell for kind in kinds for cell in cells(kind[name]))] for name in kinds[0]]
    fixed, learning = (100 * part[kind]["plain"]["dr"]["coverage"] for kind in ("fixed", "learning"))
    below = said(f"""{part["fixed"]["logs"]:,} logs of each logger; the true value is
        {part["fixed"]["truth"]:.3f}. The error is the root mean squared one. "Hold" is how often 95 %
        intervals do, adaptive ones; plain ones of `dr` hold in {fixed:.1f} % and {learning:.1f} %.""")
    return f"{table(head, rows)}\n\n{below}"


def obp(found: Row) -> str:
    """Doubly robust, against obp's."""
    rows, same = list[list[str]](), 0.0
    for kind in ("fixed", "learning"):
        part = found["estimates"][kind]["obp"]
        one = part["adaptive_against"]["dr"]
        less = f"{100 * one['less']:.0f} % ± {100 * one['less_se']:.0f}"
        rows.append([kind, f"{one['rmse_ours']:.3f}", f"{one['rmse_theirs']:.3f}", less])
        same = max(same, *part["largest_difference_of_same_formula"].values())
    below = said(f"""Root mean squared errors; ± is the standard error, paired by log. obp's model is its
        `RegressionModel` over Ridge. It sees the reading and which arm it was, so it has one set of slopes
        for all arms. Ours has slopes for each arm, and that is what helps here, not the denoiser. Given the
        same model, and plain intervals, the values differ by {same:.0e} at most.""")
    return f"{table(['logger', '`dr`', 'that of obp', 'less'], rows)}\n\n{below}"


def models(found: Row) -> str:
    """Through the denoiser, against raw readings; bold what is more than two standard errors from nothing."""
    part, head = found["models"], ["log"]
    for text in MAPS.values():
        head += [f"`dr`, {text}", "`dm`"]

    def less(one: Row) -> str:
        text = f"{100 * one['less'] + 0.0:.1f} ± {100 * one['less_se']:.1f}".replace("-0.0 ", "0.0 ")
        return f"**{text}**" if abs(one["less"]) > max(2 * one["less_se"], 5e-4) else text

    rows = [
        [text, *(less(part[name + key][by]) for name in MAPS for by in ("dr", "dm"))]
        for key, text in SETTINGS.items()
    ]
    number = part["per_arm"]["logs"]
    below = said(f"""Percent less root mean squared error than with a model that takes readings for the truth,
        ± the standard error; {number} logs of the fixed logger each. Bold: more than two standard errors
        from nothing.""")
    return f"{table(head, rows)}\n\n{below}"


def speed(found: Row) -> str:
    """Seconds of a large log."""
    part = found["speed"]
    return said(f"""**Speed.** {part["rounds"]:,} rounds, {part["policies"]} policies, three estimators:
        {short(part["s"], 2)} s from a log in memory to the answer ({short(part["cpu_s"], 2)} s of processor
        time; {part["machine"]["cores"]} cores, load average {part["machine"]["load"]:.1f} before the
        run).""")


def simex(found: Row) -> str:
    """What each curve says of a perfect sensor."""
    part = found["simex"]
    rows = [
        [text, *(f"{part[name][key]:.3f}" for key in ("mean", "sd", "stated_se"))]
        for name, text in CURVES.items()
    ]
    above = said(f"""In {part["logs"]} logs of {part["rounds"]:,} rounds, with noise half as large as contexts
        vary, the sensor as it is earned {part["truth"]["as it is"]:.3f}, and a perfect one
        {part["truth"]["perfect"]:.3f}. Curves said of the perfect one:""")
    return f"{above}\n\n{table(['curve', 'mean', 'error between logs', 'error as stated'], rows)}"


PARTS: dict[str, Callable[[Row], str]] = {
    "noise": noise,
    "estimates": estimates,
    "obp": obp,
    "models": models,
    "speed": speed,
    "simex": simex,
}


def refreshed(text: str, found: Row) -> str:
    """The page with every measured part as the results have it."""

    def part(match: re.Match[str]) -> str:
        return f"{match[1]}\n\n{PARTS[match[2]](found)}\n\n{match[3]}"

    return re.sub(r"(<!-- measured: (\w+) -->)\n.*?\n(<!-- end -->)", part, text, flags=re.S)


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text("utf-8"), json.loads(FOUND.read_text("utf-8"))), "utf-8")
