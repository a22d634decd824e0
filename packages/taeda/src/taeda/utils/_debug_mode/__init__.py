"""A record of the operators that a program calls, as text: what ran, on which shapes, below which modules."""

from __future__ import annotations

import contextlib
import functools
import traceback
import weakref
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from taeda.utils import _pytree
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda_registry.slots import nn, tensor

__all__ = ["DebugMode", "get_active_debug_mode"]

_HOOKS: dict[str, list[Callable[..., Any]]] = {"record": [], "log": [], "pre_log": []}
_active: list[DebugMode] = []


def norm_hash_fn(t: Any, use_scalar: bool = False) -> Any:
    """The sum of the sizes of all elements, in double precision."""
    total = t.detach().to(tensor.complex128 if t.is_complex() else tensor.float64).abs().sum()
    return total.item() if use_scalar else total


class _Numbers:
    """Numbers of tensors, in the order in which they are met."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[Any, int]] = {}
        self._next = count()

    def of(self, value: Any) -> int:
        found = self._met.get(id(value))
        if found is None or found[0]() is not value:
            found = self._met[id(value)] = (weakref.ref(value), next(self._next))
        return found[1]


def _text(value: Any, attributes: list[str], numbers: _Numbers | None) -> str:
    def shown(item: Any) -> Any:
        if not isinstance(item, tensor.Tensor):
            return item
        told = ", ".join(f"{name}={getattr(item, name)}" for name in attributes if hasattr(item, name))
        number = "" if numbers is None else f"${numbers.of(item)}"
        return _Bare(f"t{number}: {item.dtype.abbr}{list(item.shape)}" + (f"{{{told}}}" if told else ""))

    return str(_pytree.tree_map(shown, value))


class _Bare(str):
    """Text that is printed without quotation marks inside of a list."""

    __repr__ = str.__str__


class _Call:
    """One line of the record.

    Attributes:
        call_depth: How many modules and functions are around.
        record: What `DebugMode.record_outputs` keeps, {"output": ...}.
        log: What hooks said about the call; it stands behind the line.
    """

    def __init__(self, call_depth: int) -> None:
        self.call_depth = call_depth
        self.record: dict[str, Any] | None = None
        self.log: dict[str, Any] | None = None
        self.stack_trace: str | None = None
        self.output_str: str | None = None

    def __repr__(self) -> str:
        return self.render([])

    def render(self, attributes: list[str]) -> str:
        """The line, without its margin."""
        raise NotImplementedError


class _OpCall(_Call):
    """The call of an operator, or of a function."""

    def __init__(self, op: Any, args: tuple, kwargs: dict, call_depth: int) -> None:
        super().__init__(call_depth)
        self.op, self.args, self.kwargs = op, args, kwargs
        self.args_str: str | None = None
        self.kwargs_str = ""

    def put_down(self, attributes: list[str], numbers: _Numbers | None) -> None:
        """Keep the text of the arguments instead of the arguments."""
        self.args_str = ", ".join(_text(arg, attributes, numbers) for arg in self.args)
        self.kwargs_str = "".join(
            f", {name}={_text(v, attributes, numbers)}" for name, v in self.kwargs.items()
        )
        del self.args, self.kwargs

    def __iter__(self) -> Iterator[Any]:
        if self.args_str is None:
            return iter((self.op, self.args, self.kwargs, self.call_depth))
        return iter((self.op, self.args_str, self.kwargs_str, self.call_depth))

    def render(self, attributes: list[str]) -> str:
        if self.args_str is None:
            made = _OpCall(self.op, self.args, self.kwargs, self.call_depth)
            made.put_down(attributes, None)
            given = f"{made.args_str}{made.kwargs_str}"
        else:
            given = f"{self.args_str}{self.kwargs_str}"
        log = f"  # {self.log}" if self.log else ""
        return f"{_name(self.op)}({given}){self.output_str or ''}{log}"


class _AnnotateCall(_Call):
    """The beginning of a module, or of a named block."""

    def __init__(self, header: str, tag: Any, call_depth: int) -> None:
        super().__init__(call_depth)
        self.header, self.tag = header, tag

    def __iter__(self) -> Iterator[Any]:
        return iter((f"[{self.header}] {self.tag}", "", "", self.call_depth))

    def render(self, attributes: list[str]) -> str:
        return f"[{self.header}] {self.tag}"


def _name(op: Any) -> str:
    schema = getattr(op, "_schema", None)
    if schema is None:
        home = getattr(op, "__module__", None) or "taeda"
        return f"{'torch' if home.startswith('taeda') else home}.{getattr(op, '__name__', op)}"
    overload = getattr(op, "_overloadname", "default")
    return schema.name.replace("taeda::", "aten::") + ("" if overload in ("", "default") else f".{overload}")


def _place(stack: str | None) -> str | None:
    """The line of the program that a call comes from."""
    return stack and stack.splitlines()[-1]


class DebugMode(TorchDispatchMode):
    """Context that records the operators that are called in it.

    Args:
        record_torchfunction: Functions of the library too, with the operators below them.
        record_tensor_attributes: Names of attributes that stand beside a tensor's shape.
        record_nn_module: Lines for modules, with what runs in them below.
        store_original_args: Keep the arguments, not only their text.
        record_stack_trace: Keep the line of the program that each call comes from.
        record_output: What calls give.
        record_ids: A number for each tensor, $0, $1, ...
        record_faketensor, record_realtensor, record_profiler_context, record_localtensor, run_compile_with_interpreter:
            Accepted; operators on tensors of any kind are recorded.

    Attributes:
        logs: The calls, in their order; `operators` is the same list.

    Example:
        >>> from taeda.utils._debug_mode import DebugMode
        >>> with DebugMode() as mode:
        ...     _ = taeda.relu(taeda.ones(2, 3))
        >>> mode.debug_string().splitlines()[-1].strip()
        'aten::relu(t: f32[2, 3])  ->  t: f32[2, 3]'
    """

    def __init__(
        self,
        *,
        record_torchfunction: bool = False,
        record_faketensor: bool = False,
        record_realtensor: bool = True,
        record_tensor_attributes: list[str] | None = None,
        record_nn_module: bool = False,
        store_original_args: bool = False,
        record_stack_trace: bool = False,
        record_output: bool = True,
        record_ids: bool = False,
        record_profiler_context: bool = True,
        record_localtensor: bool = True,
        run_compile_with_interpreter: bool = False,
    ) -> None:
        super().__init__()
        self.record_torchfunction, self.record_nn_module = record_torchfunction, record_nn_module
        self.record_tensor_attributes = record_tensor_attributes or []
        self.store_original_args, self.record_stack_trace = store_original_args, record_stack_trace
        self.record_output, self.record_ids = record_output, record_ids
        self._around = contextlib.ExitStack()
        self.reset()

    def reset(self) -> None:
        """Forget the calls."""
        self.operators: list[Any] = []
        self.call_depth = 0
        self._numbers = _Numbers() if self.record_ids else None
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()

    @property
    def logs(self) -> list[Any]:
        """The calls, in their order."""
        return self.operators

    def __enter__(self) -> DebugMode:
        self.reset()
        entered = super().__enter__()
        _active.append(self)
        with contextlib.ExitStack() as around:
            if self.record_nn_module:
                hooks = nn.modules.module
                for handle in (
                    hooks.register_module_forward_pre_hook(self._begin),
                    hooks.register_module_forward_hook(self._end, always_call=True),
                ):
                    around.callback(handle.remove)
            if self.record_torchfunction:
                around.enter_context(_Functions(self))
            self._around = around.pop_all()
        return entered

    def __exit__(self, *exception: Any) -> Any:
        self._around.close()
        _active.remove(self)
        return super().__exit__(*exception)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self._recorded(func, types, args, kwargs or {}, depth=self.call_depth + 1, below=0)

    def _recorded(self, func: Any, types: Any, args: tuple, kwargs: dict, depth: int, below: int) -> Any:
        call = _OpCall(func, args, kwargs, depth)
        if self.record_stack_trace:
            frames = [f for f in traceback.extract_stack() if not _ours(f.filename)]
            call.stack_trace = "\n".join(
                f"File: {f.filename}:{f.lineno} in {f.name}, code: {f.line}" for f in frames
            )
        for hook in _HOOKS["pre_log"]:
            call.log = {**(call.log or {}), **(hook(func, types, args, kwargs, call) or {})} or None
        if not self.store_original_args:
            call.put_down(self.record_tensor_attributes, self._numbers)
        self.operators.append(call)
        self.call_depth += below
        try:
            result = func(*args, **kwargs)
        finally:
            self.call_depth -= below
        if self.record_output and any(x is not None for x in _pytree.tree_leaves(result)):
            call.output_str = f"  ->  {_text(result, self.record_tensor_attributes, self._numbers)}"
        for kind in ("record", "log"):
            for hook in _HOOKS[kind]:
                told = {**(getattr(call, kind) or {}), **(hook(func, types, args, kwargs, result) or {})}
                setattr(call, kind, told or None)
        return result

    def _annotated(self, header: str, tag: Any) -> None:
        self.operators.append(_AnnotateCall(header, tag, self.call_depth + 1))

    def _begin(self, module: Any, inputs: Any) -> None:
        name = self._names.setdefault(module, type(module).__name__)
        for child, found in module.named_children():
            self._names.setdefault(found, f"{name}.{child}")
        self._annotated("nn.Mod", name)
        self.call_depth += 1

    def _end(self, module: Any, inputs: Any, outputs: Any) -> None:
        self.call_depth -= 1

    def debug_string(self, show_stack_trace: bool | None = None) -> str:
        """The calls, a line each, indented by what is around them.

        Args:
            show_stack_trace: Write the program's line above what it calls; by default if lines were recorded.
        """
        shown = self.record_stack_trace if show_stack_trace is None else show_stack_trace
        lines: list[str] = []
        before = None
        for call in self.operators:
            margin = "  " * (call.call_depth + 1)
            place = _place(call.stack_trace) if shown else None
            if place is not None and place != before:
                lines += [""] * bool(lines) + [f"{margin}# {place}"]
                before = place
            lines.append(margin + call.render(self.record_tensor_attributes))
        return "\n".join(lines)

    @staticmethod
    @contextlib.contextmanager
    def dispatch_hooks(
        record_hook: Callable[..., Any] | None = None,
        log_hook: Callable[..., Any] | None = None,
        pre_log_hook: Callable[..., Any] | None = None,
    ) -> Iterator[None]:
        """Context in which functions are asked about each call.

        Args:
            record_hook, log_hook: ``(func, types, args, kwargs, result)`` to a dictionary for `record` or `log` of the
                call, or None.
            pre_log_hook: ``(func, types, args, kwargs, call)`` before the call, to a dictionary for `log`.
        """
        given = {"record": record_hook, "log": log_hook, "pre_log": pre_log_hook}
        added = {kind: hook for kind, hook in given.items() if hook is not None}
        for kind, hook in added.items():
            _HOOKS[kind].append(hook)
        try:
            yield
        finally:
            for kind, hook in added.items():
                _HOOKS[kind].remove(hook)

    @staticmethod
    def record_outputs() -> Any:
        """Context in which calls keep copies of their results: `record["output"]`."""

        def kept(func: Any, types: Any, args: Any, kwargs: Any, result: Any) -> dict[str, Any]:
            return {"output": _pytree.tree_map_only(tensor.Tensor, lambda x: x.detach().clone(), result)}

        return DebugMode.dispatch_hooks(record_hook=kept)

    @staticmethod
    def log_tensor_hashes(
        hash_fn: Callable[..., Any] | str | list[str] = "norm", hash_inputs: bool = False
    ) -> Any:
        """Context in which a number that stands for each tensor is written behind the calls.

        Args:
            hash_fn: "norm", the sum of sizes; "hash_tensor", of the bits; a list of them for a tuple; or a function.
            hash_inputs: For the arguments too, as they are before the call.
        """
        if isinstance(hash_fn, list):
            several = [_hash(kind) for kind in hash_fn]

            def one(x: Any) -> Any:
                return tuple(function(x) for function in several)
        else:
            one = _hash(hash_fn)

        def hashed(value: Any, key: str) -> dict[str, Any] | None:
            if not any(isinstance(leaf, tensor.Tensor) for leaf in _pytree.tree_leaves(value)):
                return None
            return {key: _pytree.tree_map(lambda x: one(x) if isinstance(x, tensor.Tensor) else None, value)}

        def before(func: Any, types: Any, args: Any, kwargs: Any, call: Any) -> dict[str, Any] | None:
            return None if "empty" in str(func) else hashed((args, kwargs), "input_hash")

        def after(func: Any, types: Any, args: Any, kwargs: Any, result: Any) -> dict[str, Any] | None:
            return None if "empty" in str(func) else hashed(result, "hash")

        return DebugMode.dispatch_hooks(log_hook=after, pre_log_hook=before if hash_inputs else None)

    @staticmethod
    def check_hash_mismatches(logs1: list, logs2: list, compare_inputs: bool = False) -> list[dict]:
        """Where the hashes of two runs of the same program differ.

        Returns:
            A dictionary for each: the operator ("call"), where in its result ("pytree_path"), "hash1", "hash2",
            "rel_diff", and whether it is of an argument ("is_input_hash").

        Raises:
            ValueError: The runs called other operators.
        """
        if len(logs1) != len(logs2):
            raise ValueError(f"Log lengths don't match: {len(logs1)} vs {len(logs2)}")
        found: list[dict] = []
        for place, (one, two) in enumerate(zip(logs1, logs2, strict=True)):
            names = [_name(call.op) if isinstance(call, _OpCall) else str(call) for call in (one, two)]
            if names[0] != names[1] or one.call_depth != two.call_depth:
                raise ValueError(f"Operators don't match at index {place}: {names[0]} vs {names[1]}")
            for key in ("input_hash", "hash") if compare_inputs else ("hash",):
                hashes = [(call.log or {}).get(key) for call in (one, two)]
                if (hashes[0] is None) != (hashes[1] is None):
                    raise ValueError(f"Only one run has hashes at index {place}: {names[0]}")
                leaves = [_pytree.tree_flatten_with_path(value)[0] for value in hashes]
                found += [
                    {"call_type": "torch op", "call": names[0], "arg_name": None, "pytree_path": _pytree.keystr(path),
                     "hash1": a, "hash2": b, "rel_diff": abs(a - b) / max(abs(a), abs(b), 1e-10),
                     "is_input_hash": key == "input_hash"}
                    for (path, a), (_, b) in zip(*leaves, strict=False) if a is not None and a != b
                ]  # fmt: skip
        return found


def _hash(kind: Any) -> Callable[[Any], Any]:
    if callable(kind):
        return kind
    if kind == "norm":
        return functools.partial(norm_hash_fn, use_scalar=True)
    if kind != "hash_tensor":
        raise AssertionError(f"hash_type must be 'norm' or 'hash_tensor', got {kind!r}")
    return lambda x: int(tensor.hash_tensor(x.double() if x.is_floating_point() else x.long()).item())


def _ours(file: str) -> bool:
    return ("/taeda" in file and "/src/taeda" in file) or "/site-packages/taeda" in file


class _Functions(contextlib.AbstractContextManager):
    """Context in which functions of the library are recorded, with the operators below them."""

    def __init__(self, mode: DebugMode) -> None:
        from taeda.overrides import TorchFunctionMode

        class Functions(TorchFunctionMode):
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return mode._recorded(func, types, args, kwargs or {}, depth=mode.call_depth, below=1)

        self._mode = Functions()

    def __enter__(self) -> None:
        self._mode.__enter__()

    def __exit__(self, *exception: Any) -> Any:
        return self._mode.__exit__(*exception)


def get_active_debug_mode() -> DebugMode | None:
    """The innermost `DebugMode` around, if any."""
    return _active[-1] if _active else None
