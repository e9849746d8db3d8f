"""Any feature map, its moments by quadrature."""

from collections.abc import Callable
from functools import partial
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from unfog.features.base import Context, Weighed, quadratic_form
from unfog.maths.arrays import Array, Ints, matvec, rowdots, take
from unfog.maths.gaussian import Gaussian, square_root
from unfog.validation import InputError, check_keywords, count

Function: TypeAlias = Callable[[Array, Array], Array]
"""phi: an action (..., p) and a context (..., d), broadcast against each other, to features (..., m)."""

MOST_NODES = 20_000
GROUP = 8  # nodes at which phi is evaluated together
AUTOMATIC_PRODUCT_DIM = 6  # 3^6 = 729 nodes; beyond, the degree-5 rule


def product_rule(dim: int, order: int) -> tuple[Array, Array]:
    """Nodes (n, d) and weights (n,) of the product Gauss-Hermite rule for N(0, I)."""
    points, weights = np.polynomial.hermite_e.hermegauss(order)
    weights = weights / weights.sum()
    nodes = np.array(list(product(points, repeat=dim)))
    return nodes, np.array([np.prod(w) for w in product(weights, repeat=dim)])


def degree5_rule(dim: int) -> tuple[Array, Array]:
    """Nodes (2 d^2 + 1, d) and weights of the symmetric rule of degree 5 for N(0, I)."""
    axis = np.sqrt(dim + 2.0) * np.eye(dim)
    half = axis / np.sqrt(2.0)
    pairs = [
        s * half[i] + t * half[j] for i, j in combinations(range(dim), 2) for s in (1, -1) for t in (1, -1)
    ]
    nodes = np.array([np.zeros(dim), *axis, *(-axis), *pairs])
    centre, single, double = 2 / (dim + 2), (4 - dim) / (2 * (dim + 2) ** 2), 1 / (dim + 2) ** 2
    return nodes, np.array([centre] + [single] * (2 * dim) + [double] * len(pairs))


class QuadratureDesign(NamedTuple):
    """Expected features, and the points that gave them."""

    rows: Array  # (..., K, m)
    function: Function
    actions: Array  # (..., K, p)
    points: Array  # (..., n, d)
    weights: Array  # (n,)

    def scores(self, theta: Array) -> Array:
        """psi(a)'theta of every arm."""
        return rowdots(self.rows, theta)

    def row(self, arm: Ints) -> Array:
        """psi(arm)."""
        return take(self.rows, arm)

    def variances(self, belief: Gaussian) -> Array:
        """Variance of every arm's score under a belief about theta."""
        xp = self.rows.__array_namespace__()
        spread = self.rows @ belief.root
        variances: Array = xp.vecdot(spread, spread)
        return variances

    def covariance(self, arm: Ints) -> Array:
        """Cov(phi(arm, c))."""
        values = self.function(take(self.actions, arm)[..., None, :], self.points)
        centred = values - self.row(arm)[..., None, :]
        return centred.mT @ (self.weights[:, None] * centred)

    def context_variance(self, belief: Gaussian, arm: Ints) -> Array:
        """E[theta'Cov(phi(arm, c))theta]: what not knowing the context adds to a reward's variance."""
        return quadratic_form(belief.mean, belief.root, self.covariance(arm))

    def context_slope(self, theta: Array, arm: Ints) -> Array:
        """Cov(phi(arm, c)) theta: half the gradient of theta'Cov(phi)theta."""
        return matvec(self.covariance(arm), theta)

    def laws(self, theta: Array) -> "QuadratureLaws":
        """The laws of the scores, known at the nodes."""
        return QuadratureLaws(self, theta)


class QuadratureLaws(NamedTuple):
    """Scores at the nodes of the rule."""

    design: QuadratureDesign
    theta: Array  # (..., m)

    def of(self, arm: Ints) -> Weighed:
        """The law of the chosen arm's score."""
        design = self.design
        values = design.function(take(design.actions, arm)[..., None, :], design.points)
        return Weighed(rowdots(values, self.theta), design.weights)


class Quadrature(NamedTuple):
    """The map phi for one set of actions; build it with `quadrature(phi, dim)(actions)`."""

    function: Function
    actions: Array  # (..., K, p)
    nodes: Array  # (n, d)
    weights: Array  # (n,)

    @property
    def size(self) -> int:
        """How many features: m, from phi at one action and the context zero."""
        xp = self.actions.__array_namespace__()
        first = self.actions[..., 0, :]
        return self.function(first, xp.zeros(self.nodes.shape[-1], dtype=first.dtype)).shape[-1]

    @property
    def arms(self) -> int:
        """How many actions: K."""
        return self.actions.shape[-2]

    @property
    def cells(self) -> int:
        """The features of all arms at a few nodes: (GROUP, K, m), and as much again to weigh them."""
        return 2 * GROUP * self.arms * self.size

    def _expect(self, points: Array, weights: Array) -> QuadratureDesign:
        """The design with these points and weights."""
        # A few nodes at a time: all at once would be a thousand times the memory of everything else.
        rows = sum(self._weigh_group(points, weights, first) for first in range(0, weights.shape[0], GROUP))
        return QuadratureDesign(rows, self.function, self.actions, points, weights)

    def _weigh_group(self, points: Array, weights: Array, first: int) -> Any:
        """The weighted sum of features over one group of points."""
        group = points[..., first : first + GROUP, None, :]
        values = self.function(self.actions[..., None, :, :], group)
        return (weights[first : first + GROUP, None, None] * values).sum(-3)

    def design(self, context: Context) -> QuadratureDesign:
        """Expected features of every arm."""
        root = square_root(context.cov)
        return self._expect(context.mean[..., None, :] + self.nodes @ root.mT, self.weights)

    def at(self, context: Array) -> QuadratureDesign:
        """Features of every arm at a known context."""
        xp = context.__array_namespace__()
        return self._expect(context[..., None, :], xp.ones_like(self.weights[:1]))

    def over_rounds(self) -> "Quadrature":
        """The same map, ready for a block of rounds."""
        return self._replace(actions=self.actions[..., None, :, :])


@check_keywords
def quadrature(function: Function, dim: int, order: int | None = None) -> Callable[[Array], Quadrature]:
    """Any feature map phi(a, c): its moments by quadrature over the belief about the context.

    With c = v + L z, C = L L', z ~ N(0, I): E[phi(a, c)] = sum_i w_i phi(a, v + L z_i). Two rules:

    - product Gauss-Hermite of order n (n^d nodes): exact when phi is a polynomial of degree <= 2n - 1 in each
      z;
    - a fully symmetric rule of degree 5 (2 d^2 + 1 nodes; J. McNamee and F. Stenger, *Construction of fully
      symmetric numerical integration formulas*): exact for total degree <= 5, for dimensions where the
      product rule has too many nodes.

    `error_estimate` states the accuracy for a phi that is no polynomial. Unlike the other maps this one
    builds the (K, m) matrix, and for a moment several of them: phi has no structure to use.

    Gives a builder of maps for phi = `function` over contexts of dimension `dim`.

    `order` is that of the product rule; left out, it is 3 up to dimension 6 and the degree-5 rule beyond.

    >>> import numpy as np
    >>> import unfog
    >>> build = unfog.features.quadrature(lambda actions, contexts: np.cos(actions * contexts), 2)
    >>> features = build(np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> features.at(np.array([3.0, -1.0])).row(np.array(1)).round(2).tolist()  # of the second arm
    [-0.99, -0.42]
    """
    if not callable(function):
        raise InputError("function", repr(function), "a function of an action and a context")
    dim = count("dim", dim)
    if order is None and dim > AUTOMATIC_PRODUCT_DIM:
        nodes, weights = degree5_rule(dim)
    else:
        order = count("order", 3 if order is None else order)
        if order**dim > MOST_NODES:
            allowed = f"order ** dim <= {MOST_NODES} nodes, or no order for the degree-5 rule"
            raise InputError("order", order, allowed)
        nodes, weights = product_rule(dim, order)
    return partial(_build, function, nodes, weights)


def _build(function: Function, nodes: Array, weights: Array, actions: Array) -> Quadrature:
    return Quadrature(function, actions, nodes, weights)


def error_estimate(function: Function, actions: Array, context: Context, order: int | None = None) -> float:
    """How far the expected features are from those of a rule two orders finer: the largest difference.

    In dimensions where no finer product rule is affordable the comparison is with 20,000 fixed random
    points, whose own error is about 1 % of the features' spread.

    >>> import numpy as np
    >>> from unfog.features import Context
    >>> from unfog.features.quadrature import error_estimate
    >>> actions, context = np.array([[1.0], [2.0]]), Context(np.zeros(1), 0.5 * np.eye(1))
    >>> error_estimate(lambda a, c: (a * c) ** 2, actions, context) < 1e-12  # a polynomial
    True
    >>> round(error_estimate(lambda a, c: np.cos(a * c), actions, context), 3)
    0.041
    """
    dim = context.mean.shape[-1]
    coarse = quadrature(function, dim, order)(actions).design(context).rows
    finer = (3 if order is None else order) + 2
    if finer**dim <= MOST_NODES:
        fine = quadrature(function, dim, finer)(actions).design(context).rows
    else:
        points = np.random.Generator(np.random.Philox(0)).standard_normal((MOST_NODES, dim))
        equal = np.full(MOST_NODES, 1 / MOST_NODES)
        fine = Quadrature(function, actions, points, equal).design(context).rows
    return float(np.abs(coarse - fine).max())
