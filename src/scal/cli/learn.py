"""`scal train`, `scal resume` and `scal eval`."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console

from scal import present
from scal.cli.targets import check_folder, check_target
from scal.learn.config import DISCRETE, Config

if TYPE_CHECKING:
    from scal.run.agent import SCAL
    from scal.run.seeds import Seeds
    from scal.run.siblings import Siblings


@dataclass(frozen=True)
class Train:
    """Learn a Gymnasium environment with SCAL, or with the deep ALM it grew out of."""

    env: tyro.conf.Positional[str]
    """Id of the environment, such as CartPole-v1, HalfCheetah-v5 or my_package:Mine-v0."""
    steps: int = 50_000
    """Interactions with the environment."""
    seed: int = 0
    """Decides everything."""
    seeds: int | None = None
    """Learn so many seeds side by side, from --seed on."""
    workers: int = 0
    """Processes that step the environments of --seeds, if these have no compiled form."""
    preset: str = "default"
    """default, replayed for the one without a lookahead, or paper for the literal method."""
    out: Path | None = None
    """Folder of the run; runs/ENV-SEED if left out, runs/ENV-FIRST-LAST for several seeds."""
    tensorboard: bool = False
    """Write event files for TensorBoard too."""
    quiet: bool = False
    """No progress bar."""
    config: tyro.conf.OmitArgPrefixes[Config] = DISCRETE

    def run(self) -> int:
        """Train, save, say how well it does."""
        from scal.run import training
        from scal.run.options import check_budget

        check_budget(self.steps, training.EVERY)
        last = "" if self.seeds is None else f"-{self.seed + self.seeds - 1}"
        default = Path("runs") / f"{self.env.replace('/', '-')}-{self.seed}{last}"
        agent = self._agent()
        folder = training.check_free(self.out or default)
        check_folder(folder)
        return _train(agent, self.steps, folder, self.quiet, self.tensorboard)

    def _agent(self) -> "SCAL | Seeds | Siblings":
        from scal.envs.compiled import functional_env
        from scal.run.agent import SCAL
        from scal.run.seeds import Seeds
        from scal.run.siblings import Siblings

        options = asdict(self.config)
        if self.workers and (self.seeds is None or functional_env(self.env)):
            raise ValueError(
                f"workers is {self.workers}, for --seeds of environments without a compiled form; "
                "leave it out"
            )
        if self.seeds is None:
            return SCAL(self.env, self.seed, self.preset, **options)
        many = (self.env, self.seeds, self.seed, self.preset)
        if functional_env(self.env):
            return Seeds(*many, **options)
        return Siblings(*many, self.workers, **options)


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was stopped, exactly as if it had not been; or with a finished one."""

    folder: tyro.conf.Positional[Path]
    """Folder of the run."""
    steps: int | None = None
    """Further interactions; if left out, those that are missing, and 50,000 if none are."""
    quiet: bool = False
    """No progress bar."""

    def run(self) -> int:
        """Load the newest checkpoint and train on."""
        from scal.run import training
        from scal.run.options import check_budget

        tensorboard = (self.folder / "tensorboard").is_dir()
        if self.steps is not None:
            check_budget(self.steps, training.EVERY)
        agent = training.open_run(self.folder)
        steps = training.steps_left(self.folder, agent) if self.steps is None else self.steps
        return _train(agent, steps, self.folder, self.quiet, tensorboard)


@dataclass(frozen=True)
class Eval:
    """Play episodes with a trained agent's greedy policy."""

    folder: tyro.conf.Positional[Path]
    """Folder of the run."""
    episodes: int = 10
    """Whole episodes, with seeds that training never used; of each seed, if there are several."""
    json: bool = False
    """Print one JSON object instead of a line."""
    video: str | None = None
    """Film the first episode, of the first seed, into this .mp4 or .gif file."""
    plot: str | None = None
    """Draw the policy, of the first seed, beside the exact optimum into a .png, .svg or .pdf."""

    def run(self) -> int:
        """Evaluate and report."""
        from scal.run import exact, training
        from scal.run.agent import SCAL
        from scal.run.video import WRITERS

        if self.episodes < 1:
            raise ValueError(f"episodes is {self.episodes}; use a whole number of at least 1")
        if self.video is not None:
            check_target(self.video, set(WRITERS))
        if self.plot is not None:
            check_target(self.plot, present.PLOT_KINDS)
        agent = training.load_run(self.folder)
        first = agent if isinstance(agent, SCAL) else agent.agent(0)
        comparison = exact.compare(first)
        if self.plot is not None and comparison is None:
            raise ValueError(f"{agent.env_id} has no known MDP to compare with; leave out --plot")
        if self.video is not None:
            first.video(self.video)
        report = summary(agent.evaluate(self.episodes))
        if comparison is not None:
            report["exact"] = comparison.as_dict()
        if self.plot is not None:
            assert comparison is not None
            present.plot_comparison(self.plot, comparison, str(agent.env_id))
        if self.json:
            print(json.dumps(report))
            return 0
        spread, worst = f"{report['mean']:.1f} ± {report['std']:.1f}", f"{report['min']:.1f}"
        episodes = f"{self.episodes} episodes"
        if "seeds" in report:
            count = len(report["seeds"])
            plural = "seed" if count == 1 else "seeds"
            print(f"return {spread} over {count} {plural}, worst seed {worst}, {episodes} each")
        else:
            print(f"return {spread}, worst {worst}, {episodes}")
        if comparison is not None:
            present.print_comparison(Console(), comparison, first.seed)
        for path in (self.video, self.plot):
            if path is not None:
                print(f"wrote {path}")
        return 0


def summary(returns: NDArray[np.float64]) -> dict[str, Any]:
    """Mean, spread and worst of the episodes or, if there are several seeds, of their means."""
    means = returns.mean(axis=1) if returns.ndim == 2 else returns
    report = {
        "mean": float(means.mean()),
        "std": float(means.std()),
        "min": float(means.min()),
        "episodes": returns.shape[-1],
        "returns": returns.tolist(),
    }
    return report | ({"seeds": means.tolist()} if returns.ndim == 2 else {})


def _train(
    agent: "SCAL | Seeds | Siblings", steps: int, folder: Path, quiet: bool, tensorboard: bool
) -> int:
    from scal.run import training

    if agent.memory:
        print(agent.memory)
    last = agent.steps + steps
    finished = training.train(agent, steps, folder, not quiet, tensorboard)
    if not finished:
        print(f"stopped at step {agent.steps:,} of {last:,}, saved; scal resume {folder} goes on")
        return 130
    report = summary(agent.evaluate(10))
    count = len(report.get("seeds", []))
    over = f" over {count} {'seed' if count == 1 else 'seeds'}" if count else ""
    print(
        f"{agent.env_id}: return {report['mean']:.1f} ± {report['std']:.1f}{over} "
        f"after {agent.steps:,}"
    )
    print(f"wrote {folder}; scal eval {folder} --episodes 100 plays more")
    return 0
