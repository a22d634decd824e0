"""Products with and whole Jacobians and Hessians of Python functions."""

from __future__ import annotations

from taeda_autograd._engine import grad
from taeda_autograd._function import for_tangents
from taeda_autograd.graph import is_recorded
from taeda_tensor_core import Tensor, enable_grad, stack, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _tuple(value: Any, what: str) -> tuple[bool, tuple[Tensor, ...]]:
    single = isinstance(value, Tensor)
    if not single and not isinstance(value, (tuple, list)):
        raise TypeError(f"{what} is {type(value).__name__}, expected a Tensor or a tuple of Tensors")
    items = (value,) if single else tuple(value)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            raise TypeError(f"{what}: item {i} is {type(item).__name__}, expected a Tensor")
    return single, items


def _fresh(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs that gradients can be taken by, connected to the given ones when the result is to be differentiated."""
    if create_graph:
        return tuple(x.view_as(x) if is_recorded(x) else x.detach().requires_grad_() for x in inputs)
    return tuple(x.detach().requires_grad_() for x in inputs)


def _call(func: Callable, inputs: Any, create_graph: bool, name: str) -> tuple[bool, tuple, bool, tuple]:
    single_in, inputs = _tuple(inputs, f"{name}: argument 'inputs'")
    inputs = _fresh(inputs, create_graph)
    single_out, outputs = _tuple(func(*inputs), f"{name}: result of 'func'")
    return single_in, inputs, single_out, outputs


def _vector(name: str, v: Any, others: tuple[Tensor, ...], of: str) -> tuple[Tensor, ...] | None:
    """The vector of a product, one tensor of the size of each of the inputs or outputs; None where they are one number.

    Raises:
        RuntimeError: It is left out where they are more, or has another length or another size.
    """
    if v is None:
        if len(others) != 1 or others[0].numel() != 1:
            raise RuntimeError(
                f"{name}: argument 'v' may be left out only where the {of} of 'func' are one tensor of one element, "
                f"found the shapes {[tuple(x.shape) for x in others]}"
            )
        return None
    items = _tuple(v, f"{name}: argument 'v'")[1]
    if len(items) != len(others):
        raise RuntimeError(
            f"{name}: argument 'v' has {len(items)} tensors, expected one for each of the {len(others)} {of}"
        )
    for i, (item, other) in enumerate(zip(items, others, strict=True)):
        if item.shape != other.shape:
            raise RuntimeError(
                f"{name}: argument 'v' has invalid size: item {i} is of shape {tuple(item.shape)}, expected "
                f"{tuple(other.shape)} as of that of the {of}"
            )
    return items


def _number(name: str, output: Any) -> Tensor:
    """The result of a function that is to give one number.

    Raises:
        TypeError: It is neither a tensor nor a tuple of tensors.
        RuntimeError: It is several numbers, or a tuple.
    """
    single, outputs = _tuple(output, f"{name}: result of 'func'")
    if not single or outputs[0].numel() != 1:
        raise RuntimeError(
            f"{name}: 'func' must return a tensor of one element, found the shapes "
            f"{[tuple(o.shape) for o in outputs]}"
        )
    return outputs[0]


def _gradients(
    outputs: tuple, inputs: tuple, weights: tuple | None, create_graph: bool, strict: bool, name: str
) -> tuple:
    live = [
        (o, None if weights is None else w)
        for o, w in zip(outputs, weights or outputs, strict=True)
        if is_recorded(o)
    ]
    if len(live) < len(outputs) and strict:
        raise RuntimeError(
            f"{name}: an output does not depend on the inputs, which strict=True does not allow"
        )
    if not live:
        return tuple(zeros_like(x) for x in inputs)
    kept = [o for o, _ in live]
    given = None if weights is None else [w for _, w in live]
    results = grad(kept, inputs, given, retain_graph=True, create_graph=create_graph, allow_unused=True)
    if strict and any(r is None for r in results):
        raise RuntimeError(f"{name}: the outputs do not depend on an input, which strict=True does not allow")
    if strict and create_graph and not all(r.requires_grad for r in results):
        raise RuntimeError(
            f"{name}: a derivative is independent of the inputs, which strict=True does not allow with "
            "create_graph=True"
        )
    return tuple(zeros_like(x) if r is None else r for r, x in zip(results, inputs, strict=True))


def _like(single: bool, items: tuple) -> Any:
    return items[0] if single else items


def vjp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Result of `func(*inputs)` and the product of the vector `v` with its Jacobian.

    Args:
        func: Function of tensors that returns a tensor or a tuple of tensors.
        inputs: Tensor or tuple of tensors.
        v: Weights of the outputs, of their shapes; may be left out for one output of one element.
        create_graph: Make the results differentiable.
        strict: RuntimeError when an output does not depend on an input, instead of zeros.

    Example:
        >>> taeda.autograd.functional.vjp(lambda x: x**2, taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        single_in, inputs, single_out, outputs = _call(func, inputs, create_graph, "vjp")
        weights = _vector("vjp", v, outputs, "outputs")
        products = _gradients(outputs, inputs, weights, create_graph, strict, "vjp")
    shown = outputs if create_graph else tuple(o.detach() for o in outputs)
    return _like(single_out, shown), _like(single_in, products)


def jvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Result of `func(*inputs)` and the product of its Jacobian with the vector `v`, by differentiating twice.

    Args:
        func: Function of tensors that returns a tensor or a tuple of tensors.
        inputs: Tensor or tuple of tensors.
        v: Direction, of the inputs' shapes; may be left out for one input of one element.
        create_graph: Make the results differentiable.
        strict: RuntimeError when an output does not depend on an input, instead of zeros.

    Example:
        >>> taeda.autograd.functional.jvp(lambda x: x**2, taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        _, inputs, single_out, outputs = _call(func, inputs, create_graph, "jvp")
        direction = _vector("jvp", v, inputs, "inputs")
        # The vector-Jacobian product is linear in its weights: its derivative by them is the transposed map.
        weights = tuple(zeros_like(o).requires_grad_() for o in outputs)
        backward = _gradients(outputs, inputs, weights, True, strict, "jvp")
        products = _gradients(backward, weights, direction, create_graph, strict, "jvp")
    shown = outputs if create_graph else tuple(o.detach() for o in outputs)
    return _like(single_out, shown), _like(single_out, products)


def _construct_standard_basis_for(
    tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """For each tensor a matrix: together, row by row, the unit vectors of all numbers of all tensors.

    Libraries import it under this name.
    """
    total, start, found = sum(tensor_numels), 0, []
    for value, size in zip(tensors, tensor_numels, strict=True):
        part = value.new_zeros((total, size))
        part.diagonal(-start).fill_(1)
        found.append(part)
        start += size
    return tuple(found)


def _check_strategy(name: str, strict: bool, vectorize: bool, *strategies: str) -> None:
    """What PyTorch refuses of the ways to compute, whose results are the same but for complex numbers."""
    for strategy in strategies:
        if strategy not in ("forward-mode", "reverse-mode"):
            raise ValueError(
                f"{name}: a strategy must be 'forward-mode' or 'reverse-mode', found {strategy!r}"
            )
    if strict and vectorize:
        raise RuntimeError(f"{name}: strict=True and vectorize=True are not supported together")
    if strategies[0] == "forward-mode" and not vectorize:
        raise NotImplementedError(f"{name}: strategy 'forward-mode' is only supported with vectorize=True")


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Jacobian of `func` at `inputs`: for output y and input x a tensor of shape ``y.shape + x.shape``.

    Args:
        func: Function of tensors that returns a tensor or a tuple of tensors.
        inputs: Tensor or tuple of tensors.
        create_graph: Make the result differentiable.
        strict: RuntimeError when an output does not depend on an input, instead of zeros.
        vectorize: Not together with `strict`; complex outputs need it.
        strategy: 'forward-mode', only with `vectorize`, or 'reverse-mode'.

    Of complex numbers 'reverse-mode' gives the gradients of each output, which are conjugate derivatives,
    'forward-mode' the derivatives of the outputs by the real parts of the inputs; it asks a Function's `jvp`.

    Returns:
        A tensor for one input and one output, else a tuple over outputs (of tuples over inputs).

    Example:
        >>> taeda.autograd.functional.jacobian(lambda x: x**2, taeda.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    _check_strategy("jacobian", strict, vectorize, strategy)
    with enable_grad():
        single_in, inputs, single_out, outputs = _call(func, inputs, create_graph, "jacobian")
        if strategy == "forward-mode":
            parts = _forward_jacobian(inputs, outputs, create_graph)
            return _like(single_out, tuple(_like(single_in, part) for part in parts))
        rows = []
        for output in outputs:
            flat = output.reshape(-1)
            weights = (flat.new_ones(()),) if vectorize else None
            columns: list[list[Tensor]] = [[] for _ in inputs]
            for i in range(flat.numel()):
                for column, g in zip(
                    columns,
                    _gradients((flat[i],), inputs, weights, create_graph, strict, "jacobian"),
                    strict=True,
                ):
                    column.append(g)
            shapes = [tuple(output.shape) + tuple(x.shape) for x in inputs]
            made = [
                stack(c).reshape(s) if c else output.new_zeros(s)
                for c, s in zip(columns, shapes, strict=True)
            ]
            rows.append(_like(single_in, tuple(made)))
    return _like(single_out, tuple(rows))


def _forward_jacobian(inputs: tuple, outputs: tuple, create_graph: bool) -> list[tuple]:
    """Per output the derivatives by each input: one direction after the other, each as `jvp` differentiates twice."""
    weights = tuple(zeros_like(o).requires_grad_() for o in outputs)
    with for_tangents():
        backward = _gradients(outputs, inputs, weights, True, False, "jacobian")
    sizes = tuple(x.numel() for x in inputs)
    units = _construct_standard_basis_for(inputs, sizes)
    columns = []
    for i in range(sum(sizes)):
        direction = tuple(unit[i].reshape(x.shape) for unit, x in zip(units, inputs, strict=True))
        columns.append(_gradients(backward, weights, direction, create_graph, False, "jacobian"))
    parts = []
    for k, output in enumerate(outputs):
        flat = stack([c[k] for c in columns], -1) if columns else output.new_zeros((*output.shape, 0))
        pieces = flat.split(sizes, -1)
        parts.append(tuple(p.reshape((*output.shape, *x.shape)) for p, x in zip(pieces, inputs, strict=True)))
    return parts


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Second derivatives of a scalar function: for inputs x and y a tensor of shape ``x.shape + y.shape``.

    Args:
        func: Function of tensors that returns a tensor of one element.
        inputs: Tensor or tuple of tensors.
        create_graph: Make the result differentiable.
        strict: RuntimeError when the function does not depend on an input, instead of zeros.
        vectorize, outer_jacobian_strategy: As `vectorize` and `strategy` of `jacobian`, for the second derivative.

    Example:
        >>> taeda.autograd.functional.hessian(lambda x: (x**3).sum(), taeda.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    _check_strategy("hessian", strict, vectorize, outer_jacobian_strategy)
    single, _ = _tuple(inputs, "hessian: argument 'inputs'")

    def gradient(*xs: Tensor) -> Any:
        output = _number("hessian", func(*xs))
        return _like(single, _gradients((output.reshape(()),), xs, None, True, strict, "hessian"))

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def hvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Result of a scalar `func` and the product of its Hessian with `v`.

    Example:
        >>> taeda.autograd.functional.hvp(lambda x: (x**3).sum(), taeda.tensor([1.0, 2.0]), taeda.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    with enable_grad():
        single, xs = _tuple(inputs, f"{name}: argument 'inputs'")
        xs = _fresh(xs, True)
        weights = _vector(name, v, xs, "inputs")
        output = _number(name, func(*xs))
        gradients = _gradients((output,), xs, None, True, strict, name)
        products = _gradients(gradients, xs, weights, create_graph, strict, name)
    return (output if create_graph else output.detach()), _like(single, products)


def vhp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Result of a scalar `func` and the product of `v` with its Hessian: the same as `hvp`, since it is symmetric.

    Example:
        >>> taeda.autograd.functional.vhp(lambda x: (x**3).sum(), taeda.tensor([1.0, 2.0]), taeda.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


# --- what libraries import that continue these functions ---


def _as_tuple(
    inp: Any, arg_name: str | None = None, fn_name: str | None = None
) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether a value is a tuple of tensors, and the tuple: of one tensor where it is none.

    Raises:
        TypeError: It is something else.
    """
    where = "an input" if arg_name is None else f"{fn_name}: argument '{arg_name}'"
    single, items = _tuple(inp, where)
    return not single, items


def _tuple_postprocess(res: Any, to_unpack: Any) -> Any:
    """The one item of each tuple whose mark is false; marks are of the outer tuple, or of the outer and the inner."""
    if isinstance(to_unpack, tuple):
        outer, inner = to_unpack
        res = res if inner else tuple(item[0] for item in res)
        return res if outer else res[0]
    return res if to_unpack else res[0]


def _grad_preprocess(inputs: Any, create_graph: bool, need_graph: bool) -> tuple[Any, ...]:
    """Inputs that gradients can be taken by: connected to the given ones with `create_graph`."""
    if not need_graph and not create_graph:
        return tuple(x.detach() if isinstance(x, Tensor) else x for x in inputs)
    return tuple(_fresh((x,), create_graph)[0] if isinstance(x, Tensor) else x for x in inputs)


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Results without history, unless `create_graph`; tuples of tuples, too."""
    if inputs and isinstance(inputs[0], Tensor):
        return inputs if create_graph else tuple(x.detach() for x in inputs)
    return tuple(_grad_postprocess(x, create_graph) for x in inputs)


def _autograd_grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    is_grads_batched: bool = False,
) -> tuple[Tensor | None, ...]:
    """`grad` of the outputs that require gradients; None for every input where there are none."""
    weights = (None,) * len(outputs) if grad_outputs is None else grad_outputs
    live = [(o, w) for o, w in zip(outputs, weights, strict=True) if o is not None and is_recorded(o)]
    if not live:
        return (None,) * len(inputs)
    kept, given = zip(*live, strict=True)
    return grad(
        kept, inputs, given, allow_unused=True, create_graph=create_graph, retain_graph=retain_graph,
        is_grads_batched=is_grads_batched,
    )  # fmt: skip
