"""Where the memory of a batch goes on the NumPy engine: a block of rounds is made at once, for all trials."""

from unfog.simulate.engines import room
from unfog.simulate.engines.room import ACTIONS, BLOCK, DIM, LOSSES, NUMBER, ROUND, Term
from unfog.simulate.job import Job

PROCESS = 80e6  # bytes: NumPy and ourselves take 45 MB, with the lab and its libraries 130
TABLES, PLAIN_TABLES = 3, 2  # scores of every arm that a block keeps: with the parts of regret, or without


def terms(job: Job, block: int) -> list[Term]:
    """Of blocks of so many rounds."""
    return [
        Term("the interpreter and its libraries", (), fixed=PROCESS),
        *room.world(job, copies=4),
        *room.truth(job.problem),
        *_block(job, block),
        *room.beliefs(job, kept=1.0, made=3.5),
        *_round(job, block),
        *_contexts(job, block),
        *_past(job),
        Term("the curves of a batch", ("points", "agents"), room.curves(job)),
    ]


def _block(job: Job, block: int) -> list[Term]:
    """Scores, contexts, measurements and draws of a block, and what is needed to make them."""
    problem, arms = job.problem, job.problem.arms()
    dim = problem.knowledge().context_mean.shape[0]
    kept = (TABLES if job.decompose else PLAIN_TABLES) * arms
    drawn = 6 * dim + 2 * problem.round_normals()
    return [
        Term("the scores of a block of rounds", ("problem.actions",), block * NUMBER * kept),
        Term("the contexts of a block of rounds", DIM, block * NUMBER * drawn),
        Term(
            "scores in the making",
            ("problem.actions",),
            block * NUMBER * (arms + problem.cells()),
            when=BLOCK,
        ),
        Term("scores of an agent's own", ("problem.actions",), block * NUMBER * arms, when=LOSSES),
    ]


def _round(job: Job, block: int) -> list[Term]:
    """What a choice takes: normals of a block, twice while they are laid out anew; the spread of scores."""
    return [
        Term("the draws of choices", ACTIONS, 2 * block * NUMBER * room.drawn(job), when=ROUND),
        Term("the spread of scores", ACTIONS, 1.5 * NUMBER * job.problem.table(), when=ROUND),
        Term("weights of a sample", ("problem.told_contexts",), NUMBER * room.weights(job), when=ROUND),
    ]


def _contexts(job: Job, block: int) -> list[Term]:
    """The beliefs about the contexts of a block: listed, then stacked, and looked at once more.

    Their covariances are one for all trials or, where trials differ in what they know, one for each.
    """
    known, problem = job.problem.knowledge(), job.problem
    apart = problem.several > 1 or problem.partial
    own = apart or any(one.denoiser.squares or one.looks_back is not None for one in job.agents)
    square, dim = block * NUMBER * known.context_cov.size, known.context_mean.shape[0]
    settled = all(one.denoiser.settled for one in job.agents)
    each, fixed = (square, 0) if own else (0, 0 if settled else square)
    what, listed = "the covariances of a block's contexts", min(1.0, job.rounds / block)
    return [
        Term(what, DIM, listed * each, listed * fixed, when=ROUND),
        Term(what, DIM, (2 + listed) * each, (1 + listed) * fixed, when=LOSSES),
        Term("the beliefs about a block's contexts", DIM, 4 * block * NUMBER * dim, when=LOSSES),
    ]


def _past(job: Job) -> list[Term]:
    """Past rounds, for learners that keep them or wait for true contexts; a fourth of `room` stays."""
    rooms, known = [room.history(agent, job) for agent in job.agents], job.problem.knowledge()
    waiting = any(agent.sees_context for agent in job.agents) * min(job.problem.late, job.rounds)
    round_ = room.theta(job) + known.context_cov.size
    return [
        Term("the rounds that learners keep", ("rounds", *ACTIONS), NUMBER * sum(rooms) / 4),
        Term("steps of a learner", ("rounds", *ACTIONS), 0.75 * NUMBER * max(rooms), when=ROUND),
        Term(
            "rounds that wait for their context",
            ("problem.late", *ACTIONS),
            NUMBER * len(job.agents) * waiting * round_,
        ),
    ]
