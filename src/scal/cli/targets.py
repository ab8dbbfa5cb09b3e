"""Files that a command is told to write."""

from pathlib import Path


def check_target(path: str, kinds: set[str]) -> None:
    """Refuse a file that could not be written, before any work is done for it."""
    target = Path(path)
    if target.suffix.lower() not in kinds:
        raise ValueError(f"file {path!r} is of no known kind; name it {' or '.join(sorted(kinds))}")
    if target.is_dir():
        raise ValueError(f"file {path} is a folder; name a file")
    if not target.parent.is_dir():
        raise ValueError(f"folder {target.parent} does not exist; create it first")
