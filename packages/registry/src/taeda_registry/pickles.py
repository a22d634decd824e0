"""What the standard library's pickler writes types by."""

from __future__ import annotations

import pickle
from types import FunctionType

# Its methods, as it is written in Python, that write a type: their names after `save_`.
_WRITERS = {
    type(None): "none", bool: "bool", int: "long", float: "float", bytes: "bytes", bytearray: "bytearray",
    pickle.PickleBuffer: "picklebuffer", str: "str", tuple: "tuple", list: "list", dict: "dict", set: "set",
    frozenset: "frozenset", FunctionType: "global", type: "type",
}  # fmt: skip
#: Its table of them as the standard library made it: other libraries (dill) change the one that stands there.
DISPATCH = {kind: getattr(pickle._Pickler, f"save_{name}") for kind, name in _WRITERS.items()}  # type: ignore[attr-defined]
