"""What was saved for a gradient and is changed before it is used: the right gradient, or an error that says so."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import taeda
from taeda import library
from taeda_testing import all_records
from taeda_testing.record import OpRecord
from taeda_testing.runner import function_of, to_tensors

SEED = 20260314
SAMPLES = 5

#: How the tensor that is changed hangs together with the one that was saved: pairs (saved, changed) made of one.
RELATIONS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "itself": lambda x: (x, x),
    "a view of it": lambda x: (x, x[...]),
    "its base": lambda x: (x[...], x),
    "its alias": lambda x: (x, x.detach()),
    "a sibling": lambda x: (x[...], x[...]),
}


def settle(saved: Any, change: Callable[[], Any], name: str, goes_on: bool = False) -> str:
    """Whether a gradient that needs `saved` is right, or refused with a word about who changed it.

    With `goes_on` the right one is that of the values afterwards.
    """
    weight = taeda.ones_like(saved).requires_grad_()
    total = (weight * saved).sum()
    expected = saved.detach().clone().numpy()
    try:
        change()
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return "refused"
    if goes_on:
        expected = saved.detach().clone().numpy()
    try:
        total.backward()
    except RuntimeError as error:
        text = str(error)
        assert "modified by an inplace operation" in text, f"{name}: {text}"
        assert f"last modified by {name.partition('.')[0]}" in text or not name, f"{name}: {text}"
        return "stale"
    np.testing.assert_array_equal(weight.grad.numpy(), expected, err_msg=name)
    return "right"


def written() -> dict[str, str]:
    """In-place forms by the name of their record."""
    names = {op.name.partition(".")[0] for op in library.operators() if op.form == "inplace"}
    return {
        r.name: r.name if 0 in r.writes else r.name + "_"
        for r in all_records()
        if {r.name, r.name + "_"} & names
    }


FORMS = written()


def owner(name: str) -> Any:
    return next(place for place in (taeda, taeda.ops, taeda.Tensor) if hasattr(place, name))


def cases(record: OpRecord) -> Iterator[tuple[Any, list[Any], dict[str, Any]]]:
    """Target, further arguments and options of calls whose target can be saved for a gradient."""
    for dtype in set(record.dtypes) & {"float64", "float32"}:
        rng = np.random.default_rng(SEED + zlib.crc32(f"{record.name} {dtype}".encode()))
        for _, sample in zip(range(SAMPLES), record.samples(dtype, rng), strict=False):
            if sample.args and isinstance(sample.args[0], np.ndarray) and np.isfinite(sample.args[0]).all():
                rest = [to_tensors(value) for value in sample.args[1:]]
                kwargs = {key: to_tensors(value) for key, value in sample.kwargs.items()}
                yield to_tensors(np.asarray(sample.args[0], dtype)), rest, kwargs


@pytest.mark.parametrize("relation", RELATIONS)
def test_operators_that_write_in_place(relation: str) -> None:
    print("seed", SEED)
    found: dict[str, int] = defaultdict(int)
    for record in all_records():
        if record.name not in FORMS:
            continue
        name = FORMS[record.name]
        function = function_of(record) if name == record.name else getattr(owner(name), name)
        for target, rest, kwargs in cases(record):
            saved, changed = RELATIONS[relation](target)
            call = lambda: function(changed, *rest, **kwargs)  # noqa: B023, E731
            found[settle(saved, call, name)] += 1
    print(dict(found), "of", len(FORMS), "operators")
    assert found["stale"] > 300


def _data(x: Any) -> None:
    x.data = taeda.full((5,), 7.0)


def _turned(x: Any) -> None:
    x.data = x.data.t()


#: Programs that make a tensor show other elements, or the same ones in another order.
SHOWN: dict[str, Callable[[Any], Any]] = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "swapdims_": lambda x: x.swapdims_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.unsqueeze_(0).squeeze_(),
    "as_strided_": lambda x: x.as_strided_((3, 3), (0, 1)),
    "set_": lambda x: x.set_(taeda.full((3, 3), 7.0)),
    "set_ often": lambda x: [x.set_(taeda.full((3, 3), 7.0)) for _ in range(300)],
    "resize_": lambda x: x.resize_(3, 2),
    "resize_as_": lambda x: x.resize_as_(taeda.ones(9)),
    "out=": lambda x: taeda.add(taeda.ones(12), 1, out=x),
    ".data =": _data,
    ".data = .data.t()": _turned,
    ".data = of an equal version": lambda x: setattr(x, "data", taeda.ones(3, 3).add_(1)),
    "put_": lambda x: x.put_(taeda.tensor([0]), taeda.tensor([9.0])),
    "fill_diagonal_": lambda x: x.fill_diagonal_(9.0),
    "index_reduce_": lambda x: x.index_reduce_(0, taeda.tensor([0]), taeda.full((1, 3), 9.0), "prod"),
    "apply_": lambda x: x.apply_(lambda v: v + 1),
    "setitem": lambda x: x.__setitem__(0, 9.0),
    "setitem by a mask": lambda x: x.__setitem__(x > 0, 9.0),
    "+=": lambda x: x.__iadd__(1),
    "@= of a copy": lambda x: x.copy_(x @ x),
    "addbmm_": lambda x: x.addbmm_(taeda.ones(1, 3, 3), taeda.ones(1, 3, 3)),
    "addr_": lambda x: x.addr_(taeda.ones(3), taeda.ones(3)),
    "share of batch_norm": lambda x: taeda.batch_norm(
        taeda.ones(2, 9), None, None, x.view(-1), taeda.ones(9), True, 0.5, 0.1
    ),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("program", SHOWN)
@pytest.mark.parametrize("relation", RELATIONS)
def test_programs_that_change_what_is_shown(relation: str, program: str) -> None:
    target = taeda.arange(9.0).view(3, 3).clone()
    saved, changed = RELATIONS[relation](target)
    # What is assigned to `data` takes the place of the values, in graphs too.
    settle(saved, lambda: SHOWN[program](changed), "", goes_on=program.startswith(".data"))


def test_data_that_is_assigned_takes_the_place_of_what_was_saved() -> None:
    def weight_after(*changes: Callable[[Any], Any]) -> Any:
        x = taeda.ones(2, requires_grad=True)
        weight = taeda.full((2,), 5.0, requires_grad=True)
        total = (x * weight).sum()
        for change in changes:
            change(weight)
        total.backward()
        return x.grad.tolist()

    def other(value: float, writes: int = 0) -> Callable[[Any], Any]:
        made = taeda.full((2,), value)
        for _ in range(writes):
            made.add_(0)
        return lambda weight: setattr(weight, "data", made)

    @taeda.no_grad()
    def write(weight: Any) -> None:
        weight.add_(1)

    for writes in (0, 1, 5):
        assert weight_after(other(3.0, writes)) == [3.0, 3.0]
        assert weight_after(other(2.0), other(3.0, writes)) == [3.0, 3.0]
        for changes in ([other(3.0, writes), write], [write, other(3.0, writes)]):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                weight_after(*changes)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        weight_after(lambda weight: setattr(weight, "data", taeda.ones(3)))


@pytest.mark.parametrize("program", [name for name in SHOWN if name.endswith("_") and name[0] in "tsua"])
def test_the_culprit_is_named(program: str) -> None:
    target = taeda.arange(9.0).view(3, 3).clone()
    name = {"swapdims_": "swapaxes_", "addbmm_": "", "addr_": "", "apply_": ""}.get(program, program)
    assert settle(target, lambda: SHOWN[program](target), name) == "stale"


def test_a_view_of_what_shows_other_memory_is_not_recorded_through_it() -> None:
    leaf = taeda.ones(3, requires_grad=True)
    base = leaf * 1
    view = base[:2]
    with taeda.no_grad():
        base.set_(taeda.zeros(3))
    with pytest.raises(RuntimeError, match=r"mul_.*shows other memory"):
        view.mul_(leaf[:2])
    view.sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_need_the_size_of_their_table_alone(mode: str) -> None:
    """Somebody else may step the table between forward and backward, where no weights of items ask for its rows."""
    table = taeda.ones(5, 2, requires_grad=True)
    places = taeda.tensor([[0, 1], [3, 3]])
    bags = taeda.nn.functional.embedding_bag(places, table, mode=mode)
    with taeda.no_grad():
        table.add_(1)
    bags.sum().backward()
    each = 1 if mode == "sum" else 0.5
    counts = [[1] * 2, [0] * 2, [0] * 2, [1] * 2, [0] * 2] if mode == "max" else None
    expected = counts or [[each] * 2, [each] * 2, [0] * 2, [2 * each] * 2, [0] * 2]
    assert table.grad.tolist() == expected
    if mode == "sum":
        weights = taeda.ones(2, 2, requires_grad=True)
        bags = taeda.nn.functional.embedding_bag(places, table, mode=mode, per_sample_weights=weights)
        with taeda.no_grad():
            table.add_(1)
        with pytest.raises(RuntimeError, match=r"modified by an inplace operation: 'weight'"):
            bags.sum().backward()
