"""Devices whose kernels are Python functions."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library._operators import Library
from taeda_tensor_core.library._registration import Kernel, add_kernel, note
from taeda_tensor_core.library._table import operators

#: What a device may declare missing; the conformance kit skips what needs it.
CAPABILITIES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "complex"),
    *(
        "gradients",
        "higher-order",
        "in-place",
        "out",
        "negative-strides",
        "shared-memory",
        "random",
        "streams",
    ),
    *("events", "event-timing", "pinned-memory", "sharing", "convolution", "recurrent", "pickle", "saving"),
    *("closure", "threads"),
)


def _missing(capabilities: Mapping[str, str] | Iterable[str]) -> dict[str, str]:
    if isinstance(capabilities, str):
        raise TypeError(
            f"Backend: argument 'capabilities' must be names or a dict of reasons, found {capabilities!r}"
        )
    named = dict(capabilities) if isinstance(capabilities, Mapping) else dict.fromkeys(capabilities, "")
    if unknown := [name for name in named if name not in CAPABILITIES]:
        raise ValueError(
            f"Backend: argument 'capabilities': there is none named {', '.join(map(repr, unknown))}; "
            f"expected some of: {', '.join(CAPABILITIES)}"
        )
    for name, reason in named.items():
        if not isinstance(reason, str):
            raise TypeError(
                f"Backend: argument 'capabilities': the reason why {name!r} is missing must be a str, found {reason!r}"
            )
    return named


def _json(properties: dict[str, Any]) -> str:
    try:
        return json.dumps(properties)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Backend: argument 'properties' must hold what JSON can say: {error}") from None


class Backend(Library):
    """A device whose kernels are Python functions, over the host's memory or its own.

    Memory of the host is allocated by the core, and `array` shows it to NumPy without a copy. Memory of its own belongs
    to an object (`memory`): addresses are numbers, which only that object can read; tensors show theirs as
    `data_ptr()`. A kernel receives outputs that have their shape and dtype and inputs of any strides and dtypes,
    broadcast or not; an output may be one of the inputs.

    Args:
        name: Device type, as in `device="name"`.
        device_count: How many devices there are.
        capabilities: Which of `CAPABILITIES` are missing, as names or as a dict that gives reasons, for example
            `{"bfloat16": "NumPy has no such type"}`. `taeda.backends.lacks` shows them, and the conformance kit skips
            what needs them.
        properties: Facts for users, shown by `taeda.backends.properties`; whatever JSON can say.
        memory: Who owns the memory: an object with the methods `allocate(index, nbytes)`, which gives a number, never
            0, to which offsets in bytes are added; `release(index, address)` with such a number, which must not fail;
            `write(index, address, data)` and `read(index, address, data)`, which move `len(data)` bytes from and into a
            memoryview that holds for the call alone. None: memory is the host's.

    Raises:
        ValueError: The name, the count or a capability cannot be.
        TypeError: The properties are nothing that JSON can say, or a method of `memory` is missing.
        RuntimeError: There is a device of that name; both owners are named.

    Example:
        >>> backend = taeda.library.Backend("mydev")
        >>> @backend.kernel("add")
        ... def add(outputs, inputs):
        ...     a, b, alpha = inputs
        ...     backend.array(outputs[0])[...] = backend.array(a) + alpha * backend.array(b)
    """

    def __init__(
        self,
        name: str,
        *,
        device_count: int = 1,
        capabilities: Mapping[str, str] | Iterable[str] = (),
        properties: Mapping[str, Any] | None = None,
        memory: Any = None,
    ) -> None:
        super().__init__(name)
        self.device_count = device_count
        self.capabilities = _missing(capabilities)
        self.properties = {
            "name": name,
            "memory": "host" if memory is None else "own",
            **(properties or {}),
        }
        frame = sys._getframe(1)
        owner = f"{name} ({frame.f_code.co_filename}:{frame.f_lineno})"
        facts = _json(self.properties)
        self.index: int = _C._host_backend(name, device_count, owner, self.capabilities, facts, memory)
        note(self)

    @staticmethod
    def array(tensor: Tensor) -> Any:
        """NumPy's view of a tensor's memory, on this device or the cpu; bfloat16 shows as its bits in uint16."""
        return _C._host_array(tensor)

    def remove(self) -> None:
        """Take the kernels away, and the device's name, which may then be given again."""
        super().remove()
        _C._remove_host_backend(self.index)

    def kernel(
        self,
        *names: str,
        replace: bool = False,
        schema: str | None = None,
        if_present: bool = False,
        recorded: bool = False,
    ) -> Callable[[Callable], Kernel]:
        """Decorator: the kernel of one or several operators on this device; calling what it gives calls the function.

        An operator that is made of others (a view or composite) takes one too; it returns the results, or
        NotImplemented where it has no way for its arguments, and the others are called. It serves calls that record no
        gradients, unless it says `recorded`.

        Args:
            names: Operators, by the names of their function forms.
            replace: Take the places of kernels that are there.
            schema: What the function was written for, as `taeda.library.op(name).schema` gave it: the function is
                called with the arguments that it knows. One that the operator has been given since then reaches it at
                its default alone; for other values the operator is computed in terms of others, or
                NotImplementedError says why not.
            if_present: Leave out operators that this taeda does not have, instead of ValueError.
            recorded: Of an operator that is made of others: the function calls operators that have derivatives, its own
                among them, so it serves calls that record gradients too.

        Raises:
            RuntimeError: One has a kernel already and `replace` is false; then none of them is registered.
            ValueError: The schema differs from the operator's by more than arguments with defaults.
        """

        def take(function: Callable) -> Kernel:
            here = [name for name in names if not if_present or _C._has_operator(name)]
            return self._keep(add_kernel(here, self.name, function, self.name, replace, schema, recorded))

        return take

    def missing(self) -> list[str]:
        """Core operators that have no kernel here yet."""
        return [
            o.name
            for o in operators()
            if o.core
            and (o.form == "function" or o.kind == "direct")
            and not _C._kernel_owner(o.name, self.name)
        ]
