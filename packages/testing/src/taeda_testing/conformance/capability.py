"""Capabilities: what an implementation may lack by its own declaration, and how it declares it.

Every check that is left out is tied to one of these names; there is no other way to skip anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

# A provider's module says what it lacks under this name: {slot: {capability: reason}}.
ATTRIBUTE = "__taeda_lacks__"

DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)

KNOWN: dict[str, str] = {
    **{name: f"elements of dtype {name}" for name in DTYPES},
    "complex": "elements of the complex dtypes",
    "gradients": "recording of operations for differentiation",
    "higher-order": "gradients of gradients",
    "in-place": "in-place forms of operators",
    "out": "the out= form of operators",
    "negative-strides": "views with negative strides",
    "shared-memory": "tensors that share the memory of a NumPy array",
    "random": "a random generator of its own",
    "streams": "streams",
    "events": "events",
    "event-timing": "times between events",
    "pinned-memory": "pinned host memory",
    "sharing": "sharing of memory between processes",
    "convolution": "convolution and pooling",
    "recurrent": "recurrent layers",
    "pickle": "pickling",
    "saving": "saved states",
    "closure": "steps that recompute the loss",
    "threads": "use by several threads at once",
}
_PARTS = {"complex64": "complex", "complex128": "complex"}


class Lacks:
    """The capabilities that an implementation declares it does not have.

    Args:
        declared: name to reason.

    Raises:
        ValueError: a name that is no capability; the text lists the known ones.
    """

    def __init__(self, declared: Mapping[str, str]) -> None:
        unknown = sorted(set(declared) - set(KNOWN))
        if unknown:
            raise ValueError(
                f"conformance: unknown capabilities {unknown}; expected some of: {', '.join(KNOWN)}"
            )
        self.declared = dict(declared)

    def first(self, needs: Iterable[str]) -> str | None:
        """The first capability of ``needs`` that is declared missing, else None."""
        for name in needs:
            for spelling in (name, _PARTS.get(name)):
                if spelling in self.declared:
                    return spelling
        return None


def of_provider(module: ModuleType, slot: str) -> dict[str, str]:
    """What a provider's module declares for a slot.

    Raises:
        ValueError: a declaration of another form.
    """
    declared: Any = getattr(module, ATTRIBUTE, {})
    lacks = declared.get(slot, {}) if isinstance(declared, Mapping) else None
    if not isinstance(lacks, Mapping) or not all(isinstance(reason, str) for reason in lacks.values()):
        raise ValueError(
            f"{module.__name__}.{ATTRIBUTE}: expected {{slot: {{capability: reason}}}}, found {declared!r}"
        )
    return dict(lacks)
