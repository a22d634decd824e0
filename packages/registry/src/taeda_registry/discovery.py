"""Look-up of third-party providers among the installed entry points."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "taeda.components"


class Candidate:
    """An installed provider: its name, its module and the distribution it came with."""

    __slots__ = ("distribution", "entry_point", "name", "slot", "version")

    def __init__(self, slot: str, name: str, entry_point: EntryPoint) -> None:
        self.slot = slot
        self.name = name
        self.entry_point = entry_point
        dist = entry_point.dist
        # `dist.name` warns, and one day raises, where the metadata have none.
        self.distribution = (dist and dist.metadata.get("Name")) or "unknown distribution"
        self.version = dist.version if dist is not None else "unknown"

    def __repr__(self) -> str:
        return f"{self.name} ({self.entry_point.value}, from {self.distribution} {self.version})"


def installed(group: str) -> list[EntryPoint]:
    """All entry points of a group; a distribution whose metadata cannot be read is left out."""
    from importlib.metadata import entry_points

    try:
        return list(entry_points(group=group))
    except Exception:
        # One unreadable file would hide everybody else's entry points.
        return _one_by_one(group)


def _one_by_one(group: str) -> list[EntryPoint]:
    from importlib.metadata import distributions

    found: dict[str, list[EntryPoint]] = {}
    for distribution in distributions():
        try:
            name, points = distribution.metadata.get("Name"), distribution.entry_points
        except Exception:
            continue
        # The first of a name on the path is the one in force.
        found.setdefault(name, [point for point in points if point.group == group])
    return [point for points in found.values() for point in points]


def candidates(slot: str | None = None) -> list[Candidate]:
    """List installed providers, of one slot or of all, in a stable order. Nothing is imported."""
    found: list[Candidate] = []
    for entry_point in installed(GROUP):
        part, _, name = entry_point.name.partition(".")
        if name and (slot is None or part == slot):
            found.append(Candidate(part, name, entry_point))
    return sorted(found, key=lambda item: (item.slot, item.name, item.distribution))


def misnamed() -> list[str]:
    """Entry points of the group whose names lack the form ``<slot>.<provider>``."""
    return sorted(point.name for point in installed(GROUP) if "." not in point.name)
