"""Names of the compiled module that libraries ask for although they are private elsewhere."""

from __future__ import annotations

import contextlib
from typing import Any

from taeda_tensor_core import _C

#: Questions with one answer here, whatever the arguments.
_ANSWERS: dict[str, Any] = {
    "_log_api_usage_once": None,
    "_get_privateuse1_backend_name": "privateuseone",
    "_jit_set_profiling_executor": False, "_jit_set_profiling_mode": False,
    "_jit_set_texpr_fuser_enabled": None, "_jit_set_nvfuser_enabled": False,
    "_jit_set_nvfuser_guard_mode": False, "_jit_can_fuse_on_cpu": False, "_jit_can_fuse_on_gpu": False,
    "_jit_override_can_fuse_on_cpu": None,
    "_jit_override_can_fuse_on_gpu": None, "_has_mps": False, "_has_xpu": False,
    "_mps_is_available": False, "_mps_is_on_macos_or_newer": False, "_mps_is_in_bad_fork": False,
    "_are_functorch_transforms_active": False,
    "_get_accelerator": _C.device("cpu"), "_set_math_sdp_allow_fp16_bf16_reduction": None,
    "_current_graph_task_id": -1,  # autograd's own stands before it
    "_current_autograd_node": None, "_get_cudnn_enabled": False,
    "_dispatch_has_kernel_for_dispatch_key": False, "_jit_set_autocast_mode": False,
    "_jit_set_nvfuser_horizontal_mode": False, "_jit_set_bailout_depth": 20, "_jit_set_num_profiled_runs": 1,
    "_jit_pass_inline": None, "_jit_pass_lower_all_tuples": None, "_debug_set_autodiff_subgraph_inlining": None,
    "_set_cudnn_enabled": None, "_get_mkldnn_enabled": True, "_dispatch_tls_set_dispatch_key_excluded": None,
    "_set_worker_signal_handlers": None, "_error_if_any_worker_fails": None,
}  # fmt: skip
_FLAGS: dict[str, bool] = {
    "_GLIBCXX_USE_CXX11_ABI": True,
    "_has_mkldnn": True,
    "has_lapack": True,
    "has_mkl": False,
    "has_mkldnn": True,
    "has_openmp": True,
    "has_spectral": True,
}


class _KeyNames(type):
    """Every name is a key."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return cls(name)


class DispatchKey(str, metaclass=_KeyNames):
    """Name of a layer or a backend in PyTorch's dispatcher; here layers have positions (`taeda.library.POSITIONS`)."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name."""
        return str(self)


class DispatchKeySet(frozenset):
    """A set of such names.

    Args:
        key: A name.
    """

    def __new__(cls, key: Any = ()) -> DispatchKeySet:
        return super().__new__(cls, (key,) if isinstance(key, str) else key)

    def __or__(self, other: Any) -> DispatchKeySet:
        return DispatchKeySet(frozenset.__or__(self, other))

    def has(self, key: str) -> bool:
        """Whether a name is in it."""
        return key in self


#: Beginnings of such names, and the positions of layers that they stand for.
_POSITIONS = {"Autocast": ("autocast",), "Autograd": ("autograd",), "Python": ("dispatch", "below_autograd")}


class ExcludeDispatchKeyGuard:
    """Context in which layers of those names are off: those of autocast, of autograd, and of modes and classes.

    Args:
        keys: Their set.
    """

    def __init__(self, keys: DispatchKeySet) -> None:
        self._positions = {
            position
            for start, positions in _POSITIONS.items()
            for position in positions
            if any(key.startswith(start) for key in keys)
        }
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> None:
        from taeda_tensor_core.library import below

        for position in self._positions:
            self._stack.enter_context(below(position))

    def __exit__(self, *exception: object) -> None:
        self._stack.close()


class AutoDispatchBelowAutograd(ExcludeDispatchKeyGuard):
    """Context in which nothing is recorded, not even by operators that record themselves."""

    def __init__(self) -> None:
        super().__init__(DispatchKeySet(DispatchKey("Autograd")))


class DisableTorchDispatch(ExcludeDispatchKeyGuard):
    """Context in which neither modes nor classes are asked for operators."""

    def __init__(self) -> None:
        super().__init__(DispatchKeySet(DispatchKey("Python")))


_CLASSES = {
    "_DisableTorchDispatch": DisableTorchDispatch,
    "DispatchKey": DispatchKey,
    "DispatchKeySet": DispatchKeySet,
    "_AutoDispatchBelowAutograd": AutoDispatchBelowAutograd,
    "_ExcludeDispatchKeyGuard": ExcludeDispatchKeyGuard,
}


def _get_tracing_state() -> Any:
    """The trace that is being made, which takes `push_scope` and `pop_scope`; None if there is none."""
    from taeda_tensor_core.library import traces

    return traces[-1] if traces else None


def _is_tracing() -> bool:
    """Whether a graph is being traced."""
    return _get_tracing_state() is not None


def _jit_clear_class_registry() -> None:
    """Forget the classes that were scripted: none is."""


def _jit_get_operation(name: str) -> tuple[Any, Any]:
    """An operator by its name with its package, and the names of its overloads; a pair of None if there is none."""
    from taeda_tensor_core import ops

    package, _, short = name.partition("::")
    try:
        found = getattr(getattr(ops, package), short)
    except AttributeError:
        return None, None
    return found, found.overloads()


class _DispatchOperatorHandle:
    """An overload of an operator that was asked for by name."""

    def __init__(self, overload: Any) -> None:
        self._overload = overload

    def schema(self) -> Any:
        """The operator's schema."""
        return self._overload._schema


def _dispatch_find_schema_or_throw(name: str, overload_name: str) -> _DispatchOperatorHandle:
    """An overload by its operator's name, by which programs ask whether there is one.

    Raises:
        RuntimeError: There is none.
    """
    found = getattr(_jit_get_operation(name)[0], overload_name or "default", None)
    if found is None:
        full = f"{name}.{overload_name}" if overload_name else name
        raise RuntimeError(f"Could not find schema for {full}.")
    return _DispatchOperatorHandle(found)


def _len_torch_function_stack() -> int:
    """How many modes that answer for functions are in force."""
    return len(_C._function_mode_stack())


def _len_torch_dispatch_stack() -> int:
    """How many modes that answer for operators are in force."""
    from taeda_tensor_core.python_dispatch import _get_current_dispatch_mode_stack

    return len(_get_current_dispatch_mode_stack())


def _infer_size(a: Any, b: Any) -> Any:
    """The shape of two that are broadcast together."""
    from taeda_tensor_core import broadcast_shapes

    return broadcast_shapes(a, b)


def _add_docstr(obj: Any, text: str) -> Any:
    """The object, with a documentation where it can have one."""
    with contextlib.suppress(AttributeError, TypeError):
        obj.__doc__ = text
    return obj


def _set_grad_enabled(mode: bool) -> None:
    """Turn recording on or off."""
    from taeda_tensor_core import set_grad_enabled

    set_grad_enabled(mode)


_FUNCTIONS = {
    "_add_docstr": _add_docstr,
    "_dispatch_find_schema_or_throw": _dispatch_find_schema_or_throw,
    "_get_tracing_state": _get_tracing_state,
    "_infer_size": _infer_size,
    "_is_tracing": _is_tracing,
    "_jit_clear_class_registry": _jit_clear_class_registry,
    "_jit_get_operation": _jit_get_operation,
    "_len_torch_dispatch_stack": _len_torch_dispatch_stack,
    "_len_torch_function_stack": _len_torch_function_stack,
    "_set_grad_enabled": _set_grad_enabled,
}


class _Operators:
    """A part of the compiled module that holds operators: the table's, and those of PyTorch's names that it has not."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            for place in (_C.ops, getattr(_C.ops, "aten", None)):
                if (found := getattr(place, name, None)) is not None:
                    return found
            if name.endswith("_"):
                return _written(name, getattr(_C.Tensor, name, None), getattr(self, name[:-1]))
        raise AttributeError(f"module '{_C.__name__}.{self.__name__}' has no attribute {name!r}")


def _written(name: str, method: Any, plain: Any) -> Any:
    """The form of an operator that writes into its first operand: the method of that name, or by a copy."""
    if method is not None:
        return method

    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.copy_(plain(self, *args, **kwargs))

    write.__name__ = write.__qualname__ = name
    return write


def find(name: str) -> Any:
    """The value of a name of the compiled module that it does not have itself.

    Raises:
        AttributeError: There is no such name.
    """
    if name in _FLAGS:
        return _FLAGS[name]
    if name in _ANSWERS:
        answer = _ANSWERS[name]
        function = lambda *args, **kwargs: answer  # noqa: E731 (a name of its own is given below)
        function.__name__ = function.__qualname__ = name
        return function
    if name == "_get_default_device":
        from taeda_tensor_core.default_device import get_default_device

        return lambda: str(get_default_device())
    if name in ("_nn", "_linalg", "_fft", "_special", "_sparse"):
        return _Operators(name)
    if name == "_cpu":
        from taeda_tensor_core import _processor

        return _processor.extension
    if name == "_is_alias_of":
        from taeda_tensor_core.private_names import is_alias_of

        return is_alias_of
    if name == "_is_torch_function_mode_enabled":
        return lambda: bool(_C._function_mode_stack())
    if name in ("_VariableFunctions", "_VariableFunctionsClass", "default_generator"):
        import taeda_tensor_core

        return taeda_tensor_core.default_generator if name == "default_generator" else taeda_tensor_core
    if name in ("TensorBase", "_TensorBase"):
        return _C.Tensor
    if name == "_LinAlgError":
        return _C.linalg.LinAlgError
    if name == "_TensorMeta":
        return type(_C.Tensor)
    if name in _CLASSES:
        return _CLASSES[name]
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    raise AttributeError(f"module {_C.__name__!r} has no attribute {name!r}")


def load_library(path: Any) -> None:
    """Load a plug-in or an extension of taeda, so that its operators are found under ``taeda.ops``.

    For the libraries of torchvision and torchaudio, which need PyTorch's, taeda's own versions of their operators take
    their place.

    Raises:
        OSError: It is none, or cannot be loaded: libraries for PyTorch's C++ API cannot.
    """
    from pathlib import Path

    from taeda_tensor_core import backends

    place = Path(path)
    if place.parent.name == "torchvision" and place.name.partition(".")[0] == "_C" and place.is_file():
        from taeda_tensor_core import _vision_operators

        _vision_operators.install()
        return
    if place.parent.name == "lib" and place.parent.parent.name == "torchaudio" and place.is_file():
        from taeda_tensor_core import _audio_operators

        _audio_operators.install()
        return
    if _open_extension(place):
        return
    try:
        backends.load(str(path))
    except RuntimeError as error:
        raise OSError(f"load_library: {path}: {error}") from error


_opened: list[Any] = []


def _open_extension(path: Any) -> bool:
    """Opens a library whose operators are registered while it is opened; False, and nothing is left, for others.

    Raises:
        OSError: It cannot be opened.
    """
    import _ctypes
    import ctypes

    if not path.is_file():
        return False
    try:
        found = ctypes.CDLL(str(path.resolve()))
    except OSError as error:
        raise OSError(f"load_library: {path}: {error}") from error
    if hasattr(found, "taeda_extension_version") and not hasattr(found, "taeda_plugin_describe"):
        _opened.append(found)
        return True
    _ctypes.dlclose(found._handle)
    return False
