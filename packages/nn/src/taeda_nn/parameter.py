"""Parameter and Buffer: tensors that a module registers when they are assigned to it."""

from __future__ import annotations

import copy
from typing import Any

from taeda_nn._bind import Tensor, disabled_torch_function, has_autograd, tensor


def _rebuild_with_state(make: Any, args: tuple[Any, ...], state: dict[str, Any]) -> Tensor:
    made = make(*args)
    made.__dict__.update(state)
    return made


def _reduced(parameter: Tensor, make: Any, *facts: Any) -> tuple[Any, ...]:
    """For pickle: the values, those facts and what programs said of it by attributes."""
    args = type(parameter), parameter.data, *facts
    state = parameter.__dict__
    return (_rebuild_with_state, (make, args, state)) if state else (make, args)


def _as_pytorch(parameter: Tensor) -> tuple[Any, ...] | None:
    """The reduction of PyTorch, where a provider of tensors stands under its name."""
    reduced = getattr(getattr(tensor, "sharing", None), "reduced_as_pytorch", None)
    return None if reduced is None else reduced(parameter)


def _rebuild(cls: type, data: Tensor, requires_grad: bool) -> Tensor:
    try:
        return Tensor._make_subclass(cls, data, requires_grad)
    except RuntimeError:
        if has_autograd:
            raise
        # Without an autograd provider a tensor may refuse to require gradients; inference needs none.
        return Tensor._make_subclass(cls, data, False)


def _answers(cls: type) -> bool:
    """Whether instances of a tensor class answer for functions, or for operators."""
    if cls is Tensor:
        return False
    found = getattr(cls, "__torch_function__", None)
    if found is not None and found is not disabled_torch_function:
        return True
    return getattr(cls, "__torch_dispatch__", None) is not getattr(Tensor, "__torch_dispatch__", None)


def _copied_values(value: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of the values; the tensors' own way of deep copies knows which of them share memory."""
    if hasattr(Tensor, "__deepcopy__"):
        return copy.deepcopy(value.data, memo)
    return value.detach().clone()


class _ParameterMeta(type(Tensor)):
    """Says of tensors of other classes whether they are parameters too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or (
            cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)
        )


def _of_class(data: Tensor, requires_grad: bool) -> Tensor:
    """A parameter that keeps the class of its data, which answers for functions itself."""
    made = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise RuntimeError(
            f"Parameter: detach() of a {type(data).__name__} gave a {type(made).__name__}; for its class to be kept, "
            "results must be of the class, as those of Tensor.__torch_function__ are"
        )
    made._is_param = True
    return made


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is learned: assigning it to a module's attribute registers it.

    Args:
        data: The values, of any shape; shared, not copied. An empty tensor by default. Of an instance of a subclass
            that answers for functions or operators (``__torch_function__``, ``__torch_dispatch__``), the parameter is
            of that class too.
        requires_grad: Whether gradients are computed for it.

    Example:
        >>> scale = nn.Parameter(torch.ones(3))
    """

    __torch_function__ = disabled_torch_function

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Tensor:
        if data is None:
            data = tensor.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"{cls.__name__}: data must be a Tensor, got {type(data).__name__}")
        if _answers(type(data)):
            return _of_class(data, requires_grad)
        return _rebuild(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        copied = memo.get(id(self))
        if copied is None:
            copied = _rebuild(type(self), _copied_values(self, memo), self.requires_grad)
            memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if type(self) is Parameter and not self.__dict__ and (found := _as_pytorch(self)):
            return found
        return _reduced(self, _rebuild, self.requires_grad)

    def __repr__(self) -> str:
        shown = "Parameter containing:\n" + repr(self.data)
        # As tensors show it, within their own closing bracket.
        return f"{shown[:-1]}, requires_grad=True)" if self.requires_grad and shown.endswith(")") else shown


def _rebuild_buffer(cls: type, data: Tensor, persistent: bool) -> Tensor:
    return cls(data, persistent=persistent)


class _BufferMeta(type(Tensor)):
    """Says of plain tensors whether they are buffers too: what files of PyTorch keep of them."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or (
            cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that belongs to a module's state but is not learned, such as a running mean.

    Args:
        data: The values, of any shape; shared, not copied. An empty tensor by default.
        persistent: Whether it is part of the module's ``state_dict``.

    Example:
        >>> module.mean = nn.Buffer(torch.zeros(3))
    """

    persistent: bool
    _is_buffer = True
    __torch_function__ = disabled_torch_function

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = tensor.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"{cls.__name__}: data must be a Tensor, got {type(data).__name__}")
        buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        copied = memo.get(id(self))
        if copied is None:
            copied = _rebuild_buffer(type(self), _copied_values(self, memo), self.persistent)
            memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _reduced(self, _rebuild_buffer, self.persistent)

    def __repr__(self) -> str:
        return repr(self.data)


# --- Parameters and buffers whose shape is not known yet ---

# What may be asked of a tensor that has no shape yet: where it is and of which dtype, and converting it.
_BEFORE_SHAPE = frozenset(
    [
        "__get__",
        "__set__",
        "__delete__",
        "__hash__",
        "get_device",
        "is_complex",
        "is_floating_point",
        "copy_",
        "detach",
        "_has_compatible_shallow_copy_type",
        "half",
        "bfloat16",
        "float",
        "double",
        "char",
        "short",
        "int",
        "long",
        "cuda",
        "cpu",
        "to",
        "type",
        "size",
    ]
)


def _no_shape(what: str) -> str:
    return (
        f"{what}: a parameter or buffer that is not initialised yet has no shape and no values; "
        "call forward of its lazy module with a batch first"
    )


class UninitializedTensorMixin:
    """What lazy parameters and buffers share: a dtype and a device, but no shape until ``materialize``."""

    __slots__ = ()
    cls_to_become: type
    requires_grad: bool

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives it memory of ``shape``, uninitialised, and makes it an ordinary parameter or buffer.

        Args:
            shape: Its sizes; one number for a single dimension.
            device: By default where it is now.
            dtype: By default that of now.
        """
        own: Any = self
        device = own.data.device if device is None else device
        dtype = own.data.dtype if dtype is None else dtype
        own.data = tensor.empty(shape, device=device, dtype=dtype)
        own.__class__ = own.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(_no_shape("shape"))

    def share_memory_(self) -> Any:
        """RuntimeError: there is nothing to share yet."""
        raise RuntimeError(_no_shape("share_memory_"))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", str(func))
        if name in _BEFORE_SHAPE:
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]
        raise ValueError(_no_shape(name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape its lazy module finds out in the first call.

    Args:
        requires_grad: Whether gradients are computed for it.
        device, dtype: What it will have.
    """

    cls_to_become = Parameter
    __torch_function__ = disabled_torch_function  # until there is one: see _let_answer

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        _let_answer()
        return _rebuild(cls, tensor.empty(0, device=device, dtype=dtype), requires_grad)

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo.get(id(self))
        if copied is None:
            copied = memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, self.data.device, self.data.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape its lazy module finds out in the first call.

    Args:
        requires_grad: Whether gradients are computed for it.
        device, dtype: What it will have.
        persistent: Whether it is part of the module's ``state_dict``.
    """

    cls_to_become = Buffer
    persistent: bool
    __torch_function__ = disabled_torch_function  # until there is one: see _let_answer

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        _let_answer()
        buffer = _rebuild(cls, tensor.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        return buffer

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo.get(id(self))
        if copied is None:
            copied = memo[id(self)] = type(self)(*self._settings())
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), self._settings()

    def _settings(self) -> tuple[Any, ...]:
        return self.requires_grad, self.data.device, self.data.dtype, self.persistent


def _let_answer() -> None:
    """Let the classes answer for functions, from their first instance on: Python functions of programs without one go
    on without asking anybody."""
    answer = UninitializedTensorMixin.__dict__["__torch_function__"]
    for cls in (UninitializedParameter, UninitializedBuffer):
        if cls.__dict__["__torch_function__"] is not answer:
            cls.__torch_function__ = answer  # type: ignore[method-assign]


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
