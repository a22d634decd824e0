"""Derivatives of whole programs, by running the graph that the program records.

Note [Transforms and the graph]
A transform calls the program with leaves of its own: detached, or views where the arguments have a history, so that
transforms nest by the graph alone. Inside a vmap a leaf is the tensor of the whole batch, different for every example
even where the argument is the same for all, so that one run of the graph gives each example its own gradient. Graphs
know nothing of levels: results are taken down to the plain tensors under them, and gradients are dressed again.
Derivatives along directions are taken by differentiating the transposed product by its weights.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

from taeda.func._levels import Batching, depth, dress, is_transforming, levels, strip, swapped, transforming
from taeda.func._vmap import vmap
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten
from taeda_registry.slots import autograd, tensor

Tensor = tensor.Tensor


def _recording() -> Any:
    """A block that is recorded, whatever is around the transform."""
    return autograd.inference_mode(False) if tensor.is_inference_mode_enabled() else tensor.enable_grad()


def _is_recorded(plain: Any) -> bool:
    return autograd.graph.is_recorded(plain)


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


class _Along(tensor.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
    """While a program runs whose derivatives along directions are taken: `no_grad` is for backward alone, so what moves
    is recorded within it too; not by programs inside, whose derivatives are taken backward."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = depth() + 1

    def __torch_function__(self, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if tensor.is_grad_enabled() or depth() != self.depth or not self._moves(func, args, kwargs):
            return func(*args, **kwargs)
        with tensor.enable_grad():
            return func(*args, **kwargs)

    def _moves(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
        """What is written to must move already: state that outlives the program is none of it."""
        over = levels()
        given = args[:1] if getattr(func, "__name__", "").endswith("_") else (*args, *kwargs.values())
        flat = (strip(t, over) for t in tree_flatten(given)[0] if isinstance(t, Tensor))
        return any(_is_recorded(t) and not (t.is_leaf and t.requires_grad) for t in flat)


class _Run:
    """A program that was called with leaves in the place of some arguments.

    Attributes:
        made: What it gave. outputs: The differentiable ones among its leaves.
    """

    def __init__(
        self,
        name: str,
        func: Callable,
        args: tuple,
        kwargs: dict[str, Any],
        chosen: Sequence[int],
        has_aux: bool,
        along: bool = False,
    ):
        self.name, self.over, self.along = name, levels(), along
        self.recorded = tensor.is_grad_enabled()
        flat, self.spec = tree_flatten([args[i] for i in chosen])
        for value in flat:
            if not _is_differentiable(value):
                # As PyTorch has it, whose forward mode minds the dtype where its backward mode minds requires_grad.
                kind = RuntimeError if isinstance(value, Tensor) and not along else ValueError
                raise kind(
                    f"{name}: argument to differentiate by is {_kind(value)}, expected tensors of floating-point or "
                    "complex numbers"
                )
        self.leaves: list[Any] = []
        given = list(args)
        with _recording():
            fresh = [self._leaf(value) for value in flat]
            for i, part in zip(chosen, tree_unflatten(fresh, self.spec), strict=True):
                given[i] = part
            with _Along() if along else contextlib.nullcontext(), transforming():
                self.made = func(*given, **kwargs)
        self.aux: Any = None
        if has_aux:
            if not isinstance(self.made, tuple) or len(self.made) != 2:
                raise RuntimeError(
                    f"{name}: with has_aux=True the function must give (output, aux), found {_kind(self.made)}"
                )
            self.made, self.aux = self.made
        self.outputs, self.shape = tree_flatten(self.made)
        for value in self.outputs:
            if not isinstance(value, Tensor):
                raise RuntimeError(f"{name}: the function gave {_kind(value)}, expected tensors")
        self.plain = [
            strip(value, self.over) if _is_differentiable(value) else None for value in self.outputs
        ]
        nested = self.recorded and is_transforming()
        recorded = [t for t in self.plain if t is not None]
        self.kept = nested or (self.recorded and autograd.graph.reaches_beyond(recorded, self.leaves))

    def _leaf(self, value: Any) -> Any:
        plain = strip(value, self.over)
        plain = plain.clone() if plain.is_inference() else plain
        leaf = (
            plain.view_as(plain) if _is_recorded(plain) and self.recorded else plain.detach().requires_grad_()
        )
        self.leaves.append(leaf)
        return dress(leaf.view_as(leaf) if self.along else leaf, self.over)

    def shown(self, tree: Any) -> Any:
        """Results as the caller gets them: with a history only where something outside has a part in it."""
        if self.kept:
            return tree

        def detached(value: Any) -> Any:
            return dress(strip(value, self.over).detach(), self.over) if isinstance(value, Tensor) else value

        return tree_map(detached, tree)

    def weights(self, cotangents: Any) -> list[Any]:
        """The weights of the outputs, by a tree of their structure."""
        flat, spec = tree_flatten(cotangents)
        if spec != self.shape:
            raise RuntimeError(
                f"{self.name}: found weights of structure {spec}, expected that of the outputs, {self.shape}"
            )
        for weight, output in zip(flat, self.outputs, strict=True):
            if not isinstance(weight, Tensor) or weight.shape != output.shape:
                raise RuntimeError(
                    f"{self.name}: found a weight that is {_kind(weight)}, expected shape {tuple(output.shape)}"
                )
        return flat

    def gradients(self, weights: Sequence[Any], create_graph: bool, retain: bool = True) -> list[Any]:
        """For each leaf the sum over outputs of weight times derivative, zeros where there is none."""
        inner = [level for level in levels() if level not in self.over]
        live = [i for i, t in enumerate(self.plain) if t is not None and _is_recorded(t)]
        given = [_under(weights[i], self.over, inner) for i in live]
        found: Sequence[Any] = [None] * len(self.leaves)
        if live:
            found = autograd.grad(
                [self.plain[i] for i in live], self.leaves, given, retain_graph=retain or create_graph,
                create_graph=create_graph, allow_unused=True,
            )  # fmt: skip
        whole = [
            tensor.zeros_like(leaf) if gradient is None else gradient
            for leaf, gradient in zip(self.leaves, found, strict=True)
        ]
        return [_over(gradient, self.over, inner) for gradient in whole]


def _under(weight: Any, over: list[Batching], inner: list[Batching]) -> Any:
    """A weight for plain outputs: without the levels `over`, whose batches come first; still one of those `inner`,
    which were put into force later."""
    if not inner:
        return strip(weight, over)
    plain = strip(weight, [*over, *inner])
    return dress(swapped(plain, len(over), len(inner)), inner)


def _over(gradient: Any, over: list[Batching], inner: list[Batching]) -> Any:
    """A gradient of a plain leaf as one of the program; programs show Jacobians of batches in other shapes, so that
    the batches inside of others lie row by row in memory."""
    if not inner:
        return dress(gradient, over)
    plain = swapped(strip(gradient, inner), len(inner), len(over))
    return dress(plain.contiguous() if over else plain, [*over, *inner])


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of dtype {value.dtype} and shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def _chosen(name: str, argnums: int | tuple[int, ...], args: tuple) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not numbers:
        raise RuntimeError(f"{name}: argument 'argnums' is empty, expected at least one number")
    found = []
    for number in numbers:
        if not isinstance(number, int) or not -len(args) <= number < len(args):
            raise RuntimeError(
                f"{name}: argument 'argnums' has {number!r}, but there are {len(args)} arguments"
            )
        found.append(number % len(args))
    if len(set(found)) < len(found):
        raise RuntimeError(f"{name}: argument 'argnums' is {argnums}, expected every argument once")
    return tuple(found)


def _one(argnums: int | tuple[int, ...], parts: list[Any]) -> Any:
    return parts[0] if isinstance(argnums, int) else tuple(parts)


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that gives the gradient of `func` and its value.

    Args:
        func: Gives a tensor of one element without dimensions; with `has_aux` that and anything else.
        argnums: By which arguments is differentiated; for a tuple the gradients come as one.
        has_aux: Whether `func` gives (output, aux); the function then gives (gradient, (output, aux)).

    Raises:
        RuntimeError: Arguments or results of another kind.

    Example:
        >>> taeda.func.grad_and_value(lambda x: (x * x).sum())(taeda.tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        run = _Run("grad", func, args, kwargs, _chosen("grad", argnums, args), has_aux)
        if not isinstance(run.made, Tensor) or run.made.dim() != 0:
            raise RuntimeError(
                f"grad: the function gave {_kind(run.made)}, expected one number as a tensor of shape ()"
            )
        if not _is_differentiable(run.made):
            raise RuntimeError(f"grad: the function gave {_kind(run.made)}, expected a floating-point one")
        if run.made.is_complex():
            raise RuntimeError("grad: the function gave a complex number, expected a real one")
        found = run.gradients([tensor.ones_like(run.made)], run.kept, retain=False)
        parts = _one(argnums, tree_unflatten(found, run.spec))
        value = run.shown(run.made)
        return parts, (value, run.shown(run.aux)) if has_aux else value

    return wrapper


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that gives the gradient of `func`, a function to one number.

    Args:
        func: Gives a tensor of one element without dimensions; with `has_aux` that and anything else.
        argnums: By which arguments is differentiated; for a tuple the gradients come as one.
        has_aux: Whether `func` gives (output, aux); the function then gives (gradient, aux).

    Raises:
        RuntimeError: Arguments or results of another kind.

    Example:
        >>> taeda.func.grad(taeda.func.grad(lambda x: x**3))(taeda.tensor(2.0))
        tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        parts, value = both(*args, **kwargs)
        return (parts, value[1]) if has_aux else parts

    return wrapper


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `func`, and a function that gives products of weights with its Jacobian.

    Args:
        func: Takes and gives tensors, also inside containers.
        primals: Where.
        has_aux: Whether `func` gives (output, aux).

    Returns: The output and the function of weights of its structure, which gives a tuple of the primals' gradients;
    with `has_aux` aux, too.

    Raises:
        RuntimeError: Arguments or results that are no tensors, weights of another structure or shape.

    Example:
        >>> y, products = taeda.func.vjp(lambda x: x * x, taeda.tensor([1.0, 2.0]))
        >>> products(taeda.ones(2))
        (tensor([2., 4.]),)
    """
    run = _Run("vjp", func, primals, {}, range(len(primals)), has_aux)

    def products(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        weights = run.weights(cotangents)
        create = run.kept or is_transforming() if create_graph is None else create_graph
        create = create or any(_has_history(w) for w in weights)
        found = run.gradients(weights, create and tensor.is_grad_enabled(), retain_graph)
        return tuple(tree_unflatten(found, run.spec))

    value = run.shown(run.made)
    return (value, products, run.shown(run.aux)) if has_aux else (value, products)


def _has_history(value: Any) -> bool:
    return _is_recorded(strip(value, levels()))


class _Forward:
    """Derivatives along directions, of a program that was run once."""

    def __init__(
        self,
        name: str,
        func: Callable,
        primals: tuple,
        has_aux: bool,
        chosen: Sequence[int] | None = None,
        kwargs: Any = None,
    ):
        chosen = range(len(primals)) if chosen is None else chosen
        run = self.run = _Run(name, func, primals, kwargs or {}, chosen, has_aux, along=True)
        with _recording():
            self.weights = [
                None
                if plain is None or not _is_recorded(plain)
                else tensor.zeros_like(plain, requires_grad=True)
                for plain in run.plain
            ]
            live = [i for i, weight in enumerate(self.weights) if weight is not None]
            self.products: Sequence[Any] = [None] * len(run.leaves)
            if live:
                self.products = autograd.forward_ad.products_of_weights(
                    [run.plain[i] for i in live], run.leaves, [self.weights[i] for i in live]
                )

    def along(self, tangents: Sequence[Any]) -> list[Any]:
        """For each output its derivative along `tangents`, one for each leaf."""
        run, create = self.run, self.run.kept or any(map(_has_history, tangents))
        inner = [level for level in levels() if level not in run.over]
        moved = [
            (p, t) for p, t in zip(self.products, tangents, strict=True) if p is not None and _is_recorded(p)
        ]
        live = [w for w in self.weights if w is not None]
        found: Sequence[Any] = [None] * len(live)
        if moved and live:
            found = autograd.grad(
                [p for p, _ in moved], live, [_under(t, run.over, inner) for _, t in moved], retain_graph=True,
                create_graph=create and tensor.is_grad_enabled(), allow_unused=True,
            )  # fmt: skip
        ready, made = iter(found), []
        for output, weight in zip(run.outputs, self.weights, strict=True):
            derivative = None if weight is None else next(ready)
            made.append(
                tensor.zeros_like(output) if derivative is None else _over(derivative, run.over, inner)
            )
        return made


def _tangents(name: str, forward: _Forward, tangents: Any) -> list[Any]:
    flat, spec = tree_flatten(list(tangents))
    if spec != forward.run.spec:
        raise RuntimeError(
            f"{name}: found tangents of structure {spec}, expected that of the primals, {forward.run.spec}"
        )
    logical = [dress(leaf, forward.run.over) for leaf in forward.run.leaves]
    for tangent, leaf in zip(flat, logical, strict=True):
        if not isinstance(tangent, Tensor) or tangent.shape != leaf.shape:
            raise RuntimeError(
                f"{name}: found a tangent that is {_kind(tangent)}, expected shape {tuple(leaf.shape)}"
            )
    return [t.to(leaf.dtype) for t, leaf in zip(flat, logical, strict=True)]


def jvp(
    func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of `func` and its derivative along a direction.

    Args:
        func: Takes and gives tensors, also inside containers.
        primals: A tuple: where. tangents: The direction, of the same structure and shapes.
        strict: Accepted; derivatives of what does not depend on the primals are zeros.
        has_aux: Whether `func` gives (output, aux).

    Raises:
        RuntimeError: Primals or tangents of another kind.

    The derivative of the transposed product by its weights: `func` is run once, and differentiated twice. Functions of
    the user that have a `jvp` are asked for their tangents.

    Example:
        >>> taeda.func.jvp(lambda x: x * x, (taeda.tensor(3.0),), (taeda.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    for what, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, (tuple, list)) or not value:
            raise RuntimeError(
                f"jvp: argument '{what}' is {_kind(value)}, expected a tuple of at least one tensor"
            )
    forward = _Forward("jvp", func, tuple(primals), has_aux)
    moved = tree_unflatten(forward.along(_tangents("jvp", forward, tangents)), forward.run.shape)
    value = forward.run.shown(forward.run.made)
    return (value, moved, forward.run.shown(forward.run.aux)) if has_aux else (value, moved)


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """The value of `func` and a function that gives its derivative at `primals` along directions; `func` runs once.

    Example:
        >>> value, along = taeda.func.linearize(lambda x: x * x, taeda.tensor(3.0))
        >>> along(taeda.tensor(1.0))
        tensor(6.)
    """
    forward = _Forward("linearize", func, primals, False)

    def along(*tangents: Any) -> Any:
        moved = forward.along(_tangents("linearize", forward, tangents))
        return tree_unflatten(moved, forward.run.shape)

    return forward.run.shown(forward.run.made), along


def _basis(like: Any) -> Any:
    """The unit tensors of a shape, one after another."""
    count = like.numel()
    return tensor.eye(count, dtype=like.dtype, device=like.device).reshape(count, *like.shape)


def _units(values: Sequence[Any], at: int) -> list[Any]:
    """Basis of one of several values, zeros of the others."""
    unit = _basis(values[at])
    return [unit if i == at else _zeros(unit.shape[0], value) for i, value in enumerate(values)]


def _zeros(count: int, like: Any) -> Any:
    return tensor.zeros((count, *like.shape), dtype=like.dtype, device=like.device)


def jacrev(
    func: Callable,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """A function that gives the Jacobian of `func`, by products with the unit vectors of its outputs.

    Args:
        func: Takes and gives tensors, also inside containers.
        argnums: By which arguments is differentiated.
        has_aux: Whether `func` gives (output, aux); the function then gives (Jacobian, aux).
        chunk_size: So many products at a time; all by default.

    Returns: For output y and argument x a tensor of shape y.shape + x.shape, in the outputs' structure and, inside it,
    that of the arguments.

    Raises:
        RuntimeError: Arguments or results that are no tensors.

    Example:
        >>> taeda.func.jacrev(lambda x: x * x)(taeda.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        run = _Run("jacrev", func, args, kwargs, _chosen("jacrev", argnums, args), has_aux)
        rows = []
        for at, output in enumerate(run.outputs):
            if run.plain[at] is None:
                raise RuntimeError(
                    f"jacrev: the function gave {_kind(output)}, expected floating-point tensors"
                )

            def products(*weights: Any) -> tuple[Any, ...]:
                return tuple(run.gradients(weights, run.kept))

            units = _units(run.outputs, at)
            if output.numel():
                found = vmap(products, chunk_size=chunk_size)(*units)
            else:
                found = [_zeros(0, dress(leaf, run.over)) for leaf in run.leaves]
            shaped = [g.reshape((*output.shape, *g.shape[1:])) for g in found]
            rows.append(_one(argnums, tree_unflatten(shaped, run.spec)))
        jacobian = tree_unflatten(rows, run.shape)
        return (jacobian, run.shown(run.aux)) if has_aux else jacobian

    return wrapper


def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """A function that gives the Jacobian of `func`, by its derivatives along the unit vectors of its arguments.

    Arguments and results are those of `jacrev`, which needs fewer products where outputs are fewer than arguments.

    Example:
        >>> taeda.func.jacfwd(lambda x: x * x)(taeda.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        forward = _Forward("jacfwd", func, args, has_aux, _chosen("jacfwd", argnums, args), kwargs)
        run = forward.run
        inputs = [dress(leaf, run.over) for leaf in run.leaves]
        columns = []
        for at, value in enumerate(inputs):
            if value.numel():
                units = _units(inputs, at)
                found = vmap(lambda *tangents: tuple(forward.along(tangents)), randomness=randomness)(*units)
            else:
                found = [_zeros(0, output) for output in run.outputs]
            shaped = (t.movedim(0, -1).reshape((*t.shape[1:], *value.shape)) for t in found)
            columns.append([t.contiguous() if run.over else t for t in shaped])
        rows = [
            _one(argnums, tree_unflatten([column[i] for column in columns], run.spec))
            for i in range(len(run.outputs))
        ]
        jacobian = run.shown(tree_unflatten(rows, run.shape))
        return (jacobian, run.shown(run.aux)) if has_aux else jacobian

    return wrapper


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """A function that gives the second derivatives of `func`: the Jacobian of its Jacobian.

    Example:
        >>> taeda.func.hessian(lambda x: (x**3).sum())(taeda.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    twice = jacrev(jacrev(func, argnums), argnums)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, spec = tree_flatten(twice(*args, **kwargs))
        by = tree_flatten([args[i] for i in _chosen("hessian", argnums, args)])[0]
        # Laid as by derivatives along directions, which stand in memory one after the other.
        return tree_unflatten(
            [_laid_by_directions(t, by[at % len(by)].dim()) for at, t in enumerate(found)], spec
        )

    return wrapper


def _laid_by_directions(t: Tensor, count: int) -> Tensor:
    """The same, with the last `count` dimensions outermost in memory."""
    last = tuple(range(t.dim() - count, t.dim()))
    first = tuple(range(count))
    return t.movedim(last, first).contiguous().movedim(first, last)
