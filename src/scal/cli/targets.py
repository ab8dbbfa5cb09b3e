"""Files that a command is told to write."""

import tempfile
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
    check_folder(target.parent)


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be made or written into, and leave no trace."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ValueError(f"folder {folder} is a file or lies in one; name another")
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise ValueError(
            f"folder {folder} cannot be written into ({error.strerror}); choose another"
        ) from None
