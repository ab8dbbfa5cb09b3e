"""Run a study and put its numbers and its figure where the documents look for them."""

from pathlib import Path

from scal.theory.studies import STUDIES

ROOT = Path(__file__).parents[1]


def write(*names: str) -> None:
    for name in names:
        study = STUDIES[name]
        report = study.run()
        study.write(report, ROOT / "experiments" / "results", ROOT / "docs" / "figures")
        print(f"{name}: {report.seconds:.0f} s")
        for slope in report.slopes:
            sign = "=" if slope.kind == "exact" else "≤"
            print(f"  {slope.quantity} over {slope.variable}: {slope.measured} {sign} ", end="")
            print(f"{slope.predicted:g}{'' if slope.holds else '  MISSED'}")
