"""no_grad, enable_grad, set_grad_enabled and inference_mode: scopes, decorators, generators and threads."""

from __future__ import annotations

import threading

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from taeda_tensor_core import library
from taeda_testing.settling import PATIENCE


@pytest.fixture(autouse=True)
def _recording_stays_on():
    assert is_grad_enabled()
    yield
    assert is_grad_enabled()


def recorded(x) -> bool:
    return (x * 2).requires_grad


@pytest.fixture
def x():
    return taeda.tensor([1.0, 2.0], requires_grad=True)


def test_no_grad_records_nothing(x):
    with no_grad():
        y = x * 2
        assert not is_grad_enabled()
    assert not y.requires_grad and y.grad_fn is None and is_grad_enabled()


def test_leaves_made_under_no_grad_keep_their_mark():
    with no_grad():
        x = taeda.ones(2, requires_grad=True)
    assert x.requires_grad and (x * 2).requires_grad


def test_scopes_nest_and_end_with_errors(make):
    x = make(2)
    with no_grad():
        assert not recorded(x)
        with enable_grad():
            assert recorded(x)
            with pytest.raises(KeyError), no_grad():
                raise KeyError
            assert recorded(x)
        assert not recorded(x)
    assert recorded(x)


@pytest.mark.parametrize("value", [True, False])
def test_set_grad_enabled_as_context(x, value):
    with set_grad_enabled(value):
        assert (x * 2).requires_grad is value
    assert is_grad_enabled()


def test_set_grad_enabled_as_a_call():
    set_grad_enabled(False)
    try:
        assert not is_grad_enabled()
    finally:
        set_grad_enabled(True)
    assert is_grad_enabled()


@pytest.mark.parametrize("mode", [no_grad, inference_mode, lambda: set_grad_enabled(False)])
def test_modes_end_with_an_exception(mode):
    with pytest.raises(ZeroDivisionError), mode():
        1 / 0  # noqa: B018
    assert is_grad_enabled()


def test_one_object_can_be_entered_twice():
    mode = no_grad()
    with mode, mode:
        assert not is_grad_enabled()
    assert is_grad_enabled()


@pytest.mark.parametrize("decorator", [no_grad(), inference_mode(), no_grad, inference_mode])
def test_decorator(x, decorator):
    @decorator
    def double(t, factor=2):
        """Doubles."""
        assert not is_grad_enabled()
        return t * factor

    assert not double(x, factor=3).requires_grad and is_grad_enabled()
    assert double.__name__ == "double" and double.__doc__ == "Doubles."


def test_decorator_works_in_recursion(x):
    @no_grad()
    def down(n):
        assert not is_grad_enabled()
        if n:
            down(n - 1)
        assert not is_grad_enabled()

    down(3)
    assert is_grad_enabled()


def test_decorated_generator_has_its_mode_inside_only(x):
    @no_grad()
    def steps():
        got = []
        for i in range(3):
            assert not is_grad_enabled()
            got.append((yield x * i))
        return got

    generator = steps()
    assert is_grad_enabled()
    first = next(generator)
    assert not first.requires_grad and is_grad_enabled()
    assert not generator.send("a").requires_grad and is_grad_enabled()
    assert not generator.send("b").requires_grad
    with pytest.raises(StopIteration) as stop:
        generator.send("c")
    assert stop.value.value == ["a", "b", "c"] and is_grad_enabled()


def test_decorated_generator_passes_on_exceptions_and_closing():
    events = []

    @no_grad()
    def steps():
        try:
            yield 1
        except KeyError:
            events.append(is_grad_enabled())
        try:
            yield 2
        finally:
            events.append("closed")

    generator = steps()
    next(generator)
    assert generator.throw(KeyError()) == 2
    generator.close()
    assert events == [False, "closed"] and is_grad_enabled()


def test_modes_belong_to_their_thread(x):
    seen = []

    def work():
        seen.append(is_grad_enabled())
        with no_grad():
            barrier.wait(PATIENCE)
            barrier.wait(PATIENCE)
        seen.append(is_grad_enabled())

    barrier = threading.Barrier(2)
    thread = threading.Thread(target=work)
    with no_grad():
        thread.start()
        barrier.wait(PATIENCE)
    assert is_grad_enabled()
    barrier.wait(PATIENCE)
    thread.join()
    assert seen == [True, True]


def test_inference_tensors(make):
    x = make(2)
    with inference_mode():
        y = x * 2
        view_of_normal = x[0]
        assert y.is_inference() and not y.requires_grad
        y.add_(1)
    assert not view_of_normal.is_inference()
    assert y[0].is_inference() and not y.clone().is_inference()
    with pytest.raises(RuntimeError, match=r"MulBackward0.*inference_mode.*clone"):
        x * y
    with pytest.raises(RuntimeError, match="inference_mode"):
        y.mul_(x)
    with pytest.raises(RuntimeError, match=r"requires_grad_.*inference_mode"):
        y.requires_grad_()
    (x * y.clone()).sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert (x + y).requires_grad  # nothing is saved for the gradient of a sum


def test_nothing_is_recorded_under_inference_mode(make):
    class Double(Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x, factor)
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[1], None

    x = make(2)
    with inference_mode():
        factor = taeda.full((2,), 2.0)
        with enable_grad():
            assert is_grad_enabled()
            for y in (x * 2, x * factor, Double.apply(x, factor), x.sin()):
                assert y.is_inference() and not y.requires_grad and y.grad_fn is None
            with inference_mode(False):
                assert (x * 2).requires_grad
            assert not (x * 2).requires_grad
        assert not is_grad_enabled()
        with set_grad_enabled(True):
            assert not (x * factor).requires_grad
    assert (x * 2).requires_grad


def test_inference_mode_can_be_switched_off(make):
    x = make(2)
    with inference_mode(), inference_mode(False):
        assert recorded(x) and not (x * 2).is_inference()


def test_mode_of_backward_is_its_own(x):
    seen = []
    x.register_hook(lambda g: seen.append(is_grad_enabled()))
    with no_grad(), enable_grad():
        y = (x * x).sum()
    with no_grad():
        y.backward(retain_graph=True)
    y.backward(create_graph=True)
    assert seen == [False, True] and is_grad_enabled()
    x.grad = None


def switch_by_blocks() -> None:
    with no_grad():
        pass
    with enable_grad(), no_grad():
        pass
    with inference_mode():
        pass


def switch_off_for_good() -> None:
    set_grad_enabled(False)


def switch_on_for_good() -> None:
    set_grad_enabled(True)


def fail_in_a_block() -> None:
    with pytest.raises(KeyError), no_grad():
        raise KeyError


SWITCHES = [switch_by_blocks, switch_off_for_good, switch_on_for_good, fail_in_a_block]


def in_forward(x, switch):
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            switch()
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Double.apply(x)


def in_backward(x, switch):
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            switch()
            return g * 2

    return Double.apply(x)


def in_a_tensor_hook(x, switch):
    y = x * 2
    y.register_hook(lambda g: switch())
    return y


def in_a_leaf_hook(x, switch):
    x.register_hook(lambda g: switch())
    x.register_post_accumulate_grad_hook(lambda leaf: switch())
    return x * 2


def in_node_hooks(x, switch):
    y = x * 2
    y.grad_fn.register_prehook(lambda g: switch())
    y.grad_fn.register_hook(lambda i, o: switch())
    return y


PLACES = [in_forward, in_backward, in_a_tensor_hook, in_a_leaf_hook, in_node_hooks]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("switch", SWITCHES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("place", PLACES, ids=lambda f: f.__name__)
def test_what_the_users_code_switches_goes_back(place, switch, create_graph, x):
    """Inside the engine and forward; the results and what comes after are recorded as ever."""
    y = place(x, switch)
    assert recorded(x) and recorded(y) and is_grad_enabled()
    (y.sum() + (x * x).sum()).backward(create_graph=create_graph)
    assert x.grad.tolist() == [4, 6]
    assert x.grad.requires_grad is create_graph
    assert recorded(x) and is_grad_enabled()


def test_blocks_inside_kernels_of_the_users_stay_below_recording(x):
    """The layers are switched off in a kernel; a block in it gives that back, not recording."""
    seen = []

    def kernel(outputs, inputs):
        with no_grad():
            pass
        seen.append((x * 2).requires_grad)
        outputs[0].copy_(inputs[0] * 3)

    with library.Library("modepkg") as made_here:
        triple = made_here.define("modepkg::triple(Tensor self) -> Tensor")
        triple.infer(lambda self: (self.shape, self.dtype))
        triple.kernel("cpu")(kernel)
        triple.derivative(lambda grads, arguments, results: (grads[0] * 3,))
        triple(x).sum().backward()
    assert seen == [False] and x.grad.tolist() == [3, 3]


def test_the_switch_of_threads_is_known_at_once_and_for_a_block():
    import taeda_autograd as autograd

    assert autograd.is_multithreading_enabled()
    with autograd.set_multithreading_enabled(False):
        assert not autograd.is_multithreading_enabled()
        elsewhere = []
        thread = threading.Thread(target=lambda: elsewhere.append(autograd.is_multithreading_enabled()))
        thread.start()
        thread.join(PATIENCE)
        assert elsewhere == [True]
    assert autograd.is_multithreading_enabled()
    autograd.set_multithreading_enabled(False)
    assert not autograd.is_multithreading_enabled()
    autograd.set_multithreading_enabled(True)
    assert autograd.is_multithreading_enabled()


def test_tensors_of_inference_count_no_writes():
    with inference_mode():
        made = taeda.ones(2)
        made.add_(1)
    for each in (made, made[:1], made.detach()):
        with pytest.raises(RuntimeError, match=r"Inference tensors do not track version counter\."):
            each._version  # noqa: B018
    assert (made + 1)._version == 0


def test_modes_are_cloned_and_tell_what_they_do():
    assert set_grad_enabled(True).mode and inference_mode().mode and not inference_mode(False).mode
    assert repr(set_grad_enabled(True)).endswith("set_grad_enabled(mode=True)")
    for mode in (no_grad(), inference_mode()):
        with mode.clone() as entered:
            assert type(entered) is type(mode) or entered is None
            assert not is_grad_enabled()
    off = set_grad_enabled(False)
    assert not off.clone().mode and not is_grad_enabled()
    set_grad_enabled(True)
