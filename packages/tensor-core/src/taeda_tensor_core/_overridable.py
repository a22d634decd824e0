"""Functions written in Python that classes and modes may answer for.

Note [Python functions ask when somebody answers]: operators look at their arguments' types in any case; a Python
function would have to look besides. So it does not, until the first class that answers for itself is made, the first
mode is entered, or the first such object reaches an operator. Then the code of every function named here is exchanged
for one that asks first; the function object, which programs hold and compare, stays the same.
"""

from __future__ import annotations

import functools
import threading
import types

from taeda_registry.forks import held_at_fork
from taeda_tensor_core import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: Modules of operators beside the top level.
NAMESPACES = ("fft", "linalg", "special")
_functions: list[types.FunctionType] = []
_composed: set[types.FunctionType] = set()
_spelled: set[types.FunctionType] = set()
_asking = False
#: Held while functions are entered or exchanged: one thread may import a file of functions while another starts to ask.
_lock = held_at_fork(threading.RLock())


class _Ask:
    """What stands as a constant in the code of a function that asks."""

    def __init__(self, public: types.FunctionType, inner: types.FunctionType) -> None:
        self._public, self._inner = public, inner

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        return _C._call_overridable(self._public, self._inner, args, kwargs)


def stand_ins(args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that are no tensors and whose classes answer for functions: they stand for values."""
    found: list[Any] = []
    for item in (*args, *kwargs.values()):
        for one in item if isinstance(item, (tuple, list)) else (item,):
            if hasattr(type(one), "__torch_function__") and not isinstance(one, _C.Tensor):
                found.append(one)
    return found


class _AskStandIns(_Ask):
    """The same for functions that are made of others, which ask themselves where they are given tensors."""

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if found := stand_ins(args, kwargs):
            return _C._handle_override(self._public, found, args, kwargs)
        return self._inner(*args, **kwargs)


class _AskSpelled(_Ask):
    """The same for functions whose options are handed over by name, those that were not given too, as PyTorch's are."""

    def __init__(self, public: types.FunctionType, inner: types.FunctionType) -> None:
        super().__init__(public, inner)
        code, defaults = inner.__code__, inner.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        self._given, self._options = names[: len(names) - len(defaults)], names[len(names) - len(defaults) :]
        self._defaults = {**dict(zip(self._options, defaults, strict=True)), **(inner.__kwdefaults__ or {})}

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        given = (*args, *kwargs.values())
        # The library's own classes have functions of their own for these, which take what was given.
        own = any(getattr(type(item), "_asks_for_own_form", False) for item in given)
        if not own and _C._has_torch_function(given):
            args, kwargs = self._spell(args, kwargs)
        return _C._call_overridable(self._public, self._inner, args, kwargs)

    def _spell(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The same call with options by name; one that does not fit is left for the function to refuse."""
        count = len(self._given)
        options = dict(zip(self._options, args[count:], strict=False))
        missing = self._given[len(args) :]
        misfit = len(args) > count + len(self._options) or not {*missing}.issubset(kwargs)
        if misfit or any(
            name in options or name not in self._defaults for name in {*kwargs}.difference(missing)
        ):
            return args, kwargs
        spelled = {**self._defaults, **options, **kwargs}
        return (*args[:count], *(spelled.pop(name) for name in missing)), spelled


@functools.cache
def _template(free: int) -> types.CodeType:
    """The code of a function that asks, for one with so many free variables.

    It must take them into its frame as any closure does: whoever looks at the frame's variables reads them there.
    """
    names = [f"free{i}" for i in range(free)]
    source = f"""
def closure({", ".join(names)}):
    def template(*args, **kwargs):
        if 0:
            {"; ".join(names) or "pass"}
        return (...).call(args, kwargs)
    return template
"""
    scope: dict[str, Any] = {}
    exec(source, scope)
    code: types.CodeType = scope["closure"](*names).__code__
    return code


def _ask_first(function: types.FunctionType) -> None:
    code = function.__code__
    inner = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    inner.__kwdefaults__, inner.__annotations__ = function.__kwdefaults__, function.__annotations__
    kind = _AskStandIns if function in _composed else _AskSpelled if function in _spelled else _Ask
    ask = kind(function, inner)
    template = _template(len(code.co_freevars))
    constants = tuple(ask if item is ... else item for item in template.co_consts)
    # Programs look for a parameter's name among these.
    names = (*template.co_varnames, *(name for name in code.co_varnames if name not in template.co_varnames))
    function.__wrapped__ = inner  # by which `inspect` knows the signature
    function.__code__ = template.replace(
        co_consts=constants,
        co_varnames=names,
        co_nlocals=len(names),
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_freevars=code.co_freevars,
    )


def _start() -> None:
    global _asking
    with _lock:
        _asking = True
        for function in _functions:
            _ask_first(function)


def is_asking() -> bool:
    """Whether a class that answers was seen, so that the functions ask."""
    return _asking


def overridable(functions: Iterable[Any], composed: bool = False, spelled: bool = False) -> None:
    """Let `__torch_function__` answer for these public functions; what is no plain Python function is left alone.

    Args:
        functions: The functions.
        composed: Whether they are made of functions that ask, so that only what is no tensor is to be asked first.
        spelled: Whether who answers is given their options by name, those that were not given too.
    """
    for function in functions:
        if type(function) is not types.FunctionType:
            continue
        with _lock:
            if function in _functions:
                continue
            if composed:
                _composed.add(function)
            if spelled:
                _spelled.add(function)
            _functions.append(function)
            if _asking:
                _ask_first(function)


def known() -> list[types.FunctionType]:
    """All functions that were named."""
    return list(_functions)


class _Switch:
    """Context in which overriding is off on this thread."""

    _all = False

    def __enter__(self) -> None:
        try:
            _C._switch_overrides(self._all, 1)
        except BaseException:  # an interrupt behind the call: there will be no exit
            _C._switch_overrides(self._all, -1)
            raise

    def __exit__(self, *_: object) -> None:
        _C._switch_overrides(self._all, -1)


class DisableTorchFunctionSubclass(_Switch):
    """Context in which subclasses are treated as plain tensors on this thread; modes go on."""


class DisableTorchFunction(_Switch):
    """Context in which neither subclasses nor modes are asked on this thread."""

    _all = True


def _hand_over_public_functions() -> None:
    """Let `ops`, from which classes and modes are given functions, hold those of namespaces as programs know them."""
    for name in NAMESPACES:
        for member, function in vars(getattr(_C, name)).items():
            same = vars(_C.ops).get(f"{name}_{member}")
            # Both begin with the operator's schema: `linalg.matrix_exp` is made of the operator with the longer name.
            if same is not None and same.__doc__ == function.__doc__:
                setattr(_C.ops, f"{name}_{member}", function)


def install() -> None:
    """Put the names where programs look for them."""
    _hand_over_public_functions()
    for name in NAMESPACES:
        space = getattr(_C, name)
        space.__all__ = sorted(member for member in vars(space) if not member.startswith("_"))
    for switch in (DisableTorchFunctionSubclass, DisableTorchFunction):
        setattr(_C, switch.__name__, switch)
    _C._when_overridden(_start)
