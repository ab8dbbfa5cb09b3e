"""`scal theory`."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from scal import present
from scal.cli.targets import check_folder


@dataclass(frozen=True)
class Theory:
    """Measure what the paper proves; without a name, list the studies."""

    study: tyro.conf.Positional[str | None] = None
    """Name of the study, or all."""
    out: Path = Path("out/theory")
    """Folder for the figure, theory_NAME.svg, and the numbers, theory_NAME.json."""
    seed: int = 0
    """Decides everything."""

    def run(self) -> int:
        """Run one study or all of them, and say which slopes were missed."""
        from scal.theory.studies import STUDIES

        if self.study is None:
            for study in STUDIES.values():
                print(f"{study.name:14} {study.line}")
            return 0
        if self.study not in (*STUDIES, "all"):
            raise ValueError(f"study is {self.study!r}; use one of {', '.join(STUDIES)}, or all")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; use a whole number of at least 0")
        check_folder(self.out)
        self.out.mkdir(parents=True, exist_ok=True)
        missed = 0
        for study in STUDIES.values() if self.study == "all" else [STUDIES[self.study]]:
            report = study.run(self.seed)
            present.print_slopes(Console(), report)
            for path in study.write(report, self.out, self.out):
                print(f"wrote {path}")
            missed += sum(not slope.holds for slope in report.slopes)
        if missed:
            plural = "slope is" if missed == 1 else "slopes are"
            print(f"scal: {missed} {plural} not as predicted; see the table", file=sys.stderr)
        return 1 if missed else 0
