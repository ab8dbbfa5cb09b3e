"""Which cells make an experiment of the paper (section 7)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scal.bench.baselines import ZOO
from scal.bench.cell import Cell
from scal.envs.compiled import functional_env
from scal.learn.config import PRESETS, Config
from scal.run.spaces import adapt, make

LOCOMOTION = ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5")
LENGTHS = (1, 3, 5, 10)
LONG = 300_000
SEEDS, FIRST_SEED = 5, 7_000
OWN = ("default", "replayed")
"""Presets of SCAL that are compared with rivals where actions are discrete."""
DEVIATIONS = (
    ("s0_mix",),
    ("theta_step", "beta"),
    ("multiplier",),
    ("units",),
    ("scale_rewards", "clip_targets"),
    ("targets", "period_value", "period_multiplier", "period_share"),
    ("n_steps", "cuts"),
    ("sampling",),
    ("replay_size", "replay_share"),
    ("slack", "slack_scale", "lr_slack", "entropy", "lookahead_width"),
    ("learn_sigma",),
    ("gamma", "gamma_start"),
    ("average_share", "batch_size"),
    ("environments", "first_episode"),
    ("clip",),
    ("updates",),
)
"""Options that belong together: the learning side of docs/deviations.md."""

Suite = Callable[..., list[Cell]]
"""Seeds and first seed, or neither → cells."""


def inventory(seeds: int = SEEDS, first: int = FIRST_SEED) -> list[Cell]:
    """Inventory control: SCAL, PPO and TRPO."""
    return [
        cell
        for algorithm in ("scal", "ppo", "trpo")
        for cell in of_all_seeds(algorithm, "scal/Inventory-v0", 50_000, seeds, first)
    ]


def discrete(seeds: int = SEEDS, first: int = FIRST_SEED) -> list[Cell]:
    """CartPole and Acrobot: SCAL, DQN, PPO and TRPO."""
    return [
        cell
        for env in ("CartPole-v1", "Acrobot-v1")
        for algorithm in ("scal", "dqn", "ppo", "trpo")
        for cell in of_all_seeds(algorithm, env, 50_000, seeds, first)
    ]


def continuous(seeds: int = SEEDS, first: int = FIRST_SEED) -> list[Cell]:
    """MuJoCo locomotion: SCAL, and PPO, TRPO and SAC as RL-Zoo tuned them."""
    return [
        Cell(algorithm, env, LONG, seed, settings=settings, episodes=5)
        for env in LOCOMOTION
        for algorithm, settings in (
            ("scal", "default"), ("ppo", "zoo"), ("trpo", "zoo"), ("sac", "zoo"),
        )
        for seed in range(first, first + seeds)
    ]  # fmt: skip


def multistep(seeds: int = SEEDS, first: int = FIRST_SEED) -> list[Cell]:
    """SCAL with different lengths of its target, each named, whatever the default is."""
    return [
        Cell("scal", env, LONG, seed, options=(("n_steps", length),), episodes=5)
        for env in ("HalfCheetah-v5", "Ant-v5")
        for length in LENGTHS
        for seed in range(first, first + seeds)
    ]


def gradient(seeds: int = SEEDS, first: int = FIRST_SEED) -> list[Cell]:
    """Variance of both estimators of the gradient at replayed actions, with and without noise.

    Of four times as many seeds: between runs their ratio differs by orders of magnitude.
    """
    return [
        Cell("scal", env, 50_000, first, 4 * seeds, preset, gradients=True)
        for env in ("Acrobot-v1", "scal/NoisyAcrobot-v0")
        for preset in ("replayed", "paper")
    ]


def ablation(seeds: int = SEEDS, first: int = FIRST_SEED) -> list[Cell]:
    """SCAL with one deviation from the paper undone at a time, and with none."""
    usual, paper = PRESETS["default"], PRESETS["paper"]
    discrete = {"CartPole-v1": 20_000, "Acrobot-v1": 50_000, "scal/Inventory-v0": 50_000}
    continuous = {"Pendulum-v1": 50_000} | dict.fromkeys(LOCOMOTION, 100_000)
    kinds = (
        (discrete, undone(usual.discrete, replace(paper.discrete, learn_sigma=True))),
        (continuous, undone(usual.continuous, paper.continuous)),
    )
    return [
        replace(cell, options=options)
        for tasks, changes in kinds
        for env, steps in tasks.items()
        for options in changes
        for cell in of_scal(env, steps, seeds, first)
    ]


def undone(usual: Config, paper: Config) -> list[tuple[tuple[str, Any], ...]]:
    """No option, then those of each deviation as the paper has them, if they differ at all."""
    changes = [
        tuple((n, getattr(paper, n)) for n in names if getattr(paper, n) != getattr(usual, n))
        for names in DEVIATIONS
    ]
    return [(), *filter(None, changes)]


def smoke(seeds: int = 2, first: int = FIRST_SEED) -> list[Cell]:
    """Every algorithm and both kinds of loops, for a moment."""
    cells = [
        Cell("scal", "CartPole-v1", 4_000, first, seeds),
        Cell("scal", "scal/Inventory-v0", 2_000, first, seeds),
        Cell("scal", "scal/NoisyAcrobot-v0", 2_000, first, seeds, "replayed", gradients=True),
        Cell("scal", "HalfCheetah-v5", 2_000, first),
        Cell("dqn", "CartPole-v1", 4_000, first, settings="zoo"),
        Cell("ppo", "CartPole-v1", 4_000, first),
        Cell("trpo", "scal/Inventory-v0", 4_000, first),
        Cell("sac", "HalfCheetah-v5", 600, first),
    ]
    return [replace(cell, evaluations=2, episodes=2) for cell in cells]


def versus(env: str, steps: int, seeds: int = SEEDS, first: int = FIRST_SEED) -> list[Cell]:
    """Any environment of vectors: SCAL against its rivals, as they come and, where known, tuned."""
    spaces = adapt(make(env))[1]
    if spaces.image:
        raise ValueError(
            f"{env} shows frames, for which the rivals have no settings here; use scal train"
        )
    rivals = ("dqn", "ppo", "trpo") if spaces.discrete else ("ppo", "trpo", "sac")
    return [
        *of_scal(env, steps, seeds, first),
        *(
            Cell(algorithm, env, steps, seed, settings=settings)
            for algorithm in rivals
            for settings in ("default", "zoo")
            if settings == "default" or (algorithm, env) in ZOO
            for seed in range(first, first + seeds)
        ),
    ]


def part(
    cells: list[Cell], algorithms: Sequence[str] | None, envs: Sequence[str] | None
) -> list[Cell]:
    """Cells of some algorithms in some environments, all of them where none are named.

    They come seed by seed: a grid that is cut off has run as much of each.
    """
    chosen = [
        cell
        for cell in cells
        if (not algorithms or cell.algorithm in algorithms) and (not envs or cell.env in envs)
    ]
    return sorted(chosen, key=lambda cell: cell.seed)


def of_scal(env: str, steps: int, seeds: int, first: int) -> list[Cell]:
    """One cell for all seeds, in one program, if there is a compiled form of the environment."""
    if functional_env(env) is not None:
        return [Cell("scal", env, steps, first, seeds)]
    return [Cell("scal", env, steps, seed) for seed in range(first, first + seeds)]


def of_all_seeds(algorithm: str, env: str, steps: int, seeds: int, first: int) -> list[Cell]:
    """Those of SCAL, with and without its lookahead; of a rival one per seed and settings."""
    if algorithm == "scal":
        cells = of_scal(env, steps, seeds, first)
        return [replace(cell, settings=preset) for preset in OWN for cell in cells]
    tuned = "zoo" if (algorithm, env) in ZOO else "normalized"
    return [
        Cell(algorithm, env, steps, seed, settings=settings)
        for settings in ("default", tuned)
        for seed in range(first, first + seeds)
    ]


def paper(seeds: int = SEEDS, first: int = FIRST_SEED) -> list[Cell]:
    """All of them."""
    every = (inventory, discrete, continuous, multistep, gradient)
    return list(dict.fromkeys(cell for suite in every for cell in suite(seeds, first)))


SUITES: dict[str, Suite] = {
    suite.__name__: suite
    for suite in (inventory, discrete, continuous, multistep, gradient, paper, ablation, smoke)
}
