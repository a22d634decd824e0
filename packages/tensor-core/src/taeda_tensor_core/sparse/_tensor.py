"""The tensor that wraps places and values."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NoReturn

import taeda_tensor_core as core
from taeda_tensor_core import _C
from taeda_tensor_core._inner_gradients import is_of_engine, through_inner
from taeda_tensor_core._printing import sparse_text
from taeda_tensor_core.overrides import answers_in, misplaced, name_at, path_of

Tensor = core.Tensor

#: What each function or method computes with sparse arguments, by its name without underscores of operators.
_table: dict[str, Callable[..., Any]] = {}
# Facts that the wrapper itself knows.
_PLAIN = frozenset({
    "shape", "dtype", "device", "ndim", "dim", "numel", "nelement", "is_floating_point", "is_complex", "element_size",
    "ndimension", "itemsize", "is_cpu", "names", "result_type", "can_cast", "is_tensor", "is_signed", "get_device",
    "nbytes", "output_nr", "retains_grad",
})  # fmt: skip
# What a backward does with gradients that are sparse, and optimizers with all gradients at once.
_OF_GRADIENTS = frozenset({"add", "add_", "clone", "detach", "_fused_sgd_"})


#: Decorator: what functions of these names compute where a sparse tensor is among their arguments.
sparse = answers_in(_table)


class SparseTensor(Tensor):
    """A tensor of few elements that are not zero. Made by `sparse_coo_tensor`, `sparse_csr_tensor` and `to_sparse`.

    Attributes:
        layout: "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr" or "sparse_bsc".
        dense_dim: the last dimensions, which values have as a whole.
    """

    _places: tuple[Tensor, ...]
    _elements: Tensor
    _way: str
    _ordered: bool
    _size: _C.Size

    # Facts that programs and products ask for again and again, without a way through `__torch_function__`.
    shape = property(lambda self: self._size)
    dtype = property(lambda self: self._elements.dtype)
    device = property(lambda self: self._elements.device)
    ndim = property(lambda self: len(self._size))

    def dim(self) -> int:
        """How many dimensions it has, sparse and dense ones."""
        return len(self._size)

    @staticmethod
    def around(
        places: tuple[Any, ...], values: Any, shape: tuple[int, ...], way: str, ordered: bool
    ) -> SparseTensor:
        """The sparse tensor of parts that fit together: indices (sparse dims, nnz), or (compressed, plain) ones."""
        made = Tensor._make_wrapper_subclass(
            SparseTensor, tuple(shape), dtype=values.dtype, device=values.device
        )
        made._places, made._elements, made._way, made._ordered = places, values, way, ordered
        made._size = _C.Size(shape)
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        path = path_of(func)
        name = name_at(path)
        if name in ("grad", "backward") and is_of_engine(path):
            from taeda_tensor_core.sparse._gradients import INNER

            return through_inner(INNER, func, args, kwargs)
        known = _table.get(name)
        if known is not None:
            options = dict(kwargs or {})
            out = options.pop("out", None)
            try:
                made = known(*args, **options)
                return made if out is None else _written(name, out, made)
            except AttributeError as error:
                raise misplaced(error, name, SparseTensor) from None
        if name in _PLAIN or _is_fact(name):
            with _C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise NotImplementedError(f"{name}: not defined for sparse tensors; use to_dense() first")

    _asks_for_own_form = True

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Operators that are met by another way than a public function: those that a backward and optimizers call on
        gradients; of the others none reads memory that is not there."""
        name = func.operator.name
        if name in _OF_GRADIENTS:
            return _table[name](*args, **(kwargs or {}))
        raise NotImplementedError(
            f"{func.operator.name}: not defined for sparse tensors; use to_dense() first"
        )

    # Python would find the methods of dense tensors here.

    def __repr__(self) -> str:
        return _text(self)

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _restore, (self._places, self._elements, tuple(self.shape), self._way, self._ordered)

    def __copy__(self) -> SparseTensor:
        import copy

        return _with(self, copy.copy(self._elements), self._places)

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        import copy

        return _with(self, copy.deepcopy(self._elements, memo), tuple(p.clone() for p in self._places))

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError(
                f"bool: found a sparse tensor of shape {tuple(self.shape)}, expected one element"
            )
        return bool(_table["to_dense"](self))

    def __iter__(self) -> Any:
        return (self[i] for i in range(self.shape[0]))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: found a sparse tensor of 0 dimensions")
        return int(self.shape[0])

    def __format__(self, spec: str) -> str:
        return _table["__format__"](self, spec)  # type: ignore[no-any-return]

    __hash__ = Tensor.__hash__


def _is_fact(name: str) -> bool:
    """Whether a name is that of an attribute which says what kind of tensor one is."""
    return name.startswith("is_") and isinstance(vars(Tensor).get(name), types.GetSetDescriptorType)


def _restore(
    places: tuple[Any, ...], values: Any, shape: tuple[int, ...], way: str, ordered: bool
) -> SparseTensor:
    return SparseTensor.around(places, values, shape, way, ordered)


def _with(x: SparseTensor, values: Any, places: tuple[Any, ...] | None = None) -> SparseTensor:
    """The same places with other values."""
    return SparseTensor.around(
        x._places if places is None else places, values, tuple(x.shape), x._way, x._ordered
    )


def _taken(self: SparseTensor, made: Any) -> SparseTensor:
    """The tensor itself, with the places and elements of a result."""
    if not isinstance(made, SparseTensor):
        raise RuntimeError("a sparse tensor cannot become a dense one in place; use to_dense() first")
    kept = self._elements
    if (
        kept.is_leaf and kept.requires_grad
    ):  # as PyTorch: what autograd has not recorded is written into the leaf
        if core.is_grad_enabled():
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation; write under no_grad()"
            )
        kept.data = made._elements.detach()
    else:
        self._elements = made._elements
        self.__dict__.update({k: v for k, v in made.__dict__.items() if k == "_source"})
    self._places, self._ordered = made._places, made._ordered
    return self


def _written(name: str, out: Any, made: Any) -> Any:
    """The target of a function, with its result."""
    target, result = (t._way if isinstance(t, SparseTensor) else "strided" for t in (out, made))
    if target != result:
        raise RuntimeError(
            f"{name}: argument 'out' has layout {target}, and the result {result}; expected one layout"
        )
    if not core.can_cast(made.dtype, out.dtype):
        raise RuntimeError(
            f"{name}: result type {made.dtype} can't be cast to the desired output type {out.dtype}"
        )
    if not isinstance(out, SparseTensor):
        return (out if out.shape == made.shape else out.resize_(made.shape)).copy_(made)
    if tuple(out.shape) != tuple(made.shape):
        raise RuntimeError(
            f"{name}: argument 'out' has shape {tuple(out.shape)}, expected that of the result, {tuple(made.shape)}"
        )
    return _taken(out, _with(made, made._elements.to(out.dtype)))


def _text(x: SparseTensor) -> str:
    names = {
        "sparse_coo": ("indices",),
        "sparse_csr": ("crow_indices", "col_indices"),
        "sparse_csc": ("ccol_indices", "row_indices"),
        "sparse_bsr": ("crow_indices", "col_indices"),
        "sparse_bsc": ("ccol_indices", "row_indices"),
    }
    places = dict(zip(names[x._way], x._places, strict=True))
    facts = [f"size={tuple(x.shape)}"] + ([] if x._elements.is_meta else [f"nnz={_table['_nnz'](x)}"])
    return sparse_text(places, x._elements, facts, repr(x.layout))


@sparse("numpy", "__array__")
def _numpy(self: SparseTensor, *_: Any, **__: Any) -> NoReturn:
    raise TypeError("numpy: can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")


_PROPERTIES = frozenset({
    "layout", "is_sparse", "is_sparse_csr", "requires_grad", "is_leaf", "grad", "grad_fn", "data", "T", "mT", "H", "mH",
    "real",
})  # fmt: skip


def bind_table() -> None:
    """Make everything in the table a method or property of sparse tensors: those of dense ones would not ask."""
    for name, function in _table.items():
        if name.endswith("__set__"):
            continue
        if name in _PROPERTIES:
            setattr(
                SparseTensor, name, property(function, _table.get(f"{name}__set__"), doc=function.__doc__)
            )
        else:
            setattr(SparseTensor, name, function)
