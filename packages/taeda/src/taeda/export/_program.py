"""Exported programs."""

from __future__ import annotations

import copy
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from taeda._subclasses import FakeTensor
from taeda.export._as_module import CallSpec, unlifted
from taeda.export._calls import ModuleCallEntry, calls_of
from taeda.export._guards import Guards
from taeda.export._operators import InOperators, in_operators
from taeda.export._runs import CannotTrace
from taeda.export._shapes import described
from taeda.export._unflattened import nested
from taeda.export.graph_signature import ExportGraphSignature, signature_of
from taeda.fx._keeping import left_alone
from taeda.fx._notes import Notes
from taeda.fx.graph_module import _assign_attr
from taeda.utils import _pytree
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CustomDecompTable", "ExportedProgram", "UnflattenedModule", "draft_export", "export", "unflatten"]

_log = logging.getLogger(__name__)


class CustomDecompTable(dict[Any, Any]):
    """Functions that stand for operators where all others are taken apart too."""


class ExportedProgram:
    """What `export` gives.

    Attributes:
        graph_module: The program as a module of a graph of operators, to which parameters, buffers and constants are
            given before what the user gives. Where a program cannot be told in operators, public functions stand in
            the graph, which reads what the program holds.
        example_inputs: The arguments it was exported with, and those by name.
        constants: Tensors that it holds besides parameters and buffers, and buffers that are no part of the state.
    """

    def __init__(
        self, runner: Any, example_inputs: Any = None, guards: Guards | None = None,
        constants: tuple[str, ...] = (), operators: InOperators | None = None,
    ) -> None:  # fmt: skip
        self.example_inputs = example_inputs
        self._guards, self._runner, self._operators = guards, runner, operators
        self.graph_module = runner if operators is None else operators.module
        self._signature = None if operators is None else operators.signature
        self.range_constraints: dict[Any, Any] = {} if guards is None else dict(guards.ranges)
        self._constants = constants
        kept = runner.state_dict().keys()
        held = dict(runner.named_buffers())
        self.constants: dict[str, Any] = {name: held[name] for name in held if name in constants}
        self.constants |= {} if operators is None else operators.constants
        self.constants |= {name: held[name] for name in held if name not in kept}

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """Another name of `constants`."""
        return self.constants

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What inputs and outputs are."""

        if self._signature is not None:
            return self._signature
        given = None
        if self.example_inputs is not None:
            args, kwargs = self.example_inputs
            given = _pytree.tree_leaves((*args, *kwargs.values()))
        return signature_of(self.graph_module, self._constants, given)

    @property
    def graph(self) -> Any:
        """The program's nodes."""
        return self.graph_module.graph

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and buffers by path."""
        held, named = self._runner.state_dict(), dict(self._runner.named_parameters(remove_duplicate=False))
        return {
            name: held[name]
            for name in (*(n for n in held if n in named), *(n for n in held if n not in named))
        }

    def parameters(self) -> Iterator[Any]:
        """Parameters."""
        return self._runner.parameters()

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Paths and parameters."""
        return self._runner.named_parameters()

    def buffers(self) -> Iterator[Any]:
        """Buffers."""
        return self._runner.buffers()

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Paths and buffers."""
        return self._runner.named_buffers()

    def module(self, check_guards: bool = True) -> Any:
        """The program as a module of its own, with the same parameters.

        Args:
            check_guards: Let calls whose inputs the program was not exported for raise AssertionError.
        """
        if self._operators is None:
            made = copy.copy(self._runner)
            _take_unused(made, self._runner)
        else:
            operators, state = self._operators, state_of(self._runner, self._operators.constants)
            made = unlifted(self.graph_module, self.graph_signature, state, operators.names, operators)
        made.training = self._runner.training
        if check_guards and self._guards is not None:
            check = self._checked
            made.register_forward_pre_hook(lambda module, args, kwargs: check(args, kwargs), with_kwargs=True)
        return made

    def _checked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse inputs that are not what the program was exported for."""
        operators = self._operators
        if operators is not None:
            given = {**dict(zip(operators.names, args, strict=False)), **kwargs}
            fits = len(args) <= len(operators.names) and set(given) == set(operators.names)
            found = (
                _pytree.tree_structure(tuple(given[n] for n in operators.names)) if fits else (args, kwargs)
            )
            if found != operators.in_spec:
                shown = _pytree.tree_structure((args, kwargs))
                raise ValueError(
                    f"Trying to flatten user inputs with exported input tree spec: \n{self.call_spec.in_spec}\n"
                    f"but actually got inputs with tree spec of: \n{shown}"
                )
        self._guards.check(args, kwargs)  # type: ignore[union-attr]

    @property
    def call_spec(self) -> CallSpec:
        """The containers of the arguments and of the result."""
        if self._operators is None:
            info = getattr(self._runner.graph._codegen, "pytree_info", None)
            return CallSpec(None, None) if info is None else CallSpec(info.in_spec, info.out_spec)
        given = None if self.example_inputs is None else _pytree.tree_structure(tuple(self.example_inputs))
        return CallSpec(given, self._operators.out_spec)

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The whole program first, with what it takes and gives, then its modules by their paths."""
        return calls_of(self)

    def run_decompositions(
        self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The program with a graph of what its operators consist of.

        Args:
            decomp_table: Functions that stand for operators, by overload: all others stay. With None, or what
                `default_decompositions` gives, operators are taken apart.
            decompose_custom_triton_ops: Accepted; there are none.

        Raises:
            RuntimeError: The program was read from a file that has not its inputs.
        """
        if self.example_inputs is None:
            raise RuntimeError("run_decompositions: the file of the program has no example inputs")
        args, kwargs = self.example_inputs
        if self._operators is None:
            from taeda.export._with_branches import with_branches

            made = ExportedProgram(self._runner, self.example_inputs, self._guards, self._constants)
            found = with_branches(self._runner, args, kwargs, self._constants, decomp_table)
            made.graph_module, made._signature = found
            return made
        constants = (*self._constants, *self._operators.constants)
        apart = decomp_table is None or isinstance(decomp_table, CustomDecompTable)
        program = self.module(check_guards=False)
        found = in_operators(program, args, kwargs, constants, self._guards, apart, decomp_table)
        found = found._replace(
            constants=found.constants | self._operators.constants,
            in_spec=self._operators.in_spec,
            names=self._operators.names,
        )
        return ExportedProgram(self._runner, self.example_inputs, self._guards, self._constants, found)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __str__(self) -> str:
        text = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {text}\nGraph signature: {signature}\n"
            f"Range constraints: {self.range_constraints}\n"
        )


class UnflattenedModule(nn.Module):
    """An exported program as a module of modules, with their parameters and buffers under their old names.

    What each module did is a graph module of its own, which may be replaced. A program that is not told in operators
    stays one graph: it does not call its children.

    Args:
        export_module: The program.
    """

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: Any = None) -> None:
        super().__init__()
        program = export_module.module(check_guards=False)
        whole = export_module._operators is None
        self._program = (program if whole else nested(program),)  # no child: its children are this module's
        self._calls = not whole
        if export_module._guards is not None:
            check = export_module._checked
            self.register_forward_pre_hook(lambda module, args, kwargs: check(args, kwargs), with_kwargs=True)
        _take_members(self, self._program[0])
        _take_unused(self, program)
        self.training = program.training

    @property
    def graph(self) -> Any:
        """The graph of calls of the children."""
        return self._program[0].graph

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the program does."""
        (program,) = self._program
        for kind in ("_parameters", "_buffers", "_modules") if self._calls else ("_parameters", "_buffers"):
            getattr(program, kind).update(getattr(self, kind))
        return program(*args, **kwargs)


def _take_members(module: nn.Module, program: nn.Module) -> None:
    """Let a module have the children, parameters and buffers of a program."""
    for name, child in program.named_children():
        module.add_module(name, child)
    for name, parameter in program._parameters.items():
        module.register_parameter(name, parameter)
    for name, buffer in program._buffers.items():
        module.register_buffer(name, buffer, persistent=name not in program._non_persistent_buffers_set)


def unflatten(module: ExportedProgram, flat_args_adapter: Any = None) -> UnflattenedModule:
    """An exported program as a module."""
    return UnflattenedModule(module, flat_args_adapter)


def export(
    mod: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The program that a module runs with these inputs.

    Sizes that it reads from tensors stay sizes of the tensors, and numbers that it takes out of integer tensors stay
    what is taken out of them. A branch on a size is taken for good.

    Args:
        mod: A module.
        args: Its arguments.
        kwargs: Its arguments by name.
        dynamic_shapes: Which sizes may vary: by argument, or one for each in their order, a dict by dimension or one
            entry for each of `Dim`, `Dim.DYNAMIC`, `Dim.AUTO`, a number or None. All others stay as they are. Or a
            `ShapesCollection`, or `AdditionalInputs`.
        strict: Say in `node.meta["source_fn_stack"]` which function, or which layer, nodes come from.
        preserve_module_call_signature, prefer_deferred_runtime_asserts_over_guards: Accepted.

    Raises:
        ValueError: `mod` is no module.
        UserError: `dynamic_shapes` does not fit the inputs, or the module takes a size that is to vary for a number, by
            `int`, `len`, `range` or the number of results of a function.
        GuardOnDataDependentSymNode: The module branches on the elements of a tensor.
        RuntimeError: What it did cannot stand in a graph; the text says why.

    Example:
        >>> sizes = {"input": {0: taeda.export.Dim("batch", min=1, max=64)}}
        >>> program = taeda.export.export(taeda.nn.Linear(2, 3), (taeda.ones(1, 2),), dynamic_shapes=sizes)
        >>> program.module()(taeda.ones(4, 2)).shape
        Size([4, 3])
    """
    return _exported(mod, args, kwargs or {}, dynamic_shapes, True, strict)


def draft_export(
    mod: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    preserve_module_call_signature: tuple[str, ...] = (),
    strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """`export` that takes branches on elements of tensors for good, the way that the example inputs take."""
    return _exported(mod, args, kwargs or {}, dynamic_shapes, False)


def _exported(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    whole: bool,
    strict: bool = False,
) -> ExportedProgram:
    from taeda.compiler import _exporting
    from taeda.export._guards import guards_of
    from taeda.fx._record import _names, record

    if not isinstance(mod, nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        from taeda._dynamo.exc import UserError

        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    said = described(dynamic_shapes, mod, args, kwargs)
    args, kwargs = _told_apart((args, kwargs))
    guards = guards_of(_names(mod.forward, args, {}), args, kwargs, said)
    with left_alone(mod, (args, kwargs)), _exporting(), _beside_real_ones((args, kwargs)):
        done = record(
            mod,
            args,
            kwargs,
            root=mod,
            name=type(mod).__name__,
            keep_class=True,
            data_dependent=not whole,
            notes=Notes(mod, strict),
            settles=bool(guards.sizes()),
        )
    if done.module is None:
        raise RuntimeError(f"export: {type(mod).__name__} cannot be exported: {done.failure}")
    _take_unused(done.module, mod)
    spec = _pytree.tree_structure((args, kwargs))

    def again(leaves: list[Any]) -> Any:
        given, named = _pytree.tree_unflatten(leaves, spec)
        return record(
            mod, given, named, root=mod, keep_class=True, data_dependent=not whole, settles=True
        ).module

    try:
        with _exporting(), _beside_real_ones((args, kwargs)):
            operators = in_operators(done.module, args, kwargs, done.constants, guards, again=again)
    except CannotTrace as error:
        _log.info("%s stays in public functions: %s", type(mod).__name__, error)
        operators = None
    return ExportedProgram(done.module, (args, kwargs), guards, done.constants, operators)


@contextmanager
def _beside_real_ones(inputs: Any) -> Iterator[None]:
    """Context in which inputs that are fake tensors go with the real ones of a program."""
    modes = {id(x.fake_mode): x.fake_mode for x in _pytree.tree_leaves(inputs) if isinstance(x, FakeTensor)}
    before = [(mode, mode.allow_non_fake_inputs) for mode in modes.values()]
    for mode in modes.values():
        mode.allow_non_fake_inputs = True
    try:
        yield
    finally:
        for mode, allowed in before:
            mode.allow_non_fake_inputs = allowed


def _told_apart(inputs: Any) -> Any:
    """Inputs in which no tensor stands twice: each place is an input of its own."""
    seen: set[int] = set()

    def other(value: Any) -> Any:
        if id(value) not in seen:
            seen.add(id(value))
            return value
        return value.detach().clone().requires_grad_(value.requires_grad)

    return _pytree.tree_map_only(tensor.Tensor, other, inputs)


def state_of(program: nn.Module, constants: dict[str, Any]) -> nn.Module:
    """A module with all tensors of a program, and constants by path."""
    made = nn.Module()
    _take_unused(made, program)
    for path, value in constants.items():
        _assign_attr(value, made, path, persistent=False)
    return made


def _take_unused(program: nn.Module, mod: nn.Module) -> None:
    """Give a program the parameters and buffers that it never reads, so that it has the state of its module."""
    for path, part in mod.named_modules(remove_duplicate=False):
        for name, parameter in part._parameters.items():
            home, own = _home(program, path, name)
            if own not in home._parameters:
                home.register_parameter(own, parameter)
        for name, buffer in part._buffers.items():
            home, own = _home(program, path, name)
            if own not in home._buffers:
                home.register_buffer(own, buffer, persistent=name not in part._non_persistent_buffers_set)


def _home(program: nn.Module, path: str, name: str) -> tuple[nn.Module, str]:
    """The part, made where it is missing, for a tensor that a part at a path has under a name, itself maybe a path."""
    *parts, own = filter(None, [*path.split("."), *name.split(".")])
    home = program
    for part in parts:
        if part not in home._modules:
            home.add_module(part, nn.Module())
        home = home._modules[part]
    return home, own
