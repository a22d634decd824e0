"""Levels: layers that come and go, what tensors carry for them, and the rules for both."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import library
from taeda_tensor_core.library import Level


class Noting(Level):
    """Tensors carry another one; every call is noted and made with what they carry."""

    def __init__(self, name="noting", **options):
        super().__init__(name, **options)
        self.seen = []

    def around(self, tensor):
        return self.wrap(tensor, tensor.shape, tensor.dtype, tensor.device)

    def __call__(self, op, args, kwargs):
        self.seen.append(op.name)
        result = op(*(self.payload(a, a) for a in args), **kwargs)
        return self.around(result) if isinstance(result, taeda.Tensor) else result


def test_a_call_reaches_the_level_of_its_tensors():
    with Noting() as level:
        x = level.around(taeda.arange(6.0).reshape(2, 3))
        assert x.shape == (2, 3) and x.dtype is taeda.float32 and x.device.type == "cpu"
        y = (x * 2 + 1).sum(0)
        taeda.ones(2) + 1
        assert level.payload(y).tolist() == [8.0, 12.0, 16.0]
    assert level.seen == ["mul", "add", "sum"]


def test_the_deepest_level_answers_first():
    outer, inner = Noting("outer"), Noting("inner")
    with outer, inner:
        assert (outer.depth, inner.depth) == (1, 2)
        a, b = outer.around(taeda.ones(2)), inner.around(taeda.ones(2))
        both = a + b
        assert inner.seen == ["add"] and outer.seen == ["add"]
        assert outer.payload(inner.payload(both)).tolist() == [2.0, 2.0]
        assert outer.payload(both) is None
        assert outer.payload(a.exp()).shape == (2,) and inner.seen == ["add"]
        inside = inner.around(outer.around(taeda.ones(2)))
        taeda.sin(inside)
        assert inner.seen[-1] == outer.seen[-1] == "sin"
    assert (outer.depth, inner.depth) == (0, 0)


def test_levels_within_a_rule_stand_above_those_outside():
    class Nests(Noting):
        def __call__(self, op, args, kwargs):
            with Noting("within") as within:
                result = op(*(within.around(self.payload(a, a)) for a in args), **kwargs)
                depths.append((within.depth, within.seen[:]))
                return self.around(within.payload(result))

    depths = []
    outer = Noting("outer")
    with outer, Nests("nests") as nests:
        found = taeda.exp(nests.around(outer.around(taeda.zeros(1))))
        assert outer.payload(nests.payload(found)).item() == 1.0
    assert depths == [(2, ["exp"])] and outer.seen == ["exp"]


def test_composites_are_taken_apart_or_taken():
    with Noting() as level:
        level.payload(taeda.ops.relu6(level.around(taeda.tensor([7.0]))))
    assert "relu6" not in level.seen and level.seen
    with Noting(composites=["relu6"]) as level:
        assert level.payload(taeda.ops.relu6(level.around(taeda.tensor([7.0])))).item() == 6.0
    assert level.seen == ["relu6"]


def test_a_level_may_see_every_call():
    class All(Level):
        def __init__(self):
            super().__init__(every_call=True)
            self.seen = []

        def __call__(self, op, args, kwargs):
            self.seen.append(op.name)
            taeda.ones(1)  # below the level: not seen
            return op(*args, **kwargs)

    outer, inner = All(), All()
    with outer:
        taeda.zeros(2) + 1
        with inner, Noting() as plain:
            taeda.exp(taeda.zeros(1))
            plain.around(taeda.zeros(1)).sin()
        taeda.cos(taeda.zeros(1))
    taeda.tan(taeda.zeros(1))
    assert plain.seen == ["sin"]
    assert inner.seen.count("exp") == 1 and inner.seen.count("sin") == 1 and "cos" not in inner.seen
    assert (
        outer.seen[-1] == "cos"
        and {"add", "exp", "sin", "fill_"} <= set(outer.seen)
        and "tan" not in outer.seen
    )


def test_operators_of_libraries_reach_levels():
    with library.Library("level_tests") as lib, Noting() as level:

        @lib.operator("level_tests::twice(Tensor x) -> Tensor")
        def twice(x):
            return x * 2

        assert level.payload(twice(level.around(taeda.ones(1)))).item() == 2.0
    assert level.seen == ["mul"]
    with library.Library("level_tests") as lib, Noting() as level:

        @lib.operator("level_tests::thrice(Tensor x) -> Tensor")
        def thrice(x):
            return x * 3

        thrice.composite(None)
        thrice.kernel("cpu")(lambda outputs, inputs: inputs[0] * 3)
        with Noting() as later:
            assert later.payload(thrice(later.around(taeda.ones(1)))).item() == 3.0
    assert later.seen == ["level_tests::thrice"]


def test_errors_leave_levels_as_they_were():
    class Fails(Noting):
        def __call__(self, op, args, kwargs):
            raise KeyError(op.name)

    outer = Noting("outer")
    with outer, Fails("fails") as level:
        for _ in range(2):
            with pytest.raises(KeyError, match="exp"):
                level.around(taeda.ones(1)).exp()
        assert outer.payload(outer.around(taeda.zeros(1)).exp()).item() == 1.0
        with pytest.raises(RuntimeError, match="level 'fails' is in force already"):
            level.__enter__()
        with pytest.raises(RuntimeError, match="level 'outer' is not the innermost one"):
            outer.__exit__()
    assert taeda.exp(taeda.zeros(1)).item() == 1.0
    with pytest.raises(RuntimeError, match="level 'noting' has not been in force yet"):
        Noting().around(taeda.ones(1))


def test_wrong_results_of_rules_are_refused():
    class Wrong(Noting):
        def __call__(self, op, args, kwargs):
            return "text"

    with (
        Wrong("wrong") as level,
        pytest.raises(TypeError, match=r"exp: .* level 'wrong' must be a Tensor, found str"),
    ):
        level.around(taeda.ones(1)).exp()


# --- tensors without memory ---


def test_tensors_of_ended_levels_are_refused():
    with Noting() as level:
        x = level.around(taeda.ones(2))
    with pytest.raises(
        RuntimeError, match=r"add: a tensor of shape \(2,\) belongs to level 'noting', which has ended"
    ):
        x + 1
    with Noting(), pytest.raises(RuntimeError, match="belongs to level 'noting', which has ended"):
        x.exp()
    with level, pytest.raises(RuntimeError, match="belongs to level 'noting', which has ended"):
        taeda.ones(2) * x
    assert level.payload(x) is None  # the level of the second block is another one


def test_tensors_of_levels_are_their_threads_own():
    errors = []

    def use(x):
        try:
            x + 1
        except RuntimeError as error:
            errors.append(str(error))

    with Noting() as level:
        thread = threading.Thread(target=use, args=(level.around(taeda.ones(1)),))
        thread.start()
        thread.join()
    assert "which is not in force here" in errors[0] and level.seen == []


def test_a_rule_stands_below_its_level():
    class Uses(Noting):
        def __call__(self, op, args, kwargs):
            return op(*args, **kwargs)

    with (
        Uses() as level,
        pytest.raises(RuntimeError, match=r"exp: .* level 'noting', which is not in force here"),
    ):
        level.around(taeda.ones(1)).exp()


READERS = {
    "tolist": lambda x: x.tolist(),
    "item": lambda x: x.item(),
    "float": float,
    "bool": bool,
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "buffer": memoryview,
    "dlpack": lambda x: x.__dlpack__(),
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "equal": lambda x: taeda.equal(x, x),
    "set data": lambda x: setattr(taeda.ones(1), "data", x),
    "data of": lambda x: setattr(x, "data", taeda.ones(1)),
    "index of a list": lambda x: [1, 2][x],
}


@pytest.mark.parametrize("reader", READERS)
def test_there_is_no_memory_to_read(reader):
    with Noting() as level:
        x = level.wrap(taeda.ones(1), (1,), taeda.float32)
        with pytest.raises((RuntimeError, BufferError, TypeError, ValueError)):
            READERS[reader](x)


def test_text_of_a_tensor_without_memory():
    with Noting() as level:
        x = level.around(taeda.ones(2, 3))
    assert repr(x) == "tensor(..., level='noting', size=(2, 3), dtype=taeda.float32)"


def test_a_level_says_whether_its_tensors_require_a_gradient():
    class Says(Noting):
        def requires_grad(self, tensor):
            return self.payload(tensor).ndim == 1

    class Refuses(Noting):
        def requires_grad(self, tensor):
            raise ValueError("not to be asked")

    with Noting() as plain, Says("outer") as outer:
        assert not plain.around(taeda.ones(2)).requires_grad
        vector, matrix = outer.around(taeda.ones(2)), outer.around(taeda.ones(2, 2))
        assert vector.requires_grad and not matrix.requires_grad
        with Noting("inner") as inner:
            assert not inner.around(vector).requires_grad and vector.requires_grad
        with Refuses("refuses") as refuses, pytest.raises(ValueError, match="not to be asked"):
            _ = refuses.around(vector).requires_grad
    assert not vector.requires_grad


def test_detach_and_data_carry_the_same():
    with Noting() as level:
        x = level.around(taeda.ones(2))
        assert level.payload(x.data) is level.payload(x)
        assert level.payload(x.data + 1).tolist() == [2.0, 2.0]


def test_views_and_copies_are_the_rules():
    with Noting() as level:
        x = level.around(taeda.arange(6.0))
        level.payload(x.view(2, 3)[1])
        x.clone(), x.detach(), x.double()
    assert level.seen[0] == "view" and {"clone", "detach"} <= set(level.seen)


def test_writes_renew_what_is_carried():
    class Writes(Noting):
        def __call__(self, op, args, kwargs):
            if op.form != "inplace":
                return super().__call__(op, args, kwargs)
            function = library.op(op.name.removesuffix("_"))
            self.attach(args[0], function(self.payload(args[0]), *args[1:], **kwargs))
            return None

    with Writes() as level:
        x = level.around(taeda.zeros(2))
        same = x
        x += 3
        assert x is same and level.payload(x).tolist() == [3.0, 3.0]


# --- tensors with memory that carry something besides ---


def test_attached_payloads():
    x = taeda.ones(2)
    with Noting("a") as a, Noting("b") as b:
        assert a.attach(x, "for a") is x and b.attach(x, "for b") is x
        assert (a.payload(x), b.payload(x)) == ("for a", "for b")
        a.attach(x, "again")
        assert a.payload(x) == "again" and x.tolist() == [1.0, 1.0]
        b.drop(x)
        assert b.payload(x) is None and a.payload(x) == "again"
        b.drop(x)
    assert (x + 1).tolist() == [2.0, 2.0] and a.payload(x) == "again"
    assert pickle.loads(pickle.dumps(x)).tolist() == [1.0, 1.0]
    assert a.payload(x.view(2)) is None and a.payload(copy.deepcopy(x)) is None


def test_below_its_level_a_tensor_with_memory_counts_without_payload():
    class Counts(Level):
        calls = 0

        def __call__(self, op, args, kwargs):
            self.calls += 1
            return op(*args, **kwargs)

    with Counts() as level:
        x = level.attach(taeda.ones(2), "tag")
        assert (x * 3).tolist() == [3.0, 3.0]
    assert level.calls == 1
    with level, pytest.raises(RuntimeError, match="has no memory, and is nothing without its payload"):
        level.drop(level.wrap(None, (2,), taeda.float32))


def test_a_payload_lives_as_long_as_its_tensor():
    class Thing:
        pass

    for make in (
        lambda level, thing: level.wrap(thing, (1,), taeda.float32),
        lambda level, thing: level.attach(taeda.ones(1), thing),
    ):
        with Noting() as level:
            thing = Thing()
            gone = weakref.ref(thing)
            x = make(level, thing)
            del thing
            assert isinstance(level.payload(x), Thing)
            del x
            assert gone() is None


@pytest.mark.parametrize("with_memory", [False, True])
def test_cycles_through_payloads_are_collected(with_memory):
    class Thing:
        pass

    with Noting() as level:
        thing = Thing()
        gone = weakref.ref(thing)
        if with_memory:
            thing.tensor = level.attach(taeda.ones(1), thing)
        else:
            thing.tensor = level.wrap(thing, (1,), taeda.float32)
        del thing
        assert gone() is not None
        gc.collect()
        assert gone() is None


def test_a_ring_that_cplusplus_holds_is_no_garbage():
    with Noting() as level:
        x = taeda.ones(4)
        view = x.view(2, 2)  # holds its base
        level.attach(x, [x])
        del x
        gc.collect()
        (found,) = level.payload(view._base)
        assert found is view._base and found.tolist() == [1.0] * 4


def test_element_wise_operators_of_batches_need_no_rule():
    names = frozenset({"add", "mul", "lt", "no such operator"})
    with Noting(element_wise=names) as level:
        rows = taeda.arange(6.0).reshape(3, 2)
        x = level.wrap(rows, (2,), taeda.float32)
        number = level.wrap(taeda.tensor([1, 2, 3]), (), taeda.int64)
        shared = taeda.tensor([[10.0, 20.0], [30.0, 40.0]])
        assert level.payload(x * x + 1).tolist() == [[1.0, 2.0], [5.0, 10.0], [17.0, 26.0]]
        y = x + shared  # (2,) and (2, 2) of each of three examples
        assert y.shape == (2, 2) and level.payload(y).shape == (3, 2, 2)
        np.testing.assert_array_equal(
            level.payload(y).numpy(), rows.numpy()[:, None, :] + shared.numpy()[None]
        )
        assert level.payload(number * number).tolist() == [1, 4, 9]
        assert level.payload(x < 3).tolist() == [[True, True], [True, False], [False, False]]
        assert (taeda.ones(2) + 1).tolist() == [2.0, 2.0] and level.seen == []
        # Examples without a dimension promote less than their batch does.
        number + taeda.ones(3, dtype=taeda.int32)
        x - 1
        assert level.seen == ["add", "sub"]


def test_element_wise_operators_reach_the_levels_outside():
    with Noting("outer") as outer, Noting("inner", element_wise=frozenset({"mul"})) as inner:
        whole = outer.around(taeda.tensor([[1.0, 2.0], [3.0, 4.0]]))
        x = inner.wrap(whole, (2,), taeda.float32)
        y = x * x
        assert outer.payload(inner.payload(y)).tolist() == [[1.0, 4.0], [9.0, 16.0]]
        assert outer.seen == ["mul"] and inner.seen == []
        with pytest.raises(RuntimeError, match="cannot be broadcast"):
            x * taeda.ones(3)
        assert inner.payload(x * 2) is not None
