"""Dependencies between the packages point one way (docs/architecture.md)."""

import ast
from pathlib import Path

import scal

ROOT = Path(scal.__file__).parent
LAYERS = [
    "objective",
    "mdp",
    "envs",
    "learn",
    "run",
    "theory",
    "bench",
    "problems",
    "present",
    "doctor",
    "cli",
]
FOUNDATION = {"mdp": {"numpy", "scipy", "highspy"}, "objective": set()}


def imports(path: Path) -> set[str]:
    """Full names of the modules that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def files(layer: str) -> list[Path]:
    found = [*(ROOT / layer).rglob("*.py"), *ROOT.glob(f"{layer}.py")]
    assert found, layer
    return found


def test_every_module_has_a_layer():
    modules = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}
    assert modules - {"__init__"} == set(LAYERS)


def test_imports_point_down():
    for height, layer in enumerate(LAYERS):
        for path in files(layer):
            for name in imports(path):
                if name.startswith("scal."):
                    used = name.split(".")[1]
                    assert used in LAYERS[: height + 1], f"{path.name} imports {name}"


def test_the_foundation_stands_on_few_libraries():
    for layer, allowed in FOUNDATION.items():
        for path in files(layer):
            outside = {name.split(".")[0] for name in imports(path)} - {"scal"}
            standard = {name for name in outside if name in __import__("sys").stdlib_module_names}
            assert outside - standard <= allowed, path.name
