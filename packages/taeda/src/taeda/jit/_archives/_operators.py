"""The operators that TorchScript programs call, with PyTorch's order of arguments and its numbers for dtypes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from taeda.jit._archives import _language
from taeda_registry.slots import tensor

#: Dtypes by PyTorch's numbers, for which programs hold them.
_DTYPE_NAMES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 "
    "bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz "
    "float8_e4m3fnuz uint16 uint32 uint64"
)
_DTYPES = _DTYPE_NAMES.split()
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_LAYOUTS = [
    "strided",
    "sparse_coo",
    "sparse_csr",
    "_mkldnn",
    "sparse_csc",
    "sparse_bsr",
    "sparse_bsc",
    "jagged",
]
#: Where dtypes stand among arguments by their order.
_DTYPE_PLACES = {
    "softmax": 2, "log_softmax": 2, "special_softmax": 2, "special_log_softmax": 2, "_safe_softmax": 2,
    "quantize_per_tensor": 3, "quantize_per_channel": 4, "quantize_per_tensor_dynamic": 1, "to_dense": 1,
    "_softmax_backward_data": 3, "_log_softmax_backward_data": 3,
}  # fmt: skip
#: Operators that give lists of tensors.
_LIST_NAMES = (
    "unbind split split_with_sizes chunk tensor_split hsplit vsplit dsplit meshgrid broadcast_tensors unsafe_split "
    "unsafe_chunk unsafe_split_with_sizes atleast_1d atleast_2d atleast_3d gradient nonzero_numpy align_tensors"
)
_LISTS = frozenset(_LIST_NAMES.split())
#: Functions and methods that are no operators of the table and that programs may call.
_FUNCTION_NAMES = (
    "as_tensor binomial can_cast concat concatenate fake_quantize_per_channel_affine fake_quantize_per_tensor_affine "
    "frobenius_norm initial_seed is_autocast_cpu_enabled is_autocast_enabled is_grad_enabled manual_seed "
    "native_channel_shuffle native_norm norm_except_dim nuclear_norm promote_types quantize_per_channel "
    "quantize_per_tensor quantize_per_tensor_dynamic range result_type log_sigmoid row_stack rrelu_ seed "
    "sparse_coo_tensor sparse_csr_tensor tensor trapz data"
)
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_NO_METHODS = frozenset(
    ["tofile", "apply_", "map_", "map2_", "register_hook", "backward", "numpy", "share_memory_", "set_data"]
)
_UNSAID = frozenset(["dtype", "layout", "device", "pin_memory", "memory_format", "generator"])


def dtype(number: Any) -> Any:
    """A dtype by its number."""
    if type(number) is not int:
        return number
    found = getattr(tensor, _DTYPES[number], None) if 0 <= number < len(_DTYPES) else None
    if found is None:
        raise NotImplementedError(f"the script's dtype {number} is not there")
    return found


def number_of(kind: Any) -> int:
    """The number of a dtype."""
    return _DTYPES.index(str(kind).rpartition(".")[2])


def _by_name(named: dict[str, Any]) -> dict[str, Any]:
    out = {key: value for key, value in named.items() if value is not None or key not in _UNSAID}
    if type(out.get("layout")) is int:
        out["layout"] = getattr(tensor, _LAYOUTS[out["layout"]])
    if out.get("pin_memory") is False:
        del out["pin_memory"]
    if type(out.get("memory_format")) is int:
        out["memory_format"] = getattr(tensor, _FORMATS[out["memory_format"]])
    for key in ("dtype", "out_dtype"):
        if key in out:
            out[key] = dtype(out[key])
    return out


# --- operators whose arguments the public functions take otherwise ---


def _size(self: Any, dim: int | None = None) -> Any:
    return list(self.shape) if dim is None else self.shape[dim]


def _stride(self: Any, dim: int | None = None) -> Any:
    return list(self.stride()) if dim is None else self.stride(dim)


def _to(self: Any, *args: Any, **named: Any) -> Any:
    """`to` of a dtype, a device, both, or of another tensor; then whether to wait and to copy, and the layout."""
    kinds = (tensor.device, str, tensor.Tensor)
    given: list[Any] = []
    for place, value in enumerate(args[:2]):
        is_kind = isinstance(value, kinds) or type(value) is int or value is None
        if (place == 1 and (isinstance(args[0], tensor.Tensor) or type(args[0]) is int)) or not is_kind:
            break
        given.append(value)
    flags = dict(zip(("non_blocking", "copy", "memory_format"), args[len(given) :], strict=False))
    where = [dtype(value) for value in given if value is not None]
    named = {key: value for key, value in _by_name({**flags, **named}).items() if key != "layout"}
    return self.to(*where, **named) if where or named.get("copy") else self


def _slice(self: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return tensor.ops.aten.slice(self, dim, start, end, step)


def _index(self: Any, indices: list[Any]) -> Any:
    return self[tuple(slice(None) if i is None else i for i in indices)]


def _index_put_(self: Any, indices: list[Any], values: Any, accumulate: bool = False) -> Any:
    places = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        return tensor.ops.aten.index_put_(self, indices, values, True)
    self[places] = values
    return self


def _convolution(*args: Any) -> Any:
    return tensor.ops.aten.convolution(*args[:9])


def _convolution_mode(
    x: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int
) -> Any:
    plain = (tensor.conv1d, tensor.conv2d, tensor.conv3d)[weight.dim() - 3]
    return plain(x, weight, bias, stride, padding, dilation, groups)


def _stft(
    self: Any, n_fft: int, hop: Any = None, length: Any = None, window: Any = None, *rest: Any, **named: Any
) -> Any:  # fmt: skip
    """Either with `center` and the kind of padding, or without both."""
    keys = ("normalized", "onesided", "return_complex", "align_to_window")
    if len(rest) > 1 and isinstance(rest[1], str):
        named = {"center": rest[0], "pad_mode": rest[1], **dict(zip(keys, rest[2:], strict=False)), **named}
    else:
        named = {"center": False, **dict(zip(keys, rest, strict=False)), **named}
    named = {key: value for key, value in named.items() if value is not None}
    return tensor.stft(self, n_fft, hop, length, window, **named)


def _einsum(equation: str, operands: list[Any], path: Any = None) -> Any:
    return tensor.einsum(equation, *operands)


def _warn(message: str, stacklevel: int = 2) -> None:
    warnings.warn(str(message), stacklevel=2)


def _mesh(tensors: list[Any], indexing: str = "ij") -> list[Any]:
    return list(tensor.meshgrid(*tensors, indexing=indexing))


def _spread(tensors: list[Any]) -> list[Any]:
    return list(tensor.broadcast_tensors(*tensors))


def _each(name: str) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        return list(getattr(tensor, name)(*x)) if isinstance(x, list) else getattr(tensor, name)(x)

    return call


def _many(name: str) -> Callable[..., Any]:
    return lambda tensors: getattr(tensor, name)(*tensors)


def _one_of(self: Any, condition: Any = None, other: Any = None) -> Any:
    found = tensor.where(self) if condition is None else tensor.where(self, condition, other)
    return list(found) if condition is None else found


def _unwrapped(value: Any) -> Any:
    if value is None:
        raise RuntimeError("AssertionError: Unwrapping null optional")
    return value


def _functional(name: str) -> Callable[..., Any]:
    from taeda_registry.slots import nn

    return getattr(nn.functional, name)  # type: ignore[no-any-return]


def _new_number(value: Any, **named: Any) -> Any:
    return tensor.tensor(value, **named)


def _upsample(name: str) -> Callable[..., Any]:
    """Either of a size, then a scale for each axis, or of a size or all scales, whichever is given."""
    flags = 1 if "linear" in name or "cubic" in name else 0  # whether corners are aligned

    def call(x: Any, size: list[int] | None, *rest: Any) -> Any:
        corners, scales = rest[:flags], rest[flags:]
        if len(scales) == 1 and isinstance(scales[0], list):
            scales = tuple(scales[0])
        elif size is not None:
            scales = tuple(scales) if x.dim() - 2 == len(scales) else ()
        if size is None:
            size = [int(n * factor) for n, factor in zip(x.shape[2:], scales, strict=True)]
        return getattr(tensor.ops.aten, name)(x, size, *corners, *scales)

    return call


def _distances(x: Any, y: Any, p: float = 2.0, mode: int | None = None) -> Any:
    ways = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    return tensor.cdist(x, y, p, ways[mode or 0])


def _unique_dim(x: Any, dim: int, sorted: bool = True, inverse: bool = False, counts: bool = False) -> Any:
    return _all_three(tensor.unique(x, sorted, inverse, counts, dim), inverse, counts)


def _unique_consecutive(x: Any, inverse: bool = False, counts: bool = False, dim: int | None = None) -> Any:
    return _all_three(tensor.unique_consecutive(x, inverse, counts, dim), inverse, counts)


def _all_three(found: Any, inverse: bool, counts: bool) -> Any:
    """Values, places and counts, where what was not asked for is empty."""
    given = iter(found if isinstance(found, tuple) else (found,))
    values, nothing = next(given), tensor.empty((0,), dtype=tensor.int64)
    return values, next(given) if inverse else nothing, next(given) if counts else nothing


def _nll_loss(x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Any:
    how = ("none", "mean", "sum")[reduction]
    return _functional("nll_loss")(x, target, weight, ignore_index=ignore_index, reduction=how)


def _embedding(
    weight: Any, indices: Any, padding_idx: int = -1, by_frequency: bool = False, sparse: bool = False
) -> Any:
    """Gradients are dense, whatever the program says."""
    return tensor.embedding(weight, indices, padding_idx, by_frequency)


def _shape_of_both(a: list[int], b: list[int]) -> list[int]:
    return list(tensor.broadcast_shapes(tuple(a), tuple(b)))


def _grads(
    outputs: Any, inputs: Any, grads: Any = None, keep: Any = None, create: bool = False, allow: bool = False
) -> Any:
    from taeda_registry.slots import autograd

    return list(autograd.grad(outputs, inputs, grads, keep, create, allow_unused=allow))


def _backwards(self: Any, *args: Any) -> None:
    self.backward(*args)


def _saved_state(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("a script wants to write a file, which no archive may")


_ATEN: dict[str, Callable[..., Any]] = {
    "size": _size, "stride": _stride, "to": _to, "slice": _slice, "index": _index, "index_put_": _index_put_,
    "_convolution": _convolution, "_convolution_mode": _convolution_mode, "stft": _stft, "einsum": _einsum,
    "warn": _warn, "meshgrid": _mesh, "broadcast_tensors": _spread, "where": _one_of, "_unwrap_optional": _unwrapped,
    **{f"atleast_{rank}d": _each(f"atleast_{rank}d") for rank in (1, 2, 3)},
    **{name: _many(name) for name in ("cartesian_prod", "block_diag")},
    "cudnn_is_acceptable": lambda x: False, "is_scripting": lambda: True, "_get_tracing_state": lambda: False,
    "_infer_size": _shape_of_both, "dim": lambda x: x.dim(), "device": lambda name: tensor.device(name),
    "set_grad_enabled": lambda on: tensor.set_grad_enabled(on),
    "get_device": lambda x: x.get_device(), "is_leaf": lambda x: x.is_leaf, "output_nr": lambda x: x.output_nr,
    "requires_grad_": lambda x, needed=True: x.requires_grad_(needed), "_version": lambda x: x._version,
    "autograd.grad": _grads, "autograd.backward": _backwards, "save": _saved_state, "load": _saved_state,
    "from_file": _saved_state, "gelu_": lambda x, approximate="none": x.copy_(_functional("gelu")(x, approximate)),
    "pad_sequence": lambda *a: _functional("_pad_sequence")(*a), "str": str, "mT": lambda x: x.mT, "mH": lambda x: x.mH,
    "numpy_T": lambda x: x.T, "T": lambda x: x.T, "H": lambda x: x.H, "thnn_conv2d": lambda x, w, size, bias=None,
    stride=1, padding=0: tensor.conv2d(x, w, bias, stride, padding),
    "mkldnn_convolution": lambda x, w, bias, padding, stride, dilation, groups: tensor.ops.aten.convolution(
        x, w, bias, stride, padding, dilation, False, [0] * len(stride), groups),
    **{f"{kind}{dims}d": _upsample(f"{kind}{dims}d") for kind, all_dims in (
        ("upsample_nearest", "123"), ("_upsample_nearest_exact", "123"), ("upsample_linear", "1"),
        ("upsample_bilinear", "2"), ("upsample_trilinear", "3"), ("upsample_bicubic", "2")) for dims in all_dims},
    **{f"_upsample_{kind}2d_aa": _upsample(f"_upsample_{kind}2d_aa") for kind in ("bilinear", "bicubic")},
    "cdist": _distances, "unique_dim": _unique_dim, "unique_consecutive": _unique_consecutive,
    "nll_loss_nd": _nll_loss, "embedding": _embedding, "matrix_H": lambda x: x.mH,
    "tensordot": lambda a, b, axes, others: tensor.tensordot(a, b, (axes, others)),
    "_lu_with_info": lambda a, pivot=True, check_errors=True: tensor.linalg.lu_factor_ex(
        a, pivot=pivot, check_errors=check_errors),
    "wait": lambda future: future.wait(), "nonzero_numpy": lambda x: list(x.nonzero(as_tuple=True)),
    "is_contiguous": lambda x, memory_format=0: x.is_contiguous(memory_format=getattr(tensor, _FORMATS[memory_format])),
}  # fmt: skip


def _raise(message: str, kind: str | None = None) -> None:
    from taeda.jit._modules import Error

    raise Error(f"{kind.rpartition('.')[2]}: {message}" if kind else message)


_PRIM: dict[str, Callable[..., Any]] = {
    "RaiseException": _raise,
    "NumToTensor": _new_number,
    "ImplicitTensorToNum": lambda x: x.item(),
    "dtype": lambda x: number_of(x.dtype),
    "layout": lambda x: _LAYOUTS.index(str(x.layout).rpartition(".")[2]),
    "device": lambda x: x.device,
    "shape": lambda x: list(x.shape),
    "ndim": lambda x: x.dim(),
    "nbytes": lambda x: x.nbytes,
    "itemsize": lambda x: x.itemsize,
    "data": lambda x: x.data,
    "grad": lambda x: x.grad,
    "requires_grad": lambda x: x.requires_grad,
    "type": lambda device: device.type,
    "index": lambda device: device.index,
    "name": lambda x: None,
    "min": _language.OPERATORS["min"],
    "max": _language.OPERATORS["max"],
    "abs": abs,
    "rangelist": lambda n: list(range(n)),
    "unchecked_unwrap_optional": lambda x: x,
    "id": id,
    "is_meta": lambda x: x.device.type == "meta",
    "is_quantized": lambda x: x.is_quantized,
    "is_sparse": lambda x: x.is_sparse,
    "is_sparse_csr": lambda x: x.is_sparse_csr,
    "is_nested": lambda x: x.is_nested,
    "AutogradAllZero": lambda *x: False,
    "rpc_sync": _saved_state,
    **{f"is_{kind}": lambda x, kind=kind: x.device.type == kind for kind in ["cpu", "cuda", "xpu", "mps"]},
    **{
        f"is_{kind}": lambda x: False
        for kind in ["mkldnn", "xla", "ipu", "vulkan", "maia", "hpu", "mtia", "ort"]
    },
}


# --- which function an operator is ---


def operator(namespace: str, name: str, version: int) -> Callable[..., Any]:
    """The function of an operator; one that is not there raises NotImplementedError when it is called.

    Args:
        namespace: "aten" for `torch.relu`, "prim", or a package of operators.
        name: Its name.
        version: Of the operators that the archive was written for.
    """
    found = _PRIM.get(name) if namespace == "prim" else _aten(name, version) if namespace == "aten" else None
    if found is None and namespace not in ("prim", "aten"):
        found = _of_package(namespace, name)
    return found or _missing(f"{namespace}::{name}")


def _of_package(namespace: str, name: str) -> Callable[..., Any] | None:
    try:
        return getattr(getattr(tensor.ops, namespace), name)  # type: ignore[no-any-return]
    except AttributeError:
        return None


def _missing(name: str) -> Callable[..., Any]:
    def absent(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"the script calls the operator {name}, which taeda does not have")

    return absent


def _aten(name: str, version: int) -> Callable[..., Any] | None:
    if version in _OLD and name in _OLD[version]:
        of_tensors: Any = _OLD[version][name]
    else:
        of_tensors = _ATEN.get(name) or _public(name)
    if of_tensors is not None:
        of_tensors = _adapted(name, of_tensors)
    plain = _language.OPERATORS.get(name)
    if plain is None or of_tensors is None:
        return plain or of_tensors
    return _either(plain, of_tensors, name in _language.OF_THE_FIRST)


def _either(
    plain: Callable[..., Any], of_tensors: Callable[..., Any], of_the_first: bool
) -> Callable[..., Any]:
    Tensor = tensor.Tensor
    if of_the_first:

        def by_first(x: Any, *rest: Any, **named: Any) -> Any:
            return (of_tensors if isinstance(x, Tensor) else plain)(x, *rest, **named)

        return by_first

    def by_two(x: Any, *rest: Any, **named: Any) -> Any:
        if isinstance(x, Tensor) or (rest and isinstance(rest[0], Tensor)):
            return of_tensors(x, *rest, **named)
        return plain(x, *rest, **named)

    return by_two


def _public(name: str) -> Callable[..., Any] | None:
    """What has PyTorch's order of arguments: a public function, a method, a function of nn, or a private operator."""
    home, _, short = name.partition("_")
    if home in ("linalg", "special", "fft") and callable(
        found := getattr(getattr(tensor, home), short, None)
    ):
        return found  # type: ignore[no-any-return]
    aten = getattr(tensor.ops.aten, name, None)
    method = None if name.startswith("__") or name in _NO_METHODS else getattr(tensor.Tensor, name, None)
    known = name in _FUNCTIONS or callable(method) or (aten is not None and not _is_plain(aten))
    if not known:
        return None
    for home in (tensor, tensor.Tensor):
        if callable(found := getattr(home, name, None)) and not isinstance(found, type):
            return found  # type: ignore[no-any-return]
    return aten  # type: ignore[no-any-return]


def _is_plain(operator: Any) -> bool:
    return type(operator).__name__ == "Plain"


def _adapted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, given dtypes and formats by number, and giving lists where PyTorch's gives lists."""
    place, lists = _DTYPE_PLACES.get(name), name in _LISTS

    def call(*args: Any, **named: Any) -> Any:
        if place is not None and len(args) > place:
            args = (*args[:place], dtype(args[place]), *args[place + 1 :])
        found = function(*args, **_by_name(named)) if named else function(*args)
        return list(found) if lists and isinstance(found, tuple) else found

    return call if place is not None or lists or name not in _ATEN else function


# --- operators that meant something else in older archives ---


def _old_divide(self: Any, other: Any) -> Any:
    inexact = any(
        isinstance(x, float) or (isinstance(x, tensor.Tensor) and x.is_floating_point())
        for x in (self, other)
    )
    return tensor.div(self, other) if inexact else tensor.div(self, other, rounding_mode="trunc")


_OLD: dict[int, dict[str, Callable[..., Any]]] = {v: {"div": _old_divide} for v in (2, 3)}
