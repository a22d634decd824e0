"""What the inputs and outputs of an exported program are: parameters, buffers, constants, what the user gives and gets.

The graph reads parameters and buffers where they are used; the signature lists them first, named as PyTorch names its
inputs for them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

__all__ = [
    "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind",
    "InputSpec", "OutputKind", "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument", "TensorArgument",
    "TokenArgument", "signature_of",
]  # fmt: skip


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by its name in the graph."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """An order of effects, by its name in the graph; programs exported here have none."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A size, by its name in the graph."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A number that follows from sizes, by its name in the graph."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A truth that follows from sizes, by its name in the graph."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object, by its name in the graph and its class."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that is no tensor."""

    name: str
    value: int | float | bool | str | None


class InputKind(Enum):
    """What an input is."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What an output is."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclasses.dataclass
class InputSpec:
    """One input.

    Attributes:
        kind: What it is.
        arg: Its name, or its value.
        target: The path of a parameter, buffer or constant.
        persistent: Of a buffer: whether the state has it.
    """

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind == InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        target = "" if self.target is None else f" target={self.target!r}"
        kept = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{kept}"


@dataclasses.dataclass
class OutputSpec:
    """One output.

    Attributes:
        kind: What it is.
        arg: Its name, or its value.
        target: The path of what it is the new value or the gradient of.
    """

    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self) -> str:
        return f"{self.arg.name}: {self.kind.name}" + (
            "" if self.target is None else f" target={self.target!r}"
        )


@dataclasses.dataclass
class ExportBackwardSignature:
    """Outputs that are gradients; programs exported here have none."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """Inputs and outputs of an exported program, in order.

    Attributes:
        input_specs: Parameters, buffers, constants, then what the user gives.
        output_specs: What the user gets.

    Example:
        >>> program = taeda.export.export(taeda.nn.Linear(2, 3), (taeda.ones(1, 2),))
        >>> program.graph_signature.parameters
        ('weight', 'bias')
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(
            spec.target for spec in self.input_specs if spec.kind == kind and spec.target is not None
        )

    def _targets_by_name(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind == kind and s.target is not None}

    def _written(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.output_specs if s.kind == kind and s.target is not None}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Paths of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """Paths of the buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Paths of the buffers that the state has not."""
        return tuple(s.target for s in self.input_specs if s.persistent is False and s.target is not None)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """Paths of the tensors that the program holds besides."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """Paths of other objects."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """Names, or values, of what the user gives."""
        return tuple(_shown(spec.arg) for spec in self.input_specs if spec.kind == InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """Names, or values, of what the user gets."""
        wanted = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_shown(spec.arg) for spec in self.output_specs if spec.kind in wanted)

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """Paths of parameters by the names of the inputs."""
        return self._targets_by_name(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """Paths of buffers by the names of the inputs."""
        return self._targets_by_name(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """Paths of constants by the names of the inputs."""
        return self._targets_by_name(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> dict[str, str]:
        """Paths of other objects by the names of the inputs."""
        return self._targets_by_name(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """Paths of buffers by the outputs that are their new values: buffers are written in place, so none."""
        return self._written(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> dict[str, str]:
        """As `buffers_to_mutate`, of parameters."""
        return self._written(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """As `buffers_to_mutate`, of inputs."""
        return self._written(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """None: programs are exported without their gradients."""
        return None

    @property
    def assertion_dep_token(self) -> None:
        """None: nothing is asserted."""
        return None

    @property
    def input_tokens(self) -> tuple[str, ...]:
        """Inputs that stand for an order of effects."""
        return tuple(spec.arg.name for spec in self.input_specs if spec.kind == InputKind.TOKEN)

    @property
    def output_tokens(self) -> tuple[str, ...]:
        """As `input_tokens`, of outputs."""
        return tuple(spec.arg.name for spec in self.output_specs if spec.kind == OutputKind.TOKEN)

    def replace_all_uses(self, old: str, new: str) -> None:
        """Give an input or output another name.

        Raises:
            TypeError: A name is no str.
        """
        for name in (old, new):
            if not isinstance(name, str):
                raise TypeError(f"replace_all_uses: expected a str, found {type(name).__name__}")
        for spec in (*self.input_specs, *self.output_specs):
            if isinstance(spec.arg, TensorArgument) and spec.arg.name == old:
                spec.arg.name = new

    def get_replace_hook(self) -> Any:
        """What graphs call when a node takes another's place."""
        return lambda old, new, user: self.replace_all_uses(old.name, new) if user.op == "output" else None

    def __str__(self) -> str:
        parts = [f"\n# {title}\n" + "\n".join(map(str, specs)) + "\n"
                 for title, specs in (("inputs", self.input_specs), ("outputs", self.output_specs))]  # fmt: skip
        return "".join(parts)


def _shown(arg: Any) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


def signature_of(
    graph_module: Any, constants: Iterable[str], inputs: list[Any] | None
) -> ExportGraphSignature:
    """The signature of a program.

    Args:
        graph_module: The program.
        constants: Paths of the tensors that are neither parameters nor buffers.
        inputs: The values it was exported with, one for each input of the graph, where they are known.
    """
    from taeda.fx import Node
    from taeda.utils import _pytree
    from taeda_registry.slots import tensor

    def named(start: str, path: str) -> TensorArgument:
        return TensorArgument(f"{start}_{path.replace('.', '_')}")

    held, kept = set(constants), graph_module.state_dict().keys()
    buffers = [path for path, _ in graph_module.named_buffers()]
    specs = [
        InputSpec(InputKind.PARAMETER, named("p", path), path) for path, _ in graph_module.named_parameters()
    ]
    specs += [InputSpec(InputKind.BUFFER, named("b", p), p, p in kept) for p in buffers if p not in held]
    specs += [InputSpec(InputKind.CONSTANT_TENSOR, named("c", p), p) for p in buffers if p in held]
    nodes = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    values = inputs if inputs is not None and len(inputs) == len(nodes) else None
    for i, node in enumerate(nodes):
        fixed = values is not None and not isinstance(values[i], tensor.Tensor)
        arg = ConstantArgument(node.name, values[i]) if fixed and values else TensorArgument(node.name)
        specs.append(InputSpec(InputKind.USER_INPUT, arg, None))
    (result,) = next(node for node in reversed(list(graph_module.graph.nodes)) if node.op == "output").args
    outputs = [
        TensorArgument(value.name) if isinstance(value, Node) else ConstantArgument("", value)
        for value in _pytree.tree_leaves(result)
    ]
    return ExportGraphSignature(specs, [OutputSpec(OutputKind.USER_OUTPUT, arg, None) for arg in outputs])
