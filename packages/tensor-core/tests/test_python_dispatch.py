"""`__torch_dispatch__`: modes and wrapping classes below the public functions."""

import gc
import sys
import threading

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import Tensor, library, python_dispatch
from taeda_tensor_core.python_dispatch import TorchDispatchMode, make_wrapper_subclass


class Names(TorchDispatchMode):
    def __init__(self):
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.name())
        return func(*args, **(kwargs or {}))


def test_mode_sees_operators_and_parts_of_composites():
    x = taeda.ones(2, 2)
    with Names() as mode:
        y = x + 1
        y.add_(x)
        y.view(-1)
        taeda.ops.relu6(x)
        x.shape, x.dim()
    assert mode.seen[:3] == ["aten::add.Tensor", "aten::add_.Tensor", "aten::view"]
    assert "aten::relu6" not in mode.seen and len(mode.seen) > 3
    assert y.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    count = len(mode.seen)
    x + x
    assert len(mode.seen) == count


@pytest.mark.parametrize(
    "key, device, seen",
    [
        ("CompositeImplicitAutograd", None, ["aten::view", "aten::mul.Tensor"]),
        ("", None, ["aten::view", "aten::mul.Tensor"]),
        ("CompositeExplicitAutograd", None, ["parted::twice"]),
        ("CompositeImplicitAutograd", "CPU", ["parted::twice"]),
    ],
)
def test_modes_and_classes_meet_the_parts_of_an_operator_that_consists_of_others(key, device, seen):
    def twice(x, *, k=2):
        return x.view(-1) * k

    class Seen(Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            by_class.append(func.name())
            return func(*(a.inner if isinstance(a, Seen) else a for a in args), **(kwargs or {}))

    by_class = []
    with library.Library("parted", "DEF") as lib:
        lib.define("twice(Tensor x, *, int k=2) -> Tensor")
        for each in (key, device):
            if each is not None:
                lib.impl("twice", twice, each)
        with Names() as mode:
            x = taeda.ones(2, 2)
            del mode.seen[:]
            assert taeda.ops.parted.twice(x, k=3).tolist() == [3.0] * 4
        assert mode.seen == seen
        wrapped = make_wrapper_subclass(Seen, (2, 2))
        wrapped.inner = x
        assert taeda.ops.parted.twice(wrapped).tolist() == [2.0] * 4
    assert by_class[0] == seen[0]


def test_arguments_come_without_defaults():
    seen = []

    class Keep(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func, types, args, kwargs))
            return func(*args, **kwargs)

    x = taeda.ones(2)
    with Keep():
        taeda.add(x, x)
        taeda.add(x, x, alpha=2)
        x.sum(dim=0, keepdim=True)
    assert seen[0] == (taeda.ops.aten.add.Tensor, (), (x, x), {})
    assert seen[1][3] == {"alpha": 2}
    assert seen[2][0].overloadpacket.__name__.startswith("sum")


def test_arguments_of_polygamma_stand_in_pytorchs_order():
    seen = []

    class Keep(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func.name(), args, kwargs))
            return func(*args, **kwargs)

    x = taeda.rand(3) + 0.5
    expected = taeda.polygamma(1, x).tolist()
    with Keep():
        results = [taeda.polygamma(1, x), taeda.special.polygamma(1, x), x.polygamma(1)]
    assert seen == [("aten::polygamma", (1, x), {})] * 3
    results += [taeda.ops.aten.polygamma.default(1, x), taeda.ops.aten.polygamma.default(n=1, self=x)]
    assert all(result.tolist() == expected for result in results)


def test_mode_may_replace_results():
    class Seven(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return taeda.full_like(result, 7) if func is taeda.ops.aten.mul.Tensor else result

    with Seven():
        assert (taeda.ones(2) * 3).tolist() == [7.0, 7.0]
    assert (taeda.ones(2) * 3).tolist() == [3.0, 3.0]


def test_modes_nest():
    outer, inner = Names(), Names()
    with outer:
        taeda.exp(taeda.ones(1))
        with inner:
            taeda.sin(taeda.ones(1))
    assert inner.seen[-1] == "aten::sin" and outer.seen[-1] == "aten::sin"
    assert outer.seen[1] == "aten::exp" and "aten::exp" not in inner.seen


def test_mode_off_in_its_own_method_and_after_errors():
    class Fails(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            (taeda.ones(1) + 1).sum()
            raise KeyError(func.name())

    with Fails(), pytest.raises(KeyError, match="aten::exp"):
        taeda.exp(Tensor([1.0]))
    assert taeda.exp(taeda.zeros(1)).item() == 1.0


def test_mode_is_the_threads_own():
    results = []
    with Names() as mode:
        thread = threading.Thread(target=lambda: results.append((taeda.ones(1) + 1).item()))
        thread.start()
        thread.join()
    assert results == [2.0] and mode.seen == []


def test_operators_defined_later_are_seen():
    with library.Library("dispatch_tests") as lib:

        @lib.operator("dispatch_tests::later(Tensor x) -> Tensor")
        def later(x):
            return x + 1

        later.composite(None)
        later.kernel("cpu")(lambda outputs, inputs: inputs[0] + 1)
        with Names() as mode:
            later(taeda.ones(1))
        assert "dispatch_tests::later" in mode.seen


def test_an_interrupt_while_the_layer_is_put_in_place_is_made_good():
    """Ctrl-C at each line in turn: afterwards operators work, and modes see them."""
    code = python_dispatch.start.__code__

    def interrupted(line):
        def trace(frame, event, _):
            if event == "line" and frame.f_lineno == line:
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace if frame.f_code is code else None

        sys.settrace(trace)
        try:
            python_dispatch.start("below_autograd")
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    lines = sorted({line for *_, line in code.co_lines() if line} - {code.co_firstlineno})
    stopped = 0
    with library.Library("dispatch_interrupts") as lib:
        for line in lines:
            name = f"dispatch_interrupts::count{line}"
            made = lib.define(f"{name}(Tensor x) -> Tensor")
            made.composite(None)
            made.kernel("cpu")(lambda outputs, inputs: inputs[0] + 1)
            stopped += interrupted(line)
            with Names() as mode:
                made(taeda.ones(2))
            assert name in mode.seen
    assert stopped > 5


def test_all_decline():
    class Declines(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Declines(), pytest.raises(TypeError, match=r"aten::exp: .*NotImplemented: mode Declines"):
        taeda.exp(Tensor([1.0]))


class Wrapped(Tensor):
    """Holds another tensor, and writes down what is done with it."""

    calls: list = []
    __torch_function__ = taeda._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner):
        made = make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        made.inner = inner
        return made

    def __repr__(self):
        return f"{type(self).__name__}({self.inner!r})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((cls.__name__, func.name()))

        def inner(item):
            if isinstance(item, list | tuple):
                return type(item)(map(inner, item))
            return item.inner if type(item) is cls else item

        result = func(*inner(args), **{name: inner(value) for name, value in (kwargs or {}).items()})
        return cls(result) if isinstance(result, Tensor) else result


class Again(Wrapped):
    """Another layer of the same kind."""


def test_wrapper_computes_through_its_class():
    Wrapped.calls.clear()
    x = Wrapped(taeda.arange(4.0).reshape(2, 2))
    assert x.shape == (2, 2) and x.dtype is taeda.float32 and x.device == taeda.device("cpu")
    y = taeda.matmul(x, taeda.ones(2, 2)) + x * 2
    assert type(y) is Wrapped and np.array_equal(y.inner.numpy(), [[1, 3], [9, 11]])
    assert {name for _, name in Wrapped.calls} >= {"aten::mul.Tensor", "aten::add.Tensor"}
    assert type(x[0]) is Wrapped and x[0].inner.tolist() == [0.0, 1.0]
    assert type(taeda.cat([x, taeda.ones(2, 2)])) is Wrapped
    assert type(x.sum()) is Wrapped and repr(x.sum()) == "Wrapped(tensor(6.))"


def test_wrappers_nest():
    Wrapped.calls.clear()
    x = Again(Wrapped(taeda.ones(2)))
    y = taeda.exp(x)
    assert type(y) is Again and type(y.inner) is Wrapped and type(y.inner.inner) is Tensor
    assert Wrapped.calls == [("Again", "aten::exp"), ("Wrapped", "aten::exp")]


def test_mode_stands_above_wrappers():
    Wrapped.calls.clear()
    x = Wrapped(taeda.ones(2))
    with Names() as mode:
        taeda.exp(x)
    assert mode.seen == ["aten::exp"] or mode.seen[0] == "aten::exp"
    assert Wrapped.calls == [("Wrapped", "aten::exp")]


def test_wrapper_has_no_memory_to_read():
    x = Wrapped(taeda.ones(2))
    with pytest.raises(RuntimeError):
        x.item()
    with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
        x.numpy()
    with pytest.raises(RuntimeError, match="_make_wrapper_subclass: Plain must define __torch_dispatch__"):
        make_wrapper_subclass(type("Plain", (Tensor,), {}), (2,))


def test_a_mode_meets_layers_and_convolutions_in_pytorchs_operators():
    seen = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func.overloadpacket, args))
            return func(*args, **(kwargs or {}))

    x, weight, bias = taeda.ones(2, 3, 4), taeda.ones(5, 4), taeda.ones(5)
    images, filters = taeda.ones(1, 2, 6, 6), taeda.ones(3, 2, 3, 3)
    expected = [taeda.ops.linear(x, weight, bias), taeda.ops.linear(x, weight), taeda.conv2d(images, filters)]
    with Names():
        made = [taeda.ops.linear(x, weight, bias), taeda.ops.linear(x, weight), taeda.conv2d(images, filters)]
    for one, other in zip(made, expected, strict=True):
        assert one.shape == other.shape and taeda.allclose(one, other)
    operators = [operator for operator, _ in seen]
    assert taeda.ops.aten.addmm in operators and taeda.ops.aten.mm in operators
    convolutions = [args for operator, args in seen if operator is taeda.ops.aten.convolution]
    assert [args[6] for args in convolutions] == [False]
    assert not {taeda.ops.aten.linear, taeda.ops.aten.conv2d} & set(operators)


class Scaled(Tensor):
    """Wraps numbers; answers what converting a module asks, as PyTorch's programs do."""

    @staticmethod
    def __new__(cls, elem, scale):
        return make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype, device=elem.device)

    def __init__(self, elem, scale):
        self.elem, self.scale = elem, scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        aten = taeda.ops.aten
        if func not in (aten.detach.default, aten._to_copy.default):
            raise NotImplementedError(func.name())
        return cls(func(args[0].elem, *args[1:], **(kwargs or {})), args[0].scale)


def test_a_change_of_dtype_is_met_as_pytorchs_operator():
    wrapped = Scaled(taeda.ones(3), 0.5)
    made = wrapped.to(taeda.bfloat16)
    assert isinstance(made, Scaled) and made.scale == 0.5
    assert made.dtype == made.elem.dtype == taeda.bfloat16
    assert wrapped.double().elem.tolist() == [1.0, 1.0, 1.0]
    with Names() as mode:
        taeda.ones(2).half()
    assert mode.seen[-1] == "aten::_to_copy"
    x = taeda.ones(2)
    with Names():
        assert x.to(taeda.float64).dtype == taeda.float64


def test_data_of_a_wrapper_is_its_classs_to_tell():
    wrapped = Scaled(taeda.ones(3), 0.5)
    assert isinstance(wrapped.data, Scaled) and wrapped.data.elem.tolist() == [1.0, 1.0, 1.0]
    assert wrapped.data is not wrapped and not wrapped.data.requires_grad
    wrapped.data = wrapped.data.to(taeda.float64)
    assert (
        wrapped.dtype == wrapped.elem.dtype == taeda.float64
    )  # in PyTorch the attributes stay, and with them the values


def test_questions_about_modes_and_classes():
    from taeda_tensor_core import python_dispatch as dispatch

    class Pair(Scaled):
        def __tensor_flatten__(self):
            return ["elem"], self.scale

        @staticmethod
        def __tensor_unflatten__(inner, context, size, stride):
            return Pair(inner["elem"], context)

    wrapped = Pair(taeda.ones(2), 0.5)
    assert dispatch.is_traceable_wrapper_subclass(wrapped) and dispatch.is_traceable_wrapper_subclass_type(
        Pair
    )
    assert not dispatch.is_traceable_wrapper_subclass_type(Scaled)
    made = dispatch.transform_subclass(wrapped, lambda name, inner: inner + (name == "elem"))
    assert isinstance(made, Pair) and made.elem.tolist() == [2.0, 2.0] and made.scale == 0.5
    assert not dispatch.is_in_torch_dispatch_mode()
    with Names() as outer, Names() as inner:
        assert dispatch.is_in_torch_dispatch_mode()
        with dispatch._disable_current_modes() as off:
            assert off == [outer, inner] and not dispatch.is_in_torch_dispatch_mode()
            taeda.ones(2) + 1
        assert inner.seen == outer.seen == []
        taeda.ones(2).exp()
    assert inner.seen[-1] == outer.seen[-1] == "aten::exp"


def test_wrappers_meet_a_change_of_device():
    seen = []

    class Held(taeda.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return taeda.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, device=inner.device
            )

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append((func.overloadpacket.name.rpartition("::")[2], dict(kwargs or {})))
            return Held(func(args[0].inner, **(kwargs or {})))

    held = Held(taeda.ones(3))
    assert held.to("cpu") is held and held.cpu() is held and held.to(taeda.ones(1)) is held and seen == []
    assert held.to("cpu", taeda.float64).inner.dtype == taeda.float64
    assert seen == [("_to_copy", {"dtype": taeda.float64})]


def test_copies_into_and_out_of_wrappers_are_met():
    class Held(Tensor):
        @staticmethod
        def __new__(cls, inner):
            return make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            assert func is taeda.ops.aten.copy_.default
            func(*(item.inner if isinstance(item, Held) else item for item in args))
            return args[0]

    held, room = Held(taeda.zeros(3)), taeda.zeros(3)
    held.copy_(taeda.arange(3))
    room.copy_(held)
    assert held.inner.tolist() == room.tolist() == [0, 1, 2]
    other = Held(taeda.zeros(3, dtype=taeda.float64))
    other.copy_(held)
    assert other.inner.tolist() == [0, 1, 2]


def test_targets_go_by_name():
    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if kwargs:
                calls.append((func.overloadpacket.__name__, len(args), sorted(kwargs)))
            return func(*args, **(kwargs or {}))

    calls = []
    x, numbers = taeda.tensor([3.0, 1.0, 2.0]), taeda.empty(3)
    value, place = taeda.empty(()), taeda.empty((), dtype=taeda.int64)
    values, places = taeda.empty(3), taeda.empty(3, dtype=taeda.int64)
    with Seen():
        taeda.add(x, x, out=numbers)
        taeda.max(x, 0, out=(value, place))
        taeda.sort(x, out=(values, places))
    assert calls == [
        ("add", 2, ["out"]), ("max", 2, ["max", "max_values"]), ("sort", 1, ["indices", "values"])
    ]  # fmt: skip
    assert numbers.tolist() == [6, 2, 4] and (value.item(), place.item()) == (3, 0)
    assert values.tolist() == [1, 2, 3] and places.tolist() == [1, 2, 0]


def test_every_form_with_targets_knows_their_names():
    from taeda_tensor_core.library._aten_forms import as_aten, written

    forms = [op for op in library.operators() if op.form == "out"]
    for op in forms:
        places = [a.name for a in op.arguments if not a.keyword_only]
        _, args, kwargs = as_aten(op, tuple(places), {})
        assert kwargs == {name: own for name, own in written(op).items() if own in places}, op.name
        assert kwargs and set(args) == set(places) - set(written(op).values()), op.name
    assert len(forms) > 300


class _Shadowing(taeda.Tensor):
    """Has attributes that are named like methods, its inner tensor among them."""

    @staticmethod
    def __new__(cls, t):
        made = taeda.Tensor._make_wrapper_subclass(cls, t.shape, dtype=t.dtype, device=t.device)
        made.t = made.dim = made.reshape = made.view = made.mm = made.mv = t
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def plain(value):
            return value.t if isinstance(value, cls) else value

        return cls(func(*map(plain, args), **{k: plain(v) for k, v in (kwargs or {}).items()}))


def test_attributes_of_a_class_may_be_named_like_methods():
    x, weight, bias = taeda.randn(2, 3, 4), taeda.randn(5, 4), taeda.randn(5)
    for args in ((x, weight, bias), (x, weight), (x[0], weight, bias), (x[0], weight[0])):
        made = taeda.ops.linear(*map(_Shadowing, args))
        taeda.testing.assert_close(made.t, taeda.ops.linear(*args))


class Marked(Tensor):
    """A subclass that answers for no operator."""


def test_results_of_subclasses_that_a_mode_keeps_have_one_wrapper_each():
    class Keeps(TorchDispatchMode):
        def __init__(self):
            self.kept, self.names, self.itself = [], [], self

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            self.kept += [*args, result]
            self.names.append(func.name())
            return result

    x = taeda.ones(2).as_subclass(Marked)
    with Keeps() as mode:
        y = x + x
        z = y.as_subclass(Tensor)
        made = Marked(z)
    assert type(y) is Marked and type(z) is Tensor and type(made) is Marked
    assert mode.names == ["aten::add.Tensor"]  # becoming another class is no operator
    assert mode.kept[2].tolist() == y.tolist() == z.tolist() == made.tolist() == [2.0, 2.0]
    del mode, y, z, made
    gc.collect()  # the ring dies with all that it keeps
