"""What stands for what in the formulas of agents; a part says in its class what letters of its own stand for.

A line of a formula like `v: the variance of rewards;   s, t: two scales` explains, all others are formulas.
"""

import re
from collections.abc import Iterable

SYMBOLS = {
    "t": "the number of the round",
    "c_t": "the true context of round t",
    "chat_t": "the reading of round t",
    "gamma": "the bias",
    "g": "the mean of the bias, as it is believed to be",
    "S": "the covariance of the bias, as it is believed to be",
    "Sigma_gamma": "the covariance of the bias to begin with",
    "mu_c": "the mean of contexts",
    "Sigma_c": "the covariance of contexts",
    "Sigma_n": "the covariance of the noise",
    "theta": "the reward parameter",
    "prior_mean": "the mean of theta to begin with",
    "prior_cov": "the covariance of theta to begin with",
    "a": "an arm",
    "phi": "the features of an arm in a context",
    "psi": "the features expected of an arm, given the reading",
    "x": "the features of the arm that was played, as far as they are known",
    "r": "a reward",
    "sigma": "the deviation of rewards from their mean",
    "N": "N(m, V) is the Gaussian law of mean m and covariance V",
}
TOKEN = re.compile(r"[A-Za-z]+(?:_(?:\{[^}]*\}|[A-Za-z]+))?")
EXPLAINS = re.compile(r"([^\s,:]+(?:, [^\s,:]+)*): (.+)")
BETWEEN = re.compile(r";\s{2,}")


def explained(lines: Iterable[str]) -> dict[str, str]:
    """The letters that these lines say in words what they stand for."""
    found = dict[str, str]()
    for line in lines:
        for piece in BETWEEN.split(line):
            told = EXPLAINS.fullmatch(piece)
            if told is not None:
                found[told[1]] = told[2]
    return found


def explains(line: str) -> bool:
    """Whether a line says in words what letters stand for."""
    return all(EXPLAINS.fullmatch(piece) for piece in BETWEEN.split(line))


def used(texts: Iterable[str]) -> dict[str, str]:
    """Those of the common letters that occur in these formulas."""
    tokens = {token for text in texts for token in TOKEN.findall(text)}
    inside = {piece for token in tokens - {*SYMBOLS} for piece in token.split("_", 1)}
    return {symbol: words for symbol, words in SYMBOLS.items() if symbol in tokens | inside}
