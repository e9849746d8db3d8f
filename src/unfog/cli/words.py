"""A line on each thing that `unfog list` lists and that has no such line of its own."""

ENGINES = {
    "numpy": "plays everything, on one core or several; the reference for the others",
    "numba": "one compiled kernel for CPUs: the same draws and results, faster (extra numba)",
    "jax": "compiled by JAX, on CPU or GPU, with random numbers of its own (extra jax)",
    "cuda": "one GPU kernel, for Gaussian problems with quadratic features (extra jax, a GPU)",
    "auto": "the fastest of these that can play the experiment here; it says which, and why",
}
FEATURES = {
    "per_arm": "an intercept and slopes for each arm: the commonest case",
    "slopes": "slopes for each arm, without intercepts",
    "product": "numbers of the action times those of the context, one by one",
    "quadratic": "products of numbers of action and context, squares included",
    "matrix": "for each arm a matrix of its own, times the context",
    "own": "every arm has a context of its own, and all share theta",
}
PROBLEMS = {
    "gaussian": "contexts and noise are Gaussian, rewards are plain numbers",
    "logistic": "the same with rewards of 0 or 1",
    "temporal": "contexts and a sensor that move in time",
    "post_serving": "a part of the context becomes known only after the decision",
    "recorded": "contexts from a CSV file of your own",
    "movielens": "films for users, from recorded ratings or a stand-in for them",
    "airquality": "the air of one street, measured by a cheap sensor and a good one",
    "heartsteps": "suggestions to take a walk, after a recorded study",
}
