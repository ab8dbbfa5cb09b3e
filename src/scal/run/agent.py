"""`scal.SCAL`: an agent that learns any Gymnasium environment, saves itself, and goes on exactly.

agent = scal.SCAL("CartPole-v1", seed=0)
agent.learn(25_000)
agent.evaluate(10).mean()
"""

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from scal.learn import policy, scal
from scal.learn.algorithms import algorithm
from scal.learn.config import Config
from scal.learn.metrics import Metrics
from scal.learn.scal import Learner
from scal.mdp import Certificate, certify
from scal.run import checkpoint, exact, loop, memory
from scal.run.course import to_the_end
from scal.run.evaluate import ABREAST, check_episodes, evaluation_seeds, play
from scal.run.loop import Carry
from scal.run.options import LARGEST_SEED, annealed, check_budget, check_finite, configure
from scal.run.record import Record
from scal.run.spaces import Factory, adapt, arguments_of, factory_of, make, observer, unbounded
from scal.run.stage import (
    Episode,
    Memory,
    Stage,
    came_back,
    environment_actions,
    from_json,
    in_json,
)
from scal.run.video import film


class SCAL:
    """A learner in a Gymnasium environment.

    Parameters
    ----------
    env : an id, an environment made by `gymnasium.make`, or a function that returns one.
    seed : decides everything.
    preset : "default", "replayed" without the lookahead, or "paper" for the literal method.
    options : fields of `scal.learn.config.Config`, to change single options of the preset.
    """

    def __init__(
        self,
        env: str | gym.Env[Any, Any] | Factory,
        seed: int = 0,
        preset: str = "default",
        **options: Any,
    ) -> None:
        if not isinstance(seed, int | np.integer) or not 0 <= seed <= LARGEST_SEED:
            raise ValueError(f"seed is {seed!r}; use a whole number from 0 to {LARGEST_SEED}")
        seed = int(seed)
        self.factory = factory_of(env)
        self.env = self.factory()
        self.spaces = adapt(self.env)[1]
        self.env_id = self.env.spec.id if self.env.spec else None
        self.name = self.env_id or str(self.env)
        self._given = env
        self.seed, self.preset = seed, preset
        self.config = configure(preset, options, self.spaces, unbounded(self.env))
        self.memory = memory.announce(self.spaces, self.config)
        """A line on the memory that frames take."""
        made = [self.env, *self._more(self.config.environments - 1)]
        self.stage = Stage(
            [
                Episode(adapt(one)[0], self.name, (seed, lane), self.config.first_episode)
                for lane, one in enumerate(made)
            ]
        )
        self.steps = 0
        self.finished: list[float] = []
        """Returns of the whole episodes that ended since the last record."""
        self._encode = observer(self.env, self.name)
        self._learner: Learner | None = algorithm(self.config).init(
            jax.random.PRNGKey(seed), self.spaces, self.config
        )
        """Until learning begins."""
        self._carry: Carry | None = None
        """From then on."""
        self._left: list[Memory] | None = None
        """The episodes of an agent that was loaded, until it learns on."""
        self._draws = 0

    def __repr__(self) -> str:
        return f"SCAL({self.name}, seed {self.seed}, {self.steps:,} steps)"

    @property
    def learner(self) -> Learner:
        """The state of learning, a pytree of arrays."""
        learner = self._learner if self._carry is None else self._carry.learner
        assert learner is not None
        return learner

    def learn(
        self,
        steps: int,
        progress: bool = False,
        record: Callable[[Record], None] | None = None,
        every: int = 1_000,
    ) -> "SCAL":
        """Interact at least `steps` times, with updates between; `record` gets a line now and then.

        With several environments the number of steps is rounded up to a multiple of theirs. An
        interrupt takes effect at the next record, so that the agent can go on or be saved.
        """
        return to_the_end(self, steps, progress, record, every)

    def iterate(self, steps: int, every: int = 1_000) -> Iterator[Record]:
        """`learn`, as a stream of records: one for each multiple of `every` that is reached."""
        steps = check_budget(steps, every)
        self.config = annealed(self.config, self.steps, steps)
        carry = self._on_stage()
        actions = np.asarray(carry.choice.action)
        everyone = np.ones(self.config.environments, bool)
        last = self.steps + steps
        while self.steps < last:
            given = environment_actions(actions, self.spaces)
            outcome, totals = self.stage.step(given, everyone)
            self.finished += totals[~np.isnan(totals)].tolist()
            before, self.steps = self.steps, self.steps + len(everyone)
            carry = self._carry = loop.follow(carry, outcome, self.spaces, self.config)
            actions = np.asarray(carry.choice.action)
            if due := loop.updates_due(self.config, before, self.steps):
                carry = self._carry = loop.learn(carry, self.spaces, self.config, due)
            if self.steps // every > before // every:
                line, carry = self._record(carry)
                self._carry = carry
                yield line

    def predict(self, observation: ArrayLike, deterministic: bool = True) -> Any:
        """The action for one observation, both in the environment's own units.

        Those that are drawn, not `deterministic`, are the same for an agent of the same seed.
        """
        shape = self.env.observation_space.shape or ()
        given = np.asarray(observation)
        if given.size != math.prod(shape):
            raise ValueError(
                f"observation has {given.size} entries; {self.name} has {math.prod(shape)}"
            )
        if given.dtype.kind not in "buif" or not np.isfinite(given).all():
            raise ValueError("observation has entries that are no finite numbers; replace them")
        given, space = given.reshape(shape), self.env.observation_space
        if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
            whole = given.astype(np.int64)
            if not (np.array_equal(given, whole) and space.contains(whole)):
                raise ValueError(f"observation is {given}; {self.name} has those of {space}")
        array = self._encode(given)
        if deterministic:
            action = np.asarray(_greedy(self.learner, array, self.spaces, self.config))
        else:
            key = jax.random.fold_in(jax.random.key(self.seed), self._draws)
            self._draws += 1
            action = np.asarray(
                _sampled(self.learner, array[None], key[None], self.spaces, self.config)[0]
            )
        return self._own_units(environment_actions(action[None], self.spaces)[0])

    def evaluate(self, episodes: int = 10, deterministic: bool = True) -> NDArray[np.float64]:
        """Undiscounted returns of whole episodes, in an environment and with seeds of their own."""
        check_episodes(episodes)
        seeds, noises = zip(*(evaluation_seeds(self.seed, n) for n in range(episodes)), strict=True)
        keys = jax.vmap(jax.random.key)(np.array(noises))

        def act(observations: Any, numbers: Any, ages: Any) -> list[Any]:
            if deterministic:
                actions = _greedy(self.learner, observations, self.spaces, self.config)
            else:
                use = jax.vmap(jax.random.fold_in)(keys[numbers], ages)
                actions = _sampled(self.learner, observations, use, self.spaces, self.config)
            return environment_actions(np.asarray(actions), self.spaces)

        made = self._more(min(ABREAST, episodes))
        return play([adapt(env, stacked=True)[0] for env in made], act, seeds)

    def video(self, path: str | Path) -> Path:
        """Film the first episode of `evaluate` into an .mp4 or .gif file."""
        if "rgb_array" not in self.env.metadata.get("render_modes", []):
            raise ValueError(f"{self.name} draws no pictures, so there is nothing to film")
        arguments = arguments_of(self.env) | {"render_mode": "rgb_array"}
        env, _ = adapt(make(str(self.env_id), **arguments), stacked=True)

        def act(observation: Any) -> Any:
            action = _greedy(self.learner, observation, self.spaces, self.config)
            return environment_actions(np.asarray(action)[None], self.spaces)[0]

        film(Path(path), env, act, evaluation_seeds(self.seed, 0)[0])
        return Path(path)

    def certificate(self, gamma: float | None = None) -> Certificate:
        """Bounds on the optimum and on the greedy policy, where the environment knows its MDP."""
        mdp = exact.known_mdp(self.env, self.config.gamma if gamma is None else gamma)
        if mdp is None:
            raise ValueError(
                f"{self.name} has no known MDP to certify against; "
                "use scal/Inventory-v0, or scal.certify with an MDP of your own"
            )
        return certify(mdp, policy=exact.greedy_policy(self, mdp))

    def save(self, path: str | Path) -> Path:
        """Write a checkpoint into the folder `path`; the last two are kept."""
        carry = self._begun()
        left = self.stage.memories() if self._left is None else self._left
        facts = {
            "steps": self.steps,
            **self._recipe(),
            "seed": self.seed,
            "preset": self.preset,
            "config": dataclasses.asdict(self.config),
            "spaces": self.spaces._asdict(),
            "memories": in_json(left),
            "finished": self.finished,
        }
        return checkpoint.save(Path(path), carry, facts)

    @classmethod
    def load(cls, path: str | Path, env: str | gym.Env[Any, Any] | Factory | None = None) -> "SCAL":
        """The agent of the newest whole checkpoint in a folder, ready to go on exactly.

        The checkpoint says how to make its environment; `env` does so where it cannot.
        """
        arrays, facts = checkpoint.latest(Path(path))
        if "seeds" in facts or "siblings" in facts:
            home = "seeds.Seeds" if "seeds" in facts else "siblings.Siblings"
            raise ValueError(f"folder {path} holds several seeds; use scal.run.{home}.load")
        if env is None and facts["env"] is None:
            raise ValueError(
                f"folder {path} does not say how to make its environment, since {facts['why']}; "
                "pass it as env to scal.SCAL.load"
            )
        again = partial(make, facts["env"], **facts["arguments"]) if env is None else env
        agent = cls(again, facts["seed"], facts["preset"], **facts["config"])
        if json.loads(json.dumps(agent.spaces._asdict())) != facts["spaces"]:
            raise ValueError(
                f"{agent.name} has other observations or actions than the environment of folder "
                f"{path}; pass that one as env"
            )
        agent._given = facts["env"] if env is None else env
        agent.steps, agent.finished = facts["steps"], list(facts["finished"])
        begin = partial(loop.started, spaces=agent.spaces, config=agent.config)
        template = jax.eval_shape(begin, agent.learner, agent.stage.blank)
        agent._begin(checkpoint.restore(template, arrays))
        agent._left = from_json(facts["memories"], agent.spaces)
        return agent

    def digest(self) -> str:
        """sha256 of the networks."""
        return checkpoint.digest(self.learner.networks)

    def _more(self, count: int) -> list[gym.Env[Any, Any]]:
        """Other environments of the same kind."""
        made = [self.factory() for _ in range(count)]
        if len({id(env) for env in (self.env, *made)}) <= count:
            raise ValueError("env returned the same environment twice; return a new one each time")
        return made

    def _own_units(self, action: Any) -> Any:
        if self.spaces.discrete:
            return action
        box = self.env.action_space
        assert isinstance(box, gym.spaces.Box)
        return box.low + 0.5 * (action + 1.0) * (box.high - box.low)

    def _recipe(self) -> dict[str, Any]:
        """How to make the environment again, or why nobody can tell."""
        try:
            given = self._given if isinstance(self._given, str) else self.env_id
            return {"env": given, "arguments": arguments_of(self.env)}
        except ValueError as error:
            return {"env": None, "arguments": {}, "why": str(error)}

    def _begun(self) -> Carry:
        if self._carry is None:
            first = jax.numpy.asarray(self.stage.begin([(0, [])] * self.config.environments))
            return self._begin(loop.begin(self.learner, first, self.spaces, self.config))
        return self._carry

    def _on_stage(self) -> Carry:
        """Where learning goes on, with the environments brought back to it."""
        carry = self._begun()
        if self._left is not None:
            came_back(self.name, self.stage.begin(self._left), carry.observation)
            self._left = None
        return carry

    def _begin(self, carry: Carry) -> Carry:
        """Learn on from there; what the agent was before goes, and its buffer with it."""
        self._carry, self._learner = carry, None
        return carry

    def _record(self, carry: Carry) -> tuple[Record, Carry]:
        *sums, updates = np.asarray(carry.totals).tolist()
        metrics = Metrics(*(total / max(updates, 1.0) for total in sums))
        check_finite(metrics, self.steps)
        returned = float(np.mean(self.finished)) if self.finished else None
        self.finished = []
        line = {"step": self.steps, "return": returned} | metrics._asdict()
        return line, carry._replace(totals=loop.no_totals())


_greedy = jax.jit(scal.greedy, static_argnames=("spaces", "config"))


@partial(jax.jit, static_argnames=("spaces", "config"))
def _sampled(learner: Learner, observations: Any, keys: Any, spaces: Any, config: Config) -> Any:
    """An action of the averaged policy for each observation and key."""

    def one(observation: Any, key: Any) -> Any:
        head = scal.averaged_head(learner, observation, spaces, config)
        return policy.sample(key, head, spaces).action

    return jax.vmap(one)(observations, keys)
