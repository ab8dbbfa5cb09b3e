"""The command `scal`: solve, train, resume, eval, bench, report, theory, doctor.

Exit codes: 0 success, 1 failure (the tolerance was not reached, a check failed), 2 bad input.
"""

import contextlib
import io
import sys
from itertools import pairwise
from typing import Annotated

import tyro

import scal
from scal.cli.bench import Bench, Report
from scal.cli.doctor import Doctor
from scal.cli.learn import Eval, Resume, Train
from scal.cli.solve import Solve
from scal.cli.theory import Theory
from scal.learn.config import PRESETS, Config, usual

Command = Solve | Train | Resume | Eval | Bench | Report | Theory | Doctor


def parse(arguments: list[str]) -> Command:
    """The command that the arguments spell.

    `--preset`, `--algorithm` and the kind of environment decide the defaults of all options.
    """
    words = [word for text in arguments for word in text.split("=", 1)]
    following = dict(pairwise(words))
    preset = following.get("--preset", "default")
    preset = preset if preset in PRESETS else "default"
    first = PRESETS[preset].discrete
    command = _parse(arguments, first)
    if isinstance(command, Train):
        from scal.run.spaces import spaces_of

        spaces = spaces_of(command.env)
        if spaces is not None:
            config = usual(preset, spaces, command.config.algorithm)
            return command if config == first else _parse(arguments, config)
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
        | Annotated[Theory, tyro.conf.subcommand("theory")]
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
