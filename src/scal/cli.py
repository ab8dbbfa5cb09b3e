"""The command `scal`: solve, train, resume, eval, doctor.

Exit codes: 0 success, 1 failure (the tolerance was not reached, a check failed), 2 bad input.
"""

import contextlib
import io
import json
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console

import scal
from scal import doctor, present
from scal.learn.config import DEFAULT, PRESETS, Config
from scal.mdp import solve
from scal.problems import find_problem

if TYPE_CHECKING:
    from scal.run.agent import SCAL
    from scal.run.seeds import Seeds


@dataclass(frozen=True)
class Solve:
    """Solve a finite MDP exactly and prove it."""

    problem: tyro.conf.Positional[str]
    """inventory, random:STATES,ACTIONS,SUCCESSORS,SEED, a toy-text id, or an .npz file."""
    method: str = "auto"
    """auto, alm (the paper's Algorithm 1), lp (HiGHS), vi, pi or mpi."""
    gamma: float | None = None
    """Discount factor; 0.99 unless the file says otherwise."""
    tolerance: float = 1e-6
    """Largest gap between the proven bounds."""
    json: bool = False
    """Print one JSON object instead of a table."""
    out: str | None = None
    """Write V, h, x, policy and certificate to this .npz file."""
    plot: str | None = None
    """Draw value and policy into this .png, .svg or .pdf file."""

    def run(self) -> int:
        """Solve, show, and say whether the tolerance was reached."""
        for path, kinds in ((self.out, {".npz"}), (self.plot, present.PLOT_KINDS)):
            if path is not None:
                check_target(path, kinds)
        problem = find_problem(self.problem, self.gamma)
        start = time.perf_counter()
        solution = solve(problem.mdp, self.method, self.tolerance)
        seconds = time.perf_counter() - start
        proof = solution.certificate
        if self.out:
            solution.save(self.out)
        if self.plot:
            present.plot_solution(self.plot, problem, solution)
        if self.json:
            print(
                json.dumps(
                    {
                        "states": problem.mdp.n_states,
                        "actions": problem.mdp.n_actions,
                        "gamma": problem.mdp.gamma,
                        "method": solution.method,
                        "objective": solution.objective,
                        "upper": proof.upper,
                        "lower": proof.lower,
                        "gap": proof.gap,
                        "iterations": solution.iterations,
                        "seconds": seconds,
                        "policy": solution.policy.tolist(),
                    }
                )
            )
        else:
            console = Console()
            present.print_solution(console, problem, solution, seconds)
            for path in filter(None, (self.out, self.plot)):
                console.print(f"wrote {path}")
        if not solution.proven:
            print(
                f"scal: the proven gap {proof.gap:.2e} is above the tolerance {self.tolerance:g}; "
                f"rounding alone accounts for {proof.margin:.1e}",
                file=sys.stderr,
            )
            return 1
        return 0


@dataclass(frozen=True)
class Bench:
    """Run experiments of the paper, against Stable-Baselines3's rivals; run again, it goes on."""

    suite: tyro.conf.Positional[str]
    """inventory, discrete, continuous, multistep, gradient, paper (all of these) or smoke."""
    out: Path | None = None
    """Folder of the results; bench/SUITE if left out."""
    seeds: int | None = None
    """Seeds per algorithm and environment."""
    runner: str = "local"
    """local (processes of this machine), or ray (tasks of a cluster)."""
    address: str | None = None
    """Of the Ray cluster; without it one is started on this machine."""
    workers: int | None = None
    """Cells at a time, each in a process with one thread; one if local, all that Ray has."""
    dry_run: bool = False
    """Only say what would be run."""

    def run(self) -> int:
        """Run what is missing, show the results, and say what failed."""
        from rich.console import Console

        from scal.bench import runners, series, show, suites
        from scal.bench.grid import Grid

        if self.suite not in suites.SUITES:
            raise ValueError(f"suite is {self.suite!r}; use one of {', '.join(suites.SUITES)}")
        if self.runner not in runners.RUNNERS:
            raise ValueError(f"runner is {self.runner!r}; use one of {', '.join(runners.RUNNERS)}")
        if self.address and self.runner != "ray":
            raise ValueError("--address is for --runner ray; leave one out or name the other")
        if any(number is not None and number < 1 for number in (self.workers, self.seeds)):
            raise ValueError("--workers and --seeds are whole numbers of at least 1")
        seeds = {} if self.seeds is None else {"seeds": self.seeds}
        grid = Grid(self.out or Path("bench") / self.suite, suites.SUITES[self.suite](**seeds))
        console = Console()
        if self.dry_run:
            console.print(show.plan(grid, self.workers or 1))
            return 0
        runner = (
            runners.Processes(self.workers or 1)
            if self.runner == "local"
            else runners.Ray(self.address, self.workers)
        )
        failed = show.Board(grid, runner.slots).follow(grid.run(runner))
        if grid.results():
            console.print(show.summary(series.gather(series.read([grid.folder]))))
        for event in failed:
            console.print(f"failed: {event.cell.name}: {event.reason}")
        return 1 if failed else 0


@dataclass(frozen=True)
class Report:
    """Turn results of `scal bench` into one HTML page."""

    folders: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of results, or files of experiments/results."""
    out: str = "report.html"
    """The page."""
    figures: Path | None = None
    """Folder for the figures as SVG and PNG files."""

    def run(self) -> int:
        """Write the page and say where."""
        from scal.bench import report

        check_target(self.out, {".html"})
        if not self.folders:
            raise ValueError("no folder of results is named; use scal report bench/SUITE")
        print(f"wrote {report.write(self.folders, Path(self.out))}")
        if self.figures is not None:
            written = report.write_figures(self.folders, self.figures)
            print(f"wrote {len(written)} files into {self.figures}")
        return 0


@dataclass(frozen=True)
class Doctor:
    """Print versions and devices, and check that every solver works here."""

    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        """Examine and report."""
        report = doctor.examine()
        if self.json:
            print(json.dumps(report))
        else:
            console = Console(highlight=False)
            console.print(f"Python {report['python']} on {report['system']}")
            for name, version in report["packages"].items():
                console.print(f"  {name:10} {version}")
            console.print(f"devices: {', '.join(report['devices'])}")
            for method, passed in report["checks"].items():
                console.print(f"  solve {method:5} {'proved optimal' if passed else 'FAILED'}")
        return 0 if all(report["checks"].values()) else 1


@dataclass(frozen=True)
class Train:
    """Learn a Gymnasium environment with SCAL, or with the deep ALM it grew out of."""

    env: tyro.conf.Positional[str]
    """Id of the environment, such as CartPole-v1 or HalfCheetah-v5."""
    steps: int = 50_000
    """Interactions with the environment."""
    seed: int = 0
    """Decides everything."""
    seeds: int | None = None
    """Learn so many seeds side by side, from --seed on; for environments with a compiled form."""
    environments: int = 1
    """Copies of the environment that are stepped together."""
    preset: str = "default"
    """default, or paper for the literal method."""
    out: Path | None = None
    """Folder of the run; runs/ENV-SEED if left out, runs/ENV-FIRST-LAST for several seeds."""
    tensorboard: bool = False
    """Write event files for TensorBoard too."""
    quiet: bool = False
    """No progress bar."""
    config: tyro.conf.OmitArgPrefixes[Config] = DEFAULT

    def run(self) -> int:
        """Train, save, say how well it does."""
        from scal.run import training
        from scal.run.agent import SCAL
        from scal.run.seeds import Seeds

        if self.seeds is not None and self.environments != 1:
            raise ValueError("--seeds and --environments do not go together; leave one out")
        last = "" if self.seeds is None else f"-{self.seed + self.seeds - 1}"
        default = Path("runs") / f"{self.env.replace('/', '-')}-{self.seed}{last}"
        folder = training.check_free(self.out or default)
        options = asdict(self.config)
        agent = (
            SCAL(self.env, self.seed, self.preset, self.environments, **options)
            if self.seeds is None
            else Seeds(self.env, self.seeds, self.seed, self.preset, **options)
        )
        return _train(agent, self.steps, folder, self.quiet, self.tensorboard)


@dataclass(frozen=True)
class Resume:
    """Go on with a run, exactly as if it had never stopped."""

    folder: tyro.conf.Positional[Path]
    """Folder of the run."""
    steps: int = 50_000
    """Further interactions."""
    quiet: bool = False
    """No progress bar."""

    def run(self) -> int:
        """Load the newest checkpoint and train on."""
        from scal.run import training

        tensorboard = (self.folder / "tensorboard").is_dir()
        agent = training.open_run(self.folder)
        return _train(agent, self.steps, self.folder, self.quiet, tensorboard)


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
        from scal.run.seeds import Seeds
        from scal.run.video import WRITERS

        if self.episodes < 1:
            raise ValueError(f"episodes is {self.episodes}; use a whole number of at least 1")
        if self.video is not None:
            check_target(self.video, set(WRITERS))
        if self.plot is not None:
            check_target(self.plot, present.PLOT_KINDS)
        agent = training.load_run(self.folder)
        first = agent.agent(0) if isinstance(agent, Seeds) else agent
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


def _train(agent: "SCAL | Seeds", steps: int, folder: Path, quiet: bool, tensorboard: bool) -> int:
    from scal.run import training

    finished = training.train(agent, steps, folder, not quiet, tensorboard)
    if not finished:
        print(f"stopped at step {agent.steps:,}, saved; scal resume {folder} goes on")
        return 0
    report = summary(agent.evaluate(10))
    count = len(report.get("seeds", []))
    over = f" over {count} {'seed' if count == 1 else 'seeds'}" if count else ""
    print(
        f"{agent.env_id}: return {report['mean']:.1f} ± {report['std']:.1f}{over} "
        f"after {agent.steps:,}"
    )
    print(f"wrote {folder}; scal eval {folder} plays more, scal resume {folder} goes on")
    return 0


Command = Solve | Train | Resume | Eval | Bench | Report | Doctor


def parse(arguments: list[str]) -> Command:
    """The command that the arguments spell.

    `--preset` and the environment's kind of actions decide the defaults of all options.
    """
    words = [word for text in arguments for word in text.split("=", 1)]
    following = dict(pairwise(words))
    preset = PRESETS.get(following.get("--preset", "default"), PRESETS["default"])
    command = _parse(arguments, preset.discrete)
    if isinstance(command, Train):
        from scal.run.spaces import has_continuous_actions

        if has_continuous_actions(command.env):
            return _parse(arguments, preset.continuous)
    return command


def _parse(arguments: list[str], config: Config) -> Command:
    train = Train(env=tyro.MISSING, config=config)
    command = (
        Annotated[Solve, tyro.conf.subcommand("solve")]
        | Annotated[Train, tyro.conf.subcommand("train", default=train)]
        | Annotated[Resume, tyro.conf.subcommand("resume")]
        | Annotated[Eval, tyro.conf.subcommand("eval")]
        | Annotated[Bench, tyro.conf.subcommand("bench")]
        | Annotated[Report, tyro.conf.subcommand("report")]
        | Annotated[Doctor, tyro.conf.subcommand("doctor")]
    )
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(command, args=arguments, prog="scal")
    except SystemExit as end:
        if end.code:
            raise ValueError(_sentence(said.getvalue())) from None
        raise


def _sentence(box: str) -> str:
    """The message that tyro prints between a title and a hint, in a box or between rules."""
    groups: list[list[str]] = [[]]
    for line in box.splitlines():
        words = line.strip("│| ")
        if words[:1] == "╭" or (words and not words.strip("─-")):
            groups.append([])
        elif words:
            groups[-1].append(words)
    message = " ".join(groups[min(1, len(groups) - 1)])
    message = message.removeprefix("Error parsing __tyro-dummy-inner__.config: ")
    return message if "; " in message else f"{message}; see scal --help"


def check_target(path: str, kinds: set[str]) -> None:
    """Refuse a file that could not be written, before any work is done for it."""
    target = Path(path)
    if target.suffix.lower() not in kinds:
        raise ValueError(f"file {path!r} is of no known kind; name it {' or '.join(sorted(kinds))}")
    if target.is_dir():
        raise ValueError(f"file {path} is a folder; name a file")
    if not target.parent.is_dir():
        raise ValueError(f"folder {target.parent} does not exist; create it first")


def main(arguments: list[str] | None = None) -> int:
    """Entry point of the command `scal`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(scal.__version__)
        return 0
    try:
        return parse(arguments).run()
    except ValueError as error:
        print(f"scal: {error}", file=sys.stderr)
        return 2
    except MemoryError:
        print("scal: there is not enough memory for this problem; make it smaller", file=sys.stderr)
        return 1
    except (RuntimeError, OSError) as error:
        print(f"scal: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("scal: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
