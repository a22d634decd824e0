"""Devices defined from Python: memory of the host, kernels as Python functions."""

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import library


@pytest.fixture(scope="module")
def backend():
    made = library.Backend(
        "testdev", device_count=2, capabilities={"bfloat16": "too short"}, properties={"speed": "low"}
    )
    array = made.array

    @made.kernel("copy_same_")
    def copy(outputs, inputs):
        array(inputs[0])[...] = array(inputs[1])

    @made.kernel("fill_")
    def fill(outputs, inputs):
        array(inputs[0])[...] = array(inputs[1])

    @made.kernel("clone", "cast")
    def clone(outputs, inputs):
        array(outputs[0])[...] = array(inputs[0])

    @made.kernel("add")
    def add(outputs, inputs):
        a, b, alpha = inputs
        array(outputs[0])[...] = array(a) + alpha * array(b)

    @made.kernel("nonzero")
    def nonzero(outputs, inputs):
        assert outputs == ()
        return tc.from_numpy(np.argwhere(array(inputs[0]))).to("testdev")

    yield made
    made.remove()


def test_memory_is_the_devices_own(backend):
    x = tc.tensor([[1.0, 2.0], [3.0, 4.0]]).to("testdev")
    assert x.device.type == "testdev" and x.cpu().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    shown = backend.array(x.t()[1:])
    shown[0, 1] = 9.0
    assert x.cpu().tolist() == [[1.0, 2.0], [3.0, 9.0]]
    assert not np.shares_memory(backend.array(x), backend.array(x + 0))


def test_all_forms_use_one_kernel(backend):
    x = tc.ones(2, 3, device="testdev")
    assert (x + 1).cpu().tolist() == [[2.0] * 3] * 2
    x.add_(tc.ones(3, device="testdev"), alpha=4)
    assert x.cpu().tolist() == [[5.0] * 3] * 2
    out = tc.empty(3, 2, device="testdev").t()
    tc.add(x, 1, out=out)
    assert out.cpu().tolist() == [[6.0] * 3] * 2
    assert x.nonzero().shape == (6, 2)


def test_missing_kernels_are_named(backend):
    with pytest.raises(
        NotImplementedError, match=r"mul: backend 'testdev' has no kernel for this operator.*cpu"
    ):
        tc.ones(2, device="testdev") * 2
    missing = backend.missing()
    assert "mul" in missing and "add" not in missing and "fill_" not in missing
    assert library.op("add").kernels()["testdev"].startswith("testdev")


def test_devices_of_one_backend_stay_apart(backend):
    first, second = tc.ones(2, device="testdev"), tc.ones(2, device="testdev:1")
    assert (second + second).device == tc.device("testdev:1")
    with pytest.raises(RuntimeError, match="same device"):
        first + second
    with pytest.raises(RuntimeError, match="same device"):
        first + tc.ones(2)
    with pytest.raises(RuntimeError, match="out of range"):
        tc.ones(1, device="testdev:2")


def test_facts(backend):
    assert backend.properties == {"name": "testdev", "memory": "host", "speed": "low"}
    assert backend.capabilities == {"bfloat16": "too short"}


def test_errors_of_kernels_come_out_and_leave_the_device_usable(backend):
    def fails(outputs, inputs):
        raise ArithmeticError("inside the kernel")

    x = tc.ones(2, device="testdev")
    handle = library.Library("other").kernel("exp", "testdev")(fails)
    with handle, pytest.raises(ArithmeticError, match="inside the kernel"):
        tc.exp(x)
    with pytest.raises(NotImplementedError):
        tc.exp(x)
    assert (x + 1).cpu().tolist() == [2.0, 2.0]


def test_the_memory_of_other_devices_is_not_shown():
    with pytest.raises(RuntimeError, match="the memory of device 'meta' cannot be read"):
        library.Backend.array(tc.ones(2, device="meta"))


@pytest.mark.parametrize(
    "name, count",
    [
        ("", 1),
        ("a:b", 1),
        ("a b", 1),
        ("(x", 1),
        ("my-dev", 1),
        ("d\u00e9v", 1),
        ("testdev2", 0),
        ("testdev2", 128),
    ],
)
def test_wrong_definitions(name, count):
    with pytest.raises(ValueError, match="Backend: argument"):
        library.Backend(name, device_count=count)


def test_names_of_others_are_refused():
    with pytest.raises(
        RuntimeError, match=r"cpu \(.*registers device 'cpu', .* registered by taeda-tensor-core"
    ):
        library.Backend("cpu")


def test_a_second_backend_of_one_name_names_both(backend):
    here = r"testdev \(.*test_library_backend.py:\d+\)"
    with pytest.raises(RuntimeError, match=rf"^{here} registers device 'testdev', .* registered by {here}"):
        library.Backend("testdev", device_count=5)
    assert tc.backends.device_count("testdev") == 2


def test_a_name_is_free_again_after_removal():
    with library.Backend("passingdev") as first:
        first.kernel("fill_")(lambda outputs, inputs: None)
        kept = tc.empty(2, device="passingdev")
    assert "passingdev" not in tc.backends.names()
    with pytest.raises(RuntimeError, match="unknown device 'passingdev'") as caught:
        tc.empty(2, device="passingdev")
    assert "removed" not in str(caught.value)
    with library.Backend("passingdev", device_count=3) as second:
        assert second.index == first.index and tc.backends.device_count("passingdev") == 3
        assert "fill_" in second.missing() and kept.device == tc.device("passingdev:0")


def test_capabilities_and_properties_are_shown(backend):
    assert tc.backends.lacks("testdev") == {"bfloat16": "too short"} == backend.capabilities
    found = tc.backends.properties("testdev")
    assert (found["name"], found["memory"], found["speed"]) == ("testdev", "host", "low")
    with library.Backend("passingdev", capabilities=["streams", "complex"]):
        assert tc.backends.lacks("passingdev") == {"streams": "", "complex": ""}


@pytest.mark.parametrize(
    "given, exception, words",
    [
        (
            {"capabilities": {"dtypes": ["bfloat16"]}},
            ValueError,
            "none named 'dtypes'; expected some of: .*bfloat16",
        ),
        ({"capabilities": ["half"]}, ValueError, "none named 'half'"),
        ({"capabilities": "bfloat16"}, TypeError, "must be names or a dict of reasons, found 'bfloat16'"),
        ({"capabilities": {"bfloat16": 3}}, TypeError, "'bfloat16' is missing must be a str, found 3"),
        ({"properties": {"clock": object()}}, TypeError, "'properties' must hold what JSON can say"),
    ],
)
def test_wrong_facts_are_refused(given, exception, words):
    with pytest.raises(exception, match=f"Backend: .*{words}"):
        library.Backend("factdev", **given)
    assert "factdev" not in tc.backends.names()


def test_kernels_are_handles():
    with library.Backend("passingdev") as made:

        @made.kernel("fill_")
        @made.kernel("clone", "exp")
        def fill(outputs, inputs):
            """Fills."""
            return "called"

        assert fill((), ()) == "called" and fill.__name__ == "fill" and fill.__doc__ == "Fills."
        assert "fill_" not in made.missing()
        fill.remove()
        assert "fill_" in made.missing() and "exp" not in made.missing()
        with pytest.raises(RuntimeError, match=r"exp: passingdev .*which has one already"):
            made.kernel("sin", "exp")(lambda outputs, inputs: None)
        assert "sin" in made.missing()


@pytest.mark.parametrize("format", ["safetensors", "torch"])
def test_tensors_are_saved_and_come_back(backend, format, tmp_path):
    x = tc.arange(6.0).reshape(2, 3)
    tc.save({"x": x.to("testdev:1"), "y": tc.ones(2)}, tmp_path / "file", format=format)
    loaded = tc.load(tmp_path / "file")
    assert loaded["x"].tolist() == x.tolist()
    if format == "torch":  # safetensors has no word for devices
        assert (str(loaded["x"].device), str(loaded["y"].device)) == ("testdev:1", "cpu")
    for where in ("cpu", {"testdev:1": "cpu"}):
        assert tc.load(tmp_path / "file", map_location=where)["x"].device.type == "cpu"
    moved = tc.load(tmp_path / "file", map_location="testdev")
    assert (moved["x"].device.type, moved["x"].tolist()) == ("testdev", x.tolist())


# --- kernels that return their results ---


@pytest.fixture
def mine():
    with library.Library("returning") as lib:
        yield lib


def test_a_kernel_may_return_its_result(backend, mine):
    @mine.kernel("exp", "testdev")
    def exp(outputs, inputs):
        return tc.from_numpy(np.exp(backend.array(inputs[0]))).to("testdev")

    x = tc.tensor([0.0, 1.0]).to("testdev")
    expected = [1.0, pytest.approx(2.7182817)]
    assert tc.exp(x).cpu().tolist() == expected
    out = tc.zeros(2, 2).to("testdev").t()[0]
    tc.exp(x, out=out)
    assert out.cpu().tolist() == expected
    version = x._version
    x.exp_()
    assert x.cpu().tolist() == expected and x._version > version


def test_a_kernel_may_fill_its_output_and_return_it(backend, mine):
    @mine.kernel("exp", "testdev")
    def exp(outputs, inputs):
        backend.array(outputs[0])[...] = 7.0
        return outputs[0]

    assert tc.exp(tc.ones(2).to("testdev")).cpu().tolist() == [7.0, 7.0]


def test_several_results_are_put_where_they_belong(backend, mine):
    @mine.kernel("max.dim", "testdev")
    def swapped(outputs, inputs):
        values = tc.full((2,), 3.0).to("testdev")
        return values, tc.full((2,), 1, dtype=tc.int64).to("testdev")

    values, indices = tc.ones(2, 3).to("testdev").max(1)
    assert (values.cpu().tolist(), indices.cpu().tolist()) == ([3.0, 3.0], [1, 1])

    with library.Library("crossing") as other:

        @other.operator("crossing::pair(Tensor x) -> (Tensor a, Tensor b)")
        def pair(x):
            raise AssertionError

        pair.infer(lambda x: [(tuple(x.shape), x.dtype)] * 2)

        @pair.kernel("cpu")
        def fill(outputs, inputs):
            outputs[0].fill_(1.0)
            outputs[1].fill_(2.0)
            return outputs[1], outputs[0]

        a, b = tc.ops.crossing.pair(tc.zeros(2))
        assert (a.tolist(), b.tolist()) == ([2.0, 2.0], [1.0, 1.0])


@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        (
            lambda x: 3.0,
            TypeError,
            r"result 'result' of the kernel of returning .* must be a Tensor.*found float",
        ),
        (lambda x: (x, x), TypeError, "must be a Tensor.*found tuple"),
        (
            lambda x: tc.zeros(2, dtype=tc.float64).to("testdev"),
            TypeError,
            "must have dtype float32, found float64",
        ),
        (lambda x: tc.zeros(3).to("testdev"), ValueError, r"must have shape \(2,\), found \(3,\)"),
        (lambda x: tc.zeros(2), RuntimeError, "must be on device 'testdev(:0)?', found one on 'cpu'"),
    ],
)
def test_wrong_results_are_errors(backend, mine, result, error, words):
    mine.kernel("exp", "testdev")(lambda outputs, inputs: result(inputs[0]))
    x = tc.ones(2).to("testdev")
    with pytest.raises(error, match=words):
        tc.exp(x)
    with pytest.raises(error):
        x.exp_()
    assert x.cpu().tolist() == [1.0, 1.0]


def test_an_operator_without_results_may_return_what_it_wrote_to(backend, mine):
    def fill(outputs, inputs):
        backend.array(inputs[0])[...] = 5.0
        return inputs[0]

    with mine.kernel("fill_", "testdev", replace=True)(fill):
        assert tc.ones(2).to("testdev").fill_(1).cpu().tolist() == [5.0, 5.0]
    mine.kernel("fill_", "testdev", replace=True)(lambda outputs, inputs: 3)
    with pytest.raises(TypeError, match=r"fill_: expected None from the kernel of returning .* found int"):
        tc.ones(2).to("testdev").fill_(1)


def test_infer_changes_nothing_for_a_kernel_that_returns(mine):
    @mine.operator("returning::twice(Tensor x) -> Tensor")
    def twice(x):
        raise AssertionError

    twice.kernel("cpu")(lambda outputs, inputs: inputs[0] * 2)
    x = tc.tensor([1.0, 2.0])
    before = tc.ops.returning.twice(x).tolist()
    twice.infer(lambda x: (tuple(x.shape), x.dtype))
    assert tc.ops.returning.twice(x).tolist() == before == [2.0, 4.0]
    assert tc.ops.returning.twice(tc.ones(3, device="meta")).shape == (3,)


@pytest.mark.parametrize(
    "move", [lambda out: out.resize_(5), lambda out: out.set_(tc.zeros(5)), lambda out: out.transpose_(0, 1)]
)
def test_a_kernel_cannot_give_its_output_another_shape(mine, move):
    mine.kernel("exp", "cpu", replace=True)(lambda outputs, inputs: [move(outputs[0])].clear())
    out = tc.full((2, 3), 4.0)
    with pytest.raises(
        RuntimeError, match=r"result 'result' of the kernel of returning .* another shape or memory"
    ):
        tc.exp(tc.ones(2, 3), out=out)
    assert out.tolist() == [[4.0] * 3] * 2 and out.stride() == (3, 1)
