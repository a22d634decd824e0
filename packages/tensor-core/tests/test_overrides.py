"""`__torch_function__`: subclasses that keep their class, classes and modes that answer, and who is asked first."""

import copy
import inspect
import pickle
import subprocess
import sys
import threading

import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import Tensor, overrides


class Named(Tensor):
    """Says nothing of functions: inherits Tensor's answer."""


class Log(Tensor):
    """Writes down what it was asked for."""

    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func, types, args, kwargs))
        return super().__torch_function__(func, types, args, kwargs)


class Duck:
    """No tensor at all."""

    def __init__(self, answer="duck"):
        self.answer = answer

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types, args, kwargs


class Refuses:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


@pytest.fixture
def logged():
    Log.calls.clear()
    return taeda.arange(6.0).reshape(2, 3).as_subclass(Log)


def asked(call):
    """The functions that a call asked for."""
    Log.calls.clear()
    call()
    return [overrides.resolve_name(func) for func, *_ in Log.calls]


def test_results_are_of_the_class():
    x = taeda.arange(6.0).reshape(2, 3).as_subclass(Named)
    ones = taeda.ones(2, 3)
    joined = taeda.cat([x, ones])
    for made in (x + 1, 1 + x, -x, x.sum(), taeda.exp(x), x[0], x.T, x.view(-1), x.detach(), x.data, joined,
                 ones * x, x.double(), taeda.zeros_like(x), x.clone().add_(1), *x.unbind(), *list(x)):  # fmt: skip
        assert type(made) is Named
    assert type(x.max(dim=1)).__name__ == "max" and type(x.max(dim=1).values) is Named
    assert type(x.tolist()) is list and type(x.shape) is taeda.Size and x.sum().item() == 15.0
    assert all(type(part) is Named for part in x.split(1))


def test_as_subclass_shares_elements():
    plain = taeda.zeros(2)
    named = plain.as_subclass(Named)
    named[0] = 1
    assert plain.tolist() == [1.0, 0.0] and type(plain) is Tensor
    assert type(named.as_subclass(Tensor)) is Tensor
    with pytest.raises(
        TypeError, match="as_subclass: argument 'cls' must be a subclass of Tensor, found type"
    ):
        plain.as_subclass(int)


def test_constructing_and_state():
    made = Named([[1.0, 2.0]])
    made.label = "x"
    assert type(made) is Named and made.shape == (1, 2)
    assert type(Tensor._make_subclass(Named, taeda.ones(1))) is Named
    for copied in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(copied) is Named and copied.label == "x" and copied.tolist() == [[1.0, 2.0]]
    assert repr(made) == "Named([[1., 2.]])"


def test_in_place_and_views_keep_the_object():
    x = taeda.zeros(2, 2).as_subclass(Named)
    before = x
    x += 1
    assert x is before and type(x) is Named
    row = x[0]
    row.fill_(5)
    assert type(row) is Named and x.tolist() == [[5.0, 5.0], [1.0, 1.0]]
    plain = taeda.zeros(2, 2)
    assert type(plain.add_(x)) is Named and plain.tolist() == x.tolist()


def test_the_subclass_answers_before_its_base():
    class Special(Named):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "special", types

    named, special = taeda.ones(1).as_subclass(Named), Tensor._make_subclass(Special, taeda.ones(1))
    assert taeda.add(named, special) == ("special", (Special, Named))
    assert named + special == ("special", (Special, Named))


def test_classes_are_asked_in_the_order_of_the_call():
    seen = []

    def make(name, result):
        def ask(cls, func, types, args=(), kwargs=None):
            seen.append(name)
            return result

        return type(name, (), {"__torch_function__": classmethod(ask)})()

    first, second = make("First", NotImplemented), make("Second", 7)
    assert taeda.where(taeda.ones(2) > 0, first, second) == 7
    assert seen == ["First", "Second"]
    seen.clear()
    assert taeda.stack([taeda.ones(1), second, first]) == 7 and seen == ["Second"]


def test_arguments_arrive_as_they_were_given():
    duck = Duck()
    x = taeda.ones(2)
    func, types, args, kwargs = taeda.add(x, duck, alpha=3)
    assert func is taeda.add and types == (Duck,) and args == (x, duck) and kwargs == {"alpha": 3}
    assert (x + duck)[0] is Tensor.add and (x + duck)[2] == (x, duck)
    assert (duck - x)[0] == Tensor.__rsub__ and (duck - x)[2] == (x, duck)
    assert (x < duck)[0] is Tensor.lt and (x @ duck)[0] is Tensor.matmul
    assert x.mul(duck)[0] is Tensor.mul and x.mul_(other=duck)[3] == {"other": duck}
    assert taeda.sum(duck, dim=0)[3] == {"dim": 0}
    assert taeda.absolute(duck)[0] is taeda.absolute
    assert taeda.tensordot(duck, x, 1)[0] is taeda.tensordot


def test_nobody_knows_what_to_do():
    x = taeda.ones(2)
    with pytest.raises(TypeError, match=r"add: no implementation .*returned NotImplemented: .*Refuses"):
        taeda.add(x, Refuses())
    with pytest.raises(TypeError, match="unsupported operand"):
        x + Refuses()
    with pytest.raises(TypeError, match="unsupported operand"):
        Refuses() / x

    class Adds(Refuses):
        def __radd__(self, other):
            return "right side"

    assert x + Adds() == "right side"


def test_siblings_do_not_mix():
    class A(Tensor):
        pass

    class B(Tensor):
        pass

    with pytest.raises(TypeError, match=r"no implementation.*: .*A, .*B"):
        taeda.add(taeda.ones(1).as_subclass(A), taeda.ones(1).as_subclass(B))


def test_other_spelling():
    class Own(Tensor):
        @classmethod
        def __taeda_function__(cls, func, types, args=(), kwargs=None):
            return "own"

    class Below(Own):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "below"

    assert taeda.exp(Tensor._make_subclass(Own, taeda.ones(1))) == "own"
    assert taeda.exp(Tensor._make_subclass(Below, taeda.ones(1))) == "below"


def test_class_that_does_not_answer():
    class Quiet(Tensor):
        __torch_function__ = taeda._C._disabled_torch_function_impl

    x = taeda.ones(2).as_subclass(Quiet)
    assert type(x + x) is Tensor and type(x.exp()) is Tensor and type(x[0]) is Tensor


def test_a_class_that_answers_everything_with_a_tensor_has_no_truth_value():
    class Itself(Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return args[0]

    x = taeda.ones(3).as_subclass(Itself)
    for ask in (bool, lambda t: not t, lambda t: 1.0 in t, lambda t: t in taeda.ones(3)):
        with pytest.raises(TypeError, match="__bool__ should return bool, returned"):
            ask(x)
    with pytest.raises(RecursionError):
        iter(x)


def test_a_class_may_learn_to_answer():
    class Late:
        pass

    with pytest.raises(TypeError):
        taeda.exp(Late())
    Late.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: "learnt")
    assert taeda.exp(Late()) == "learnt"
    del Late.__torch_function__
    with pytest.raises(TypeError):
        taeda.exp(Late())


def test_operators_attributes_and_methods(logged):
    x = logged
    assert asked(lambda: x.shape) == ["taeda.Tensor.shape.__get__"]
    assert asked(lambda: x.dim()) == ["taeda.Tensor.dim"]
    assert asked(lambda: x[0]) == ["taeda.Tensor.__getitem__"]
    assert asked(lambda: x.__setitem__(0, 1)) == ["taeda.Tensor.__setitem__"]
    assert asked(lambda: len(x)) == ["taeda.Tensor.__len__"]
    assert asked(lambda: 3 in x) == ["taeda.Tensor.__contains__"]
    assert asked(lambda: float(x.as_subclass(Log)[0, 0]))[-1] == "taeda.Tensor.__float__"
    assert asked(lambda: bool(x[0, 0])) == ["taeda.Tensor.__getitem__", "taeda.Tensor.__bool__"]
    assert asked(lambda: 1 - x) == ["taeda.Tensor.__rsub__"]
    assert asked(lambda: x == x) == ["taeda.Tensor.eq"]
    assert asked(lambda: abs(-x)) == ["taeda.Tensor.neg", "taeda.Tensor.abs"]
    assert asked(lambda: setattr(x, "requires_grad", False)) == ["taeda.Tensor.requires_grad.__set__"]
    assert asked(lambda: x.type_as(x)) == ["taeda.Tensor.type_as"]
    assert asked(lambda: taeda.block_diag(x, x)) == ["taeda.block_diag"]
    assert asked(lambda: repr(x)) == ["taeda.Tensor.__repr__"]
    assert asked(lambda: list(x))[0] == "taeda.Tensor.unbind"
    assert asked(lambda: taeda.ops.softmax_backward(x, x, -1)) == ["taeda.ops.softmax_backward"]


def test_switches(logged):
    with overrides.DisableTorchFunctionSubclass():
        assert type(logged + 1) is Tensor and not overrides.has_torch_function_unary(logged)
        assert not taeda._C._is_torch_function_enabled()
    assert type(logged + 1) is Log and Log.calls

    class Names(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func.__name__

    with Names():
        with overrides.DisableTorchFunction():
            assert type(logged + 1) is Tensor and taeda.ones(1).tolist() == [1.0]
        with overrides.DisableTorchFunctionSubclass():
            assert taeda.ones(1) == "ones"
    assert taeda._C.DisableTorchFunctionSubclass is overrides.DisableTorchFunctionSubclass


class Count(overrides.TorchFunctionMode):
    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(overrides.resolve_name(func))
        return func(*args, **(kwargs or {}))


def test_mode_sees_plain_tensors_and_factories():
    x = taeda.ones(2)
    with Count() as mode:
        y = taeda.zeros(2) + x
        taeda.tensor([1.0])
        assert y.shape == (2,)
        taeda.block_diag(x)
    assert mode.seen == [
        "taeda.zeros",
        "taeda.Tensor.add",
        "taeda.tensor",
        "taeda.Tensor.shape.__get__",
        "taeda.block_diag",
    ]
    x + x
    assert len(mode.seen) == 5


def test_modes_nest_and_end_with_errors():
    outer, inner = Count(), Count()
    with outer, inner:
        taeda.ones(1)
        with pytest.raises(RuntimeError):
            taeda.ones(2) + taeda.ones(3)
    assert inner.seen == outer.seen == ["taeda.ones", "taeda.ones", "taeda.ones", "taeda.Tensor.add"]
    assert taeda._C._function_mode_stack() == []


def test_mode_is_the_threads_own():
    def work():
        results.append((taeda.ones(2) + 1).tolist())

    results = []
    with Count() as mode:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert results == [[2.0, 2.0]] and mode.seen == []


def test_mode_that_declines_leaves_it_to_classes():
    class Declines(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Declines():
        assert taeda.exp(Duck())[0] is taeda.exp
        with pytest.raises(TypeError, match=r"exp: no implementation.*mode .*Declines"):
            taeda.exp(Tensor([1.0]))


def test_own_functions_take_part():
    @overrides.wrap_torch_function(lambda a: (a,))
    def double(a):
        return a + a

    func, types, _, kwargs = double(Duck())
    assert func is double and types == (Duck,) and kwargs == {}
    assert double(taeda.ones(1)).tolist() == [2.0]
    duck = Duck()
    assert overrides.has_torch_function((1, duck)) and not overrides.has_torch_function((1, taeda.ones(1)))
    assert overrides.has_torch_function_variadic(1, duck)
    assert overrides.handle_torch_function(double, (duck,), duck, scale=2) == (
        double,
        (Duck,),
        (duck,),
        {"scale": 2},
    )
    assert (
        overrides.is_tensor_like(duck)
        and overrides.is_tensor_like(taeda.ones(1))
        and not overrides.is_tensor_like(1)
    )


def test_errors_in_an_answer_come_through():
    class Fails(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    x = Tensor._make_subclass(Fails, taeda.ones(2))
    for call in (lambda: x + 1, lambda: x.shape, lambda: bool(x), lambda: len(x), lambda: taeda.exp(x), lambda: list(x),
                 lambda: x[0], lambda: x.__setitem__(0, 1), lambda: 1 in x, lambda: x.type_as(x)):  # fmt: skip
        with pytest.raises(KeyError, match="mine"):
            call()


class Handing:
    """No tensor: gives the function that it was asked for."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func


@pytest.mark.parametrize("space", ["fft", "linalg", "special"])
def test_functions_of_namespaces_are_given_as_programs_know_them(space):
    found = set()
    for name, function in vars(getattr(taeda, space)).items():
        if getattr(taeda.ops, f"{space}_{name}", None) is None or name in ("matrix_exp", "vector_norm"):
            continue
        given = next(filter(None, (handed(function, count) for count in range(1, 5))), None)
        if given is not None:
            assert given is function
            found.add(name)
    assert len(found) > 15
    assert overrides.resolve_name(taeda.linalg.eigh) == "taeda.linalg.eigh"


def handed(function, count):
    try:
        return function(*[Handing()] * count)
    except TypeError:
        return None


def test_listing():
    listed = overrides.get_overridable_functions()
    functions = [function for home in listed.values() for function in home]
    assert len(functions) > 900 and taeda.add in listed[taeda] and Tensor.add in listed[Tensor]
    assert Tensor.shape.__get__ in listed[Tensor] and taeda.block_diag in listed[taeda]
    assert taeda.special.erf in listed[taeda.special] and taeda.linalg.matmul in listed[taeda.linalg]
    assert not set(overrides.get_ignored_functions()) & set(functions)
    assert [function for function in functions if overrides.resolve_name(function) is None] == []
    assert overrides.is_tensor_method_or_property(Tensor.add) and not overrides.is_tensor_method_or_property(
        taeda.add
    )
    assert overrides.resolve_name(Tensor.grad.__set__) == "taeda.Tensor.grad.__set__"
    assert set(overrides.get_testing_overrides()) == set(functions)


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        (taeda.add, "(input, other, alpha=1, out=None)"),
        (taeda.Tensor.add_, "(input, other, alpha=1, out=None)"),
        (taeda.mv, "(input, vec, out=None)"),
        (taeda.Tensor.element_size, "(self)"),
        (taeda.chunk, "(input, chunks, dim=0)"),
        (taeda.Tensor.grad.__get__, "(self)"),
        (taeda.einsum, None),  # Python's own, as it stands
    ],
)
def test_stand_ins_for_functions_have_their_arguments(function, signature):
    stand_in = overrides.get_testing_overrides()[function]
    found = inspect.signature(stand_in)
    if signature is None:
        assert list(found.parameters) == list(inspect.signature(function).parameters)
        return
    assert str(found) == signature
    assert stand_in(*[0] * sum(p.default is p.empty for p in found.parameters.values())) == -1
    with pytest.raises(TypeError):
        stand_in(no_such=1)


def answered():
    """Names of the members of Tensor that a class may answer for."""
    outside = {getattr(f, "__name__", "") for f in overrides.get_ignored_functions()}
    outside |= set(overrides._OWN)
    # Members of parts that are not loaded here say so at once.
    outside |= {"is_shared", "share_memory_"}
    outside |= {"backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad"}
    members = vars(Tensor).items()
    return sorted(
        name
        for name, member in members
        if not name.startswith("__")
        and name not in outside
        and not isinstance(member, property | staticmethod)
    )


@pytest.mark.parametrize("name", answered())
def test_every_member_of_tensor_asks(name):
    """Methods and attributes reach the class of the tensor, whatever else they are given."""
    member = vars(Tensor)[name]

    class Answer(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            got.append((func, types))
            return 1

    got: list = []
    x = Tensor._make_subclass(Answer, taeda.ones(2, 2))
    one = taeda.ones(2, 2)
    fills = [
        (), (0,), (one,), (0, 0), (0, one), (one, one), (2, 2), (0, 0, 0), (0, one, one), ((0,), (0,)),
        ((one,),), ((2, 2),), (True,), ("x",), ((0,), one), ((2,), (1,)), (0, 1, 0), (0, 0, one), (one, 0),
        (0, one, 1.0), (0, one, "sum"), (0, one, one, "sum"), (lambda v: v,), (0, (2, 1)), (taeda.float32,),
        ("cpu",), (one, 0, 1), (one > 0, 1.0), (one > 0, one), (one, one, one), (0, 1, 1), (0.5, 0), ((one.long(),),
        one), (0, 1, one),
    ]  # fmt: skip
    calls = [*((args, {}) for args in fills), ((), {"size": 2})]
    for args, named in calls:
        try:
            value = getattr(x, name)
            if isinstance(member, overrides.types.GetSetDescriptorType):
                break
            value(*args, **named)
        except (TypeError, RuntimeError, ValueError):
            continue
        if got:
            break
    assert got, f"Tensor.{name} did not ask"
    assert got[0][1] == (Answer,)
    assert overrides.resolve_name(got[0][0]) in (f"taeda.Tensor.{name}", f"taeda.Tensor.{name}.__get__")


def test_variables_of_a_function_that_asks_can_be_read():
    """Whoever walks a traceback reads the variables of every frame, those of closures too."""
    from taeda_tensor_core import _overridable

    def make(name):
        def method(x):
            return name, x

        return method

    method = make("free")
    _overridable.overridable([method])

    class Refusing(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        method(taeda.ones(1).as_subclass(Refusing))
    assert "free" in [entry.frame.f_locals.get("name") for entry in caught.traceback]
    assert method(1) == ("free", 1)


def test_the_first_class_that_answers_may_be_met_in_a_question():
    program = """
import taeda_tensor_core as tc
class Answering:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return function.__name__
asked = [tc.%s(Answering())]
with tc.DisableTorchFunction():
    try:
        tc.%s(Answering())
    except TypeError as error:
        asked.append(str(error))
print(asked)
"""
    for name in ("is_complex", "is_floating_point", "numel"):
        command = [sys.executable, "-c", program % (name, name)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert told.startswith(f"['{name}', \"{name}: argument 'input' must be a Tensor, found Answering"), (
            told
        )
        with pytest.raises(TypeError, match=f"{name}: argument 'input' must be a Tensor, found int"):
            getattr(taeda, name)(3)


def test_keys_and_sizes_may_answer():
    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    item, x = Answers(), taeda.ones(2, 2)
    assert x[item] is taeda.Tensor.__getitem__ and x[0, item] is taeda.Tensor.__getitem__
    x[item] = 5.0
    assert taeda.equal(x, taeda.ones(2, 2))
    assert taeda.chunk(x, item) is taeda.chunk and taeda.zeros((item, 2)) is taeda.zeros
    assert taeda.full((1,), item) is taeda.full
    for function in (taeda.is_signed, taeda.get_device, taeda.dequantize, taeda.q_scale, taeda.hash_tensor):
        assert function(item) is function
    overload = taeda.ops.aten.add.Tensor
    assert overload(x, item) is overload and taeda.ops.aten.max.default(item) is taeda.ops.aten.max.default
    with pytest.raises(TypeError, match="chunks"):
        taeda.chunk(x, object())


def test_index_of_a_class_that_keeps_itself():
    class Kept(taeda.Tensor):
        pass

    index = taeda.tensor([0, 1]).as_subclass(Kept)
    assert type(taeda.ones(3)[index]) is Kept and type(taeda.ones(3, 3)[0, index]) is Kept


@pytest.mark.parametrize("space", ["fft", "linalg", "special"])
def test_namespaces_list_their_functions(space):
    module = getattr(taeda, space)
    assert set(module.__all__) == {name for name in dir(module) if not name.startswith("_")}
    assert {"fft": "rfft", "linalg": "svd", "special": "xlogy"}[space] in module.__all__
