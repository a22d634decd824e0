"""Activation checkpointing: parts of a model keep their inputs only, and compute the rest again in the backward pass.

"Training Deep Nets with Sublinear Memory Cost" (Chen et al., 2016). Programs find this as ``taeda.utils.checkpoint``.

Note [Recomputation]: without `use_reentrant` every tensor that an operation of the part would save is replaced by a
holder (saved_tensors_hooks). The first holder that a backward asks for its tensor runs the part again under hooks
that collect, in the same order, what it saves; the run stops as soon as the last has been collected. What was
collected belongs to that backward, each tensor until it is used.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import sys
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from taeda_autograd import _C
from taeda_autograd._engine import backward as _run_backward
from taeda_autograd._function import Function
from taeda_autograd.graph import saved_tensors_hooks
from taeda_tensor_core import Tensor, enable_grad, no_grad, ones, random

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]  # fmt: skip

#: Operators that policies of selective checkpoints are not asked about: none.
SAC_IGNORED_OPS: set = set()


class CheckpointError(RuntimeError):
    """The part did not do again what it had done."""


class DefaultDeviceType:
    """The kind of device whose random numbers are kept when no argument is on one."""

    _kind: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Choose it."""
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type() -> str:
        """What was chosen, else the accelerator, else the cpu."""
        if DefaultDeviceType._kind is not None:
            return DefaultDeviceType._kind
        from taeda_tensor_core import accelerator

        found = accelerator.current_accelerator()
        return "cpu" if found is None else found.type


_early_stop: bool | None = None
_debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A block in which recomputation stops when all that is needed is there, or runs to the end."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A block in which errors name the operators of both runs, whatever the argument `debug` says."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs whose tensors are cut off their histories."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}"
        )
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn when no input requires a gradient, so that none would be computed."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)


# --- state that the second run has to find again ---


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple | dict):
            yield from _tensors(value)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Indices and generators' states of the devices, other than the cpu, that tensors among the arguments are on."""
    found = sorted(
        {(t.device.type, t.get_device()) for t in _tensors(args) if t.device.type not in ("cpu", "meta")}
    )
    return [index for _, index in found], [random.get_rng_state(f"{kind}:{index}") for kind, index in found]


def set_device_states(devices: list[int], states: list[Tensor], *, device_type: str | None = None) -> None:
    """Go back to such states."""
    kind = DefaultDeviceType.get_device_type() if device_type is None else device_type
    for index, state in zip(devices, states, strict=True):
        random.set_rng_state(state, f"{kind}:{index}")


def _infer_device_type(*args: Any) -> str:
    """The kind of the first device, other than the cpu, that tensors among the arguments are on; else the default."""
    kinds = [t.device.type for t in _tensors(args) if t.device.type not in ("cpu", "meta")]
    return kinds[0] if kinds else DefaultDeviceType.get_device_type()


def _get_autocast_kwargs(device_type: str = "cuda") -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Arguments of `autocast` as it is now: for a kind of device, None where it has none, and for the cpu."""
    from taeda_tensor_core import amp

    known = amp.is_autocast_available(device_type)
    found = _autocast_state([device_type, "cpu"] if known else ["cpu"])
    for settings in found:
        del settings["device_type"]
    return (found[0] if known else None), found[-1]


class _Surroundings:
    """Random numbers and autocast as they are at one moment."""

    def __init__(self, preserve_rng: bool, args: Any) -> None:
        self._preserve = preserve_rng
        kinds = sorted({t.device.type for t in _tensors(args)} - {"cpu", "meta"})
        self._kind = kinds[0] if kinds else None
        if preserve_rng:
            self._cpu = random.get_rng_state()
            self._devices, self._states = get_device_states(*args)
        self._autocast = _autocast_state(["cpu", *kinds])

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A block in which they are as they were; afterwards random numbers go on as if it had not been."""
        with contextlib.ExitStack() as stack:
            if self._preserve:
                stack.enter_context(random.fork_rng(self._devices, device_type=self._kind or "cpu"))
                random.set_rng_state(self._cpu)
                if self._kind is not None:
                    set_device_states(self._devices, self._states, device_type=self._kind)
            for settings in self._autocast:
                from taeda_tensor_core.amp import autocast

                stack.enter_context(autocast(**settings))
            yield


def _autocast_state(kinds: list[str]) -> list[dict[str, Any]]:
    if "taeda_tensor_core.amp" not in sys.modules:  # nobody has ever switched it on
        return []
    from taeda_tensor_core import amp

    return [
        {
            "device_type": kind,
            "dtype": amp.get_autocast_dtype(kind),
            "enabled": amp.is_autocast_enabled(kind),
            "cache_enabled": amp.is_autocast_cache_enabled(),
        }
        for kind in kinds
    ]


# --- one run inside the other ---


class CheckpointFunction(Function):
    """The part as one node of the graph, which runs it again in its backward."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state, args)
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        inputs = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        inputs = list(detach_variable(tuple(inputs)))
        with ctx.surroundings.again(), enable_grad():
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [
            (o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        _run_backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs))


# --- the other way: holders in the place of saved tensors ---


class _Stop(Exception):
    """All that is needed has been collected."""


class _Holder:
    """Stands in the graph for a tensor that is not kept."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


def _facts(tensor: Tensor) -> tuple:
    return tuple(tensor.shape), tensor.dtype, tensor.device


class _SaveInputs(Function):
    """A node that keeps tensors, so that hooks around a checkpoint see them as they see what operations save."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return anchor.detach().clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("no gradient reaches a checkpoint's inputs by this way")


class _Frame:
    """One call of a checkpointed part."""

    def __init__(self, run: Callable[[], Any], early_stop: bool, check: bool, names: Any) -> None:
        self.run = run
        self.early_stop = early_stop
        self.check = check
        self.names = names
        self.holders: list[weakref.ref[_Holder]] = []
        self.facts: list[tuple] = []
        self.collected: dict[int, dict[int, Tensor]] = defaultdict(dict)
        self.done: set[int] = set()
        self.used: dict[int, set[int]] = defaultdict(set)

    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder(len(self.holders))
        self.holders.append(weakref.ref(holder))
        self.facts.append(_facts(tensor) if self.check else ())
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        run = _C.current_run() or next(_outside)
        if run not in self.done:
            self._collect(run)
        tensors = self.collected[run]
        if holder.number not in tensors:
            again = holder.number in self.used[run]
            raise CheckpointError(
                "checkpoint: Unpack is being triggered for a tensor that was already unpacked once in this backward. "
                "If you are calling ctx.saved_tensors in backward, make sure to do so only once."
                if again
                else self._wrong_number(len(tensors) + len(self.used[run]))
            )
        self.used[run].add(holder.number)
        tensor = tensors.pop(holder.number)
        if not tensors:
            self._forget(run)
        return tensor

    def _forget(self, run: int) -> None:
        # Later backwards have other numbers; a second use in this one is told from `used`.
        self.collected.pop(run, None)

    def _collect(self, run: int) -> None:
        self.done.add(run)
        count = 0

        def pack(tensor: Tensor) -> Tensor:
            nonlocal count
            number, count = count, count + 1
            if number < len(self.holders):
                self._compare(number, tensor)
                if self.holders[number]() is not None:
                    self.collected[run][number] = tensor.detach()
                if self.early_stop and count == len(self.holders):
                    raise _Stop
            return tensor.detach()

        with saved_tensors_hooks(pack, lambda tensor: tensor), enable_grad():
            try:
                self.run()
            except _Stop:
                return
        if count != len(self.holders):
            raise CheckpointError(self._wrong_number(count))

    def _wrong_number(self, found: int) -> str:
        return (
            "checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
            f"Number of tensors saved during forward: {len(self.holders)}\n"
            f"Number of tensors saved during recomputation: {found}.{self._operators()}"
        )

    def _compare(self, number: int, tensor: Tensor) -> None:
        if not self.check or self.facts[number] == _facts(tensor):
            return
        shown = [
            f"shape={list(shape)}, dtype={dtype}, device={device}"
            for shape, dtype, device in (self.facts[number], _facts(tensor))
        ]
        raise CheckpointError(
            "checkpoint: Recomputed values for the following tensors have different metadata than during the forward "
            f"pass.\ntensor at position {number}:\nsaved metadata: {shown[0]}\nrecomputed metadata: {shown[1]}"
            f"{self._operators()}"
        )

    def _operators(self) -> str:
        if self.names is None:
            return "\nTip: pass debug=True to see the operators of both runs."
        first, second = self.names
        return f"\nOperators of the forward: {', '.join(first.seen)}\nof the recomputation: {', '.join(second.seen)}"


#: Numbers of unpackings that no backward asks for, such as a look at a node's saved tensors.
_outside = itertools.count(-1, -1)


def _naming_modes() -> tuple[Any, Any]:
    from taeda_tensor_core.python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        """Lists the operators of a run."""

        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
        ) -> Any:
            self.seen.append(func.name())
            return func(*args, **(kwargs or {}))

    return Names(), Names()


def _without_reentry(
    function: Callable, args: tuple, kwargs: dict[str, Any], preserve: bool, context_fn: Callable, check: str,
    debug: bool, early_stop: bool,
) -> Any:  # fmt: skip
    checks = {"default": True, "none": False}
    if check not in checks:
        raise ValueError(f"determinism_check should be one of {list(checks)} but got {check}")
    names = None
    if debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        names = _naming_modes()
    forward_context, recompute_context = names if names is not None else context_fn()
    surroundings = _Surroundings(preserve, (args, kwargs))
    places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
    kept = _SaveInputs.apply(ones(1).requires_grad_(), *(args[i] for i in places))
    others = [None if isinstance(arg, Tensor) else arg for arg in args]
    node = kept.grad_fn

    def run() -> None:
        inputs = list(others)
        for place, tensor in zip(places, node.saved_tensors if places else (), strict=True):
            inputs[place] = tensor
        with surroundings.again(), recompute_context:
            function(*inputs, **kwargs)

    frame = _Frame(run, early_stop, checks[check], names)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, of which the backward pass keeps the arguments and computes the rest again.

    Args:
        function: A function or module; in both runs it must do the same.
        *args: Its arguments.
        use_reentrant: True runs a backward inside the backward, and takes gradients of tensors among `args` only. False
            is recommended: gradients of everything, keyword arguments, nested structures, `autograd.grad`. It should be
            given; True is meant without it.
        context_fn: Gives two contexts, for the first and the second run. Not with `use_reentrant`.
        determinism_check: 'default' compares shapes, dtypes and devices of both runs; 'none' nothing.
        debug: Let errors name the operators of both runs.
        early_stop: Stop the second run when all that is needed is there.
        **kwargs: `preserve_rng_state` (True) lets the second run draw the same random numbers; others are the
            function's.

    Raises:
        ValueError: Arguments that do not go together.
        CheckpointError: In the backward: the second run did something else than the first.

    Example:
        >>> y = taeda.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    debug = debug if _debug is None else _debug
    stop = early_stop if _early_stop is None else _early_stop
    return _without_reentry(function, args, kwargs, preserve, context_fn, determinism_check, debug, stop)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """A sequence of modules as so many checkpointed parts; the last part is kept whole.

    Args:
        functions: A `Sequential`, or a list of modules or functions.
        segments: Number of parts.
        input: Argument of the first.
        use_reentrant: As in :func:`checkpoint`.
        **kwargs: `preserve_rng_state`.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return forward

    size = len(steps) // segments
    start = 0
    for start in range(0, size * (segments - 1), size) if segments > 1 and size else ():
        input = checkpoint(
            part(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    done = size * (segments - 1)
    return part(done, len(steps))(input)


# --- choosing what is kept ---


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's results: kept, or computed again; kept where they are if on the cpu, too."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told.

    Args:
        is_recompute: Whether this is the second run.
        op_output: The operator's results in the first run.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def _policy(
    policy_fn: Any, context: SelectiveCheckpointContext, func: Any, args: tuple, kwargs: dict
) -> bool:
    """Whether the results are kept."""
    found = policy_fn(context, func, *args, **kwargs)
    if isinstance(found, bool):
        return found
    return found not in (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


def _selective_modes(policy_fn: Any, allow_mutation: bool) -> tuple[Any, Any]:
    from taeda_tensor_core.python_dispatch import TorchDispatchMode

    kept: dict[Any, list[Any]] = defaultdict(list)

    def detached(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.detach()
        return type(value)(map(detached, value)) if type(value) in (list, tuple) else value

    class Keeping(TorchDispatchMode):
        """The first run."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
            if _policy(policy_fn, context, func, args, kwargs or {}):
                versions = _writes(result)
                kept[func].append((detached(result), versions))
            return result

    class Giving(TorchDispatchMode):
        """The second run."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
        ) -> Any:
            context = SelectiveCheckpointContext(is_recompute=True)
            if not _policy(policy_fn, context, func, args, kwargs or {}):
                return func(*args, **(kwargs or {}))
            if not kept[func]:
                raise RuntimeError(
                    f"{func} encountered during backward, but not found in storage: the policy keeps what the first "
                    "run did not compute, or a second backward runs through it"
                )
            result, versions = kept[func].pop(0)
            if not allow_mutation and _writes(result) != versions:
                raise RuntimeError(
                    "Tensor cached during selective activation checkpoint has been mutated; if this is intended, pass "
                    "allow_cache_entry_mutation=True"
                )
            return detached(result)

    return Keeping(), Giving()


def _writes(result: Any) -> list[int]:
    """How often each tensor of a result has been written to; nobody counts that of tensors of inference mode."""
    return [t._version for t in _tensors((result,)) if not t.is_inference()]


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The contexts for :func:`checkpoint`'s `context_fn` that keep the results of chosen operators.

    Args:
        policy_fn_or_list: Operators whose results are kept (``taeda.ops.<library>.<operator>.default``), or a function
            `(context, op, *args, **kwargs)` that gives a CheckpointPolicy.
        allow_cache_entry_mutation: Do not mind that a kept result was written into.

    Example:
        >>> def contexts():
        ...     return create_selective_checkpoint_contexts([taeda.ops.taeda.mm.default])
        >>> y = checkpoint(block, x, use_reentrant=False, context_fn=contexts)
    """
    if isinstance(policy_fn_or_list, list):
        chosen = policy_fn_or_list

        def policy_fn(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy_fn = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    return _selective_modes(policy_fn, allow_cache_entry_mutation)
