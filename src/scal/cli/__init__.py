"""The command `scal`: solve, train, resume, eval, bench, report, theory, doctor.

Exit codes: 0 success, 1 failure (the tolerance was not reached, a check failed), 2 bad input.
"""

import contextlib
import io
import os
import sys
import warnings
from itertools import pairwise
from typing import Annotated, get_args

import tyro

import scal
from scal.cli.bench import Bench, Report
from scal.cli.doctor import Doctor
from scal.cli.learn import Eval, Resume, Train
from scal.cli.solve import Solve
from scal.cli.theory import Theory
from scal.learn.config import PRESETS, Config, usual

Command = Solve | Train | Resume | Eval | Bench | Report | Theory | Doctor
VERBS = {verb.__name__.lower() for verb in get_args(Command)}


def parse(arguments: list[str]) -> Command:
    """The command that the arguments spell.

    `--preset`, `--algorithm` and the kind of environment decide the defaults of all options.
    """
    words = [word for text in arguments for word in text.split("=", 1)]
    following = dict(pairwise(words))
    preset = following.get("--preset", "default")
    preset = preset if preset in PRESETS else "default"
    first = PRESETS[preset].discrete
    if arguments[:1] == ["train"] and {"-h", "--help"} & set(arguments):
        first = _of_named(arguments[1:], preset, words) or first
    command = _parse(arguments, first)
    if isinstance(command, Train):
        from scal.run.spaces import spaces_of

        spaces = spaces_of(command.env)
        if spaces is not None:
            config = usual(preset, spaces, command.config.algorithm)
            return command if config == first else _parse(arguments, config)
    return command


def _of_named(arguments: list[str], preset: str, words: list[str]) -> Config | None:
    """The options for the environment that a call for help names, if it does."""
    from scal.run.spaces import spaces_of

    algorithm = "deep-alm" if "deep-alm" in words else "scal"
    named = (spaces_of(word) for word in arguments if not word.startswith("-"))
    spaces = next(filter(None, named), None)
    return spaces and usual(preset, spaces, algorithm)


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
            verb = f" {arguments[0]}" if arguments[:1] and arguments[0] in VERBS else ""
            raise ValueError(_sentence(said.getvalue(), f"scal{verb} --help")) from None
        raise


def _sentence(box: str, help: str) -> str:
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
    return message if "; " in message else f"{message}; see {help}"


def main(arguments: list[str] | None = None) -> int:
    """Entry point of the command `scal`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(scal.__version__)
        return 0
    usual_format = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"scal: {message}\n"
    try:
        return parse(arguments).run()
    except ValueError as error:
        print(f"scal: {error}", file=sys.stderr)
        return 2
    except MemoryError:
        print("scal: there is not enough memory for this problem; make it smaller", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (RuntimeError, OSError) as error:
        print(f"scal: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("scal: stopped", file=sys.stderr)
        return 130
    finally:
        warnings.formatwarning = usual_format
