"""The demo's network on tensors of a user's classes: one records its operations, another wraps the first."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import taeda
import taeda.nn.functional as F
from taeda import nn
from taeda.overrides import TorchFunctionMode, resolve_name
from taeda.utils._python_dispatch import TorchDispatchMode

MODEL = Path(__file__).parents[1] / "examples" / "digits" / "model.py"


def digit_net():
    """The demo's network with the same weights at every call."""
    spec = importlib.util.spec_from_file_location("digits_model", MODEL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    taeda.manual_seed(7)
    return module.DigitNet()


class Recorder(taeda.Tensor):
    """Writes down which functions its instances were given to."""

    record: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.record.append(resolve_name(func))
        return super().__torch_function__(func, types, args, kwargs)


def mapped(items, change):
    if isinstance(items, list | tuple):
        return type(items)(mapped(item, change) for item in items)
    return change(items)


class Shell(taeda.Tensor):
    """Wraps a tensor of any class, computes with what it wraps, and wraps the results again."""

    record: list = []

    @staticmethod
    def around(inner):
        shell = taeda.Tensor._make_subclass(Shell, inner.detach().as_subclass(taeda.Tensor))
        shell.inner = inner
        return shell

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with taeda._C.DisableTorchFunctionSubclass():
            name = resolve_name(func)
        cls.record.append(name)
        plain = [mapped(arg, lambda a: vars(a).get("inner", a) if type(a) is Shell else a) for arg in args]
        result = func(*plain, **(kwargs or {}))
        return Shell.around(result) if isinstance(result, taeda.Tensor) else result


@pytest.fixture
def batch():
    rng = np.random.default_rng(5)
    images = taeda.tensor(rng.standard_normal((6, 1, 8, 8)), dtype=taeda.float32)
    return images, taeda.tensor(rng.integers(0, 10, 6))


def trained(images, labels):
    """Loss and gradients after one step of training."""
    model = digit_net()
    taeda.manual_seed(3)
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    return model, loss


def same_gradients(model, expected, tolerance=0.0):
    for (name, found), other in zip(model.named_parameters(), expected.parameters(), strict=True):
        assert type(found.grad) is taeda.Tensor
        np.testing.assert_allclose(
            found.grad.numpy(), other.grad.numpy(), rtol=tolerance, atol=tolerance, err_msg=name
        )


def test_recorder_runs_the_demo(batch):
    images, labels = batch
    expected, plain_loss = trained(images, labels)
    Recorder.record.clear()
    model, loss = trained(images.as_subclass(Recorder), labels)
    assert type(loss) is Recorder and loss.as_subclass(taeda.Tensor).item() == plain_loss.item()
    same_gradients(model, expected)
    seen = Recorder.record
    assert (
        seen.count("taeda.nn.functional.relu") == 4 and seen.count("taeda.nn.functional.cross_entropy") == 1
    )
    assert sum(name.endswith(".dropout") for name in seen) == 1
    assert "taeda.Tensor.view" in seen and "taeda.Tensor.backward" in seen


def test_shell_around_recorder_runs_the_demo(batch):
    images, labels = batch
    expected, plain_loss = trained(images, labels)
    Recorder.record.clear()
    Shell.record.clear()
    model, loss = trained(Shell.around(images.as_subclass(Recorder)), labels)
    assert type(loss) is Shell and type(vars(loss)["inner"]) is Recorder
    assert loss.item() == plain_loss.item()
    same_gradients(model, expected)
    outer = [name for name in Shell.record if name and "functional" in name]
    inner = [name for name in Recorder.record if name and "functional" in name]
    assert outer == inner and outer.count("taeda.nn.functional.relu") == 4


def test_modes_see_the_demo(batch):
    images, labels = batch
    expected, plain_loss = trained(images, labels)

    class Functions(TorchFunctionMode):
        def __init__(self):
            self.seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(resolve_name(func))
            return func(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        def __init__(self):
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(func.name())
            return func(*args, **(kwargs or {}))

    with Functions() as functions:
        model, loss = trained(images, labels)
    same_gradients(model, expected)
    assert functions.seen.count("taeda.nn.functional.relu") == 4
    with Operators() as operators:
        model, loss = trained(images, labels)
    same_gradients(model, expected, 1e-6)  # gradients of linear layers are products and sums of their own
    assert loss.item() == plain_loss.item()
    assert sum("conv" in name for name in operators.seen) >= 6


def test_parameter_of_a_subclass(batch):
    Recorder.record.clear()
    weight = nn.Parameter(taeda.ones(2, 2).as_subclass(Recorder))
    assert isinstance(weight, nn.Parameter) and type(weight) is Recorder and weight.requires_grad
    layer = nn.Linear(2, 2, bias=False)
    layer.weight = weight
    assert dict(layer.named_parameters())["weight"] is weight
    layer(taeda.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]] and type(weight.grad) is taeda.Tensor
    plain = nn.Parameter(taeda.ones(2))
    assert type(plain) is nn.Parameter and type(plain + 1) is taeda.Tensor
    assert not isinstance(taeda.ones(1), nn.Parameter)


class Around(taeda.Tensor):
    """A class for operators alone, whose results are what it wraps."""

    @staticmethod
    def __new__(cls, inner):
        made = taeda.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, named = (
            [mapped(a, lambda x: x.inner if isinstance(x, Around) else x) for a in given]
            for given in (args, (kwargs or {}).values())
        )
        return func(*args, **dict(zip(kwargs or {}, named, strict=True)))


def test_a_wrapper_may_answer_with_plain_tensors():
    x = Around(taeda.arange(4.0).reshape(2, 2))
    for found, expected in [
        (x + 1, [[1, 2], [3, 4]]),
        (taeda.ones(2, 2) @ x, [[2, 4], [2, 4]]),
        (F.linear(taeda.ones(1, 2), x), [[1, 5]]),
        (x.view(4), [0, 1, 2, 3]),
        (x.sum(0), [2, 4]),
    ]:
        assert type(found) is taeda.Tensor and found.tolist() == expected


def test_a_wrapper_is_where_it_says_also_for_masks_and_places():
    x = Around(taeda.arange(4.0).reshape(2, 2))
    assert x.is_cpu and not x.is_meta
    away = Around(taeda.ones(2, device="meta"))
    assert away.is_meta and not away.is_cpu
    mask = taeda.tensor([True, False])
    for found, expected in [(x[:, mask], [[0], [2]]), (x[mask], [[0, 1]]), (x[[1, 0]], [[2, 3], [0, 1]])]:
        assert type(found) is taeda.Tensor and found.tolist() == expected


def test_operators_that_read_values_give_the_same_whichever_argument_is_wrapped():
    x, square = taeda.arange(6.0), taeda.tensor([[2.0, 1.0], [1.0, 3.0]])
    even, one, two = x % 2 == 0, taeda.tensor([1]), taeda.tensor([2])
    lengths, weights = taeda.tensor([2, 4]), taeda.tensor([1, 2, 1])
    factors, rows = taeda.linalg.lu_factor(square), taeda.arange(12.0).reshape(1, 3, 4) / 12
    table, bags = taeda.arange(6.0).reshape(3, 2), taeda.tensor([0, 1])
    chances = taeda.ones(4, 1, 3).log_softmax(-1)
    for call, *given in [
        (taeda.masked_scatter, x, even, -x),
        (lambda m: taeda.nonzero_static(m, size=4), even),
        (taeda.linalg.eigvals, square),
        (taeda.linalg.eig, square),
        (taeda.linalg.lu, square),
        (taeda.lu_unpack, *factors),
        (taeda.linalg.pinv, square),
        (lambda p, t, n, m: F.ctc_loss(p, t, n, m), chances, one[None], two * 2, one),
        (F.embedding_bag, bags, table, bags),
        (lambda a, f: taeda.cov(a, fweights=f), table.t(), weights),
        (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), rows, rows + 1, rows),
        (taeda.tensor_split, x, taeda.tensor(3)),
    ]:
        expected = listed(call(*given))
        for i in range(len(given)):
            found = call(*given[:i], Around(given[i]), *given[i + 1 :])
            for a, b in zip(listed(found), expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(
        RuntimeError, match="values of a tensor whose class answers for operators can't be read"
    ):
        taeda.tensor_split(x, Around(lengths))


def listed(result):
    return [result] if isinstance(result, taeda.Tensor) else list(result)


class Told(Around):
    """Keeps what it is told."""

    calls: list = []

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((str(func), *args[1:], kwargs or {}))
        return super().__torch_dispatch__(func, types, args, kwargs)


def test_classes_are_told_of_parts_with_all_bounds():
    x, end = Told(taeda.arange(6.0).reshape(2, 3)), 2**63 - 1
    for program, told in [
        (lambda: x[1:], ("aten.slice.Tensor", 0, 1, end, {})),
        (lambda: x[:, :2], ("aten.slice.Tensor", 1, 0, 2, {})),
        (lambda: x[:], ("aten.slice.Tensor", 0, 0, end, {})),
        (lambda: x[:, ::2], ("aten.slice.Tensor", 1, 0, end, 2, {})),
        (lambda: x.flip(1), ("aten.flip.default", [1], {})),
    ]:
        Told.calls.clear()
        found = program()
        assert Told.calls[0] == told and type(found) is taeda.Tensor
    assert x.flip(1).tolist() == [[2, 1, 0], [5, 4, 3]]


def test_copies_take_all_that_programs_pass_on():
    copy = taeda.ops.aten._to_copy.default
    given = {"dtype": taeda.int64, "layout": None, "device": None, "pin_memory": False, "non_blocking": False}
    x = taeda.arange(8.0).reshape(1, 2, 2, 2)
    assert copy(x, **given, memory_format=None).tolist() == x.long().tolist()
    assert copy(x, memory_format=taeda.channels_last).stride() == (8, 1, 4, 2)


def test_a_wrapper_is_asked_for_its_number():
    asked = []

    class Counting(Around):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return super().__torch_dispatch__(func, types, args, kwargs)

    three = Counting(taeda.tensor(3))
    assert [three.item(), int(three), float(three), complex(three), bool(three)] == [3, 3, 3, 3, True]
    assert "abcd"[three] == "d" and set(asked) == {taeda.ops.aten._local_scalar_dense.default}
    with pytest.raises(RuntimeError, match="tolist: not supported for tensor subclasses"):
        Around(taeda.ones(2)).tolist()


def test_a_wrapper_must_give_a_number():
    class Silent(Around):
        answer = NotImplemented

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return cls.answer

    with pytest.raises(
        TypeError, match="_local_scalar_dense: __torch_dispatch__ of Silent returned NotImplemented"
    ):
        Silent(taeda.ones(1)).item()
    Silent.answer = "four"
    with pytest.raises(TypeError, match="__torch_dispatch__ of Silent gave str"):
        bool(Silent(taeda.ones(1)))


class Quiet(taeda.Tensor):
    """Changes nothing, but refuses plain tensors and the number 3."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if any(type(a) is taeda.Tensor or a == 3 for a in args if type(a) is not cls):
            raise TypeError("refused")
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize("other", [None, "text", [1, 2], (1.0,), object()])
def test_operators_of_classes_leave_strange_operands_to_python(other):
    x = taeda.ones(2).as_subclass(Quiet)
    assert (x == other) is False and (other == x) is False and (x != other) is True
    assert x not in [other] and other not in [x]
    for program in (lambda: x < other, lambda: x @ other, lambda: x | other):
        with pytest.raises(TypeError):
            program()


def test_errors_of_classes_about_tensors_and_numbers_are_told():
    x = taeda.ones(2).as_subclass(Quiet)
    for program in (lambda: x + taeda.ones(2), lambda: x == taeda.ones(2), lambda: x == 3, lambda: 3 - x):
        with pytest.raises(TypeError, match="refused"):
            program()
    assert (x == 1).tolist() == [True, True] and (2 * x).tolist() == [2, 2]
