"""What is said of public names that have no docstring of their own, or one without an example."""

VALUES = {
    "unfog.AGENTS": """Every named agent of the catalogue, an `Agent` by its name: [the list](agents.md).

>>> import unfog
>>> unfog.AGENTS["unfog"].denoiser
Exact(pairs=False)
>>> unfog.AGENTS["naive"].summary
'takes the noisy context for the true one'
""",
    "unfog.__version__": """The version that is installed, as a string.

>>> import unfog
>>> unfog.__version__.count(".")
2
""",
    "unfog.features.MapBuilder": """A function from actions (..., K, p) to a `FeatureMap`: what
`features=` of a problem takes besides a name.

>>> import numpy as np
>>> import unfog
>>> build = unfog.features.quadratic  # one of them
>>> build(np.ones((4, 2))).size  # four actions, contexts of two numbers
6
""",
    "unfog.simulation.MOST_SEED": """The largest `seed`.

>>> from unfog.simulation import MOST_SEED
>>> MOST_SEED == 2**64 - 1
True
""",
    "unfog.simulation.MOST_TRIALS": """The most `trials` of a run.

>>> from unfog.simulation import MOST_TRIALS
>>> MOST_TRIALS
100000000
""",
    "unfog.maths.arrays.Array": """Numbers with a decimal point: a type, for annotations. NumPy's, or those
of a compiled engine, which have the same methods.

>>> import numpy as np
>>> from unfog.maths.arrays import Array
>>> def twice(values: Array) -> Array:
...     return 2 * values
>>> twice(np.ones(2)).tolist()
[2.0, 2.0]
""",
    "unfog.maths.arrays.Ints": """Whole numbers, such as arms: a type, for annotations.

>>> import numpy as np
>>> from unfog.maths.arrays import Ints
>>> arms: Ints = np.array([0, 2])
>>> arms.tolist()
[0, 2]
""",
    "unfog.validation.Numbers": """A number, a list of numbers or a matrix: what fields such as
`noise_cov` take.

>>> import unfog
>>> from unfog.validation import Numbers
>>> wide: Numbers = [0.5, 2.0]  # the diagonal
>>> unfog.GaussianProblem(dim=2, actions=5, noise_cov=wide).knowledge().noise_cov.tolist()
[[0.5, 0.0], [0.0, 2.0]]
""",
    "unfog.paper.warfarin.COORDINATES": """The names of the numbers of a patient's context.

>>> from unfog.paper import warfarin
>>> warfarin.COORDINATES.index("weight") < len(warfarin.COORDINATES)
True
""",
    "unfog.lab.labels.LOOKS": """How each agent is drawn in every figure, a `Look` by the agent's name.

>>> from unfog.lab.labels import LOOKS
>>> sorted(LOOKS["unfog"].line())
['color', 'linestyle', 'linewidth', 'zorder']
""",
    "unfog.plotting.COLOURS": """Colours of lines, told apart by colour-blind readers.

>>> from unfog.plotting import COLOURS
>>> len(COLOURS) == len({*COLOURS})
True
""",
    "unfog.plotting.DASHES": """Dashes of lines, told apart in grey print; the first is a whole line.

>>> from unfog.plotting import DASHES
>>> DASHES[0]
'-'
""",
    "unfog.plotting.STYLE": """What matplotlib is told for all figures: `plt.rcParams.update(STYLE)`.

>>> import matplotlib.pyplot as plt
>>> from unfog.plotting import STYLE
>>> with plt.rc_context(STYLE):
...     plt.rcParams["legend.frameon"]
False
""",
}

EXAMPLES = {  # of functions that say what they do in a line
    "unfog.validation.positive": """>>> from unfog import validation
>>> validation.positive("share", 0.5)
0.5
>>> validation.positive("share", -1)
Traceback (most recent call last):
unfog.validation.InputError: share: -1; allowed: a positive number
""",
    "unfog.validation.not_negative": """>>> from unfog import validation
>>> validation.not_negative("widen", 0)
0.0
""",
}
