"""`scal doctor`."""

import json
from dataclasses import dataclass

from rich.console import Console

from scal import doctor


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
