"""Where the memory of a batch goes on compiled engines: one round at a time, one agent after the other."""

from unfog.simulate.draws import reveal_uniforms
from unfog.simulate.engines import room
from unfog.simulate.engines.room import ACTIONS, NUMBER, ROUND, Term
from unfog.simulate.job import Job

PROCESS = 350e6  # bytes: the interpreter, JAX, its compiler and ourselves


def terms(job: Job) -> list[Term]:
    """In double precision; single takes half of it at most, and is not counted on."""
    arms, table, each = job.problem.arms(), job.problem.table(), NUMBER * len(job.losses) * len(job.grid)
    rooms = [room.history(agent, job) for agent in job.agents]
    return [
        Term("the interpreter, JAX and its compiler", (), fixed=PROCESS),
        *room.world(job, copies=10),
        *room.truth(job.problem),
        *room.beliefs(job, kept=0.0, made=2.2),
        Term("the draws of a round", ACTIONS, 2 * NUMBER * room.drawn(job), when=ROUND),
        Term("scores and their spread", ACTIONS, NUMBER * (6 * arms + 1.5 * table), when=ROUND),
        Term("features in the making", ACTIONS, NUMBER * job.problem.cells(), when=ROUND),
        Term("weights of a sample", ("problem.told_contexts",), NUMBER * room.weights(job), when=ROUND),
        Term("the rounds that learners keep", ("rounds", *ACTIONS), NUMBER * max(rooms)),
        Term("draws made beforehand", ("rounds", "draws"), NUMBER * _fed(job)),
        Term("the curves of a batch", ("points", "agents"), room.curves(job) + each),
    ]


def _fed(job: Job) -> int:
    """Random numbers of a trial where NumPy makes those of all rounds beforehand."""
    if job.draws != "numpy":
        return 0
    known, rounds = job.problem.knowledge(), job.rounds
    world = job.problem.round_normals() + reveal_uniforms(job.problem)
    chains = [agent.chain for agent in job.agents if agent.chain is not None]
    steps = max((2 * chain.steps * chain.normals(known, rounds) for chain in chains), default=0)
    return rounds * (world + room.drawn(job) + steps)
