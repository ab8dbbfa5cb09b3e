"""TensorBoard's event files, read back: records of a length, a checksum, an Event, a checksum."""

import struct
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event


def events(folder: Path) -> list[Event]:
    """All events, oldest file first."""
    found = []
    for path in sorted(folder.iterdir()):
        blob, place = path.read_bytes(), 0
        while place < len(blob):
            (length,) = struct.unpack_from("<Q", blob, place)
            found.append(Event.FromString(blob[place + 12 : place + 12 + length]))
            place += 12 + length + 4
    return found


def scalars(folder: Path) -> list[tuple[int, str, float]]:
    """(step, name, value) of every scalar."""
    return [
        (event.step, value.tag, value.simple_value)
        for event in events(folder)
        for value in event.summary.value
    ]
