"""The estimators of policies whose probabilities are known in every round, by name: one file each."""

from unfog.evaluation.case import Estimator
from unfog.evaluation.estimators.clipped import Clipped
from unfog.evaluation.estimators.direct import Direct
from unfog.evaluation.estimators.doubly_robust import DoublyRobust
from unfog.evaluation.estimators.ips import Ips
from unfog.evaluation.estimators.snips import Snips
from unfog.evaluation.estimators.switch import Switch

ESTIMATORS: dict[str, Estimator] = {
    one.name: one for one in (DoublyRobust(), Snips(), Ips(), Clipped(), Switch(), Direct())
}
