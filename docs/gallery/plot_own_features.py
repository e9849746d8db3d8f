"""
Rewards that are no straight line
=================================

A dose pays as a wave of the measured value: too little and too much are both bad. Such *features*, what a reward is made of, are a function of your own.
``unfog.quadrature`` averages that function over what is believed of the context (the true value behind the reading).
The wave of the denoised value is not the average of the wave: the dashed line promises more than the solid one, which is right.
"""

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.features import Context
from unfog.look import COLOURS, DASHES, STYLE


def phi(action, context):
    """What the reward is made of: a wave in the context, whose pace is the arm's."""
    return np.sin(action * context)


paces = np.array([[1.0], [2.0], [3.0]])  # three arms
features = unfog.quadrature(phi, dim=1, order=9)(paces)
middles, sd = np.linspace(0.0, 3.0, 61), 0.5
