"""The ONNX graph that is being written, as the functions of the tables see it."""

from __future__ import annotations

from typing import Any

from taeda.onnx import _wire
from taeda.onnx.errors import SymbolicValueError
from taeda_registry.slots import tensor

__all__ = ["GraphWriter", "Value"]

_PREFERRED_EXTERNAL = 1 << 30  # a file of protocol buffers ends at two gigabytes


class Value:
    """A value of the graph.

    Attributes:
        name: Its name in the graph.
        real: What the value was for the example inputs: a tensor, or a number that comes from a size.
        known: Whether it is the same for all inputs.
    """

    def __init__(self, name: str, real: Any, known: bool = False) -> None:
        self.name, self.real, self.known = name, real, known

    @property
    def dtype(self) -> Any:
        """The dtype of a tensor."""
        return self.real.dtype

    @property
    def shape(self) -> Any:
        """The shape for the example inputs."""
        return self.real.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return int(self.real.dim())

    def dim(self, axis: int) -> int:
        """An axis as a number from zero."""
        return axis + self.rank if axis < 0 else axis


class GraphWriter:
    """Collects nodes and constants.

    Args:
        opset: Version of ONNX's operators.

    Attributes:
        result: What the function that is being written gave for the example inputs.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[tuple[str, list[str], list[str], dict[str, Any], str]] = []
        self.constants: dict[str, Any] = {}
        self.parameters: dict[str, Any] = {}
        self.dynamic = False
        self.domains: dict[str, int] = {"": opset}
        self.result: Any = None
        self._shared: dict[Any, Value] = {}
        self._taken: set[str] = set()

    # --- names and constants ---

    def fresh(self, hint: str) -> str:
        """A name that nothing has."""
        name, count = hint, 0
        while name in self._taken:
            count += 1
            name = f"{hint}_{count}"
        self._taken.add(name)
        return name

    def constant(self, value: Any, dtype: Any = None, name: str = "const") -> Value:
        """A tensor, number or list of numbers as a value of the graph."""
        key = None
        if not isinstance(value, tensor.Tensor):
            key = (str(value), type(value).__name__, str(dtype))
            if key in self._shared:
                return self._shared[key]
            value = tensor.tensor(value, dtype=dtype)
        elif dtype is not None and value.dtype != dtype:
            value = value.to(dtype)
        made = Value(self.fresh(name), value, known=True)
        self.constants[made.name] = value
        if key is not None:
            self._shared[key] = made
        return made

    def parameter(self, path: str, value: Any) -> Value:
        """A parameter or buffer of the module."""
        if path not in self.parameters:
            self._taken.add(path)
            self.parameters[path] = value
        return Value(path, value)

    def taken(self) -> set[str]:
        """The names that something has."""
        return self._taken

    def rename(self, old: str, new: Any) -> str:
        """Give a node's result another name."""
        self._taken.add(new)
        for _, used, made, _, _ in self.nodes:
            used[:] = [new if name == old else name for name in used]
            made[:] = [new if name == old else name for name in made]
        return str(new)

    def size(self, value: Value, axis: int) -> Any:
        """A tensor's size along an axis: a number, or a value where sizes may vary."""
        if not self.dynamic or value.known:
            return int(value.shape[axis])
        place = self.constant(axis, tensor.int64)
        return Value(self.op("Gather", self.op("Shape", value), place, axis=0).name, int(value.shape[axis]))

    def ints(self, items: Any) -> Value:
        """A list of sizes, some of which may come from inputs, as one value."""
        items = list(items)
        if not any(isinstance(item, Value) for item in items):
            return self.constant([int(item) for item in items], tensor.int64)
        shape = self.constant([1], tensor.int64)
        parts = [
            self.op("Reshape", item, shape)
            if isinstance(item, Value)
            else self.constant([int(item)], tensor.int64)
            for item in items
        ]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    # --- nodes ---

    def op(self, kind: str, *inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node.

        Args:
            kind: Operator of ONNX; `library::Operator` for another's, whose attributes may end in their kind, as `_i`.
            inputs: Values; None for one that is left out; numbers and lists of them become constants.
            outputs: How many results it has; several come as a list.
            domain: The operators' library.
            attributes: Constants; those that are None are left out.
        """
        if "::" in kind:
            domain, _, kind = kind.partition("::")
            domain = "" if domain == "onnx" else domain
            attributes = {_plain_key(key): value for key, value in attributes.items()}
        if domain:
            self.domains.setdefault(domain, 1)
        names = ["" if item is None else self._value(item).name for item in inputs]
        while names and not names[-1]:
            names.pop()
        made = [Value(self.fresh(kind.lower()), self.result) for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append((kind, names, [item.name for item in made], given, domain))
        return made[0] if outputs == 1 else made

    def _value(self, item: Any) -> Value:
        return item if isinstance(item, Value) else self.constant(item)

    def cast(self, value: Any, dtype: Any) -> Value:
        """A value or number with a dtype."""
        if not isinstance(value, Value):
            if isinstance(value, bool) and dtype != tensor.bool:
                value = int(value)
            return self.constant(value, dtype)
        if not isinstance(value.real, tensor.Tensor):
            if dtype == tensor.int64:
                return value
        elif value.real.dtype == dtype:
            return value
        made = self.op("Cast", value, to=_wire.data_type(dtype))
        made.real = value.real.to(dtype) if isinstance(value.real, tensor.Tensor) else value.real
        return made

    def like(self, made: Value, real: Any) -> Value:
        """Note what a value in between was for the example inputs."""
        made.real = real
        return made

    def shape_of(self, value: Value) -> Value:
        """A tensor's shape as a value."""
        return self.op("Shape", value)

    def unsqueeze(self, value: Value, *axes: int) -> Value:
        """Add axes of size one."""
        return self.op("Unsqueeze", value, self.constant(list(axes), tensor.int64))

    def squeeze(self, value: Value, *axes: int) -> Value:
        """Remove axes of size one."""
        return self.op("Squeeze", value, self.constant(list(axes), tensor.int64))

    def known(self, value: Any, what: str) -> Any:
        """The number or tensor that a value is for all inputs.

        Raises:
            SymbolicValueError: It depends on the inputs.
        """
        if not isinstance(value, Value):
            return value
        if not value.known:
            raise SymbolicValueError(f"onnx.export: {what} must not depend on the inputs", value)
        return value.real

    # --- the file ---

    def used(self, outputs: set[str]) -> list[Any]:
        """The nodes whose results reach the outputs, in order."""
        needed, kept = set(outputs), []
        for item in reversed(self.nodes):
            if any(name in needed for name in item[2]):
                kept.append(item)
                needed.update(item[1])
        return kept[::-1]

    def write(
        self,
        name: str,
        inputs: list[bytes],
        outputs: list[bytes],
        output_names: list[str],
        held: dict[str, Any],
        ir_version: int,
        producer: tuple[str, str],
        external: Any = None,
    ) -> bytes:
        """The bytes of the file.

        Args:
            name: The graph's.
            inputs: Descriptions of the inputs.
            outputs: Descriptions of the outputs.
            output_names: Names of the outputs.
            held: Parameters by name.
            ir_version: Version of the file's format.
            producer: Who writes it, and in which version.
            external: Takes bytes and gives their place in another file; None writes all into this one.
        """
        kept = self.used(set(output_names))
        wanted = {*output_names, *(used for item in kept for used in item[1])}
        tensors = {key: value for key, value in {**held, **self.constants}.items() if key in wanted}
        initializers = []
        for key, value in tensors.items():
            if external is not None and value.numel() * value.element_size() > 1024:
                initializers.append(_wire.external_tensor(value, key, *external(_wire.tensor_bytes(value))))
            else:
                initializers.append(_wire.tensor_proto(value, key))
        written = [
            _wire.node(kind, used, made, f"{kind}_{index}", attributes, domain)
            for index, (kind, used, made, attributes, domain) in enumerate(kept)
        ]
        graph = _wire.graph(name, written, initializers, inputs, outputs)
        return _wire.model(graph, self.domains, ir_version, producer)

    def too_large(self, held: dict[str, Any]) -> bool:
        """Whether the numbers do not fit into one file."""
        values = [*held.values(), *self.constants.values()]
        return sum(value.numel() * value.element_size() for value in values) > _PREFERRED_EXTERNAL


def _plain_key(key: str) -> str:
    return key[:-2] if key[-2:] in ("_i", "_f", "_s", "_t") else key
