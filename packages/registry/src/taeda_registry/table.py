"""The table of slots: names, interface versions and first-party providers."""

from __future__ import annotations

from taeda_registry.errors import UnknownSlotError

FIRST_PARTY = "taeda"


class Slot:
    """One replaceable part of the library.

    Args:
        name: Identifier of the slot, for instance ``"optim"``.
        interface: Version ``(major, minor)`` of the interface that providers implement.
        module: Import name of the provider used when nobody chooses another one.
        distribution: Name under which pip installs that provider.
        purpose: One line for listings.
    """

    __slots__ = ("distribution", "interface", "module", "name", "purpose")

    def __init__(
        self, name: str, interface: tuple[int, int], module: str, distribution: str, purpose: str = ""
    ) -> None:
        if not name.isidentifier():
            raise ValueError(f"Slot: name must be a Python identifier, got {name!r}")
        self.name = name
        self.interface = interface
        self.module = module
        self.distribution = distribution
        self.purpose = purpose

    @property
    def variable(self) -> str:
        """Environment variable that chooses the slot's provider."""
        return f"TAEDA_{self.name.upper()}"

    @property
    def interface_text(self) -> str:
        """Interface version as ``major.minor``."""
        return f"{self.interface[0]}.{self.interface[1]}"

    def __repr__(self) -> str:
        return f"Slot({self.name!r}, interface={self.interface_text}, module={self.module!r})"


_slots: dict[str, Slot] = {
    slot.name: slot
    for slot in (
        Slot("tensor", (1, 0), "taeda_tensor_core", "taeda-tensor-core", "tensors and their operators"),
        Slot("autograd", (1, 0), "taeda_autograd", "taeda-autograd", "automatic differentiation"),
        Slot("nn", (1, 0), "taeda_nn", "taeda-nn", "neural-network modules and functions"),
        Slot("optim", (1, 0), "taeda_optim", "taeda-optim", "optimizers and learning-rate schedules"),
        Slot("data", (1, 0), "taeda_data", "taeda-data", "data sets and loaders"),
        Slot(
            "multiprocessing",
            (1, 0),
            "taeda_multiprocessing",
            "taeda-multiprocessing",
            "processes that share tensors",
        ),
        Slot("profiler", (1, 0), "taeda_profiler", "taeda-profiler", "where time and memory go"),
    )
}


def slot_names() -> list[str]:
    """Names of all slots, first-party ones first."""
    return list(_slots)


def get_slot(name: str) -> Slot:
    """Return the slot called ``name``.

    Raises:
        UnknownSlotError: No such slot has been declared.
    """
    try:
        return _slots[name]
    except KeyError:
        known = ", ".join(_slots)
        raise UnknownSlotError(
            f"no slot is called {name!r}; known slots: {known} (add_slot declares a new one)"
        ) from None


def add_slot(slot: Slot) -> None:
    """Declare a further slot, so that it can be chosen, resolved and listed like the first-party ones.

    Raises:
        ValueError: A different slot of that name exists.
    """
    if not isinstance(slot, Slot):
        raise TypeError(f"add_slot: expected a Slot, got {type(slot).__name__}")
    present = _slots.get(slot.name)
    if present is not None and repr(present) != repr(slot):
        raise ValueError(f"add_slot: {slot.name!r} is already declared as {present!r}, refusing {slot!r}")
    _slots.setdefault(slot.name, slot)
