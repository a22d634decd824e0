"""Files of ONNX from modules."""

from __future__ import annotations

import contextlib
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taeda._training_modes import in_mode
from taeda.onnx import _state, _wire
from taeda.onnx._graph import GraphWriter, Value
from taeda.onnx._walk import Walk
from taeda.onnx.errors import OnnxExporterError
from taeda.utils import _pytree
from taeda_registry import files
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["ONNXProgram", "export", "select_model_mode_for_export"]

_OLDEST, _NEWEST, _USUAL = 18, 23, 18
#: Versions of the file's format by version of the operators.
_IR = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}


class ONNXProgram:
    """An exported model.

    Args:
        content: The file's bytes.
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        exported_program: The graph that was written.
    """

    def __init__(
        self,
        content: bytes,
        inputs: list[str],
        outputs: list[str],
        exported_program: Any = None,
        writer: Any = None,
    ) -> None:
        self._content, self._writer = content, writer
        self.input_names, self.output_names = inputs, outputs
        self.exported_program = exported_program
        self._session: Any = None

    @property
    def model_proto(self) -> Any:
        """The model as the package `onnx` reads it.

        Raises:
            ImportError: The package is not installed.
        """
        import onnx

        return onnx.load_from_string(self._content)

    model = model_proto

    def save(self, destination: str | os.PathLike[str] | Any, **_: Any) -> None:
        """Write the file; numbers of more than a gigabyte go to a second one beside it, which ends in `.data`."""
        if hasattr(destination, "write") and not tensor.serialization.is_path(destination):
            destination.write(self._content)
            return
        path = Path(destination)
        if self._writer is None:
            files.write(path, [self._content])
            return
        name = f"{path.name}.data"
        with files.replacing(path.with_name(name)) as file:

            def place(data: bytes) -> tuple[str, int, int]:
                start = file.tell()
                file.write(data)
                return name, start, len(data)

            content = self._writer(place)
        files.write(path, [content])

    def initialize_inference_session(self, **_: Any) -> None:
        """Load the model into the package `onnxruntime`.

        Raises:
            ImportError: The package is not installed.
        """
        import onnxruntime

        self._session = onnxruntime.InferenceSession(self._content, providers=["CPUExecutionProvider"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results for these inputs, computed by the package `onnxruntime`."""
        if self._session is None:
            self.initialize_inference_session()
        leaves = [leaf for leaf in _pytree.tree_leaves((args, kwargs)) if isinstance(leaf, tensor.Tensor)]
        given = {name: leaf.detach().numpy() for name, leaf in zip(self.input_names, leaves, strict=True)}
        return tuple(tensor.from_numpy(array) for array in self._session.run(None, given))

    def release(self) -> None:
        """Let go of the session."""
        self._session = None

    def __repr__(self) -> str:
        return (
            f"ONNXProgram(inputs={self.input_names}, outputs={self.output_names}, {len(self._content)} bytes)"
        )


@contextlib.contextmanager
def select_model_mode_for_export(model: Any, mode: Any) -> Iterator[None]:
    """A block in which a model is in evaluation, or in training, as an exporter wants it."""
    wanted = {"EVAL": False, "TRAINING": True}.get(
        getattr(mode, "name", "EVAL" if mode is None else "PRESERVE")
    )
    _state.enter(1)
    try:
        with in_mode(model, wanted) if isinstance(model, nn.Module) else contextlib.nullcontext():
            yield
    finally:
        _state.enter(-1)


def _opset(version: int | None) -> int:
    if version is None:
        return _USUAL
    if not isinstance(version, int) or not 7 <= version <= _NEWEST:
        raise ValueError(
            f"onnx.export: argument 'opset_version' must be from 7 to {_NEWEST}, found {version!r}"
        )
    if version < _OLDEST:
        warnings.warn(
            f"onnx.export: operators of version {_OLDEST} are written, the oldest there are here; version {version} "
            "was asked for",
            stacklevel=3,
        )
        return _OLDEST
    return version


def _split_arguments(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(args, tensor.Tensor) or not isinstance(args, (tuple, list)):
        args = (args,)
    args, kwargs = tuple(args), dict(kwargs or {})
    if args and isinstance(args[-1], dict) and not kwargs and all(isinstance(key, str) for key in args[-1]):
        return args[:-1], args[-1]
    return args, kwargs


def _graph_of(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The graph module of a model and what it gave."""
    from taeda.export import ExportedProgram
    from taeda.fx._record import record
    from taeda.jit import ScriptFunction

    if isinstance(model, ExportedProgram):
        return model._runner, None
    if not isinstance(model, nn.Module | ScriptFunction):
        raise TypeError(
            "onnx.export: argument 'model' must be a module or what jit.trace or jit.script makes of a function, "
            f"found {type(model).__name__}"
        )
    root = model if isinstance(model, nn.Module) else None
    name = type(model).__name__ if root is not None else model.name
    done = record(model, args, kwargs, root=root, name=name, keep_class=True)
    if done.module is None:
        raise OnnxExporterError(f"onnx.export: {name} cannot be exported: {done.failure}")
    return done.module, done.result


# --- axes that vary ---


def _axis_name(spec: Any, default: str) -> str | None:
    if spec is None or isinstance(spec, int) or str(spec) == "DimHint(STATIC)":
        return None
    if isinstance(spec, str):
        return spec
    name = getattr(spec, "__name__", None)
    return name if isinstance(name, str) else default


def _axes(spec: Any, name: str) -> dict[int, str]:
    """Names of the axes of one tensor that may vary."""
    if spec is None:
        return {}
    if isinstance(spec, dict):
        items = list(spec.items())
    elif all(isinstance(item, int) and not isinstance(item, bool) for item in spec):
        items = [(axis, f"{name}_dim_{axis}") for axis in spec]
    else:
        items = list(enumerate(spec))
    named = {axis: _axis_name(item, f"{name}_dim_{axis}") for axis, item in items}
    return {axis: found for axis, found in named.items() if found is not None}


def _specs(
    dynamic_shapes: Any, args: tuple[Any, ...], kwargs: dict[str, Any], parameters: list[str]
) -> list[Any]:
    """The description of each tensor among the arguments."""
    values = (*args, *kwargs.values())
    if isinstance(dynamic_shapes, dict):
        given = [dynamic_shapes.get(name) for name in parameters[: len(values)]]
    else:
        given = [*dynamic_shapes, *[None] * (len(values) - len(dynamic_shapes))]
    found: list[Any] = []

    def collect(value: Any, spec: Any) -> None:
        if isinstance(value, tensor.Tensor):
            found.append(spec)
        elif isinstance(value, dict):
            for key, item in value.items():
                collect(item, spec.get(key) if isinstance(spec, dict) else None)
        elif isinstance(value, (tuple, list)):
            for index, item in enumerate(value):
                collect(item, spec[index] if isinstance(spec, (tuple, list)) else None)

    for value, spec in zip(values, given, strict=True):
        collect(value, spec)
    return found


def _inputs(
    g: GraphWriter,
    module: Any,
    arguments: tuple[tuple[Any, ...], dict[str, Any]],
    input_names: Sequence[str] | None,
    dynamic_shapes: Any,
    axes: dict[str, Any],
) -> tuple[list[Any], list[tuple[Value, dict[int, str]]]]:
    """What the program runs with, and the tensors among that, each with names of its axes that may vary."""
    given, named = arguments
    placeholders = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    leaves = _pytree.tree_flatten((*given, *named.values()))[0]
    if len(leaves) != len(placeholders):
        raise OnnxExporterError(
            f"onnx.export: the program takes {len(placeholders)} inputs, found {len(leaves)} arguments"
        )
    labels = iter(list(input_names or ()))
    values = [
        Value(g.fresh(next(labels, name)), leaf.detach().clone()) if isinstance(leaf, tensor.Tensor) else leaf
        for leaf, name in zip(leaves, placeholders, strict=True)
    ]
    inputs = [value for value, leaf in zip(values, leaves, strict=True) if isinstance(leaf, tensor.Tensor)]
    specs: list[Any] = [None] * len(inputs)
    if dynamic_shapes is not None:
        specs = _specs(dynamic_shapes, given, named, placeholders)
    found = zip(inputs, specs, strict=True)
    return values, [(value, _axes(axes.get(value.name, spec), value.name)) for value, spec in found]


def _outputs(
    g: GraphWriter, made: Any, names: Sequence[str] | None, inputs: set[str]
) -> list[tuple[str, Value]]:
    """Names and values of the results, each the result of a node of its own."""
    leaves = [leaf for leaf in _pytree.tree_leaves(made) if leaf is not None]
    found: list[tuple[str, Value]] = []
    taken: set[str] = set()
    for index, leaf in enumerate(leaves):
        value = leaf if isinstance(leaf, Value) else g.constant(leaf)
        wanted = names[index] if names is not None and index < len(names) else None
        own = (
            any(value.name in item[2] for item in g.nodes)
            and value.name not in taken
            and value.name not in inputs
        )
        if own and wanted is None:
            name = value.name
        elif own and wanted not in g.taken():
            name = g.rename(value.name, wanted)
        else:
            name = wanted or g.fresh("output")
            g.nodes.append(("Identity", [value.name], [name], {}, ""))
        taken.add(name)
        found.append((name, Value(name, value.real)))
    return found


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: Any = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Any = None,
    training: Any = None,
    operator_export_type: Any = None,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: Any = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Write a module as a file of ONNX (https://onnx.ai).

    The module runs once on the example arguments; every function that it calls is written as operators of ONNX. Sizes
    are those of the example, unless `dynamic_axes` or `dynamic_shapes` names axes that may vary. A branch that it takes
    is taken for good.

    Args:
        model: A module, a script or trace of one, or what `taeda.export.export` gave.
        args: Its arguments: a tuple, or a tensor alone; a dict at the end has arguments by name.
        f: A path, or a file open for writing; None writes none.
        kwargs: Arguments by name.
        input_names: Names of the inputs.
        output_names: Names of the outputs.
        opset_version: Version of the operators, from 18 to 23; older ones are written as 18, with a warning.
        dynamo: Whether the module keeps its mode; with False it is exported in evaluation.
        external_data: Accepted; numbers go to a second file where they take more than a gigabyte.
        dynamic_shapes: Axes that may vary, by position or name of the arguments, as `taeda.export.export` takes them.
        custom_translation_table: Writers of operators, by function; not taken.
        verify: Compare with the package `onnxruntime` afterwards.
        export_params: False leaves the parameters' numbers out: they become inputs.
        dynamic_axes: Axes that may vary, by name of the input or output: a list, or names by axis.
        training: A `TrainingMode`; with `dynamo=False` evaluation is the default.

    All other arguments are accepted and not read.

    Returns:
        The program, and with `dynamo=False` None.

    Raises:
        taeda.onnx.errors.UnsupportedOperatorError: A function has no counterpart in ONNX here; its name is in the text.
        taeda.onnx.errors.OnnxExporterError: What the module did cannot be written.

    Example:
        >>> program = taeda.onnx.export(taeda.nn.Linear(2, 3), (taeda.ones(1, 2),), input_names=["x"])
        >>> program
        ONNXProgram(inputs=['x'], outputs=['gemm'], 216 bytes)
    """
    from taeda.onnx import TrainingMode

    if custom_translation_table:
        raise NotImplementedError(
            "onnx.export: a custom_translation_table is not taken; see register_custom_op_symbolic"
        )
    g = GraphWriter(_opset(opset_version))
    given, named = _split_arguments(args, kwargs)
    axes = dict(dynamic_axes or {})
    mode = training if training is not None else TrainingMode.PRESERVE if dynamo else TrainingMode.EVAL
    with select_model_mode_for_export(model, mode), tensor.no_grad():
        module, expected = _graph_of(model, given, named)
        values, inputs = _inputs(g, module, (given, named), input_names, dynamic_shapes, axes)
        g.dynamic = any(varying for _, varying in inputs)
        made = Walk(g, module).run(values)
    outputs = _outputs(g, made, output_names, {value.name for value, _ in inputs})
    held = dict(g.parameters) if export_params else {}
    first = [] if export_params else list(g.parameters)
    described_inputs = [
        *[_info(value, varying) for value, varying in inputs],
        *[_wire.value_info(name, value.dtype, value.shape) for name, value in g.parameters.items() if first],
    ]
    described_outputs = [
        _info(value, _axes(axes[name], name) if name in axes else _free(value, name) if g.dynamic else {})
        for name, value in outputs
    ]
    names = [name for name, _ in outputs]

    def write(external: Any = None) -> bytes:
        from taeda.onnx import producer_name, producer_version

        return g.write(
            "main_graph", described_inputs, described_outputs, names, held,
            _IR[g.opset], (producer_name, producer_version), external,
        )  # fmt: skip

    large = g.too_large(held)
    program = ONNXProgram(
        b"" if large else write(),
        [value.name for value, _ in inputs],
        names,
        module,
        write if large else None,
    )
    if f is not None:
        program.save(f)
    if verify:
        _verify(program, (given, named), expected)
    return program if dynamo else None


def _info(value: Value, varying: dict[int, str]) -> bytes:
    if not isinstance(value.real, tensor.Tensor):
        return _wire.value_info(value.name, tensor.int64, [])
    axes = {axis % max(value.rank, 1): name for axis, name in varying.items()}
    return _wire.value_info(
        value.name, value.dtype, [axes.get(axis, int(n)) for axis, n in enumerate(value.shape)]
    )


def _free(value: Value, name: str) -> dict[int, str]:
    if not isinstance(value.real, tensor.Tensor):
        return {}
    return {axis: f"{name}_dim_{axis}" for axis in range(value.rank)}


def _verify(program: ONNXProgram, given: Any, expected: Any) -> None:
    args, kwargs = given
    wanted = [leaf for leaf in _pytree.tree_leaves(expected) if isinstance(leaf, tensor.Tensor)]
    for left, right in zip(program(*args, **kwargs), wanted, strict=True):
        tensor.testing.assert_close(left, right.detach(), rtol=1e-3, atol=1e-4)
