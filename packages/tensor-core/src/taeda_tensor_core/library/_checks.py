"""Checks of an operator of one's own: schema, aliasing, tensors without elements, gradients, batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from taeda_registry import RegistryError
from taeda_registry.slots import autograd
from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library._custom import _of_results, _operator, _tensors
from taeda_tensor_core.library._dynamic import sizes_are
from taeda_tensor_core.library._layers import split
from taeda_tensor_core.library._operators import defined
from taeda_tensor_core.library._table import Operator


class OpCheckError(Exception):
    """What `opcheck` raises: the operator does not do what it says."""


def _mapped(item: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(item, Tensor):
        return change(item)
    if isinstance(item, list | tuple):
        return type(item)(_mapped(each, change) for each in item)
    if isinstance(item, dict):
        return {name: _mapped(each, change) for name, each in item.items()}
    return item


def _copied(item: Any) -> Any:
    return _mapped(item, lambda t: t.detach().clone().requires_grad_(t.requires_grad))


def _named(operator: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = [a.name for a in operator.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _written(operator: Operator) -> set[str]:
    """Names of the arguments that the schema says are written into."""
    found, inside = set(), operator.schema.partition("(")[2].rpartition("->")[0]
    for part in inside.split(","):
        if "!)" in part:
            found.add(part.replace("*", " ").split("=")[0].rstrip(") ").split()[-1])
    return found


def _schema(operator: Operator, args: tuple, kwargs: dict[str, Any]) -> None:
    given, used = _copied((args, kwargs)), _copied((args, kwargs))
    made = operator(*used[0], **used[1])
    written = _written(operator)
    before, after = _named(operator, *given), _named(operator, *used)
    for name, value in before.items():
        for old, new in zip(_tensors(value), _tensors(after[name]), strict=True):
            same = bool(_C.equal(old.nan_to_num(), new.nan_to_num()) and _C.equal(old.isnan(), new.isnan()))
            if not same and name not in written:
                raise OpCheckError(
                    f"{operator.name}: argument '{name}' was written into, but the schema does not say so: "
                    f"{operator.schema}"
                )
    memory = {t.untyped_storage().data_ptr() for t in _tensors(list(after.values())) if t.numel()}
    for position, result in enumerate(_tensors(made)):
        if result.numel() and result.untyped_storage().data_ptr() in memory:
            raise OpCheckError(
                f"{operator.name}: result {position} shares memory with an argument; return a clone() of it"
            )


def _autograd_registration(operator: Operator, args: tuple, kwargs: dict[str, Any]) -> None:
    used = _copied((args, kwargs))
    if not any(t.requires_grad for t in _tensors([*used[0], *used[1].values()])):
        return
    results = [
        t for t in _tensors(operator(*used[0], **used[1])) if t.is_floating_point() and t.requires_grad
    ]
    if not results:
        raise OpCheckError(
            f"{operator.name}: an argument requires grad, but no result does; "
            "register a gradient with register_autograd"
        )
    try:
        sum((result.sum() for result in results[1:]), results[0].sum()).backward()
    except RuntimeError as error:
        raise OpCheckError(f"{operator.name}: backward failed: {error}") from error


def _faketensor(operator: Operator, args: tuple, kwargs: dict[str, Any]) -> None:
    if not operator.results:
        return  # there is nothing to tell of them
    used = _copied((args, kwargs))
    fake = _mapped(used, lambda t: t.detach().to("meta"))
    real = _tensors(operator(*used[0], **used[1]))
    try:
        with sizes_are(_SIZES[0]) as context:
            told = _tensors(operator(*fake[0], **fake[1]))
        with sizes_are(_SIZES[1]):
            again = _tensors(operator(*fake[0], **fake[1])) if context.asked else told
    except NotImplementedError as error:
        raise OpCheckError(
            f"{operator.name}: nothing is known of tensors without elements; register it with register_fake ({error})"
        ) from error
    if len(real) != len(told):
        raise OpCheckError(
            f"{operator.name}: the fake function gave {len(told)} results, expected {len(real)}"
        )
    for position, (result, other, varied) in enumerate(zip(real, told, again, strict=True)):
        _compare_fact(operator, position, "shape", _known_shape(other, varied, result), tuple(result.shape))
        _compare_fact(operator, position, "dtype", other.dtype, result.dtype)


#: What stands for a size that depends on values, in turn: sizes of results that differ depend on it.
_SIZES = 5, 7


def _known_shape(one: Tensor, other: Tensor, real: Tensor) -> tuple[int, ...]:
    """The shape that is told, with the real sizes in the place of those that depend on values."""
    if not one.dim() == other.dim() == real.dim():
        return tuple(one.shape)
    sizes = zip(one.shape, other.shape, real.shape, strict=True)
    return tuple(size if size == again else found for size, again, found in sizes)


def _compare_fact(operator: Operator, position: int, fact: str, found: Any, expected: Any) -> None:
    if expected != found:
        raise OpCheckError(
            f"{operator.name}: result {position} of the fake function has {fact} {found}, expected {expected}"
        )


#: Elements by which an operator is differentiated numerically, which calls it twice for each.
_MOST_DIFFERENCES = 4096


def _gradients(operator: Operator, args: tuple, kwargs: dict[str, Any]) -> None:
    used = _copied((args, kwargs))
    inputs = [t for t in _tensors([*used[0], *used[1].values()]) if t.requires_grad]
    if not inputs or any(t.dtype is not _C.float64 for t in inputs) or _written(operator):
        return  # differences of function values need float64
    if sum(t.numel() for t in inputs) > _MOST_DIFFERENCES:
        return
    try:
        gradcheck, failure = autograd.gradcheck, autograd.GradcheckError
    except RegistryError:
        return  # nobody differentiates here
    places = {id(t): position for position, t in enumerate(inputs)}

    def call(*tensors: Tensor) -> Any:
        filled = _mapped(used, lambda t: tensors[places[id(t)]] if id(t) in places else t)
        return operator(*filled[0], **filled[1])

    try:
        gradcheck(call, tuple(inputs))
    except (failure, RuntimeError) as error:
        raise OpCheckError(f"{operator.name}: the gradient is not that of the function: {error}") from error


def _batches(tensors: list[int], arguments: list[Any]) -> Iterator[dict[int, int]]:
    """Which arguments carry a batch, and in which dimension: each alone, then all; in front, then behind."""
    for chosen in dict.fromkeys((*((place,) for place in tensors), tuple(tensors))):
        yield dict.fromkeys(chosen, 0)
        yield {place: arguments[place].dim() for place in chosen}


def _vmap(operator: Operator, args: tuple, kwargs: dict[str, Any]) -> None:
    made = defined(operator.name)
    rule = made.batching_rule if made is not None else None
    if rule is None or _written(operator):
        return
    named = _named(operator, *_copied((args, kwargs)))
    arguments = [named.get(a.name, a.default) for a in operator.arguments]
    arguments = [a.detach() if isinstance(a, Tensor) else a for a in arguments]
    tensors = [place for place, value in enumerate(arguments) if isinstance(value, Tensor)]
    items = {i: (arguments[i], arguments[i].flip(tuple(range(arguments[i].dim())))) for i in tensors}
    for dims in _batches(tensors, arguments):
        stacked = [_C.stack(items[i], dims[i]) if i in dims else value for i, value in enumerate(arguments)]
        try:
            found, places = rule(tuple(stacked), tuple(dims.get(i) for i in range(len(arguments))))
        except NotImplementedError:  # the rule says that there is none for such a batch
            continue
        for position in range(2):
            one = [items[i][position] if i in dims else value for i, value in enumerate(arguments)]
            _compare_batch(operator, dims, position, _tensors(found), list(places), _call_with(operator, one))


def _call_with(operator: Operator, arguments: list[Any]) -> list[Tensor]:
    args, kwargs = split(operator, tuple(arguments))
    return _tensors(operator(*args, **kwargs))


def _compare_batch(
    operator: Operator,
    dims: dict[int, int],
    position: int,
    found: list[Tensor],
    places: list[int | None],
    expected: list[Tensor],
) -> None:
    where = ", ".join(f"'{operator.arguments[i].name}' in dimension {d}" for i, d in dims.items())
    if len(found) != len(expected) or len(places) != len(expected):
        raise OpCheckError(
            f"{operator.name}: the rule for batches gave {len(found)} results and {len(places)} dimensions, "
            f"expected {len(expected)} of each (batch of {where})"
        )
    for number, (whole, place, wanted) in enumerate(zip(found, places, expected, strict=True)):
        item = whole if place is None else whole.select(place, position)
        same = item.shape == wanted.shape and item.dtype == wanted.dtype
        if not same or not _C.allclose(item, wanted, equal_nan=True):
            raise OpCheckError(
                f"{operator.name}: result {number} of the rule for batches is not what the operator gives for item "
                f"{position} (batch of {where})"
            )


_CHECKS = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd_registration,
    "test_faketensor": _faketensor,
    "test_aot_dispatch_dynamic": _gradients,
    "test_vmap": _vmap,
}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_CHECKS),
    raise_exception: bool = True,
) -> dict[str, Any]:
    """See whether an operator does what it says, for one set of arguments.

    Args:
        op: What `custom_op` made, an operator of `taeda.ops`, or a name.
        args: Of the call; tensors that require grad are needed for the checks of gradients, float64 for their values.
        test_utils: Which checks: "test_schema" (nothing is written and no memory shared that the schema does not say),
            "test_autograd_registration" (results require grad and backward runs), "test_faketensor" (tensors without
            elements give the same shapes and dtypes), "test_aot_dispatch_dynamic" (gradients against differences, for
            arguments of up to 4096 elements together), "test_vmap" (the rule for batches, where there is one, against
            calls item by item).
        raise_exception: Raise at the first failure; else it stands in the result.

    Returns: "SUCCESS" or the exception for each check.

    Raises:
        OpCheckError: A check failed.

    Example:
        >>> taeda.library.opcheck(double, (taeda.ones(2),))["test_schema"]
        'SUCCESS'
    """
    chosen = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    if unknown := [name for name in chosen if name not in _CHECKS]:
        raise ValueError(
            f"opcheck: argument 'test_utils': there is no check {', '.join(map(repr, unknown))}; "
            f"expected some of: {', '.join(_CHECKS)}"
        )
    operator, found = _of_results(op) or _operator(op), {}
    for name in chosen:
        try:
            _CHECKS[name](operator, tuple(args), kwargs or {})
            found[name] = "SUCCESS"
        except OpCheckError as error:
            if raise_exception:
                raise
            found[name] = error
    return found
