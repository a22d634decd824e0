"""Sparse, quantized and nested tensors in PyTorch's files: of what parts they are written, and how they are read.

The functions that read check their arguments, because a file may call them with anything.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import taeda_tensor_core as tc
from taeda_tensor_core.checkpoint.common import check_view, fail, is_count, shown
from taeda_tensor_core.nested import NestedTensor
from taeda_tensor_core.quantized import QuantizedTensor, qscheme
from taeda_tensor_core.sparse import SparseTensor

#: PyTorch's classes of storages of codes, by the dtype of the codes.
CODES = {"int8": "QInt8Storage", "uint8": "QUInt8Storage", "int32": "QInt32Storage"}
_COMPRESSED = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
_PER_TENSOR = ("per_tensor_affine",)
_PER_CHANNEL = ("per_channel_affine", "per_channel_affine_float_qparams")


def parts(tensor: Any) -> tuple[str, tuple[Any, ...]] | None:
    """The name of the function that PyTorch makes such a tensor with, and its arguments; None for other tensors."""
    if isinstance(tensor, SparseTensor):
        return "_rebuild_sparse_tensor", (tensor.layout, _of_sparse(tensor.detach()))
    if isinstance(tensor, NestedTensor) and tensor.layout == "strided":
        return "_rebuild_nested_tensor", _of_nested([part.detach() for part in tensor.unbind()])
    return None


def _of_sparse(tensor: Any) -> tuple[Any, ...]:
    layout, size = tensor.layout, tc.Size(tensor.shape)
    if layout == "sparse_coo":
        return tensor._indices(), tensor._values(), size, tensor.is_coalesced()
    if layout in ("sparse_csr", "sparse_bsr"):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values(), size
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values(), size


def _of_nested(inner: list[Any]) -> tuple[Any, ...]:
    whole = [part.contiguous() for part in inner]
    memory = tc.cat([part.reshape(-1) for part in whole]) if whole else tc.empty((0,), device="cpu")
    begin = [0]
    for part in whole[:-1]:
        begin.append(begin[-1] + part.numel())
    facts = ([list(p.shape) for p in whole], [list(p.stride()) for p in whole], begin[: len(whole)])
    return memory, *(tc.tensor(fact, dtype=tc.int64, device="cpu") for fact in facts)


def mapping(tensor: Any) -> tuple[Any, ...]:
    """How PyTorch writes the way from a quantized tensor's codes to numbers."""
    scheme = tensor.qscheme()
    if tensor._axis is None:
        return scheme, float(tensor._scale), int(tensor._zero_point)
    if scheme.name == "per_channel_affine_float_qparams":
        return scheme, tensor._scale, tensor._zero_point, tensor._axis
    return scheme, tensor._scale.double(), tensor._zero_point.long(), tensor._axis


def layout(name: Any) -> Any:
    """A layout by its name in PyTorch."""
    found = getattr(tc, name.removeprefix("torch."), None) if isinstance(name, str) else None
    if not isinstance(found, tc._info.layout):
        fail(f"the file has {shown(name)} for a layout")
    return found


def memory_format(name: Any) -> Any:
    """An order in memory by its name."""
    found = getattr(tc, name, None) if isinstance(name, str) else None
    if not isinstance(found, tc._info.memory_format):
        fail(f"the file has {shown(name)} for a memory format")
    return found


def rebuild_sparse(way: Any, data: Any) -> Any:
    """A sparse tensor."""
    counts = (3, 4) if way == "sparse_coo" else (4,)
    if not isinstance(data, tuple) or len(data) not in counts or not isinstance(way, tc._info.layout):
        fail(f"the file makes a sparse tensor of {shown(data)}")
    plain = 2 if way == "sparse_coo" else 3
    if not all(type(part) is tc.Tensor for part in data[:plain]) or not isinstance(data[plain], tuple):
        fail(f"the file makes a sparse tensor of {shown(data)}")
    if way == "sparse_coo":
        made = tc.sparse_coo_tensor(*data[:2], tuple(data[2]), check_invariants=True)
        ordered = data[3:] == (True,) and made.device.type != "meta"  # where no places are known
        return made.coalesce() if ordered else made
    if way not in _COMPRESSED:
        fail(f"the file makes a sparse tensor of layout {shown(way)}")
    return tc.sparse_compressed_tensor(*data[:3], tuple(data[3]), layout=way, check_invariants=True)


def rebuild_wrapper(
    cls: Any, dtype: Any, size: Any, stride: Any, offset: Any, layout: Any, device: Any, grad: Any
) -> Any:
    """A tensor that has no memory, of a class of the program's own; its attributes say what it is."""
    if not (isinstance(cls, type) and issubclass(cls, tc.Tensor) and isinstance(dtype, tc.dtype)):
        fail(f"the file makes a wrapping tensor of {shown(cls)} and {shown(dtype)}")
    place = device if isinstance(device, tc.device) else "cpu"
    return tc.Tensor._make_wrapper_subclass(
        cls, tuple(size), strides=tuple(stride), dtype=dtype, device=place, requires_grad=bool(grad)
    )


def rebuild_nested(memory: Any, sizes: Any, strides: Any, offsets: Any) -> Any:
    """A nested tensor whose parts stand in one memory."""
    if not all(type(part) is tc.Tensor for part in (memory, sizes, strides, offsets)):
        fail("the file makes a nested tensor of what are no tensors")
    inner = []
    for shape, stride, offset in zip(sizes.tolist(), strides.tolist(), offsets.tolist(), strict=True):
        check_view(offset, tuple(shape), tuple(stride), memory.numel(), memory.itemsize)
        inner.append(memory.as_strided(shape, stride, memory.storage_offset() + offset).clone())
    return NestedTensor.around(inner, tc.strided)


def rebuild_njt(facts: Any) -> Any:
    """A jagged tensor as PyTorch writes it: of the lines of all parts, their borders and, with gaps, their numbers."""
    facts = facts if isinstance(facts, dict) else {}
    values, offsets, lengths = (facts.get(name) for name in ("values", "offsets", "lengths"))
    at = facts.get("_ragged_idx", 1)
    counts = [part for part in (offsets, lengths) if part is not None]
    if type(values) is not tc.Tensor or not all(
        type(part) is tc.Tensor and part.dim() == 1 and not part.is_floating_point() for part in counts
    ):
        fail(f"the file makes a jagged tensor of {shown(values)}")
    if not is_count(at) or not 1 <= at <= values.dim():
        fail(f"the file makes a jagged tensor that differs in dimension {shown(at)}")
    borders, numbers = offsets.tolist(), None if lengths is None else lengths.tolist()
    steps = [end - begin for begin, end in pairwise(borders)]
    numbers = steps if numbers is None else numbers
    fits = borders and borders[0] >= 0 and borders[-1] <= values.shape[at - 1] and len(numbers) == len(steps)
    if not fits or not all(0 <= number <= step for number, step in zip(numbers, steps, strict=True)):
        fail(f"the file makes a jagged tensor of {values.shape[at - 1]} lines with borders {shown(borders)}")
    made = tc.nested.nested_tensor_from_jagged(values, offsets, lengths, jagged_dim=at)
    return made.requires_grad_() if facts.get("requires_grad") is True else made


def rebuild_jagged(first: Any, second: Any, third: Any) -> Any:
    """A jagged tensor of all lines, of borders and of numbers of lines; or of parts, a layout and a dimension."""
    if isinstance(first, tc.Tensor):
        counts = third if isinstance(third, tuple) and all(map(is_count, third)) else None
        whole = type(second) is tc.Tensor and counts is not None and first.dim() > 0
        if not whole or second.shape != (len(counts) + 1,) or second.tolist() != [0, *accumulate(counts)]:
            fail(f"the file makes a jagged tensor of {shown(third)}")
        if sum(counts) != first.shape[0]:
            fail(f"the file makes a jagged tensor of {first.shape[0]} lines of {shown(third)}")
        return NestedTensor.packed(first, second, counts)
    fits = isinstance(first, (tuple, list)) and all(isinstance(p, tc.Tensor) for p in first)
    if not fits or len({(p.dim(), p.dtype) for p in first}) > 1 or not isinstance(second, tc._info.layout):
        fail(f"the file makes a nested tensor of {shown(first)}")
    rank = first[0].dim() if first else 1
    if not is_count(third) or not 1 <= third <= max(rank, 1):
        fail(f"the file makes a nested tensor that differs in dimension {shown(third)}")
    return NestedTensor.around(list(first), second, third)


def quantized(codes: Any, facts: Any) -> Any:
    """A quantized tensor of codes and what stands in a file of their way to numbers."""
    name = facts[0].name if isinstance(facts, tuple) and facts and isinstance(facts[0], qscheme) else ""
    if name in _PER_TENSOR and len(facts) == 3:
        scale, zero = facts[1:]
        if isinstance(scale, float) and type(zero) is int:
            return QuantizedTensor.around(codes, scale, zero)
    if name in _PER_CHANNEL and len(facts) == 4:
        scales, zeros, axis = facts[1:]
        one = isinstance(scales, list) and isinstance(zeros, list)
        scales, zeros = (tc.tensor(x, device="cpu") for x in (scales, zeros)) if one else (scales, zeros)
        fits = is_count(axis) and axis < codes.dim()
        if fits and all(type(x) is tc.Tensor and x.shape == (codes.shape[axis],) for x in (scales, zeros)):
            return QuantizedTensor.around(codes, scales, zeros, axis)
    return fail(f"the file has {shown(facts)} for the scale of a quantized tensor")
