"""One problem of the suite: who can play it, their regrets, and what these come to.

Agents whose rounds take long play the first of the trials that the others play: a trial is the same whoever
else plays it, so that they are paired all the same.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from unfog.agents.agent import Agent
from unfog.agents.catalogue import Catalogue
from unfog.lab.prepare import prepare
from unfog.lab.rivals import runs, timing, tuning
from unfog.lab.rivals.problems import LOSS, PACES, Place, pace, why_not
from unfog.lab.rivals.table import Outcome, Row, held
from unfog.lab.run import Progress, play, quiet
from unfog.lab.spec import Spec, checked, with_run
from unfog.maths.arrays import Array
from unfog.theory.regret import estimate
from unfog.worlds.problem import Problem

Bars: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
Regrets: TypeAlias = dict[str, Array]  # agent -> (trials,)


@contextmanager
def silent(_: str) -> Iterator[Progress]:
    """A bar that nobody sees."""
    yield quiet


class Asked(NamedTuple):
    """What decides the result; None leaves a problem's own."""

    problems: tuple[str, ...]
    agents: tuple[str, ...]
    rounds: int | None = None
    trials: int | None = None
    seed: int = 0
    engine: str = "numpy"
    precision: str | None = None
    tuned: bool = False
    scale: float = 1.0  # of the problems' own numbers of trials

    def run_of(self, place: Place, pace: str = "quick", *, other_seed: bool = False) -> dict[str, Any]:
        """The fields of [run] for a problem and agents of one pace; for tuning on another seed."""
        usual = max(2, round(self.scale * min(place.trials, PACES[pace])))
        told: dict[str, Any] = {"rounds": self.rounds, "trials": self.trials or usual, "seed": self.seed}
        if other_seed:
            told |= {"trials": min(told["trials"], tuning.TRIALS[pace]), "seed": tuning.SEED}
            if pace == "dear":
                told["rounds"] = max(1, (self.rounds or place.spec().run.rounds) // tuning.DEAR_ROUNDS)
        return {**told, "engine": self.engine, "precision": self.precision}


class Match:
    """Plays one problem."""

    def __init__(
        self, told: Asked, place: Place, problem: Problem, folder: Path | None, workers: int, bars: Bars
    ) -> None:
        """Find out who plays, and who is held against whom."""
        self.told, self.place, self.problem = told, place, problem
        self.folder, self.workers, self.bars = folder, workers, bars
        self.rows = Catalogue(problem.rewards.kind)
        reasons = {name: why_not(name, problem, told.engine) for name in told.agents}
        self.left_out = {name: why for name, why in reasons.items() if why}
        self.agents = [name for name in told.agents if name not in self.left_out]
        self.pairs = [(name, *pair) for name in self.agents for pair in place.against(self.rows[name])]
        self.ours = list(dict.fromkeys([place.main, *(against for _, against, _ in self.pairs)]))
        also = [name for name in place.also if not why_not(name, problem, told.engine)]
        mine = [name for name in (*self.ours, *also) if name not in (place.main, *self.agents)]
        self.pairs += [(name, place.main, "ours") for name in mine]
        self.everybody = list(dict.fromkeys([*self.ours, *self.agents, *mine]))

    @property
    def nobody(self) -> str:
        """Why none of the agents asked for can play."""
        return "; ".join(f"{name}: {why}" for name, why in self.left_out.items())

    def outcome(self) -> Outcome:
        """All that is to be said of it."""
        regrets = self.regrets(self.everybody, "")
        spec = self.spec("", "quick")
        return Outcome(
            problem=self.place.name,
            title=self.place.title,
            rounds=spec.run.rounds,
            seed=spec.run.seed,
            yardstick=self.place.yardstick,
            rows=tuple(held(*pair, regrets) for pair in self.pairs),
            tuned=self.tuned(regrets) if self.told.tuned else (),
            ours={name: estimate(regrets[name]).mean for name in self.ours},
            left_out=self.left_out,
            seconds={name: self.seconds(self.rows[name], spec.run.rounds) for name in self.everybody},
        )

    def seconds(self, agent: Agent, rounds: int) -> float:
        """Of a trial's round in a batch."""
        return timing.seconds(agent, self.problem, rounds=min(rounds, timing.ROUNDS), trials=timing.TRIALS)

    def tuned(self, published: Regrets) -> tuple[Row, ...]:
        """Rows with one setting each, chosen on another seed; as published where that was best."""
        tried = [one for name in self.everybody for one in tuning.candidates(name)]
        best = tuning.chosen(self.everybody, self.regrets(tried, "-tuning", other_seed=True))
        again = [picked for name, picked in best.items() if picked != name]
        found = self.regrets(again, "-tuned")
        regrets = {name: found.get(picked, published[name]) for name, picked in best.items()}
        said = {name: tuning.setting(name, picked) for name, picked in best.items()}
        return tuple(held(*pair, regrets, said[pair[0]]) for pair in self.pairs)

    def spec(self, ending: str, kind: str, *, other_seed: bool = False) -> Spec:
        """What is run for agents of one pace."""
        spec = with_run(self.place.spec(), self.told.run_of(self.place, kind, other_seed=other_seed))
        end = "" if kind == "quick" else f"-{kind}"
        return spec.model_copy(update={"name": f"{self.place.name}{ending}{end}"})

    def regrets(self, names: Iterable[str], ending: str, *, other_seed: bool = False) -> Regrets:
        """The regret of each after the last round, trial by trial."""
        found, twins = Regrets(), self.twins(names)
        for kind in PACES:
            some = [name for name in dict.fromkeys(twins.values()) if pace(self.rows[name]) == kind]
            if some:
                spec = self.spec(ending, kind, other_seed=other_seed)
                found |= self.run(with_run(spec, {"agents": some}))
        return {name: found[twin] for name, twin in twins.items()}

    def twins(self, names: Iterable[str]) -> dict[str, str]:
        """For each the first that has the same parts: two rivals may differ for other rewards alone."""
        found = dict[str, str]()
        for name in names:
            row, others = self.rows[name], dict.fromkeys(found.values())
            found[name] = next((other for other in others if row.same_as(self.rows[other])), name)
        return found

    def run(self, spec: Spec) -> Regrets:
        """The run of a spec, kept where there is a folder."""
        plan = prepare(checked(spec), workers=self.workers, problem=self.problem)
        with self.bars(spec.name) as progress:
            data = play(plan, progress) if self.folder is None else runs.kept(self.folder, plan, progress)
        final = data[LOSS].isel(round=-1)
        return {str(name): final.sel(agent=name).values for name in data["agent"].values}
