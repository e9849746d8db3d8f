"""An agent is three parts: denoise, learn, choose. This is how they make a round together."""

from typing import Any, NamedTuple

from unfog.agents.parts import Chooser, Denoiser, Learner, Parameters, Privilege, State, Term
from unfog.features import Context, Design, FeatureMap
from unfog.maths.arrays import Array, Ints
from unfog.maths.blocks import Belief
from unfog.model.knowledge import Knowledge


class Agent(NamedTuple):
    """A named algorithm."""

    name: str
    denoiser: Denoiser
    learner: Learner
    chooser: Chooser
    summary: str
    reference: str
    reveals: bool = False  # shown the true context after its reward (setting 2)
    privileged: bool = False  # shown the bias before the first round

    @property
    def looks_back(self) -> bool:
        """Whether its learner denoises past rounds anew."""
        return bool(getattr(self.learner, "lifted", False))

    @property
    def amends(self) -> bool:
        """Whether it can take in a true context after the round: late, in any order, or only in part."""
        return hasattr(self.denoiser, "amend") and hasattr(self.learner, "amend")


class Setup(NamedTuple):
    """What does not change during a run."""

    denoiser: Parameters
    learner: Parameters


class Memory(NamedTuple):
    """What does."""

    denoiser: State
    learner: State


class Decision(NamedTuple):
    """What an agent did in a round, and what it believed of the context when it did."""

    arm: Ints  # (...,)
    context: Context
    row: Array  # (..., m) expected features of the arm, or lifted ones (..., q)
    spread: Array | None  # (..., m, m) their covariance, or what of it the learner asks for
    variance: Array | None = None  # (...,) of the reward given the row, where the learner says what it is
    revealed: Array | None = None  # (..., d) what is known by now of the true context, where it may come late


def begin(
    agent: Agent, known: Knowledge, privilege: Privilege | None = None, rounds: int | None = None
) -> tuple[Setup, Memory]:
    """Set up the parts. Only a privileged agent may be shown the truth.

    With `rounds` the memory of past rounds has that fixed size, as compiled programs need it; else it grows.
    """
    if agent.privileged != (privilege is not None):
        raise ValueError(f"{agent.name}: privilege must be given to privileged agents, and to no others")
    setup = Setup(agent.denoiser.setup(known, privilege), agent.learner.setup(known))
    return setup, Memory(agent.denoiser.start(setup.denoiser), agent.learner.start(known, rounds))


def think(agent: Agent, setup: Setup, memory: Memory, normals: Array) -> Memory:
    """One step of the learner's chain: normals (..., n). A round's steps come before its decision."""
    if agent.learner.chain is None:
        raise ValueError(f"{agent.name}: its learner has no steps to take")
    return memory._replace(learner=agent.learner.chain.step(setup.learner, memory.learner, normals))


def shown(agent: Agent, noisy: Array, mask: Array | None) -> Array:
    """The noisy context as this agent sees it: what was lost is not a number to those who know of gaps."""
    if mask is None or not getattr(agent.denoiser, "gaps", False):
        return noisy
    xp = noisy.__array_namespace__()
    return xp.where(mask > 0, noisy, xp.nan)


def tell(setup: Setup, bias: Array) -> Setup:
    """Show a privileged agent the bias of this round, where it drifts: its denoiser keeps it as `bias`."""
    return setup._replace(denoiser=setup.denoiser._replace(bias=bias))


class View(NamedTuple):
    """What an agent believes before it chooses."""

    context: Context
    design: Design
    belief: Belief


def view(agent: Agent, setup: Setup, memory: Memory, features: FeatureMap, noisy: Array) -> View:
    """Denoise: the expected features of every arm, and the belief about theta that goes with them."""
    if agent.looks_back:
        denoiser: Any = agent.denoiser
        learner: Any = agent.learner
        hindsight = denoiser.hindsight(setup.denoiser, memory.denoiser, noisy)
        belief, context = learner.look_back(setup.learner, memory.learner, features, hindsight, noisy)
    else:
        context = agent.denoiser.predict(setup.denoiser, memory.denoiser, noisy)
        belief = agent.learner.belief(setup.learner, memory.learner)
    return View(context, features.design(context), belief)


def decide(
    agent: Agent,
    setup: Setup,
    memory: Memory,
    features: FeatureMap,
    noisy: Array,
    normals: Array,
    number: Ints | None = None,
) -> Decision:
    """Denoise and choose: noisy (..., d); rounds are numbered from 0."""
    context, design, belief = view(agent, setup, memory, features, noisy)
    arm = agent.chooser.choose(design, belief, normals, number)
    learner: Any = agent.learner
    spread = _spread(learner, design, belief, arm)
    variance = learner.variance(setup.learner, belief, spread) if agent.amends else None
    return Decision(arm, context, design.row(arm), spread, variance)


def _spread(learner: Any, design: Design, belief: Belief, arm: Ints) -> Array | None:
    """What a learner asks to be shown of not knowing the context: nothing, Cov(phi), or less than that."""
    if not learner.spread:
        return None
    if not getattr(learner, "noise", False):
        return design.covariance(arm)
    fitting: Any = belief  # a belief in blocks comes with a design in blocks
    adds = design.context_variance(fitting, arm)
    if not getattr(learner, "surprise", False):
        return adds
    xp = adds.__array_namespace__()
    pull = design.context_pull(belief.centre, arm)
    both: Array = xp.concat([xp.broadcast_to(adds[..., None], (*pull.shape[:-1], 1)), pull], axis=-1)
    return both


def learn(
    agent: Agent,
    setup: Setup,
    memory: Memory,
    features: FeatureMap,
    decision: Decision,
    noisy: Array,
    reward: Array,
    revealed: Array | None,
) -> Memory:
    """Take in the reward and, in setting 2, the true context, which then replaces the belief about it."""
    if (agent.reveals and not agent.amends) != (revealed is not None):
        raise ValueError(
            f"{agent.name}: the context must be revealed to agents that take it, and to no others"
        )
    row, spread = decision.row, decision.spread
    if revealed is not None:
        row = features.at(revealed).row(decision.arm)
        spread = None if spread is None else 0 * spread
    if agent.looks_back:
        denoiser: Any = agent.denoiser
        liftable: Any = features
        row = liftable.lift(denoiser.unbiased(setup.denoiser, noisy), decision.arm)
    if agent.amends:
        spread = decision.variance  # what it was at the time, so that it can be taken back
    return Memory(
        agent.denoiser.update(setup.denoiser, memory.denoiser, noisy, revealed),
        agent.learner.update(setup.learner, memory.learner, row, spread, reward),
    )


def amend(
    agent: Agent,
    setup: Setup,
    memory: Memory,
    features: FeatureMap,
    decision: Decision,
    noisy: Array,
    reward: Array,
    revealed: Array,
) -> tuple[Memory, Decision]:
    """Take in the true context of a past round: what was known of it then is replaced by what is known now.

    Coordinates that are not a number stay hidden; a context that says nothing new changes nothing. The
    decision that comes back stands for the round from now on. Contexts that become known as a whole may come
    in any order: the memory is the same to the last bits. Of one known in part the rest is denoised with what
    is believed of the bias at that moment, as in every round, and stays so until more of it is known.
    """
    if not agent.amends:
        raise ValueError(f"{agent.name}: its parts cannot take in a true context after the round")
    denoiser: Any = agent.denoiser
    learner: Any = agent.learner
    xp = noisy.__array_namespace__()
    before = noisy * xp.nan if decision.revealed is None else decision.revealed
    after = xp.where(xp.isnan(revealed), before, revealed)
    channel, context = denoiser.amend(setup.denoiser, memory.denoiser, noisy, before, after)
    design = features.design(context)
    belief = learner.belief(setup.learner, memory.learner)
    spread = _spread(learner, design, belief, decision.arm)
    news = (~xp.isnan(after) & (before != after)).any(-1)
    if decision.variance is None:
        raise ValueError(f"{agent.name}: a decision that was made without a variance cannot be amended")
    old = Term(decision.row, decision.variance)
    row = xp.where(news[..., None], design.row(decision.arm), old.row)
    new = Term(row, xp.where(news, learner.variance(setup.learner, belief, spread), old.variance))
    known = learner.amend(setup.learner, memory.learner, old, new, reward)
    return Memory(channel, known), decision._replace(row=row, variance=new.variance, revealed=after)
