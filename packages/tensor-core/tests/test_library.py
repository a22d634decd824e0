"""Operators, kernels and layers added from Python, through taeda_tensor_core.library."""

import threading
import traceback

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import library


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
        assert dims == (0, 1)
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
    with pytest.raises(TypeError, match=r"result down.*must be a Tensor or None, found int"):
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
    with pytest.raises(RuntimeError, match="cannot come back with another schema"):
        lib.define("testpkg::scale(Tensor self) -> Tensor")
    with lib:
        assert define(lib)(tc.ones(1)).tolist() == [2.0]


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


def test_views_and_composites_have_no_kernels(lib):
    with pytest.raises(ValueError, match="operators of kind view and composite have no kernels"):
        lib.kernel("transpose", "cpu")(lambda o, i: None)
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


def test_two_layers_at_one_position_are_refused(recorder):
    with pytest.raises(RuntimeError, match=r"second registers an entry for layer 14.*registered by recorder"):
        Recorder("second", "profiler")
    with recorder:
        assert (tc.ones(1) + 1).item() == 2.0


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
                TypeError, match=r"exp: argument '.result result.' must be a Tensor or None, found str"
            ),
        ):
            tc.exp(tc.zeros(1))
    finally:
        layer.remove()


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
