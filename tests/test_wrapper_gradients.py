"""Parameters of a user's class with `__torch_dispatch__`: recorded, trained, copied and saved as plain ones are."""

import copy
import gc
import io
import threading
import weakref

import numpy as np
import pytest

import taeda
import taeda.nn.functional as F
from taeda import nn
from taeda.utils._python_dispatch import return_and_correct_aliasing
from taeda.utils._pytree import tree_map

aten = taeda.ops.aten
SEED = 11


class Wrapper(taeda.Tensor):
    """Computes with what it wraps and wraps the results; writes down what it is asked for."""

    asked: list = []

    @staticmethod
    def __new__(cls, inner):
        return taeda.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device,
            requires_grad=inner.requires_grad,
        )  # fmt: skip

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"Wrapper({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        Wrapper.asked.append(func)
        kwargs = kwargs or {}
        plain = [
            tree_map(lambda t: t.inner if isinstance(t, Wrapper) else t, part) for part in (args, kwargs)
        ]
        made = func(*plain[0], **plain[1])
        wrapped = tree_map(lambda t: cls(t) if isinstance(t, taeda.Tensor) else t, made)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)


class Codes(taeda.Tensor):
    """A matrix in 8 bits, with a table of the operators that it knows, as libraries for quantising write them."""

    @staticmethod
    def __new__(cls, codes, scale):
        return taeda.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=scale.dtype, device=codes.device)

    def __init__(self, codes, scale):
        self.codes, self.scale = codes, scale

    @classmethod
    def of(cls, values):
        scale = values.abs().amax(1) / 127
        return cls((values / scale[:, None]).round().to(taeda.int8), scale)

    def values(self):
        return self.codes.to(self.scale.dtype) * self.scale[:, None]

    def __repr__(self):
        return "Codes()"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        first = args[0]
        if func in (aten.detach.default, aten.clone.default):
            return cls(func(first.codes), func(first.scale))
        if func is aten.t.default:
            return first.values().t()
        if func is aten.zeros_like.default:
            return taeda.zeros_like(first.values())
        if func is aten.addcdiv_.default:
            new = cls.of(first.values().addcdiv(*args[1:], **(kwargs or {})))
            first.codes.copy_(new.codes)
            first.scale.copy_(new.scale)
            return first
        if func is aten.mm.default:
            return func(*(a.values() if isinstance(a, cls) else a for a in args))
        raise NotImplementedError(func.name())


@pytest.fixture
def values():
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    return taeda.tensor(rng.uniform(0.2, 1.2, (2, 3)), dtype=taeda.float32)


@pytest.fixture
def batch():
    rng = np.random.default_rng(SEED + 1)
    return taeda.tensor(rng.standard_normal((4, 3)), dtype=taeda.float32)


def wrapped(values):
    return Wrapper(values.clone()).requires_grad_()


def numbers(tensor):
    return (tensor.inner if isinstance(tensor, Wrapper) else tensor).detach().numpy()


def same(found, expected):
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=2e-5, atol=1e-6)


FUNCTIONS = {
    "arithmetic": lambda w, x: ((w * w - 1) / (w + 2)).sum(),
    "matrix product": lambda w, x: (x @ w.t()).pow(2).mean(),
    "linear layer": lambda w, x: F.linear(x, w).relu().sum(),
    "views": lambda w, x: (w.view(3, 2)[1] * 3).sum() + w.t().reshape(-1)[::2].sum(),
    "parts": lambda w, x: taeda.cat([w.unbind(0)[0], w.split(1)[1].flatten() * 2]).sum(),
    "softmax": lambda w, x: (F.softmax(w, -1) * x[:2]).sum() + F.log_softmax(w, 0)[0].sum(),
    "normalisation": lambda w, x: F.layer_norm(w, (3,)).pow(3).sum() + F.rms_norm(w, (3,)).sum(),
    "losses": lambda w, x: F.cross_entropy(x @ w.t(), taeda.tensor([0, 1, 1, 0])) + F.mse_loss(w, x[:2]),
    "convolution": lambda w, x: F.conv1d(
        x[None].transpose(1, 2), w[None, :, :].transpose(0, 1)[:, :, :3].mT
    ).sum(),
    "pooling": lambda w, x: F.max_pool2d(w[None, None], 2).sum() + F.avg_pool1d(w, 2).sum(),
    "padding": lambda w, x: (F.pad(w, (1, 1)) * 2)[0].sum(),
    "attention": lambda w, x: F.scaled_dot_product_attention(x[None], w[None], w[None]).sum(),
    "reductions": lambda w, x: w.var() + w.prod() + w.amax(0).sum() + w.logsumexp(1).sum() + w.norm(),
    "choices": lambda w, x: (
        taeda.where(w > 0.5, w, w * 2).sum() + w.topk(2)[0].sum() + w.sort(1)[0][:, 0].sum()
    ),
    "indices": lambda w, x: w[taeda.tensor([0, 0, 1])].sum() + w.gather(1, taeda.tensor([[0], [2]])).sum(),
    "embedding": lambda w, x: F.embedding(taeda.tensor([1, 1, 0]), w).sum(),
    "decompositions": lambda w, x: taeda.linalg.solve(w @ w.t() + taeda.eye(2), w).sum(),
    "casts": lambda w, x: (w.double() * 2).float().sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_plain_parameters(name, values, batch):
    plain, w = values.clone().requires_grad_(), wrapped(values)
    expected, found = FUNCTIONS[name](plain, batch), FUNCTIONS[name](w, batch)
    assert isinstance(found, Wrapper) and found.requires_grad
    expected.backward()
    found.backward()
    same(found, expected)
    assert isinstance(w.grad, Wrapper)
    same(w.grad, plain.grad)


def test_second_derivatives(values):
    w = wrapped(values)
    (first,) = taeda.autograd.grad((w**3).sum(), w, create_graph=True)
    (second,) = taeda.autograd.grad(first.sum(), w)
    np.testing.assert_allclose(numbers(second), 6 * values.numpy(), rtol=1e-5)


def test_classes_are_told_pytorchs_operators(values, batch):
    w = wrapped(values)
    Wrapper.asked.clear()
    F.cross_entropy(F.linear(batch, w, taeda.zeros(2)), taeda.tensor([0, 1, 1, 0])).backward()
    assert {func.namespace for func in Wrapper.asked} == {"aten"}
    names = [func.name() for func in Wrapper.asked]
    assert names[:2] == ["aten::t", "aten::addmm"] and "aten::linear_backward" not in names
    kernel = Wrapper(taeda.ones(1, 1, 2, 2)).requires_grad_()
    Wrapper.asked.clear()
    F.conv2d(taeda.ones(1, 1, 3, 3), kernel).sum().backward()
    F.softmax(wrapped(values), 0).sum().backward()
    assert aten.convolution.default in Wrapper.asked
    assert aten.convolution_backward.default in Wrapper.asked
    assert "aten::_softmax_backward_data" in [f.name() for f in Wrapper.asked if hasattr(f, "namespace")]


@pytest.mark.parametrize(
    "make",
    [
        lambda p: taeda.optim.SGD(p, 0.1),
        lambda p: taeda.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
        lambda p: taeda.optim.Adam(p, 0.1, amsgrad=True),
        lambda p: taeda.optim.AdamW(p, 0.1),
        lambda p: taeda.optim.RMSprop(p, 0.1),
        lambda p: taeda.optim.Adagrad(p, 0.1),
    ],
)
def test_optimizers_train_them(make, values, batch):
    plain, w = nn.Parameter(values.clone()), nn.Parameter(Wrapper(values.clone()))
    assert type(w) is Wrapper and isinstance(w, nn.Parameter) and w.requires_grad
    for param in (plain, w):
        optimizer = make([param])
        for _ in range(3):
            optimizer.zero_grad()
            F.linear(batch, param).pow(2).mean().backward()
            optimizer.step()
    same(w, plain)


def test_a_class_with_a_table_of_operators_is_trained(values, batch):
    weight = nn.Parameter(Codes.of(values))
    optimizer = taeda.optim.Adam([weight], lr=0.05)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.linear(batch, weight).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True) and type(weight.grad) is taeda.Tensor
    with pytest.raises(NotImplementedError, match="aten::exp"):
        weight.exp()


def test_graphs_of_plain_operands_go_through_them(values, batch):
    x, w = batch.clone().requires_grad_(), Wrapper(values)
    F.linear(x, w).sum().backward()
    np.testing.assert_allclose(numbers(x.grad), np.tile(values.numpy().sum(0), (4, 1)), rtol=1e-5)


def test_what_a_class_computes_is_not_recorded_inside(values):
    inner = values.clone().requires_grad_()
    w = Wrapper(inner.detach())
    w.inner = inner
    y = w * 2
    assert not y.requires_grad and not y.inner.requires_grad


def test_leaves_and_results(values):
    w = wrapped(values)
    y = w.exp()
    view = w.view(3, 2)
    assert w.is_leaf and not y.is_leaf and y.grad_fn.next_functions[0][0].variable is w
    assert view._is_view() and view._base is w
    detached = w.detach()
    assert type(detached) is Wrapper and not detached.requires_grad and type(w.data) is Wrapper
    seen = []
    y.register_hook(lambda grad: seen.append(type(grad)))
    y.retain_grad()
    w.register_post_accumulate_grad_hook(lambda param: seen.append(param is w))
    y.sum().backward()
    assert seen == [Wrapper, True] and isinstance(y.grad, Wrapper)


def test_gradients_are_added_up_in_place(values):
    w = wrapped(values)
    (w * 2).sum().backward()
    first = w.grad
    (w * 3).sum().backward()
    assert w.grad is first
    np.testing.assert_array_equal(numbers(first), np.full((2, 3), 5, np.float32))
    w.grad = Wrapper(taeda.ones(2, 3))
    with pytest.raises(RuntimeError, match="shape"):
        w.grad = Wrapper(taeda.ones(3))


def test_writes_are_known(values):
    w = wrapped(values)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        w.add_(1)
    y = w * 1
    square = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()
    z = w * 2
    z.mul_(3)
    z.sum().backward()
    np.testing.assert_array_equal(numbers(w.grad), np.full((2, 3), 6, np.float32))
    row = (w * 2)[0]
    with pytest.raises(RuntimeError, match="cannot be recorded: write into the whole"):
        row.mul_(2)


def test_results_may_be_plain_or_the_argument_itself(values):
    class Opens(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            plain = tree_map(lambda t: t.inner if isinstance(t, Wrapper) else t, (args, kwargs or {}))
            return func(*plain[0], **plain[1])

    class Stays(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return (
                args[0]
                if func is aten.clone.default
                else super().__torch_dispatch__(func, types, args, kwargs)
            )

    w = Opens(values.clone()).requires_grad_()
    y = (w * w).sum()
    assert type(y) is taeda.Tensor and y.grad_fn is not None
    y.backward()
    np.testing.assert_allclose(numbers(w.grad), 2 * values.numpy(), rtol=1e-6)
    w = Stays(values.clone()).requires_grad_()
    y = w.clone()
    assert y is not w and w.is_leaf and isinstance(y, Stays) and y.inner is w.inner
    (y * 3).sum().backward()
    np.testing.assert_array_equal(numbers(w.grad), np.full((2, 3), 3, np.float32))


def test_modules_are_converted_copied_and_saved(values, batch):
    layer = nn.Linear(3, 2, bias=False)
    layer.weight = nn.Parameter(Wrapper(values.clone()))
    weight = layer.weight
    layer(batch).sum().backward()
    layer.double()
    assert layer.weight is weight and weight.dtype == weight.inner.dtype == taeda.float64
    assert weight.grad.dtype == weight.grad.inner.dtype == taeda.float64
    copied = copy.deepcopy(layer)
    assert type(copied.weight) is Wrapper and copied.weight.inner is not weight.inner
    same(copied.weight, weight)
    with taeda.no_grad():
        copied.weight.zero_()
    assert weight.inner.abs().sum() > 0
    copied.load_state_dict(layer.state_dict())
    same(copied.weight, weight)
    file = io.BytesIO()
    taeda.save(weight, file)
    file.seek(0)
    loaded = taeda.load(file, weights_only=False)
    assert type(loaded) is Wrapper and loaded.requires_grad
    same(loaded, weight)


def test_copies_of_a_class_without_clone_say_so(values):
    class Opens(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(args[0].inner, *args[1:], **(kwargs or {}))

    with pytest.raises(RuntimeError, match=r"clone\(\) of a Opens gave a Tensor"):
        copy.deepcopy(Opens(values))


def test_checkpoints_and_saved_tensors_hooks(values, batch):
    kinds = []
    for wrap in (lambda v: v.clone().requires_grad_(), wrapped):
        w = wrap(values)
        for reentrant in (False, True):
            out = taeda.utils.checkpoint.checkpoint(
                lambda w: (batch @ w.t()).relu(), w, use_reentrant=reentrant
            )
            out.sum().backward()
        kinds.append(w.grad)
    same(kinds[1], kinds[0])
    seen = []
    w = wrapped(values)
    with taeda.autograd.graph.saved_tensors_hooks(lambda t: seen.append(type(t)) or t, lambda t: t):
        y = (w * w).sum()
    y.backward()
    assert seen == [Wrapper, Wrapper]
    np.testing.assert_allclose(numbers(w.grad), 2 * values.numpy(), rtol=1e-6)


def test_autocast_and_functions(values, batch):
    class Doubled(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, w):
            return w.inner * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    w = wrapped(values)
    Doubled.apply(w).sum().backward()
    assert type(w.grad) is taeda.Tensor and w.grad.tolist() == [[2.0] * 3] * 2
    w = wrapped(values)
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        y = batch @ w.t()
    y.float().sum().backward()
    assert y.dtype == taeda.bfloat16 and w.grad.dtype == taeda.float32


def test_threads_and_ends(values):
    w = wrapped(values)

    def run(weight):
        for _ in range(25):
            (weight * 2).sum().backward()

    threads = [threading.Thread(target=run, args=(w,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(numbers(w.grad), np.full((2, 3), 200, np.float32))
    known = [weakref.ref(w)]
    y = w.exp() * w
    y.of = w
    known += [weakref.ref(y), weakref.ref(w.grad)]
    del w, y, threads, thread
    gc.collect()
    assert [ref() for ref in known] == [None] * 3


def test_state_of_optimizers_need_not_know_clone(values):
    class Sealed(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if func is aten.clone.default:
                raise NotImplementedError("clone")
            return super().__torch_dispatch__(func, types, args, kwargs)

    param = nn.Parameter(values.clone())
    optimizer = taeda.optim.Adam([param])
    param.sum().backward()
    optimizer.step()
    optimizer.state[param]["exp_avg"] = Sealed(optimizer.state[param]["exp_avg"])
    other = taeda.optim.Adam([param])
    other.load_state_dict(optimizer.state_dict())
    assert isinstance(other.state[param]["exp_avg"], Sealed)


def test_the_answer_of_the_base_class_computes_with_plain_tensors(values):
    names = []

    class Logged(taeda.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            names.append(func.name())
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    x = values.as_subclass(Logged).detach().as_subclass(Logged).requires_grad_()
    names.clear()
    y = (x * 2).sum()
    assert names == ["aten::mul.Tensor"] and type(y) is taeda.Tensor
    y.backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2
    assert taeda.Tensor.__torch_dispatch__ is taeda._C._disabled_torch_dispatch_impl


def test_a_class_may_let_its_calls_be_recorded(values):
    class Open(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            with taeda.overrides.enable_reentrant_dispatch():
                return super().__torch_dispatch__(func, types, args, kwargs)

    inner = values.clone().requires_grad_()
    w = Open(inner.detach())
    w.inner = inner
    y = w * 2
    assert not y.requires_grad and y.inner.requires_grad
    y.inner.sum().backward()
    assert inner.grad.tolist() == [[2.0] * 3] * 2 and w.grad is None


def test_blocks_without_modes_and_classes(values):
    from taeda.utils._mode_utils import no_dispatch

    class Held(taeda.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            with no_dispatch():
                return func(*args, **(kwargs or {}))

    x = taeda.Tensor._make_subclass(Held, values)
    assert (x + 1).tolist() == (values + 1).tolist()


def test_wrappers_tell_where_their_elements_begin(values):
    class Placed(taeda.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return taeda.Tensor._make_wrapper_subclass(
                cls,
                inner.shape,
                inner.stride(),
                inner.storage_offset(),
                dtype=inner.dtype,
                device=inner.device,
            )

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError(func.name())

    inner = values.t()[1:, :1]
    placed = Placed(inner)
    assert placed.storage_offset() == inner.storage_offset() == 1
    assert placed.stride() == inner.stride() and placed.shape == inner.shape
    for ask in (placed.numpy, placed.tolist):
        with pytest.raises((RuntimeError, NotImplementedError)):
            ask()
