"""Built-in operators as PyTorch's dispatch modes tell them: the overload of `aten` that a call is, and its arguments.

The names stand here once: what `str(func)` and `func.name()` give follows from `aten_name`, what a mode is asked with
from `as_aten`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

#: Operators that PyTorch does not have; they belong to the package "taeda".
_OUR_NAMES = (
    "_linalg_eig _linalg_pinv _pivots_to_permutation adaptive_avg_pool2d_backward arange_fill_ bce_loss "
    "bce_loss_backward bce_with_logits_loss bce_with_logits_loss_backward cast cdist_backward cdist_forward "
    "conv2d_backward conv3d_backward copy_same_ cross_entropy_backward cross_entropy_forward ctc_loss_backward "
    "ctc_loss_forward euclidean_dist fused_attention fused_attention_backward grid_sampler_backward "
    "group_norm_backward gru_gates gru_gates_backward l1_loss_backward layer_norm_backward log_softmax_backward "
    "logsigmoid logsigmoid_backward lstm_gates lstm_gates_backward lstm_sequence lstm_sequence_backward "
    "masked_amax masked_amin masked_argmax masked_argmin masked_cumprod masked_cumsum masked_log_softmax "
    "masked_logaddexp masked_logsumexp masked_mean masked_median masked_norm masked_normalize masked_prod "
    "masked_softmax masked_softmin masked_std masked_sum masked_var max_pool2d_pick max_pool2d_with_offsets "
    "pdist_backward pdist_forward prelu_forward resample resample_backward shrink_backward "
    "softmax_backward softmin softsign tanhshrink to_device to_dtype trunc_divide unique_all "
    "unique_consecutive_all unravel_index vecdot"
)
_OURS = frozenset(_OUR_NAMES.split())


def _table(**overloads: str) -> dict[str, str]:
    """The overload of each operator, from lists of names by overload."""
    return {name: overload for overload, names in overloads.items() for name in names.split()}


#: The overload of PyTorch's operator where it is not "default", for tensors as arguments.
_OVERLOADS = _table(
    Tensor="add add_ sub sub_ mul mul_ div div_ eq eq_ ne ne_ lt lt_ le le_ gt gt_ ge ge_ remainder remainder_ fmod "
    "fmod_ bitwise_and bitwise_and_ bitwise_or bitwise_or_ bitwise_xor bitwise_xor_ bitwise_left_shift "
    "bitwise_left_shift_ bitwise_right_shift "
    "bitwise_right_shift_ copysign copysign_ xlogy xlogy_ lerp lerp_ rsub fill fill_ masked_fill "
    "masked_fill_ pow_ slice slice_copy split split_copy unsafe_split index searchsorted bucketize frexp "
    "floor_divide_ float_power_ ldexp",
    Tensor_Tensor="pow float_power isin",
    int="transpose transpose_copy select select_copy unbind unbind_copy unflatten softmax log_softmax movedim hsplit "
    "vsplit dsplit",
    int_Tensor="index_fill index_fill_",
    self="where",
    src="scatter scatter_",
    two="scatter_reduce scatter_reduce_",
    float="bernoulli_",
    memory_format="empty",
    using_ints="flatten",
    input="conv_transpose2d conv_transpose3d gru lstm rnn_relu rnn_tanh",
    sections="tensor_split",
    self_int="repeat_interleave",
    Scalar="norm",
    x="trapezoid cumulative_trapezoid",
    scalarint="gradient",
    bin_ct="histogram",
)

#: Where a form has another name there, or its overload.
_FORMS = {
    "ctc_loss.lists": "ctc_loss.IntList",
    "div.mode": "div.Tensor_mode",
    "div_.mode": "div_.Tensor_mode",
    "dsplit.indices": "dsplit.array",
    "histogram.edges": "histogram.bins_tensor",
    "histogramdd.edges": "histogramdd.TensorList_bins",
    "hsplit.indices": "hsplit.array",
    "i0e": "special_i0e",
    "i0e_": "special_i0e_",
    "i1": "special_i1",
    "i1_": "special_i1_",
    "i1e": "special_i1e",
    "i1e_": "special_i1e_",
    "linalg_cond.name": "linalg_cond.p_str",
    "linalg_matrix_norm.name": "linalg_matrix_norm.str_ord",
    "linalg_norm.name": "linalg_norm.ord_str",
    "normal.Tensor": "normal.Tensor_Tensor",
    "polygamma.method": "polygamma",
    "polygamma_.method": "polygamma_",
    "repeat_interleave.Tensor": "repeat_interleave.self_Tensor",
    "repeat_interleave.counts": "repeat_interleave.Tensor",
    "scatter.combined": "scatter.reduce",
    "scatter.value_combined": "scatter.value_reduce",
    "scatter_.combined": "scatter_.reduce",
    "scatter_.value_combined": "scatter_.value_reduce",
    "split.sizes": "split_with_sizes",
    "tensor_split.Tensor": "tensor_split.tensor_indices_or_sections",
    "vector_norm": "linalg_vector_norm",
    "vsplit.indices": "vsplit.array",
    "where.condition": "where",
}

#: The other way: the end of our name of a form, by PyTorch's operator and overload.
OWN_FORMS = {
    theirs: ours.partition(".")[2]
    for ours, theirs in _FORMS.items()
    if "." in ours and "." in theirs and "_." not in theirs
}


@functools.cache
def aten_name(name: str) -> tuple[str, str, str]:
    """Package, name and overload of an operator as PyTorch has them.

    Example:
        >>> aten_name("add"), aten_name("split.sizes"), aten_name("mypkg::scale")
        (('aten', 'add', 'Tensor'), ('aten', 'split_with_sizes', 'default'), ('mypkg', 'scale', 'default'))
    """
    package, _, short = name.rpartition("::")
    known = short if package else _FORMS.get(short, short)
    base, _, overload = known.partition(".")
    if package:
        return package, base, overload or "default"
    if base in _OURS:
        return "taeda", base, overload or "default"
    if not overload and known == short:
        overload = _OVERLOADS.get(short, "")
    return "aten", base, overload or "default"


# --- calls ---

Call = tuple[str, tuple[Any, ...], dict[str, Any]]  # overload, arguments in order, and by name


def _is_number(value: Any) -> bool:
    return not isinstance(value, Tensor)


def _second(number: str, first: str = "") -> Callable[..., Call]:
    """A rule: the overload's name where the second argument, or the first, is a number."""

    def rule(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        if first and _is_number(args[0]):
            return first, args, kwargs
        return (number if len(args) > 1 and _is_number(args[1]) else overload), args, kwargs

    return rule


def _last(number: str) -> Callable[..., Call]:
    """A rule: the overload's name where the last argument is a number."""

    def rule(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return (number if _is_number(args[-1]) else overload), args, kwargs

    return rule


def _reduced(over: str, single: str = "") -> Callable[..., Call]:
    """A rule for reductions: the overload for given dimensions, and that for one."""

    def rule(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        if len(args) < 2 or args[1] is None:
            return overload, args, kwargs
        if single and len(args[1]) == 1:
            return single, (args[0], args[1][0], *args[2:]), kwargs
        return over, args, kwargs

    return rule


def _corrected(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Variances: `unbiased` is a correction of 1 or 0 there, and `keepdim` goes by name."""
    dim, unbiased, keepdim = (*args[1:], *(None, True, False)[len(args) - 1 :])
    named = {"correction": int(unbiased), **kwargs}
    if dim is None and unbiased and not kwargs:
        del named["correction"]
    if keepdim:
        named["keepdim"] = True
    return "correction", args[:1] if dim is None else (args[0], dim), named


def _sorted(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    return ("stable", args[:1], _by_name(args)) if len(args) > 3 else (overload, args, kwargs)


def _by_name(args: tuple[Any, ...]) -> dict[str, Any]:
    given = dict(zip(("dim", "descending", "stable"), args[1:], strict=False))
    defaults = {"dim": -1, "descending": False}
    return {name: value for name, value in given.items() if value != defaults.get(name)}


def _rounded(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    return ("decimals", args[:1], {"decimals": args[1]}) if len(args) > 1 else (overload, args, kwargs)


def _squeezed(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    return ("dim", (args[0], args[1][0]), kwargs) if len(args[1]) == 1 else (overload, args, kwargs)


def _filled_index(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    return ("int_Scalar" if _is_number(args[3]) else overload), args, kwargs


def _ranged(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """`arange(end)`, `arange(start, end)` and `arange(start, end, step)`."""
    return ("default", "default", "start", "start_step")[len(args)], args, kwargs


def _sliced(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    tensor, dim, start, end, step = (*args, *(0, None, None, 1)[len(args) - 1 :])
    if step < 0:  # which PyTorch's operator does not go
        return overload, args, kwargs
    bounds = (0 if start is None else start, sys.maxsize if end is None else end)
    return overload, (tensor, dim, *bounds, *(() if step == 1 else (step,))), kwargs


def _spatial(rank: int) -> Callable[..., Call]:
    """A rule: sizes of windows that are the same along all dimensions stand there once for each."""

    def rule(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        each = (a * rank if isinstance(a, list) and len(a) == 1 else a for a in args[1:])
        return overload, (args[0], *each), kwargs

    return rule


def _dropped(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """A rule: whether the module is being trained, which it is, stands where no generator is given."""
    return overload, args if len(args) > 2 and args[2] is not None else (*args[:2], True), kwargs


def _grouped(overload: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """A rule: the sizes of the input stand beside the number of groups."""
    input, groups, weight, bias, eps = args
    count, channels = input.shape[:2]
    inner = input.numel() // max(1, count * channels)
    return overload, (input, weight, bias, count, channels, inner, groups, eps), kwargs


def _rules() -> dict[str, Callable[..., Call]]:
    compared = "eq ne lt le gt ge fmod copysign"
    mixed = "remainder bitwise_and bitwise_or bitwise_xor"
    shifted = "bitwise_left_shift bitwise_right_shift"
    found: dict[str, Callable[..., Call]] = {}
    for names, rule in (
        (compared, _second("Scalar")),
        ("rsub", _second("Scalar")),
        (mixed, _second("Scalar", "Scalar_Tensor")),
        (shifted, _second("Tensor_Scalar", "Scalar_Tensor")),
        ("xlogy", _second("Scalar_Other", "Scalar_Self")),
        ("fill", _second("Scalar")),
        ("lerp masked_fill", _last("Scalar")),
        ("index_fill", _filled_index),
        ("round", _rounded),
    ):
        for name in names.split():
            found[name] = found[f"{name}_"] = rule
    found |= {
        "arange": _ranged,
        "eye": lambda _, args, kwargs: ("m" if len(args) > 1 else "default", args, kwargs),
        "slice": _sliced,
        "pow": _second("Tensor_Scalar", "Scalar"),
        "pow_": _second("Scalar"),
        "clamp_min": lambda _, args, kwargs: ("default" if _is_number(args[1]) else "Tensor", args, kwargs),
        "sum": _reduced("dim_IntList"),
        "mean": _reduced("dim"),
        "prod": _reduced("dim_int", "dim_int"),
        "any": _reduced("dims", "dim"),
        "all": _reduced("dims", "dim"),
        "var": _corrected,
        "polygamma.method": lambda overload, args, kwargs: (overload, (args[1], args[0]), kwargs),
        "sort": _sorted,
        "squeeze.dims": _squeezed,
        "native_dropout": _dropped,
        "native_group_norm": _grouped,
    }
    for rank in (1, 2, 3):
        for kind in ("avg_pool", "adaptive_avg_pool", "max_pool"):
            found[f"{kind}{rank}d"] = found[f"{kind}{rank}d_with_indices"] = _spatial(rank)
    found["clamp_max"] = found["clamp_min_"] = found["clamp_max_"] = found["clamp_min"]
    return found


_RULES = _rules()


#: What PyTorch calls results that are written to, where it has other names.
_OUTPUTS = {
    "max.dim_out": {"max": "out_values", "max_values": "out_indices"},
    "min.dim_out": {"min": "out_values", "min_indices": "out_indices"},
}


def written(op: Any) -> dict[str, str]:
    """PyTorch's names of what a form with targets writes to, with those of the operator's arguments.

    Example:
        >>> written(taeda.library.op("sort.out"))
        {'values': 'out_values', 'indices': 'out_indices'}
    """
    known = _OUTPUTS.get(op.name)
    return known or {a.name.removeprefix("out_"): a.name for a in op.arguments if a.written}


def _targets_by_name(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What is written to goes by name there; the operator takes it first."""
    theirs = {own: name for name, own in written(op).items()}
    named = {theirs[a.name]: value for a, value in zip(op.arguments, args, strict=False) if a.name in theirs}
    rest = [value for a, value in zip(op.arguments, args, strict=False) if a.name not in theirs]
    return tuple(rest), {theirs.get(key, key): value for key, value in kwargs.items()} | named


@functools.cache
def _operands(op: Any) -> frozenset[str]:
    """The arguments that may be numbers in the place of tensors."""
    return frozenset(a.name for a in op.arguments if a.type == "Operand")


def as_aten(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The overload and the arguments of a call of a built-in operator: sizes as lists, numbers as numbers."""
    if numbers := _operands(op):
        args = tuple(_number(v) if a.name in numbers else v for a, v in zip(op.arguments, args, strict=False))
    args = tuple(map(_listed, args))
    kwargs = {key: _listed(value) for key, value in kwargs.items()}
    if isinstance(form := kwargs.get("memory_format"), str):
        import taeda_tensor_core

        kwargs["memory_format"] = getattr(taeda_tensor_core, form)
    if op.form == "out":
        args, kwargs = _targets_by_name(op, args, kwargs)
    overload = aten_name(op.name)[2]
    rule = _RULES.get(op.name)
    return rule(overload, args, kwargs) if rule else (overload, args, kwargs)


def renamed(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, tuple[Any, ...], dict[str, Any]] | None:
    """Another operator and its arguments where PyTorch tells a call by that; None for others."""
    if name in ("softmax", "log_softmax") and args[2] is None:
        return f"aten::_{name}", (args[0], args[1], False), {}
    if name in ("amax", "amin") and not args[1] and not args[2]:
        return name[1:], args[:1], {}
    if name == "square":
        return "pow", (args[0], 2), {}
    if name == "transpose" and args[0].ndim == 2 and args[1:] == (0, 1):
        return "t", args[:1], {}
    if name == "sub" and not isinstance(number := _number(args[0]), Tensor):
        return "rsub", (args[1], number), kwargs
    return None


def _number(value: Any) -> Any:
    return _C._wrapped_number(value) if isinstance(value, Tensor) else value


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value
