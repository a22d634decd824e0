"""Functions that PyTorch has beside its operators: older names, forms for sparse tensors, control flow."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

from taeda_tensor_core import _C, ops
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._mapped import mapped_bytes
from taeda_tensor_core._overridable import overridable
from taeda_tensor_core._sizes import as_tuple

# --- convolutions and norms ---

_CONVOLUTIONS = {
    1: ("conv1d", "conv_transpose1d"),
    2: ("conv2d", "conv_transpose2d"),
    3: ("conv3d", "conv_transpose3d"),
}


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """`conv1d` to `conv3d` and their transposes, by the dimensions of `weight`.

    Raises:
        RuntimeError: `weight` has another number of dimensions than 3 to 5.
    """
    places = weight.dim() - 2
    if places not in _CONVOLUTIONS:
        raise RuntimeError(
            f"convolution: argument 'weight' has shape {tuple(weight.shape)}, expected 3 to 5 dimensions"
        )
    function = getattr(_C, _CONVOLUTIONS[places][bool(transposed)])
    if transposed:
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return function(input, weight, bias, stride, padding, dilation, groups)


def frobenius_norm(
    input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The root of the sum of squares over `dim`, over all dimensions by default."""
    dims = as_tuple(dim) or tuple(range(input.dim()))
    return _C.linalg.vector_norm(input, 2, dims, keepdim, out=out)


def nuclear_norm(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum of the singular values of the matrices in `dim`, in the two dimensions there are by default."""
    dims = tuple(dim) or tuple(range(input.dim()))
    if len(dims) != 2:
        raise RuntimeError(f"nuclear_norm: argument 'dim' is {dims}, expected two dimensions")
    return _C.linalg.matrix_norm(input, "nuc", dims, keepdim, out=out)


def native_norm(
    input: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The p-norm of all elements, or over `dim`."""
    return _C.linalg.vector_norm(input, 2 if p is None else p, dim, keepdim, dtype=dtype)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Norms over all dimensions but one, which stay as sizes of 1; -1 leaves out none.

    Example:
        >>> taeda.norm_except_dim(taeda.ones(2, 4)).shape
        Size([2, 1])
    """
    if dim == -1:
        return _C.linalg.vector_norm(v, pow)
    if not 0 <= dim < v.dim():
        raise IndexError(f"norm_except_dim: argument 'dim' is {dim}, expected -1 to {v.dim() - 1}")
    return _C.linalg.vector_norm(v, pow, [d for d in range(v.dim()) if d != dim], True)


def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """`nn.functional.rrelu` in place."""
    # Of a copy: the gradient needs the elements as they were.
    return input.copy_(ops.rrelu(input.clone(), lower, upper, training, generator))


# --- files ---


def from_file(
    filename: str | os.PathLike[str],
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor over the bytes of a file, which are read when they are used.

    Args:
        filename: Of the file.
        shared: Whether what is written goes to the file, which is then made, or made longer, to hold `size` elements.
        size: Number of elements.
        dtype: Of the elements, the default dtype unless given.
        device: The cpu.

    Raises:
        OSError: The file cannot be read, or the disk has no room. RuntimeError: It is too short, or another device.

    Example:
        >>> taeda.from_file("weights.bin", size=10, dtype=taeda.float32)  # doctest: +SKIP
    """
    if device is not None and _C.device(device).type != "cpu":
        raise RuntimeError(f"from_file: argument 'device' is {device}, expected the cpu")
    dtype, count = dtype or _C.get_default_dtype(), size or 0
    if count < 0:
        raise RuntimeError(f"from_file: argument 'size' is {size}, expected at least 0")
    item = _C.empty((0,), dtype=dtype, device="cpu").element_size()
    memory = mapped_bytes("from_file", os.fspath(filename), bool(shared), count * item)
    made = (
        _C.empty((0,), dtype=dtype, device="cpu")
        if memory is None
        else _C.frombuffer(memory, dtype=_C.uint8).view(dtype)
    )
    return made.requires_grad_() if requires_grad else made


# --- sparse forms of products ---


def _sparse(name: str, tensor: Any) -> Tensor:
    if str(tensor.layout).endswith("strided"):
        raise RuntimeError(
            f"{name}: found a dense tensor of shape {tuple(tensor.shape)}, expected a sparse one"
        )
    return tensor


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, as a sparse one."""
    return _C.mm(_sparse("smm", input), mat).to_sparse()


def hspmm(mat1: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """The product of a sparse and a dense matrix, as a sparse one whose rows are dense."""
    if out is not None:
        raise NotImplementedError("hspmm: argument 'out' is not there; use the result")
    return _C.mm(_sparse("hspmm", mat1), mat2).to_sparse(1)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm` of a sparse matrix."""
    return _C.mm(input, mat2)


def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm` of a dense and a sparse matrix."""
    return _C.mm(input, mat2)


def hsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm` of a matrix whose rows are sparse."""
    return _C.mm(input, mat2)


def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`addmm` of a sparse matrix."""
    return _C.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def sspaddmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Any = None
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) of sparse `input` and `mat1` and a dense matrix, as a sparse matrix."""
    if out is not None:
        raise NotImplementedError("sspaddmm: argument 'out' is not there; use the result")
    product = smm(mat1, mat2)
    return _sparse("sspaddmm", input) * beta + product * alpha


def _copy_of(part: str) -> Callable[[Tensor], Tensor]:
    def copied(input: Tensor) -> Tensor:
        return getattr(input, part)().clone()

    copied.__name__ = copied.__qualname__ = f"{part}_copy"
    copied.__doc__ = f"A copy of `{part}()` of a sparse tensor."
    return copied


indices_copy, values_copy = _copy_of("indices"), _copy_of("values")
crow_indices_copy, col_indices_copy = _copy_of("crow_indices"), _copy_of("col_indices")
ccol_indices_copy, row_indices_copy = _copy_of("ccol_indices"), _copy_of("row_indices")


# --- control flow ---


def _truth(name: str, value: Any) -> bool:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise RuntimeError(f"{name}: found a condition of shape {tuple(value.shape)}, expected one element")
    if not isinstance(value, (Tensor, bool, int, float)):
        raise RuntimeError(
            f"{name}: found a condition that is a {type(value).__name__}, expected a bool or a tensor"
        )
    return bool(value)


def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: Sequence[Any] = ()) -> Any:
    """`true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`.

    Example:
        >>> taeda.cond(True, lambda x: x + 1, lambda x: x - 1, (taeda.tensor(1.0),))
        tensor(2.)
    """
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("cond: Expect both branches to be callable.")
    if _C._function_mode_stack():  # a program that is recorded keeps both branches
        return _C._handle_override(cond, (), (pred, true_fn, false_fn, operands), {})
    return (true_fn if _truth("cond", pred) else false_fn)(*operands)


def while_loop(
    cond_fn: Callable, body_fn: Callable, carried_inputs: Sequence[Any], additional_inputs: Sequence[Any] = ()
) -> Any:
    """What `body_fn` makes of `carried_inputs` as long as `cond_fn` holds of it.

    Args:
        cond_fn, body_fn: Functions of the carried and of the additional inputs.
        carried_inputs: What `body_fn` gives the next of.
        additional_inputs: What stays as it is.

    Example:
        >>> taeda.while_loop(lambda n: n < 5, lambda n: (n + 2,), (taeda.tensor(0),))
        (tensor(6),)
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("while_loop: Expect cond_fn and body_fn to be callable.")
    if _C._function_mode_stack():  # a program that is recorded keeps the loop
        given = cond_fn, body_fn, carried_inputs, additional_inputs
        return _C._handle_override(while_loop, (), given, {})
    carried, additional = tuple(carried_inputs), tuple(additional_inputs)
    while _truth("while_loop", cond_fn(*carried, *additional)):
        made = body_fn(*carried, *additional)
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if len(made) != len(carried):
            raise RuntimeError(f"while_loop: body_fn gave {len(made)} values, expected {len(carried)}")
        carried = made
    return carried


# --- hashes ---


def hash_tensor(
    input: Tensor, dim: int | Sequence[int] | None = None, *, keepdim: bool = False, mode: int = 0
) -> Tensor:
    """The exclusive or of the bits of elements: of all, or over `dim`. Equal tensors have equal hashes.

    Args:
        input: Numbers are taken as float64, or as int64; not complex ones.
        dim: Dimensions that are taken together; all by default.
        keepdim: Whether these stay as sizes of 1.
        mode: 0, the one way there is.

    Returns:
        uint64.

    Raises:
        RuntimeError: Another mode. TypeError: Complex numbers. IndexError: A dimension that is not there.

    Example:
        >>> taeda.hash_tensor(taeda.tensor([1, 2, 3]))
        tensor(0, dtype=taeda.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"hash_tensor: argument 'mode' is {mode}, expected 0")
    if input.is_complex():
        raise TypeError(f"hash_tensor: argument 'input' has dtype {input.dtype}, expected real numbers")
    dims = as_tuple(() if dim is None else dim) or tuple(range(input.dim()))
    most = max(input.dim(), 1)
    outside = [d for d in dims if not -most <= d < most]
    if outside:
        raise IndexError(
            f"hash_tensor: argument 'dim': Dimension out of range (expected to be in range of [{-most}, {most - 1}], "
            f"but got {outside[0]})"
        )
    dims = [d % input.dim() for d in dims] if input.dim() else []
    kept = [d for d in range(input.dim()) if d not in dims]
    wide = input.to(_C.float64 if input.is_floating_point() else _C.int64)
    sizes = [input.shape[d] for d in kept]
    bits = (
        wide.permute((*kept, *dims))
        .contiguous()
        .view(_C.int64)
        .reshape(*sizes, math.prod(input.shape[d] for d in dims))
    )
    while bits.shape[-1] > 1:  # halves of halves
        half = bits.shape[-1] // 2
        rest = bits[..., 2 * half :]
        bits = _C.cat([_C.bitwise_xor(bits[..., :half], bits[..., half : 2 * half]), rest], -1)
    made = (
        (bits[..., 0].clone() if bits.shape[-1] else _C.zeros(sizes, dtype=_C.int64, device=bits.device))
        .contiguous()
        .view(_C.uint64)
    )
    return made.reshape([1 if d in dims else input.shape[d] for d in range(input.dim())]) if keepdim else made


overridable((
    *(convolution, frobenius_norm, nuclear_norm, native_norm, norm_except_dim, rrelu_, hash_tensor),
    *(smm, hspmm, sspaddmm, saddmm, indices_copy, values_copy),
    *(crow_indices_copy, col_indices_copy, ccol_indices_copy, row_indices_copy),
), composed=True)  # fmt: skip


# --- facts of the build ---


def _fact(name: str) -> bool:
    from taeda_tensor_core import backends

    return bool(getattr(backends, name).is_available())


def __getattr__(name: str) -> bool:
    if name in ("has_mkl", "has_openmp"):
        return _fact(name.removeprefix("has_"))
    if name in ("has_lapack", "has_spectral"):
        return True
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
