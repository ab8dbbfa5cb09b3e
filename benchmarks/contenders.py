"""One contender of `benchmarks.learn`, measured in this process, on one thread of one core.

    python -m benchmarks.contenders sb3-dqn --units 5000        # prints JSON

A contender makes itself ready, compiled and past the start of its learning, and hands back the work
to be timed. Libraries are imported only by the contender that needs them, after the process has
been confined to its core, so that no two of them meet and none makes more threads.
"""

import dataclasses
import json
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import tyro

LOCOMOTION = ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5")
LEARNERS = {"scal": "default", "ppo": "zoo", "trpo": "zoo", "sac": "zoo"}
"""Those of figure 6, with their settings."""

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}

WARM_UP = 2_000
"""Steps before the clock starts: past everybody's first updates, and a whole record of scal's."""
SEEDS = 8

Settings = dict[str, Any]
Contender = Callable[[int, int], tuple[Callable[[], Any], Settings]]
"""(units of work, seed) → the work, and the settings it is done with."""


def scal_loop(
    env: str, steps: int, seed: int, preset: str = "replayed"
) -> tuple[Callable[[], Any], Settings]:
    """`scal.SCAL` in a Gymnasium environment, with as many networks as its rivals have or more."""
    import jax

    import scal

    agent = scal.SCAL(env, seed=seed, preset=preset).learn(WARM_UP)
    work = lambda: jax.block_until_ready(agent.learn(steps).learner)  # noqa: E731
    return work, dataclasses.asdict(agent.config)


def scal_compiled(
    side_by_side: int, in_turn: int, steps: int, seed: int
) -> tuple[Callable[[], Any], Settings]:
    """CartPole as one program: some seeds side by side, the program run for several in turn."""
    import jax
    import jax.numpy as jnp

    from scal.envs.cartpole import CARTPOLE
    from scal.learn.config import Config
    from scal.run import compiled

    config = Config()  # the preset replayed

    def begun(first: int) -> Any:
        runs = compiled.start(first + jnp.arange(side_by_side), {}, CARTPOLE, config)
        return compiled.advance(runs, {}, CARTPOLE, config, config.warmup, learning=False)[0]

    def advance(runs: Any) -> Any:
        return jax.block_until_ready(compiled.advance(runs, {}, CARTPOLE, config, each)[0])

    each = steps // (side_by_side * in_turn)
    every = [advance(begun(seed + number)) for number in range(in_turn)]
    return lambda: [advance(runs) for runs in every], dataclasses.asdict(config)


def stable_baselines(
    library: str, algorithm: str, env: str, steps: int, seed: int
) -> tuple[Callable[[], Any], Settings]:
    """An agent of Stable-Baselines3 or SBX with scal's networks, batch, buffer and updates."""
    from importlib import import_module

    import torch

    from scal.learn.config import PRESETS

    torch.set_num_threads(1)
    kinds = PRESETS["replayed"]
    usual = kinds.continuous if algorithm == "SAC" else kinds.discrete
    settings: Settings = {
        "policy_kwargs": {"net_arch": [usual.width] * usual.depth},
        "batch_size": usual.batch_size,
        "buffer_size": usual.replay_size,
        "learning_starts": usual.warmup,
        "train_freq": 1,
        "gradient_steps": 1,
    }
    if library == "sbx":
        settings["policy_delay"] = 1
    make = getattr(import_module(library), algorithm)
    agent = make("MlpPolicy", env, seed=seed, device="cpu", **settings).learn(WARM_UP)

    def work() -> None:
        before = agent._n_updates
        agent.learn(steps, reset_num_timesteps=False)
        assert agent._n_updates - before == steps, "not one update per step"

    return work, settings


def of_figure_6(
    algorithm: str, env: str, steps: int, seed: int
) -> tuple[Callable[[], Any], Settings]:
    """A learner of figure 6 with all of its settings, past the start of its learning."""
    from scal.bench import baselines
    from scal.bench.cell import Cell

    if algorithm == "scal":
        return scal_loop(env, steps, seed, LEARNERS[algorithm])
    begin = (("learning_starts", WARM_UP // 2),) if algorithm == "sac" else ()
    cell = Cell(algorithm, env, 300_000, seed, settings=LEARNERS[algorithm], options=begin)
    model = baselines.Rival(cell).model.learn(WARM_UP)

    def work() -> None:
        before = model.num_timesteps
        model.learn(steps, reset_num_timesteps=False)
        assert model.num_timesteps - before == steps, "not a whole number of rollouts"

    return work, baselines.settings_of(cell)


def replay_draws(
    observation_size: int, stored: int, in_program: bool, draws: int, seed: int
) -> tuple[Callable[[], Any], Settings]:
    """`replay.sample` of a full buffer: a jitted call each, or all in one program as in a run."""
    import jax
    import jax.numpy as jnp

    from scal.envs.functional import Spaces
    from scal.learn import replay
    from scal.learn.config import Config

    config, spaces = Config(), Spaces(observation_size, 2, discrete=True)
    if observation_size > 4:
        spaces = Spaces(observation_size, 6, discrete=False, action_scale=(1.0,) * 6)

    @jax.jit
    def filled() -> replay.Replay:
        empty = replay.init_replay(spaces, stored, 1, 1_000)
        return jax.lax.fori_loop(0, stored, add, empty)

    def add(t: Any, buffer: replay.Replay) -> replay.Replay:
        ends, number = jnp.full(1, t % 200 == 199), jnp.full(1, t, jnp.float32)
        observation = jnp.full((1, observation_size), t, jnp.float32)
        action = number if spaces.discrete else jnp.full((1, spaces.action_size), t, jnp.float32)
        row = replay.Transition(observation, action, number, number, observation, ends, ends)
        return replay.store_initial(replay.store(buffer, row), observation, ends)

    @jax.jit
    def draw(key: Any, buffer: replay.Replay) -> replay.Batch:
        return replay.sample(key, buffer, config.batch_size, config.n_steps, config.s0_mix)

    @jax.jit
    def draw_all(keys: Any, buffer: replay.Replay) -> replay.Batch:
        one = lambda i, _: draw(keys[i], buffer)  # noqa: E731
        return jax.lax.fori_loop(1, draws, one, draw(keys[0], buffer))

    def work() -> Any:
        if in_program:
            return jax.block_until_ready(draw_all(keys, buffer))
        for key in singly:
            batch = draw(key, buffer)
        return jax.block_until_ready(batch)

    buffer, keys = filled(), jax.random.split(jax.random.key(seed), draws)
    singly = [] if in_program else list(keys)
    work()
    return work, {"batch_size": config.batch_size, "n_steps": config.n_steps, "stored": stored}


CONTENDERS: dict[str, Contender] = {
    "scal-cartpole": partial(scal_loop, "CartPole-v1"),
    "scal-compiled": partial(scal_compiled, 1, 1),
    "sb3-dqn": partial(stable_baselines, "stable_baselines3", "DQN", "CartPole-v1"),
    "scal-halfcheetah": partial(scal_loop, "HalfCheetah-v5"),
    "sb3-sac": partial(stable_baselines, "stable_baselines3", "SAC", "HalfCheetah-v5"),
    "sbx-sac": partial(stable_baselines, "sbx", "SAC", "HalfCheetah-v5"),
    "seeds-at-once": partial(scal_compiled, SEEDS, 1),
    "seeds-in-turn": partial(scal_compiled, 1, SEEDS),
} | {
    f"replay-{how}-{env}-{stored}": partial(replay_draws, size, stored, how == "program")
    for how in ("call", "program")
    for env, size in (("cartpole", 4), ("halfcheetah", 17))
    for stored in (10_000, 1_000_000)
}
CONTENDERS |= {
    f"{algorithm}-{env}": partial(of_figure_6, algorithm, env)
    for algorithm in LEARNERS
    for env in LOCOMOTION
}


def measure(name: str, units: int, seed: int) -> dict[str, Any]:
    """Seconds that a contender, ready, takes for its units of work, and those it had the core."""
    work, settings = CONTENDERS[name](units, seed)
    start, cpu_start = time.perf_counter(), time.process_time()
    work()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "units": units, "settings": settings}


def main(name: tyro.conf.Positional[str], units: int, seed: int = 0) -> None:
    """Measure one contender on one core and print JSON.

    Args:
        name: a key of CONTENDERS.
        units: steps, or draws from a buffer.
        seed: of the contender.
    """
    os.environ |= ONE_THREAD
    if hasattr(os, "sched_setaffinity"):  # Linux only
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(json.dumps(measure(name, units, seed)))


if __name__ == "__main__":
    tyro.cli(main)
