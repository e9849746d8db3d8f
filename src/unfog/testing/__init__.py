"""Checks that a part, feature map or world keeps its contract, for yours as for ours.

    from unfog.testing import check_denoiser

    def test_my_denoiser():
        check_denoiser(MyDenoiser(step=0.1))

A check plays a few rounds with the part on a problem with correlated covariances and a mean that is not zero,
and raises `ContractError` with the name of the part and the rule that it breaks. It shows that a part can be
used, not that its formula is right: for that, compare it with something independent.
"""

from unfog.testing.choosers import check_chooser
from unfog.testing.common import ContractError
from unfog.testing.denoisers import check_denoiser
from unfog.testing.features import check_feature_map
from unfog.testing.learners import check_learner
from unfog.testing.worlds import check_world

__all__ = [
    "ContractError",
    "check_chooser",
    "check_denoiser",
    "check_feature_map",
    "check_learner",
    "check_world",
]
