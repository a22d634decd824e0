"""Operators, kernels and layers added from Python, through taeda_tensor_core.library."""

import signal
import threading
import traceback

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import _C, library
from taeda_tensor_core.library._registration import collecting
from taeda_testing.settling import PATIENCE


@pytest.fixture
def lib():
    with library.Library("testpkg") as made:
        yield made


def define(lib, name="scale"):
    made = lib.define(f"testpkg::{name}(Tensor self, float k=2.0) -> Tensor")

    @made.infer
    def _(self, k):
        return self.shape, self.dtype

    @made.kernel("cpu")
    def _(outputs, inputs):
        outputs[0].copy_(inputs[0] * inputs[1])

    return made


@pytest.mark.parametrize(
    "schema, column",
    [
        ("testpkg::f(Tensor self -> Tensor", 24),
        ("testpkg::f(Tensr self) -> Tensor", 12),
        ("testpkg::f(Tensor self, int k=1.5) -> Tensor", 34),
        ("testpkg::f(Tensor self, Tensor self) -> Tensor", 36),
        ("testpkg::f(Tensor self)", 24),
        ("testpkg::f(Tensor self) -> Tensor extra", 35),
    ],
)
def test_wrong_schemas_name_the_place(lib, schema, column):
    with pytest.raises(ValueError, match=rf"expected .* at column {column}"):
        lib.define(schema)


def test_names_need_a_package(lib):
    with pytest.raises(ValueError, match="expected 'package::operator'"):
        lib.define("plain(Tensor self) -> Tensor")


def test_composite_operator_is_called_by_position_and_name(lib):
    @lib.operator(
        "testpkg::affine(Tensor self, Tensor? shift=None, *, float k=2.0, int[] dims=[0, 1]) -> Tensor"
    )
    def affine(self, shift, k, dims):
        assert dims == [0, 1]
        return self * k if shift is None else self * k + shift

    x = tc.tensor([1.0, 2.0])
    assert affine(x).tolist() == [2.0, 4.0]
    assert tc.ops.testpkg.affine(x, k=3.0, shift=x).tolist() == [4.0, 8.0]
    assert library.op("testpkg::affine").arguments[2].default == 2.0


@pytest.mark.parametrize(
    "args, kwargs, text",
    [
        ((), {}, "missing argument 'self'"),
        ((1.0,), {}, "argument 'self' must be a Tensor, found float"),
        (("x",), {}, "argument 'self' must be a Tensor, found str"),
        ((tc.ones(1), "k"), {}, "argument 'k' must be a float, found str"),
        ((tc.ones(1), 1.0, 2.0), {}, "expected at most 2 positional arguments, found 3"),
        ((tc.ones(1), 1.0), {"k": 2.0}, "several values for argument 'k'"),
        ((tc.ones(1),), {"q": 2.0}, "unexpected keyword argument 'q'"),
    ],
)
def test_wrong_calls_name_operator_and_argument(lib, args, kwargs, text):
    made = define(lib)
    with pytest.raises(TypeError, match=f"testpkg::scale: .*{text}"):
        made(*args, **kwargs)


def test_inference_makes_outputs_and_meta(lib):
    made = define(lib)
    assert made(tc.ones(3), 4.0).tolist() == [4.0] * 3
    meta = made(tc.ones(2, 5, device="meta"))
    assert meta.device.type == "meta" and tuple(meta.shape) == (2, 5)


def test_several_results(lib):
    made = lib.define("testpkg::both(Tensor self) -> (Tensor up, Tensor down)")

    @made.kernel("cpu")
    def _(outputs, inputs):
        assert outputs == ()
        return inputs[0] + 1, inputs[0] - 1

    up, down = made(tc.zeros(2))
    assert up.tolist() == [1.0, 1.0] and down.tolist() == [-1.0, -1.0]


def test_wrong_results_are_refused(lib):
    made = lib.define("testpkg::bad(Tensor self) -> (Tensor up, Tensor down)")
    made.composite(lambda self: self)
    with pytest.raises(TypeError, match="testpkg::bad: expected a tuple of 2 results"):
        made(tc.zeros(2))
    made.composite(lambda self: (self, 3))
    with pytest.raises(TypeError, match=r"result 'down' of the composite form.* must be a Tensor, found int"):
        made(tc.zeros(2))
    made.composite(lambda self: (self,))
    with pytest.raises(TypeError, match=r"expected a tuple of 2 results .*testpkg, found one of 1"):
        made(tc.zeros(2))


def test_errors_keep_type_and_traceback(lib):
    class Odd(Exception):
        pass

    @lib.operator("testpkg::boom(Tensor self) -> Tensor")
    def boom(self):
        raise Odd("here")

    with pytest.raises(Odd, match="here") as caught:
        boom(tc.ones(1))
    assert any(frame.name == "boom" for frame in traceback.extract_tb(caught.value.__traceback__))
    assert (tc.ones(1) + 1).tolist() == [2.0]


def test_a_failing_kernel_leaves_the_in_place_target(lib):
    def fails(outputs, inputs):
        raise ValueError("no")

    x = tc.ones(2)
    with lib.kernel("add", "cpu", replace=True)(fails), pytest.raises(ValueError, match="no"):
        x.add_(1)
    assert x.tolist() == [1.0, 1.0]
    assert x.add_(1).tolist() == [2.0, 2.0]


def test_duplicates_name_both_owners(lib):
    define(lib)
    with pytest.raises(
        RuntimeError, match=r"'testpkg::scale' asked for by other is defined already by testpkg"
    ):
        library.Library("other").define("testpkg::scale(Tensor self, float k=2.0) -> Tensor")
    with pytest.raises(
        RuntimeError,
        match=r"add: testpkg.* registers .*'cpu', which has one already, registered by taeda-tensor-core",
    ):
        lib.kernel("add", "cpu")(lambda o, i: None)


def test_removed_operators_say_so_and_may_come_back():
    lib = library.Library("testpkg")
    made = define(lib)
    lib.remove()
    with pytest.raises(RuntimeError, match="testpkg::scale: this operator was removed by its library"):
        made(tc.ones(1))
    assert not hasattr(tc.ops.testpkg, "scale")
    with lib:
        assert define(lib)(tc.ones(1)).tolist() == [2.0]


def test_removed_operators_may_come_back_with_another_schema():
    lib = library.Library("testpkg")
    first = define(lib, "again")
    former = tc.ops.testpkg.again
    lib.remove()
    with lib:
        other = lib.define("testpkg::again(Tensor self, Tensor by, int times=1) -> (Tensor, Tensor)")
        other.composite(lambda x, by, times: (x * by * times, x + by))
        x = tc.tensor([1.0, 2.0])
        product, total = tc.ops.testpkg.again(x, x, times=3)
        assert product.tolist() == [3.0, 12.0] and total.tolist() == [2.0, 4.0]
        assert [a.name for a in other.op.arguments] == ["self", "by", "times"]
        assert str(tc.ops.testpkg.again.default._schema).startswith("testpkg::again(Tensor self, Tensor by")
        assert tc.library.op("testpkg::again") is other.op and other.op is not former
        for gone in (first, former):
            with pytest.raises(
                RuntimeError, match="testpkg::again: this operator was removed by its library"
            ):
                gone(x)
    assert define(lib, "again")(tc.ones(1)).tolist() == [2.0]
    lib.remove()


def test_replaced_kernels_come_back_in_any_order(lib):
    def fill(value):
        return lambda outputs, inputs: outputs[0].fill_(value)

    first = lib.kernel("exp", "cpu", replace=True)(fill(5.0))
    second = lib.kernel("exp", "cpu", replace=True)(fill(6.0))
    assert tc.exp(tc.zeros(1)).item() == 6.0
    first.remove()
    assert tc.exp(tc.zeros(1)).item() == 6.0
    second.remove()
    second.remove()
    assert tc.exp(tc.zeros(1)).item() == 1.0
    assert library.op("exp").kernels()["cpu"] == "taeda-tensor-core"


def test_views_and_composites_take_kernels_that_give_results(lib):
    x = tc.tensor([1.0, -3.0])
    wanted = tc.ops.softsign(x).tolist()
    with lib.kernel("softsign", "cpu")(lambda outputs, inputs: inputs[0].mul(2)):
        fresh = tc.tensor([1.0, -3.0])
        assert tc.ops.softsign(fresh).tolist() == [2.0, -6.0]
        assert library.op("softsign").kernels() == {"cpu": library.op("softsign").kernels()["cpu"]}
        with pytest.raises(RuntimeError, match="which has one already"):
            lib.kernel("softsign", "cpu")(lambda outputs, inputs: inputs[0])
    assert tc.ops.softsign(fresh).tolist() == wanted
    with pytest.raises(ValueError, match="that write to an argument have no kernels"):
        lib.kernel("batch_norm", "cpu")(lambda o, i: None)
    with pytest.raises(ValueError, match="no operator named 'nonsense'"):
        lib.kernel("nonsense", "cpu")(lambda o, i: None)


def test_operator_lookup():
    add = library.op("add")
    assert add(tc.ones(2), 1).tolist() == [2.0, 2.0] and add.core and add.kind == "structured"
    assert [a.name for a in add.arguments] == ["self", "other", "alpha"]
    x = tc.ones(2)
    assert library.op("add_")(x, 1) is x and x.tolist() == [2.0, 2.0]
    out = tc.empty(2)
    assert library.op("add.out")(out, tc.ones(2), 1) is out and out.tolist() == [2.0, 2.0]
    with pytest.raises(LookupError, match="did you mean"):
        library.op("soft_max")


class Recorder(library.Layer):
    def __init__(self, *args, **kwargs):
        self.seen = []
        super().__init__(*args, **kwargs)

    def __call__(self, op, args, kwargs):
        self.seen.append(op.name)
        return op(*args, **kwargs)


@pytest.fixture
def recorder():
    made = Recorder("recorder", "profiler")
    yield made
    made.remove()


def test_an_observer_sees_every_form_where_it_is_entered(recorder):
    x = tc.ones(2, 3)
    x + 1
    assert recorder.seen == []
    with recorder:
        y = x + 1
        y.mul_(2)
        tc.sum(y, out=tc.empty(()))
        x.t()
        tc.cat([x, y]).max(dim=0)
        x.chunk(2, 1)
    seen = set(recorder.seen)
    assert {"add", "mul_", "cat", "max.dim"} <= seen
    assert y.tolist() == [[4.0] * 3] * 2
    count = len(recorder.seen)
    x + 1
    assert len(recorder.seen) == count


def test_layers_on_run_time_operators(lib):
    made = define(lib)
    layer = Recorder("recorder", "tracing", [made.op])
    with layer:
        assert made(tc.ones(1)).item() == 2.0
    layer.remove()
    assert layer.seen == ["testpkg::scale"]


def test_a_layer_may_replace_results():
    class Double(library.Layer):
        def __call__(self, op, args, kwargs):
            return op(*args) * 2

    layer = Double("double", 9, ["exp"])
    try:
        with layer:
            assert tc.exp(tc.zeros(1)).item() == 2.0
        assert tc.exp(tc.zeros(1)).item() == 1.0
    finally:
        layer.remove()


class Journal(library.Layer):
    def __init__(self, name, position, operators, journal):
        self.journal = journal
        super().__init__(name, position, operators)

    def __call__(self, op, args, kwargs):
        self.journal.append(f"{self.name} {op.name}")
        if op.name == "exp":
            tc.sin(args[0])
        result = op(*args, **kwargs)
        self.journal.append(f"{self.name} ends")
        return result


def test_layers_of_one_position_are_met_from_the_last_to_the_first():
    journal = []
    layers = [Journal(name, 9, ["exp", "sin"], journal) for name in "abc"]
    try:
        with layers[0], layers[1], layers[2]:
            assert tc.exp(tc.zeros(1)).item() == 1.0
        first = ["c exp", "b sin", "a sin", "a ends", "b ends"]
        second = ["b exp", "a sin", "a ends", "a exp", "a ends", "b ends"]
        assert journal == [*first, *second, "c ends"]
        journal.clear()
        with layers[0], layers[2]:  # the one between is not entered
            tc.sin(tc.zeros(1))
        assert journal == ["c sin", "a sin", "a ends", "c ends"]
        tc.sin(tc.zeros(1))
        assert len(journal) == 4
    finally:
        for layer in layers:
            layer.remove()


def test_a_layer_among_others_may_go_and_come_back():
    journal = []
    layers = [Journal(name, 9, ["sin"], journal) for name in "abc"]
    try:
        layers[1].remove()
        with layers[0], layers[2]:
            tc.sin(tc.zeros(1))
        assert journal == ["c sin", "a sin", "a ends", "c ends"]
        journal.clear()
        with layers[0], layers[1]:  # put back, so it is the last
            tc.sin(tc.zeros(1))
        assert journal == ["b sin", "a sin", "a ends", "b ends"]
    finally:
        for layer in layers:
            layer.remove()


def test_layers_of_one_position_are_apart_by_threads():
    journal = []
    layers = [Journal(name, 9, ["sin"], journal) for name in "ab"]

    def work():
        with layers[1]:
            tc.sin(tc.zeros(1))

    try:
        with layers[0]:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert journal == ["b sin", "b ends"]
    finally:
        for layer in layers:
            layer.remove()


def test_positions_of_the_library_take_one_layer(lib):
    made = define(lib)
    first = Recorder("first", "autograd", [made.op])
    try:
        with pytest.raises(RuntimeError, match=r"second registers an entry for layer 0.*registered by first"):
            Recorder("second", "autograd", [made.op])
    finally:
        first.remove()


def test_layers_that_fail_leave_the_thread_as_it_was():
    class Fails(library.Layer):
        def __call__(self, op, args, kwargs):
            raise KeyError("layer")

    layer = Fails("fails", 9, ["exp"])
    try:
        with layer:
            for _ in range(3):
                with pytest.raises(KeyError, match="layer"):
                    tc.exp(tc.zeros(1))
        assert tc.exp(tc.zeros(1)).item() == 1.0
    finally:
        layer.remove()


def test_wrong_results_of_layers_are_refused():
    class Wrong(library.Layer):
        def __call__(self, op, args, kwargs):
            return "text"

    layer = Wrong("wrong", 9, ["exp"])
    try:
        with (
            layer,
            pytest.raises(
                TypeError, match=r"exp: result 'result' of layer 'wrong' must be a Tensor, found str"
            ),
        ):
            tc.exp(tc.zeros(1))
    finally:
        layer.remove()


class Forgetful(library.Layer):
    def __call__(self, op, args, kwargs):
        op(*args, **kwargs)


@pytest.mark.parametrize(
    ("operator", "call"),
    [
        ("add", lambda x: x + x),
        ("clone", lambda x: x.repeat(2)),
        ("sub", lambda x: x.logsumexp(0)),
        ("mm", lambda x: tc.tensordot(x.repeat(2, 1), x.repeat(2, 1), 1)),
        ("split", lambda x: x.split(1)),
        ("equal", lambda x: tc.equal(x, x)),
    ],
)
def test_a_layer_that_gives_nothing_is_named(operator, call):
    x = tc.ones(2)
    wanted = call(x)
    with (
        Forgetful("forgetful", 9, [operator]),
        pytest.raises(
            TypeError, match=rf"{operator}: result .* of layer 'forgetful' must be .*found NoneType"
        ),
    ):
        call(x)
    assert str(call(x)) == str(wanted)


def test_a_layer_that_gives_nothing_of_several_results_is_named():
    expected = r"^max.dim: expected a tuple of 2 results from layer 'forgetful', found NoneType"
    with Forgetful("forgetful", 9, ["max.dim"]), pytest.raises(TypeError, match=expected):
        tc.ones(2).max(0)


def test_a_layer_that_gives_nothing_may_stand_over_forms_that_write():
    x = tc.ones(2)
    with Forgetful("forgetful", 9, ["add_", "add.out"]):
        x.add_(1)
        tc.add(x, 1, out=(y := tc.empty(2)))
    assert x.tolist() == [2.0, 2.0] and y.tolist() == [3.0, 3.0]


def test_only_gradients_that_nobody_wants_may_be_absent():
    args = (tc.ones(2, 3), tc.ones(2, 4), tc.ones(3, 4))
    with Recorder("recorder", 9, ["linear_backward"]):
        grads = library.op("linear_backward")(*args, 1)
    assert [g is None for g in grads] == [False, True, True]

    class Nothing(library.Layer):
        def __call__(self, op, args, kwargs):
            return None, None, None

    with (
        Nothing("nothing", 9, ["linear_backward"]),
        pytest.raises(
            TypeError, match="result 'grad_weight' of layer 'nothing' must be a Tensor, found None"
        ),
    ):
        library.op("linear_backward")(*args, 2)


def test_a_layer_must_answer_on_the_device_of_the_call():
    class Away(library.Layer):
        def __call__(self, op, args, kwargs):
            return op(*args, **kwargs).to("meta")

    expected = r"exp: result 'result' of layer 'away' must be on device 'cpu', found one on 'meta'"
    with Away("away", 9, ["exp"]), pytest.raises(RuntimeError, match=expected):
        tc.exp(tc.ones(2))


def test_leaving_a_layer_takes_it_out_and_entering_puts_it_back():
    before = _C._include_layer(9, True)  # the position is on, whoever stands there
    try:
        for _ in range(2):
            with Recorder("recorder", 9, ["exp"]) as layer:
                tc.exp(tc.ones(1))
                with layer:
                    pass
                tc.exp(tc.ones(1))
            tc.exp(tc.ones(1))
            assert layer.seen == ["exp"] * 2
        with layer:
            tc.exp(tc.ones(1))
        tc.exp(tc.ones(1))
        assert layer.seen == ["exp"] * 3
    finally:
        _C._include_layer(9, before)


def test_a_layer_stays_while_another_thread_is_in_it(recorder):
    inside, leave = threading.Event(), threading.Event()

    def work():
        with recorder:
            inside.set()
            leave.wait(PATIENCE)
            tc.exp(tc.ones(1))

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(PATIENCE)
    with recorder:
        pass
    leave.set()
    thread.join()
    assert "exp" in recorder.seen


def test_layers_that_are_gone_are_freed():
    import gc
    import weakref

    with Recorder("recorder", 9, ["exp"]) as layer:
        alive = weakref.ref(layer)
    del layer
    gc.collect()
    assert alive() is None


def test_layers_hold_for_their_own_thread(recorder):
    done = []
    with recorder:
        thread = threading.Thread(target=lambda: done.append((tc.ones(1) + 1).item()))
        thread.start()
        thread.join()
    assert done == [2.0] and recorder.seen == []


def test_kernels_run_on_many_threads(lib):
    made = define(lib)
    results, errors = [], []

    def work(k):
        try:
            for _ in range(50):
                results.append((k, made(tc.ones(4), float(k)).sum().item()))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and len(results) == 200 and all(total == 4 * k for k, total in results)


def test_callbacks_are_freed_with_their_registration(lib):
    import weakref

    class Held:
        def __call__(self, self_, k):
            return self_ * k

    held = Held()
    alive = weakref.ref(held)
    made = lib.define("testpkg::held(Tensor self, float k=1.0) -> Tensor")
    made.composite(held)
    del held
    made.composite(None)
    assert alive() is None
    assert np.array_equal(tc.ones(1).numpy(), [1.0])


@pytest.mark.parametrize(
    ("result", "exception", "words"),
    [
        (None, TypeError, "must be a Tensor, found NoneType"),
        (tc.ones(2, 2), TypeError, "must have dtype int64, found float32"),
        (tc.ones(2, dtype=tc.int64), ValueError, r"must have 2 dimension\(s\), found shape \(2,\)"),
        (tc.ones(2, 1, dtype=tc.int64, device="meta"), RuntimeError, "must be on device 'cpu', .* 'meta'"),
    ],
)
def test_a_direct_kernel_must_give_what_the_operator_gives(lib, result, exception, words):
    with (
        lib.kernel("nonzero", "cpu", replace=True)(lambda outputs, inputs: result),
        pytest.raises(exception, match=rf"^nonzero: result 'result' of the kernel of testpkg .*: ?.*{words}"),
    ):
        tc.ones(2).nonzero()
    assert tc.ones(2).nonzero().shape == (2, 1)


def test_gradients_have_the_shape_of_their_argument(lib):
    def wrong(outputs, inputs):
        return inputs[2], inputs[2], inputs[2]

    expected = r"result 'grad_input' .* the shape of argument 'input', \(2, 4\), found \(3, 4\)"
    with (
        lib.kernel("linear_backward", "cpu", replace=True)(wrong),
        pytest.raises(ValueError, match=expected),
    ):
        library.op("linear_backward")(tc.ones(2, 3), tc.ones(2, 4), tc.ones(3, 4))


def test_what_a_block_registered_can_be_undone():
    lib = library.Library("halfpkg")
    lone = lib.operator("halfpkg::lone(Tensor self) -> Tensor")(lambda self: self * 1)
    with collecting() as made:
        lib.kernel("relu", "cpu", replace=True)(lambda outputs, inputs: outputs[0].fill_(7))
        lib.operator("halfpkg::op(Tensor self) -> Tensor")(lambda self: self)
        layer = Recorder("half", "autograd", [lone.op])
        backend = library.Backend("halfdev")
        backend.kernel("fill_", "clone")(lambda outputs, inputs: None)
    assert tc.relu(tc.ones(1)).item() == 7 and "halfdev" in tc.backends.names()
    made.undo()
    made.undo()
    assert tc.relu(tc.ones(1)).item() == 1 and "halfdev" not in tc.backends.names()
    assert not hasattr(tc.ops.halfpkg, "op") and library.op("halfpkg::op").kernels() == {}
    with Recorder("other", "autograd", [lone.op]), pytest.raises(RuntimeError, match="registered by other"):
        layer.__enter__()
    again = library.Backend("halfdev")
    assert library.op("fill_").kernels().get("halfdev") is None
    again.remove()


def test_only_this_threads_own_registrations_are_undone(lib):
    kernels = {}

    def register(op):
        kernels[op] = lib.kernel(op, "cpu", replace=True)(lambda outputs, inputs: outputs[0].fill_(7))

    with collecting() as outer:
        register("exp")
        thread = threading.Thread(target=register, args=("sin",))
        thread.start()
        thread.join()
        with collecting() as inner:
            register("cos")
        kernels["exp"].remove()
        register("tan")
    register("relu")
    outer.undo()
    assert {op: kernel.active for op, kernel in kernels.items()} == {
        "exp": False,
        "sin": True,
        "cos": True,
        "tan": False,
        "relu": True,
    }
    inner.undo()
    assert not kernels["cos"].active


def test_a_block_that_fails_still_ends(lib):
    with pytest.raises(KeyboardInterrupt), collecting() as made:
        lib.kernel("exp", "cpu", replace=True)(lambda outputs, inputs: outputs[0].fill_(7))
        raise KeyboardInterrupt
    made.undo()
    assert tc.exp(tc.zeros(1)).item() == 1
    with lib.kernel("exp", "cpu", replace=True)(lambda outputs, inputs: outputs[0].fill_(7)) as kernel:
        made.undo()
        assert kernel.active


# --- what schemas say of writing ---


def test_schemas_say_what_is_written_and_shown(lib):
    made = lib.define(
        "testpkg::marks(Tensor(a!)[] many, Tensor(b! if on)? maybe, Tensor(c) seen, bool on) -> Tensor(c)"
    )
    facts = [(a.name, a.alias, a.written, a.when) for a in made.op.arguments]
    wanted = [
        ("many", "a", True, ""),
        ("maybe", "b", True, "on"),
        ("seen", "c", False, ""),
        ("on", "", False, ""),
    ]
    assert facts == wanted
    assert made.op.results[0].alias == "c" and made.op.form == "function"
    assert [a.written for a in library.op("add_").arguments] == [True, False, False]
    assert [a.written for a in library.op("max.dim_out").arguments[:3]] == [True, True, False]
    statistics = [a for a in library.op("batch_norm").arguments if a.written]
    assert [(a.name, a.when) for a in statistics] == [
        ("running_mean", "training"),
        ("running_var", "training"),
    ]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("testpkg::f(Tensor(a) x, Tensor(a) y) -> Tensor", "letter 'a'"),
        ("testpkg::f(Tensor(a! if on) x) -> Tensor", "'on', which is no bool"),
        ("testpkg::f(Tensor(a!) x) -> Tensor(a)", "only read"),
        ("testpkg::f(Tensor x) -> Tensor(a)", "letter of an argument"),
        ("testpkg::f(Tensor x) -> Tensor(a!)", "said of the argument"),
        ("testpkg::f(Tensor(!) x) -> Tensor", "a letter"),
        ("testpkg::f(int(a!) x) -> Tensor", "an argument name"),
    ],
)
def test_schemas_that_say_of_writing_what_cannot_be(lib, schema, said):
    with pytest.raises(ValueError, match=said):
        lib.define(schema)


def test_what_an_operator_of_a_library_writes_is_checked_and_counted(lib):
    grow = lib.define("testpkg::grow_(Tensor(a!) self, Tensor by) -> ()")

    @grow.kernel("cpu")
    def kernel(outputs, inputs):
        inputs[0].numpy()[...] += inputs[1].numpy()

    x = tc.zeros(3)
    grow(x, tc.ones(3))
    assert x.tolist() == [1.0] * 3 and x._version == 1 and grow.op.form == "inplace"
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(RuntimeError, match="testpkg::grow_: argument 'self' is read-only memory"):
        grow(tc.from_numpy(frozen), tc.ones(3))
    with pytest.raises(RuntimeError, match="share one place"):
        grow(tc.zeros(1).expand(3), tc.ones(3))


def test_writes_of_a_composite_count_once_in_its_own_name(lib):
    @lib.operator("testpkg::twice_(Tensor(a!) self) -> ()")
    def twice_(self):
        self.mul_(2)

    x = tc.ones(2)
    before = x._version
    twice_(x)
    assert x.tolist() == [2.0, 2.0] and x._version == before + 1


def test_overloads_take_arguments_as_pytorch_has_them():
    aten, a, b = tc.ops.aten, tc.tensor([1.0, 3.0]), tc.tensor([2.0, 1.0])
    out = tc.empty(2)
    assert aten.add.out(a, b, alpha=2, out=out) is out and out.tolist() == [5, 5]
    assert aten.add(a, b, out=out) is out and out.tolist() == [3, 4]
    assert aten.cat.out([a, b], out=tc.empty(4)).tolist() == [1, 3, 2, 1]
    values, places = tc.empty(()), tc.empty((), dtype=tc.int64)
    aten.max.dim_max(a, 0, False, max=values, max_values=places)
    assert (values.item(), places.item()) == (3, 1)
    aten.topk.values(a, 1, values=tc.empty(1), indices=(found := tc.empty(1, dtype=tc.int64)))
    assert found.item() == 1
    assert aten.copy_.default(out, a) is out and out.tolist() == [1, 3]
    assert aten.fill_.Tensor(out, tc.tensor(7.0)) is out and out.tolist() == [7, 7]
    kept, mask = aten.native_dropout.default(a, 0.5, False)
    assert tc.equal(kept, a) and mask.all()
    x = tc.arange(8.0).reshape(1, 2, 4)
    normed = aten.native_group_norm.default(x, None, None, 1, 2, 4, 2, 0.0)[0]
    assert tc.allclose(normed.mean(2), tc.zeros(1, 2), atol=1e-6)
    assert tc.equal(aten._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 0.0)[0], normed)
    image = tc.ones(1, 1, 2, 2)
    assert aten.upsample_nearest2d.vec(image, None, [2.0, 3.0]).shape == (1, 1, 4, 6)
    assert aten.upsample_bilinear2d.vec(image, None, False, [2.0, 2.0]).shape == (1, 1, 4, 4)


def test_what_overloads_say_of_themselves():
    aten = tc.ops.aten

    def names(overload):
        return {tag.name for tag in overload.tags}

    assert "nondeterministic_seeded" in names(aten.rand.default)
    assert "nondeterministic_seeded" not in names(aten.add.Tensor)
    assert "out" in names(aten.add.out) and "inplace" in names(aten.add_.Tensor)
    x = tc.ones(2, 2)
    assert aten.silu.default.decompose(x) is NotImplemented
    assert tc.equal(aten.dropout.default.decompose(x, 0.5, False), x)


def test_a_layer_whose_making_is_interrupted_leaves_nothing_in_the_table():
    class Seen(library.Layer):
        calls = 0

        def __call__(self, op, args, kwargs):
            Seen.calls += 1
            return op(*args, **kwargs)

    def interrupt(_, frame):
        while frame is not None and frame.f_code is not library.Layer._register.__code__:
            frame = frame.f_back
        if frame is not None:
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, 1e-5)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for i in range(30):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-4 * (i + 1))
                while True:
                    Seen("seen", "tracing").remove()
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    with library.Layer("other", "tracing"):
        tc.ones(2) + 1
    assert Seen.calls == 0
