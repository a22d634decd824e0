"""Comparison of recorded gradients with numeric differences."""

from __future__ import annotations

import warnings

from taeda_autograd._engine import grad
from taeda_tensor_core import (
    Tensor,
    allclose,
    arange,
    complex128,
    float64,
    no_grad,
    sparse_coo,
    stack,
    strided,
    zeros_like,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class GradcheckError(RuntimeError):
    """Recorded and numeric gradients differ."""


def _outputs(func: Callable, inputs: tuple) -> list[Tensor]:
    items = _items(func(*inputs))
    return [o for o in items if isinstance(o, Tensor) and o.requires_grad]


def _plain(func: Callable, inputs: tuple, keep: list[bool]) -> list[Tensor]:
    items = _items(func(*inputs))
    return [_dense(o.detach()).clone() for o, wanted in zip(items, keep, strict=True) if wanted]


def _dense(output: Tensor) -> Tensor:
    return output if output.layout is strided else output.to_dense()


def _memory(x: Tensor) -> Tensor:
    """The elements that are stepped through, of a sparse tensor those that it has; saved values stay valid."""
    if x.layout is strided:
        return x.data
    return x.data._values() if x.layout is sparse_coo else x.data.values()


def _places(x: Tensor, number: int) -> Tensor:
    """Where the elements that a sparse tensor has are in the dense one.

    Raises:
        ValueError: It has two at one place.
    """
    numbered = x.detach().clone()
    memory = _memory(numbered)
    memory.copy_(arange(1, memory.numel() + 1).reshape(memory.shape))
    found = numbered.to_dense().abs().reshape(-1)
    places = found.nonzero().reshape(-1)
    if places.numel() != memory.numel():
        raise ValueError(
            f"gradcheck: input {number} has several elements at one place, expected one that is coalesced"
        )
    return places[found[places].argsort()]


def _directions(x: Tensor) -> list[complex]:
    return [1.0, 1j] if x.is_complex() else [1.0]


def _numeric(func: Callable, inputs: tuple, x: Tensor, keep: list[bool], eps: float) -> list[Tensor]:
    """For each output the derivatives by every element (and for complex ones by both parts), as rows."""
    columns: list[list[Tensor]] = []
    memory = _memory(x)
    flat = memory.view(-1) if memory.is_contiguous() else None
    for i in range(memory.numel()):
        for step in _directions(x):
            ends = []
            for sign in (1, -1):
                with no_grad():
                    target, at = (flat, i) if flat is not None else _element(memory, i)
                    before = target[at].item()
                    target[at] = before + sign * eps * step
                try:
                    ends.append(_plain(func, inputs, keep))
                finally:
                    with no_grad():
                        target[at] = before
            columns.append([(a - b) / (2 * eps) for a, b in zip(*ends, strict=True)])
    return [stack([c[k].reshape(-1) for c in columns]) for k in range(sum(keep))] if columns else []


def _element(memory: Tensor, number: int) -> tuple[Tensor, tuple[int, ...]]:
    index = []
    for size in reversed(memory.shape):
        number, rest = divmod(number, size)
        index.append(rest)
    return memory, tuple(reversed(index))


def _recorded(output: Tensor, x: Tensor, places: Tensor | None) -> Tensor:
    """Rows as in _numeric, from one backward run for each element of the output."""
    flat, memory = _dense(output).reshape(-1), _memory(x)
    columns = []
    for j in range(flat.numel()):
        parts = []
        for weight in _directions(output):
            unit = zeros_like(flat)
            with no_grad():
                unit[j] = weight
            (g,) = grad(flat, x, unit, retain_graph=True, allow_unused=True)
            g = zeros_like(_dense(x.detach())) if g is None else _dense(g.detach())
            parts.append(g if places is None else g.reshape(-1)[places])
        columns.append(_real_rows(parts, x, output))
    return stack(columns, 1) if columns else memory.new_zeros((memory.numel() * len(_directions(x)), 0))


def _real_rows(parts: list[Tensor], x: Tensor, output: Tensor) -> Tensor:
    """The gradient with weight w is conj(dL/dx) for L = Re(conj(w) y): turns it into dy along each direction of x."""
    along = []
    for g in parts:
        g = g.reshape(-1)
        along.append(stack([g.real, g.imag], 1).reshape(-1) if x.is_complex() else g)
    if not output.is_complex():
        return along[0]
    return along[0] + 1j * along[1]


def _moved(func: Callable, inputs: tuple, x: Tensor, keep: list[bool]) -> list[Tensor]:
    """For each output rows as in _numeric, from one run in forward mode for each of them."""
    from taeda_autograd.forward_ad import dual_level, make_dual, unpack_dual

    rows: list[list[Tensor]] = []
    for j in range(x.numel()):
        for weight in _directions(x):
            unit = zeros_like(x.detach()).reshape(-1)
            unit[j] = weight
            with dual_level():
                dual = make_dual(x, unit.reshape(x.shape))
                outputs = _items(func(*(dual if value is x else value for value in inputs)))
                kept = [o for o, wanted in zip(outputs, keep, strict=True) if wanted]
                tangents = [unpack_dual(o).tangent for o in kept]
            pairs = zip(tangents, kept, strict=True)
            rows.append([(zeros_like(o) if t is None else t).detach().reshape(-1) for t, o in pairs])
    return [stack([row[k] for row in rows]) for k in range(sum(keep))] if rows else []


def _items(result: Any) -> tuple:
    return (result,) if isinstance(result, Tensor) else tuple(result)


def _check(
    func: Callable, inputs: tuple, eps: float, atol: float, rtol: float, forward: bool, backward: bool
) -> None:
    items = _items(func(*inputs))
    keep = [isinstance(o, Tensor) and o.requires_grad for o in items]
    outputs = [o for o, wanted in zip(items, keep, strict=True) if wanted]
    if not outputs:
        _check_constant(func, inputs, eps, items)
        return
    for number, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        places = None if x.layout is strided else _places(x, number)
        numeric = _numeric(func, inputs, x, keep, eps)
        if not numeric:
            continue
        ways = [("gradient", [_recorded(output, x, places) for output in outputs])] if backward else []
        if forward:
            ways.append(("tangent of forward mode", _moved(func, inputs, x, keep)))
        for what, jacobians in ways:
            for k, (found, expected) in enumerate(zip(jacobians, numeric, strict=True)):
                if not allclose(found, expected.to(found.dtype), rtol=rtol, atol=atol):
                    raise GradcheckError(
                        f"gradcheck: Jacobian mismatch for output {k} with respect to input {number}: the {what} "
                        "differs from numeric differences\n"
                        f"numeric:\n{expected}\nrecorded:\n{found}"
                    )


def _check_constant(func: Callable, inputs: tuple, eps: float, items: tuple) -> None:
    """Outputs without gradients, such as masks, must not change with the inputs."""
    keep = [isinstance(o, Tensor) and (o.is_floating_point() or o.is_complex()) for o in items]
    for number, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        for k, numeric in enumerate(_numeric(func, inputs, x, keep, eps)):
            if numeric.ne(0).any():
                raise GradcheckError(
                    f"gradcheck: no output of the function requires gradients, but output {k} changes with input "
                    f"{number}; numeric differences are\n{numeric}"
                )


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    **ignored: Any,
) -> bool:
    """Compare the gradients of `func` with central differences, element by element.

    Args:
        func: Function of tensors that returns a tensor or several.
        inputs: Tensor or tuple; those that require grad should be float64 or complex128, else a warning says that the
            differences are too coarse.
        eps: Step of the differences.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        raise_exception: Raise GradcheckError instead of returning False.
        check_forward_ad: Compare the derivatives of forward mode, too.
        check_backward_ad: Compare the gradients.
        **ignored: Options of other implementations without meaning here (check_undefined_grad, fast_mode, ...).

    Returns:
        True when all gradients agree.

    Raises:
        GradcheckError: They differ.
        ValueError: No input requires gradients.

    Example:
        >>> x = taeda.tensor([0.5, 2.0], dtype=taeda.float64, requires_grad=True)
        >>> taeda.autograd.gradcheck(lambda x: x.log(), x)
        True
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient; found none")
    for place, x in enumerate(inputs):
        if any(x is one for one in checked) and x.dtype not in (float64, complex128):
            warnings.warn(
                f"gradcheck: input {place} requires gradients and is of {x.dtype}, in which differences are too "
                "coarse for this check to succeed; expected float64 or complex128",
                UserWarning,
                stacklevel=2,
            )
    try:
        _check(func, inputs, eps, atol, rtol, check_forward_ad, check_backward_ad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    **ignored: Any,
) -> bool:
    """Compare second derivatives with central differences of first ones; arguments as in :func:`gradcheck`.

    Args:
        grad_outputs: Weights of the outputs; by default fixed, uneven numbers.
        check_fwd_over_rev: Compare the derivatives of the gradients by forward mode.
        check_rev_over_rev: Compare the gradients of the gradients.

    Example:
        >>> x = taeda.tensor([0.5, 2.0], dtype=taeda.float64, requires_grad=True)
        >>> taeda.autograd.gradgradcheck(lambda x: x.log(), x)
        True
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    outputs = _outputs(func, inputs)
    if grad_outputs is None:
        weights = tuple(_uneven(o).requires_grad_() for o in outputs)
    else:
        weights = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)

    def first(*args: Any) -> tuple:
        xs, ws = args[: len(inputs)], args[len(inputs) :]
        wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
        found = grad(_outputs(func, xs), wanted, ws, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None and g.requires_grad)

    if not any(True for g in first(*inputs, *weights)):
        return True
    return gradcheck(
        first, inputs + weights, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
    )  # fmt: skip


def _uneven(output: Tensor) -> Tensor:
    """Weights between 0.5 and 1.5 that no symmetry of a formula cancels."""
    count = output.numel()
    weights = zeros_like(output.detach()).reshape(-1)
    for i in range(count):
        weights[i] = 0.5 + ((i * 7 + 3) % 11) / 10
    return weights.reshape(output.shape)
