"""Hooks of tensors and leaves: what they see, what they change, their order, removal and errors."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, backward, grad


@pytest.fixture
def x():
    return taeda.tensor([1.0, 2.0], requires_grad=True)


def test_a_tensor_hook_sees_and_replaces_the_gradient(make):
    x = make(2)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert seen == [[1, 1], [10, 10]] and x.grad.tolist() == [30, 30]


def test_handles_can_be_stored_and_copied(x):
    y = x * 2
    seen = []
    places = (
        x.register_hook,
        x.register_post_accumulate_grad_hook,
        y.grad_fn.register_hook,
        y.grad_fn.register_prehook,
    )
    for register in places:
        handle = register(lambda *_: seen.append(1))
        for stored in (pickle.loads(pickle.dumps(handle)), copy.deepcopy(handle)):
            stored.remove()  # stands for no hook of this tensor
            assert type(stored) is type(handle) and stored.id == handle.id
    y.sum().backward()
    assert len(seen) == 4


def test_a_copied_handle_removes_the_same_hook(x):
    seen = []
    copy.copy(x.register_hook(lambda _: seen.append(1))).remove()
    (x * 2).sum().backward()
    assert seen == []


def test_a_hook_sees_the_whole_sum_of_gradients(make):
    x = make(2)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 2 + y * 5).sum().backward()
    assert seen == [[7, 7]]


def test_leaf_hooks_run_before_accumulation_once_per_backward(make):
    x = make(2)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    (x * 3 + x).sum().backward()
    (x * 3).sum().backward()
    assert seen == [[4, 4], [3, 3]] and x.grad.tolist() == [14, 14]


def test_post_accumulate_hooks_see_the_leaf(make):
    x = make(2)
    seen = []

    def step(leaf):
        seen.append((leaf is x, leaf.grad.tolist()))
        leaf.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 3).sum().backward()
    assert seen == [(True, [3, 3])] and x.grad is None
    handle.remove()
    (x * 3).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(step)


def test_post_accumulate_hook_sees_the_sum(x):
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda leaf: seen.append((leaf is x, leaf.grad.tolist())))
    x.sum().backward()
    (2 * x).sum().backward()
    handle.remove()
    x.sum().backward()
    assert seen == [(True, [1, 1]), (True, [3, 3])]


def test_handles_remove_once_and_work_as_scopes(make):
    x = make(2)
    with x.register_hook(lambda g: g * 5):
        (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert x.grad.tolist() == [6, 6]
    handle = x.register_hook(lambda g: g * 5)
    handle.remove()
    handle.remove()


def test_removed_hooks_do_not_run(x):
    calls = []
    y = x * 1
    handles = [t.register_hook(lambda g, n=n: calls.append(n)) for n, t in enumerate((x, y, x))]
    handles[0].remove()
    handles[0].remove()
    with handles[1]:
        pass
    y.sum().backward()
    assert calls == [2]


def test_hook_may_remove_itself_while_it_runs(x):
    calls = []

    def once(g):
        calls.append(1)
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda g: calls.append(2))
    x.sum().backward()
    x.sum().backward()
    assert calls == [1, 2, 2]


def test_hooks_run_under_grad_and_inputs(x):
    calls = []
    y = x * 2
    y.register_hook(lambda g: (calls.append("y"), g * 3)[1])
    x.register_hook(lambda g: calls.append("x"))
    (g,) = grad(y.sum(), y, retain_graph=True)
    assert g.tolist() == [3, 3] and calls == ["y"]
    (g,) = grad(y.sum(), x, retain_graph=True)
    assert g.tolist() == [6, 6] and calls == ["y", "y", "x"]
    backward(y.sum(), inputs=[x])
    assert x.grad.tolist() == [6, 6]


def test_inputs_tell_of_the_gradient_that_they_got(x):
    other = taeda.ones(2, requires_grad=True)
    seen = []
    for leaf in (x, other):
        leaf.register_post_accumulate_grad_hook(lambda leaf: seen.append((leaf is x, leaf.grad.tolist())))
    for _ in range(2):
        backward((x * 2 + other).sum(), inputs=[x])
    assert seen == [(True, [2, 2]), (True, [4, 4])] and other.grad is None


def test_an_input_that_is_given_twice_gets_its_gradient_once(x):
    y = x * 2
    backward((y * 3).sum(), inputs=[x, y, x, y])
    assert x.grad.tolist() == [6, 6] and y.grad.tolist() == [3, 3]


@pytest.mark.parametrize("asked", [False, True])
def test_inputs_that_are_no_leaves_retain_their_gradient(x, asked):
    y = x * 2
    if asked:
        y.retain_grad()
    for expected in ([3, 3], [6, 6]):
        backward((y * 3).sum(), inputs=[y])
        assert y.retains_grad and y.grad.tolist() == expected
    assert x.grad is None


def test_retained_gradients_can_be_written(x):
    given = taeda.tensor([1.0, 1.0])
    y, z = x * 2, x * 3
    y.retain_grad()
    z.retain_grad()
    backward((y, z.sum()), (given, None))
    y.grad.mul_(5)
    z.grad[0] = 7  # the gradient of a sum shows one number in all places; what is kept does not
    assert y.grad.tolist() == [5, 5] and z.grad.tolist() == [7, 1] and z.grad.is_contiguous()
    assert given.tolist() == [1, 1] and x.grad.tolist() == [5, 5]


def test_hook_can_record_second_derivatives(x):
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [2, 8]  # 2 x * x
    (gg,) = grad(g.sum(), x)
    assert gg.tolist() == [4, 8]


def test_hooks_may_run_recorded_programs(make):
    x = make(2)
    other = make(2)
    y = x * 3

    def hook(g):
        assert not (other * 1).requires_grad  # as the formulas, hooks are recorded only with create_graph
        with taeda.enable_grad():
            (other * g).sum().backward()

    y.register_hook(hook)
    y.sum().backward()
    assert other.grad.tolist() == [1, 1] and x.grad.tolist() == [3, 3]


def test_a_copied_leaf_has_no_hooks_of_the_original(make):
    x = make(2)
    x.register_hook(lambda g: g * 100)
    y = copy.deepcopy(x)
    (y * 1).sum().backward()
    assert y.grad.tolist() == [1, 1]


def test_hooks_need_a_tensor_with_gradient_and_a_callable(x):
    with pytest.raises(RuntimeError, match="register_hook"):
        taeda.zeros(2).register_hook(print)
    with pytest.raises(TypeError, match="hook"):
        x.register_hook(3)
    with pytest.raises(TypeError, match="hook"):
        x.register_post_accumulate_grad_hook(3)
    with pytest.raises(TypeError, match="hook"):
        (x * 1).grad_fn.register_hook(3)
    with pytest.raises(TypeError, match="hook"):
        (x * 1).grad_fn.register_prehook(3)
    with pytest.raises(RuntimeError, match="register_post_accumulate_grad_hook"):
        (x * 1).register_post_accumulate_grad_hook(print)


@pytest.mark.parametrize("place", ["tensor", "leaf", "pre", "post", "after"])
def test_error_inside_a_hook_arrives_and_leaves_the_engine_intact(x, place):
    class Stop(Exception):
        pass

    def fail(*_):
        raise Stop(place)

    y = x * 2
    z = y + 1
    handle = {
        "tensor": lambda: y.register_hook(fail),
        "leaf": lambda: x.register_hook(fail),
        "pre": lambda: y.grad_fn.register_prehook(fail),
        "post": lambda: y.grad_fn.register_hook(fail),
        "after": lambda: x.register_post_accumulate_grad_hook(fail),
    }[place]()
    with pytest.raises(Stop, match=place):
        z.sum().backward(retain_graph=True)
    assert taeda.is_grad_enabled()
    handle.remove()
    x.grad = None
    z.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert (x * 3).requires_grad


@pytest.mark.parametrize("place", ["leaf", "inner"])
@pytest.mark.parametrize(
    ("hook", "error", "words"),
    [
        (lambda g: g[:1], RuntimeError, r"shape.*\(1,\)"),
        (lambda g: taeda.ones(7), RuntimeError, r"shape.*\(7,\)"),
        (lambda g: "text", TypeError, "hook.*str"),
    ],
)
def test_what_a_hook_returns_is_checked(place, hook, error, words, x):
    y = x * 3
    (x if place == "leaf" else y).register_hook(hook)
    with pytest.raises(error, match=words):
        (y * y).sum().backward()
    assert x.grad is None and (x * 1).requires_grad


def test_post_accumulate_hooks_may_give_their_tensor_back(make):
    x = make(2)
    before = x.tolist()
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.data.add_(leaf.grad, alpha=-1) is leaf or leaf)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.sub_(1))
    x.sum().backward()
    assert x.tolist() == [value - 2 for value in before]


def test_post_accumulate_hooks_give_nothing_back(x):
    x.register_post_accumulate_grad_hook(lambda leaf: 5)
    with pytest.raises(RuntimeError, match="hooks should return None, found int"):
        x.sum().backward()


def test_hooks_of_the_node_of_a_leaf_see_what_is_added(make):
    x, seen = make(2), []
    node = x.view_as(x).grad_fn.next_functions[0][0]
    node.register_hook(lambda given, came: seen.append((given, came[0].tolist())))
    x.register_hook(lambda g: g * 2)
    for count in (1, 2):
        (x * 3).sum().backward()
        assert seen.pop() == ((), [6, 6]) and x.grad.tolist() == [6 * count, 6 * count]


def test_asking_for_a_gradient_that_backward_does_not_leave_warns(make):
    y = make(2) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None and y.detach().grad is None and make(1).grad is None
        y.sum().backward()
        assert y.grad.tolist() == [1, 1]


def test_a_backward_that_returns_none_still_reaches_what_stands_before(make):
    """Nodes whose outputs get no gradient run all the same, as checkpoints that recompute in a backward need it."""
    seen = []

    class Recompute(Function):
        @staticmethod
        def forward(ctx, a):
            return a.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(("recompute", grad.tolist()))

    class Quiet(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.set_materialize_grads(False)
            return a.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(("quiet", grad))
            return grad

    class Join(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(("join", grad.tolist()))
            return grad, None

    x, phony = make(2), make(2)
    between = phony * 2
    between.grad_fn.register_prehook(lambda given: seen.append(("before", given)))
    between.grad_fn.register_hook(lambda results, given: seen.append(("after", results, given)))
    phony.register_hook(lambda grad: seen.append(("leaf", grad)))
    phony.register_post_accumulate_grad_hook(lambda leaf: seen.append(("added", leaf.grad)))
    quiet = Quiet.apply(between)
    quiet.register_hook(lambda grad: seen.append(("tensor", grad)))
    Join.apply(Join.apply(x, quiet), Recompute.apply(make(1))).sum().backward()
    assert seen == [
        ("join", [1, 1]),
        ("recompute", [0]),
        ("join", [1, 1]),
        ("tensor", None),
        ("quiet", None),
        ("before", (None,)),
        ("after", (None, None), (None,)),
        ("leaf", None),
        ("added", None),
    ]
    assert x.grad.tolist() == [1, 1] and phony.grad is None


def test_hooks_of_an_output_that_is_not_used_see_none(x):
    class Both(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2, a * 3

        @staticmethod
        def backward(ctx, first, second):
            return first * 2 + second * 3

    used, unused = Both.apply(x)
    seen = []
    used.register_hook(lambda grad: seen.append(grad.tolist()))
    unused.register_hook(seen.append)
    used.sum().backward()
    assert seen == [[1.0, 1.0], None] and x.grad.tolist() == [2.0, 2.0]


def test_hooks_that_add_hooks_when_they_go(x):
    """Each list of hooks is in order while what was taken off it runs code of its own."""
    y = x * 2
    node = y.grad_fn

    def adding(add):
        class Adds:
            def __call__(self, *_):
                return None

            def __del__(self):
                for _ in range(100):
                    add(lambda *_: None)

        return Adds()

    adders = (x.register_hook, y.register_hook, node.register_hook, node.register_prehook)
    for add in (*adders, x.register_post_accumulate_grad_hook):
        handles = [add(adding(add)) for _ in range(5)]
        for handle in handles:
            handle.remove()
        del handles
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_attributes_that_take_others_along():
    class Held(taeda.Tensor):
        def __del__(self):
            for name in ("b", "c", "d"):
                if hasattr(ctx, name):
                    delattr(ctx, name)

    class Keeps(Function):
        @staticmethod
        def forward(ctx, a):
            contexts.append(ctx)
            for name in "abcd":
                setattr(ctx, name, (a * 2).as_subclass(Held))
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g

    contexts: list = []
    made = Keeps.apply(taeda.ones(2, requires_grad=True))
    ctx = contexts.pop()
    assert [hasattr(ctx, name) for name in "abcd"] == [True] * 4
    del ctx.a
    assert [hasattr(ctx, name) for name in "abcd"] == [False] * 4
    made.sum().backward()


def test_the_hooks_of_a_tensor_are_shown(x):
    y = x * 2
    for tensor in (x, y):
        assert tensor._backward_hooks is None
        first, second = tensor.register_hook(len), tensor.register_hook(id)
        assert list(tensor._backward_hooks.items()) == [(first.id, len), (second.id, id)]
        first.remove()
        assert list(tensor._backward_hooks.values()) == [id]
        tensor._backward_hooks = {7: print, 8: len}
        assert list(tensor._backward_hooks.values()) == [print, len]
        tensor._backward_hooks = None
        assert tensor._backward_hooks is None
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
