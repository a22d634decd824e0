"""`taeda.library` with PyTorch's ergonomics: custom operators, schemas of type hints, checks of operators."""

import copy
import itertools
import pickle
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import Tensor, _plugins, library

counter = itertools.count()


@pytest.fixture
def name():
    """A name that no other test uses."""
    return f"custom_tests::op{next(counter)}"


def test_custom_op(name):
    @library.custom_op(name, mutates_args=())
    def scale(x: Tensor, k: float = 2.0, *, shift: int = 0) -> Tensor:
        """Times k."""
        return taeda.tensor(x.numpy() * k + shift)

    assert scale(taeda.ones(2)).tolist() == [2.0, 2.0]
    assert scale(taeda.ones(2), 3.0, shift=1).tolist() == [4.0, 4.0]
    space, short = name.split("::")
    operator = getattr(getattr(taeda.ops, space), short)
    assert operator(taeda.ones(1), k=5.0).tolist() == [5.0]
    assert operator.default(taeda.ones(1)).tolist() == [2.0] and operator.default.name() == name
    assert scale.__doc__ == "Times k." and scale._qualname == name
    assert str(operator.default._schema).startswith(f"{name}(Tensor x, float k=2.0, *, int shift=0)")
    scale.remove()
    assert not hasattr(getattr(taeda.ops, space), short)


def test_several_results_and_lists(name):
    @library.custom_op(name, mutates_args=())
    def parts(xs: Sequence[Tensor], at: Sequence[int], y: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total = sum(x[i] for x, i in zip(xs, at, strict=True))
        return total, total * 0 if y is None else y.clone()

    first, second = parts([taeda.arange(3.0), taeda.arange(3.0)], [1, 2])
    assert first.item() == 3.0 and second.item() == 0.0
    assert parts([taeda.arange(3.0)], [1], taeda.ones(2))[1].tolist() == [1.0, 1.0]


def test_result_that_is_an_argument_is_refused(name):
    @library.custom_op(name, mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="result is one of the arguments"):
        same(taeda.ones(1))


def test_device_types(name):
    @library.custom_op(name, mutates_args=(), device_types="cpu")
    def only_cpu(x: Tensor) -> Tensor:
        return x + 1

    assert only_cpu(taeda.ones(1)).item() == 2.0
    with pytest.raises(NotImplementedError):
        only_cpu(taeda.ones(1, device="meta"))


def test_fake(name):
    @library.custom_op(name, mutates_args=())
    def stretch(x: Tensor, n: int) -> Tensor:
        return taeda.tensor(np.repeat(x.numpy(), n))

    @stretch.register_fake
    def _(x, n):
        return x.new_empty((x.numel() * n,))

    assert stretch(taeda.ones(2), 3).shape == (6,)
    told = stretch(taeda.ones(2, device="meta"), 3)
    assert told.shape == (6,) and told.device.type == "meta"


def test_builtin_has_no_fake():
    with pytest.raises(
        RuntimeError, match=r"register_fake: no operator named 'add' has been defined from Python"
    ):
        library.register_fake("add")(lambda x: x)


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ("(x: Tensor) -> Tensor", "(Tensor x) -> Tensor"),
        (
            "(x: Tensor, n: int, f: float, b: bool, s: str) -> Tensor",
            "(Tensor x, int n, float f, bool b, str s) -> Tensor",
        ),
        ("(x: Tensor | None = None) -> None", "(Tensor? x=None) -> ()"),
        (
            "(x: Sequence[Tensor], n: list[int] | None = None) -> list[Tensor]",
            "(Tensor[] x, int[]? n=None) -> Tensor[]",
        ),
        (
            "(x: Tensor, k: int | float, *, s: str = 'a') -> tuple[Tensor, Tensor]",
            '(Tensor x, Scalar k, *, str s="a") -> (Tensor, Tensor)',
        ),
        ("(x: Tensor, d: taeda.dtype, e: taeda.device) -> Tensor", "(Tensor x, DType d, Device e) -> Tensor"),
        (
            "(x: Tensor, d: taeda.dtype = taeda.float16, e: taeda.device = taeda.device('cpu')) -> Tensor",
            '(Tensor x, DType d=float16, Device e="cpu") -> Tensor',
        ),
        ("(x: tuple[float, ...], y: Tensor = None) -> int", "(float[] x, Tensor y=None) -> int"),
    ],
)  # fmt: skip
def test_infer_schema(hints, expected):
    space = {"Tensor": Tensor, "Sequence": Sequence, "taeda": taeda}
    exec(f"def f{hints}: ...", space)
    assert library.infer_schema(space["f"], mutates_args=()) == expected


def test_infer_schema_of_written_arguments():
    def f(x: Tensor, y: Tensor) -> None: ...

    assert library.infer_schema(f, mutates_args=("y",)) == "(Tensor x, Tensor(a1!) y) -> ()"
    assert library.infer_schema(f, mutates_args="unknown") == "(Tensor(a0!) x, Tensor(a1!) y) -> ()"
    assert library.infer_schema(f, mutates_args=(), op_name="g").startswith("g(Tensor x")


def no_hint(x) -> Tensor: ...
def no_result(x: Tensor): ...
def odd(x: dict) -> Tensor: ...
def odd_default(x: Tensor, n: int = object()) -> Tensor: ...
def many(*x: Tensor) -> Tensor: ...
def number(n: int) -> Tensor: ...


@pytest.mark.parametrize(
    ("function", "written", "words"),
    [
        (no_hint, (), "parameter 'x' has no type hint"),
        (no_result, (), "result has no type hint"),
        (odd, (), "parameter 'x' has no counterpart"),
        (odd_default, (), "default of parameter 'n'"),
        (many, (), r"parameter '\*x' has no place"),
        (number, ("n",), "parameter 'n' cannot be written into"),
        (number, ("m",), "names no parameter: m"),
        (number, "n", "sequence of names or 'unknown'"),
    ],
)
def test_infer_schema_refuses(function, written, words):
    with pytest.raises(ValueError, match=words):
        library.infer_schema(function, mutates_args=written)


def test_bad_names():
    for bad in ("op", "a::", "::b", "a b::c"):
        with pytest.raises(ValueError, match="expected a name of the form 'package::operator'"):
            library.custom_op(bad, mutates_args=())


def test_library_as_in_pytorch():
    with library.Library("custom_lib", "DEF") as lib:
        lib.define("mysin(Tensor x, SymInt n=1, str s='a') -> Tensor")
        lib.impl("mysin", lambda x, n, s: taeda.tensor(np.sin(x.numpy()) * n), "CPU")
        lib.impl("mysin", lambda x, n, s: taeda.empty_like(x), "Meta")
        assert taeda.ops.custom_lib.mysin(taeda.zeros(2), 3).tolist() == [0.0, 0.0]
        assert taeda.ops.custom_lib.mysin(taeda.zeros(2, device="meta")).device.type == "meta"
        library.define("custom_lib::twice", "(Tensor x) -> Tensor", lib=lib)

        @library.impl("custom_lib::twice", "default", lib=lib)
        def twice(x):
            return x * 2

        assert taeda.ops.custom_lib.twice(taeda.ones(1)).item() == 2.0
        with pytest.raises(NotImplementedError, match="sin is built in"):
            lib.impl("aten::sin", lambda x: x, "AutogradCPU")
    assert not hasattr(taeda.ops, "custom_lib") or not hasattr(taeda.ops.custom_lib, "mysin")
    with pytest.raises(RuntimeError, match="defines no operator"):
        library.Library("custom_lib", "IMPL").define("f(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="argument 'kind'"):
        library.Library("custom_lib", "OTHER")


def test_replacing_a_built_in_kernel():
    with library.Library("aten", "IMPL") as lib:
        lib.impl("aten::hypot", lambda self, other: taeda.full_like(self, 7.0), "CPU")
        assert taeda.hypot(taeda.ones(2), taeda.ones(2)).tolist() == [7.0, 7.0]
    assert taeda.hypot(taeda.tensor([3.0]), taeda.tensor([4.0])).item() == 5.0


def test_operator_objects():
    add = taeda.ops.aten.add
    assert add.default(taeda.ones(1), taeda.ones(1)).item() == 2.0
    assert (
        add.Tensor is add.default is taeda.ops.taeda.add.default and add.default.name() == "aten::add.Tensor"
    )
    x, w = taeda.ones(1, 1, 3, 3), taeda.ones(1, 1, 2, 2)
    assert taeda.ops.aten.convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1).tolist() == [
        [[[4, 4], [4, 4]]]
    ]
    assert taeda.ops.aten.new_empty_strided(x, [2, 2], [1, 2]).stride() == (1, 2)
    assert taeda.ops.aten.max.dim.name() == "aten::max.dim" and taeda.ops.aten.view.default.is_view
    assert str(add.default) == "aten.add.Tensor" and add.overloads() == ["default"]
    assert [a.name for a in add.default._schema.arguments] == ["self", "other", "alpha"]
    alpha = add.Tensor._schema.arguments[2]
    assert (
        alpha.has_default_value()
        and alpha.default_value == 1
        and alpha.kwarg_only
        and alpha.alias_info is None
    )
    assert taeda.ops.aten.add_.Tensor._schema.arguments[0].name == "self"
    filled = taeda.ops.aten.embedding_renorm_.default._schema.arguments[0]
    assert filled.alias_info.is_write and filled.alias_info.before_set == {"a"}
    with pytest.raises(AttributeError, match="there is no operator named 'nothing_such'"):
        taeda.ops.aten.nothing_such  # noqa: B018
    with pytest.raises(AttributeError):
        add.nothing_such  # noqa: B018


def test_names_of_built_in_operators():
    """Aliases and overloads name the operators; what has no tensor for a result is a function."""
    aten = taeda.ops.aten
    assert aten.absolute is aten.abs and aten.special_erf is aten.erf and aten.clip_ is aten.clamp_
    assert aten.split_with_sizes.default.name() == "aten::split_with_sizes"
    assert aten.div.Tensor_mode is not aten.div.Scalar_mode is not aten.div.Tensor
    assert aten.sum.dim_IntList is not aten.sum.default and aten.sum.dim_IntList.overloadpacket is aten.sum
    assert aten.mean.dim_out.name() == "aten::mean.out" and str(aten.sum) == "aten.sum"
    x = taeda.arange(6.0).reshape(2, 3)
    assert aten.sym_size(x) == (2, 3) and aten.sym_size.int(x, 1) == 3 and aten.sym_numel.default(x) == 6
    assert aten._local_scalar_dense(taeda.tensor(3)) == 3 and aten.numel.name() == "aten::numel"
    for copied in (copy.copy(aten.numel), copy.deepcopy([aten.numel])[0]):
        assert copied is aten.numel
    assert pickle.loads(pickle.dumps(aten.numel))(x) == 6
    assert [y.tolist() for y in aten._foreach_add.List([x[0]], [x[1]])] == [[3, 5, 7]]


def test_parts_of_functions():
    """What PyTorch names beside its operators, against other ways to the same numbers."""
    aten, ops = taeda.ops.aten, taeda.ops
    taeda.manual_seed(0)
    x = taeda.randn(2, 3, 4)
    close = taeda.testing.assert_close
    close(aten._softmax.default(x, 1, False), x.exp() / x.exp().sum(1, keepdim=True))
    close(taeda._log_softmax(x, -1, False), aten._softmax(x, -1, False).log())
    nothing = taeda.full((1, 3), -float("inf"))
    assert taeda._safe_softmax(nothing, 1).tolist() == [[0, 0, 0]]
    mask = x > 1
    close(taeda._masked_softmax(x, mask, 2), x.masked_fill(mask, -float("inf")).softmax(2))
    close(taeda._weight_norm(x, taeda.ones(2, 1, 1)).flatten(1).norm(dim=1), taeda.ones(2))
    left, right = (
        taeda.randint(-9, 9, (3, 5), dtype=taeda.int8),
        taeda.randint(-9, 9, (5, 2), dtype=taeda.int8),
    )
    assert taeda._int_mm(left, right).tolist() == (left.long() @ right.long()).tolist()
    q, k, v = taeda.randn(3, 2, 2, 5, 8)
    close(taeda._scaled_dot_product_attention_math(q, k, v, None, 0.0, True)[0],
          ops.scaled_dot_product_attention(q, k, v, is_causal=True))  # fmt: skip
    found, sums = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
    close(found, ops.scaled_dot_product_attention(q, k, v))
    close(sums, (q @ k.transpose(-2, -1) / 8**0.5).exp().sum(-1).log())
    image = taeda.arange(6.0).reshape(1, 1, 2, 3)
    assert aten.upsample_nearest2d(image, [2, 6])[0, 0, 0].tolist() == [0, 0, 1, 1, 2, 2]
    assert aten.upsample_bilinear2d(image, [2, 5], True)[0, 0, 0].tolist() == [0, 0.5, 1, 1.5, 2]
    assert aten.reflection_pad1d(image[0, 0], [1, 0]).tolist() == [[1, 0, 1, 2], [4, 3, 4, 5]]
    assert aten.slice_backward(taeda.ones(1, 2), [2, 2], 0, 1, 2, 1).tolist() == [[0, 0], [1, 1]]
    assert aten.lift_fresh(x).data_ptr() == x.data_ptr() and aten.copy(x, x * 0).abs().sum() == 0
    assert aten.to.dtype(x, taeda.float64).dtype is taeda.float64 and taeda._cast_Int(x).dtype is taeda.int32
    drawn = aten.uniform(x, 2.0, 3.0)
    assert drawn.shape == x.shape and 2 <= drawn.min() <= drawn.max() <= 3


def test_refused():
    with pytest.raises(NotImplementedError):
        library.get_ctx()


def test_kernels_for_a_device_whose_plug_in_fails(name, monkeypatch):
    failure = _plugins.Failure(RuntimeError("no driver"), "", _plugins._installed(), ())
    monkeypatch.setitem(_plugins._failures, "broken", failure)
    with pytest.raises(RuntimeError, match="no driver"):
        taeda.ones(1, device="broken")
    package, _, short = name.partition("::")
    home = library.Library(package, "FRAGMENT")
    home.define(f"{short}(Tensor x) -> Tensor")
    home.impl(short, lambda x: x * 2, "CPU")
    home.impl(short, lambda x: x * 3, "broken")
    assert getattr(getattr(taeda.ops, package), short)(taeda.ones(1)).item() == 2


def test_functions_that_would_call_triton(name):
    kernel = object()

    @library.triton_op(name, mutates_args=())
    def twice(x: Tensor) -> Tensor:
        return x + x if library.wrap_triton(kernel) is kernel else x

    assert twice(taeda.ones(2)).tolist() == [2, 2]


def test_opcheck_passes(name):
    @library.custom_op(name, mutates_args=())
    def good(x: Tensor) -> Tensor:
        return x * 2

    good.register_fake(lambda x: taeda.empty_like(x))
    found = library.opcheck(good, (taeda.ones(2),))
    assert set(found.values()) == {"SUCCESS"} and len(found) == 5


def test_opcheck_finds_writing(name):
    @library.custom_op(name, mutates_args=())
    def writes(x: Tensor) -> Tensor:
        x.fill_(5)
        return x * 1

    with pytest.raises(library.OpCheckError, match="argument 'x' was written into"):
        library.opcheck(writes, (taeda.ones(2),))


def test_opcheck_finds_sharing(name):
    @library.custom_op(name, mutates_args=())
    def shares(x: Tensor) -> Tensor:
        return x.view(-1)

    with pytest.raises(library.OpCheckError, match="result 0 shares memory"):
        library.opcheck(shares, (taeda.ones(2),), test_utils="test_schema")


def test_opcheck_finds_wrong_and_missing_fakes(name):
    @library.custom_op(name, mutates_args=(), device_types="cpu")
    def fake(x: Tensor) -> Tensor:
        return x * 2

    with pytest.raises(library.OpCheckError, match="register it with register_fake"):
        library.opcheck(fake, (taeda.ones(2),))
    fake.register_fake(lambda x: x.new_empty((3,)))
    found = library.opcheck(fake, (taeda.ones(2),), raise_exception=False)
    assert "has shape" in str(found["test_faketensor"]) and found["test_schema"] == "SUCCESS"
    with pytest.raises(ValueError, match="there is no check 'test_nothing'"):
        library.opcheck(fake, (taeda.ones(2),), test_utils="test_nothing")


def test_opcheck_compares_the_rule_for_batches(name):
    @library.custom_op(name, mutates_args=())
    def weigh(x: Tensor, weight: Tensor, k: float = 2.0) -> tuple[Tensor, Tensor]:
        return x * k, x @ weight

    weigh.register_fake(lambda x, weight, k: (taeda.empty_like(x), x.new_empty(x.shape[:-1])))
    args = (taeda.arange(6.0).reshape(2, 3), taeda.tensor([1.0, -1.0, 0.5]))

    def right(info, dims, x, weight, k):
        x = x.movedim(dims[0], 0) if dims[0] is not None else x.expand(info.batch_size, *x.shape)
        weight = weight.movedim(dims[1], 0) if dims[1] is not None else weight.expand(info.batch_size, -1)
        return (x * k, (x * weight.unsqueeze(1)).sum(-1)), (0, 0)

    weigh.register_vmap(right)
    assert set(library.opcheck(weigh, args).values()) == {"SUCCESS"}

    def wrong(info, dims, x, weight, k):
        if dims[1] is not None:
            weight, dims = weight.select(dims[1], 0), (dims[0], None, None)
        return right(info, dims, x, weight, k)

    weigh.register_vmap(wrong)
    expected = r"result 1 of the rule for batches .* item 1 \(batch of 'weight' in dimension 0\)"
    with pytest.raises(library.OpCheckError, match=expected):
        library.opcheck(weigh, args, test_utils="test_vmap")
    weigh.register_vmap(lambda info, dims, x, weight, k: ((x,), (0,)))
    with pytest.raises(library.OpCheckError, match="gave 1 results and 1 dimensions, expected 2"):
        library.opcheck(weigh, args, test_utils="test_vmap")


def test_what_operators_do_in_blocks_of_autocast():
    made = taeda.library.Library("autocast_test", "DEF")
    made.define("double(Tensor x) -> Tensor")
    made.impl("double", lambda x: x * 2, "CompositeExplicitAutograd")
    made.impl("double", lambda x: taeda.ops.autocast_test.double(x.float()) + 1, "AutocastCPU")
    made.define("same(Tensor x) -> Tensor")
    made.impl("same", lambda x: x + 0, "CompositeExplicitAutograd")
    taeda.library.register_autocast("autocast_test::same", "cpu", taeda.bfloat16)
    x = taeda.ones(2, dtype=taeda.bfloat16)
    assert taeda.ops.autocast_test.double(x).dtype is taeda.bfloat16
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        assert taeda.ops.autocast_test.double(x).tolist() == [3.0, 3.0]
        assert taeda.ops.autocast_test.double(x).dtype is taeda.float32
        assert taeda.ops.autocast_test.same(taeda.ones(2)).dtype is taeda.bfloat16
    assert taeda.ops.autocast_test.same(taeda.ones(2)).dtype is taeda.float32
    # Operators that autocast casts itself go on as they did: it is off for their parts.
    steps, state = taeda.ones(4, 2, 3), taeda.ones(1, 2, 5)
    weights = [taeda.ones(5, 3), taeda.ones(5, 5)]
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        made, _ = taeda.ops.taeda.rnn_tanh(steps, state, weights, False, 1, 0.0, False, False, False)
    assert made.dtype is taeda.bfloat16
    with pytest.raises(ValueError, match="Unknown device type"):
        taeda.library.register_autocast("autocast_test::same", "nothing", taeda.float32)


def test_rules_for_operators_that_autocast_casts_itself():
    program = """
import taeda_tensor_core as tc
library = tc.library.Library("aten", "IMPL")
library.impl("mm", lambda a, b: tc.mm(a, b) + 1, "AutocastCPU")
library.impl("rnn_tanh", lambda *arguments: None, "AutocastCUDA")
x, steps, state = tc.ones(2, 2), tc.ones(4, 2, 3), tc.ones(1, 2, 5)
weights = [tc.ones(5, 3), tc.ones(5, 5)]
print(tc.mm(x, x).tolist())
with tc.autocast("cpu", dtype=tc.bfloat16):
    made = tc.mm(x, x)
    print(made.tolist(), made.dtype, tc.addmm(x, x, x).dtype)
    print(tc.ops.rnn_tanh(steps, state, weights, False, 1, 0.0, False, False, False)[0].dtype)
"""
    # In a process of its own, since rules stay.
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines() == [
        "[[2.0, 2.0], [2.0, 2.0]]",
        "[[3.0, 3.0], [3.0, 3.0]] taeda.float32 taeda.bfloat16",
        "taeda.bfloat16",
    ]


@pytest.mark.parametrize("devices", [None, "cpu"])
def test_an_operator_is_made_anew_where_a_program_is_read_twice(devices):
    for factor in (2.0, 3.0):

        @library.custom_op("twicepkg::scaled", mutates_args=(), device_types=devices)
        def scaled(x: Tensor) -> Tensor:
            return x * factor  # noqa: B023

        assert scaled(taeda.ones(1)).item() == taeda.ops.twicepkg.scaled(taeda.ones(1)).item() == factor
        if factor == 2.0:
            scaled.register_fake(lambda x: x.new_empty(7))
    scaled.register_fake(lambda x: x.new_empty(1))
    assert scaled(taeda.ones(1, device="meta")).shape == (1,)


def test_packages_that_pytorch_always_has_are_found_before_their_operators():
    space = taeda.ops.xnnpack
    assert not hasattr(space, "linear") and not hasattr(taeda.ops, "no_such_package")
    early = taeda.ops.static_runtime
    with library.Library("static_runtime", "FRAGMENT") as made:
        made.define("plus(Tensor x) -> Tensor")
        made.impl("plus", lambda x: x + 1, "CompositeExplicitAutograd")
        assert early.plus(taeda.ones(1)).item() == taeda.ops.static_runtime.plus(taeda.ones(1)).item() == 2


def test_names_of_overloads_that_tell_the_arguments():
    aten = taeda.ops.aten
    assert aten.where.ScalarOther(taeda.tensor([True, False]), taeda.ones(2), 3.0).tolist() == [1, 3]
    assert aten.sum.dim_IntList(taeda.ones(2, 3), [1]).tolist() == [3, 3]
    assert aten.std.correction(taeda.tensor([1.0, 3.0]), [0], correction=0).item() == 1
    assert aten.arange.start(1, 4).tolist() == [1, 2, 3]
    assert aten.scatter.value(taeda.zeros(2), 0, taeda.tensor([1]), 5.0).tolist() == [0, 5]


def test_operators_of_libraries_give_lists_and_arguments():
    with library.Library("giving", "DEF") as made:
        made.impl("giving::early", lambda xs: [x + 1 for x in xs], "CompositeImplicitAutograd")
        made.define("early(Tensor[] xs) -> Tensor[]")
        made.define("parts(Tensor x, int count) -> Tensor[]")
        made.impl(
            "parts", lambda x, count: [part * 2 for part in x.chunk(count)], "CompositeImplicitAutograd"
        )
        made.define("kernels(Tensor x) -> Tensor[]")
        with pytest.raises(NotImplementedError, match="giving::kernels"):
            taeda.ops.giving.kernels(taeda.ones(2))
        made.impl("kernels", lambda x: [x * 3, x * 4], "CPU")
        made.define("filled_(Tensor(a!) x, float value) -> Tensor(a!)")
        made.impl("filled_", lambda x, value: x.fill_(value), "CPU")
        x = taeda.ones(4)
        assert [part.tolist() for part in taeda.ops.giving.parts.default(x, 2)] == [[2, 2], [2, 2]]
        assert [part.tolist() for part in taeda.ops.giving.kernels(x)] == [[3] * 4, [4] * 4]
        assert taeda.ops.giving.early([x])[0].tolist() == [2] * 4
        assert taeda.ops.giving.filled_(x, 5.0) is x and x.tolist() == [5] * 4
    assert not hasattr(taeda.ops.giving, "parts")


def test_operators_give_lists_of_tensors():
    pytest.importorskip("taeda_autograd")
    from taeda_tensor_core.library import custom_op

    @custom_op("lists::parts", mutates_args=())
    def parts(x: Tensor, count: int = 2) -> list[Tensor]:
        return [x[i::count] * 2 for i in range(count)]

    try:
        x = taeda.arange(6.0)
        assert [t.tolist() for t in parts(x, 2)] == [[0, 4, 8], [2, 6, 10]]
        assert [t.tolist() for t in taeda.ops.lists.parts.default(x, count=3)] == [[0, 6], [2, 8], [4, 10]]
        assert [t.tolist() for t in parts(x, 1)] == [[0, 2, 4, 6, 8, 10]] and parts(x, 0) == []
        schema = taeda.ops.lists.parts.default._schema
        assert str(schema) == "lists::parts(Tensor x, int count=2) -> Tensor[]"
        assert [(a.name, a.type) for a in schema.arguments] == [("x", "Tensor"), ("count", "int")]
        library.register_fake(
            "lists::parts", lambda x, count: [taeda.empty_like(x[i::count]) for i in range(count)]
        )
        assert [t.shape for t in parts(taeda.empty(5, device="meta"))] == [(3,), (2,)]
        seen = []

        def setup_context(ctx, inputs, output):
            ctx.size, ctx.count = inputs[0].shape[0], inputs[1]
            seen.append([type(output), len(output)])

        def backward(ctx, grads):
            whole = taeda.zeros(ctx.size)
            for i, grad in enumerate(grads):
                whole[i :: ctx.count] = 2 * grad
            return whole, None

        x.requires_grad_()
        with pytest.raises(RuntimeError, match="lists::parts: no gradient is registered"):
            parts(x)[0].sum().backward()
        parts.register_autograd(backward, setup_context=setup_context)
        for count, expected in ((2, [2, 6, 2, 6, 2, 6]), (1, [2] * 6)):
            x.grad = None
            sum((i + i + 1) * t.sum() for i, t in enumerate(parts(x, count))).backward()
            assert x.grad.tolist() == expected and seen.pop() == [list, count]
    finally:
        parts.remove()
    assert not hasattr(taeda.ops.lists, "parts")


def test_results_of_several_kinds():
    from taeda_tensor_core.library import custom_op

    @custom_op("kinds::split", mutates_args=())
    def split(x: Tensor, at: int) -> tuple[Tensor, list[Tensor], int, float]:
        return x[:at] * 2, [x[at:] * 3, x * 1], at, x.sum().item()

    @custom_op("kinds::count", mutates_args=())
    def count(x: Tensor) -> int:
        return x.numel()

    seen = []

    def setup_context(ctx, inputs, output):
        seen.append(output)
        ctx.at, ctx.size = output[2], inputs[0].shape[0]

    def backward(ctx, first, others, at, total):
        assert at is None and total is None
        whole = others[1].clone()
        whole[: ctx.at] += 2 * first
        whole[ctx.at :] += 3 * others[0]
        return whole, None

    split.register_autograd(backward, setup_context=setup_context)
    try:
        for at in (1, 2):
            x = taeda.arange(3.0).requires_grad_()
            first, (rest, same), place, total = split(x, at)
            assert place == at and type(place) is int and total == 3.0 and type(total) is float
            (first.sum() + 10 * rest.sum() + 100 * same.sum()).backward()
            assert x.grad.tolist() == [102.0 if i < at else 130.0 for i in range(3)]
            assert seen[-1][2:] == (at, 3.0) and isinstance(seen[-1][1], list)
        assert count(taeda.ones(2, 3)) == 6 and taeda.ops.kinds.count.default(taeda.ones(2)) == 2
    finally:
        split.remove()
        count.remove()


def test_results_that_do_not_suit_the_types():
    from taeda_tensor_core.library import custom_op

    @custom_op("kinds::wrong", mutates_args=())
    def wrong(x: Tensor, which: int) -> tuple[Tensor, int]:
        return [x + 1, (x + 1, x + 1), (x + 1, 2, 3), (x + 1, "2"), (x, 2)][which]

    try:
        for which in range(4):
            with pytest.raises(
                RuntimeError, match=r"kinds::wrong: expected \(Tensor, int\) as result, found"
            ):
                wrong(taeda.ones(1), which)
        with pytest.raises(RuntimeError, match="one of the arguments itself"):
            wrong(taeda.ones(1), 4)
    finally:
        wrong.remove()


def test_functions_of_a_device_may_be_switched_off():
    from taeda_tensor_core.library import custom_op

    @custom_op("kinds::plus", mutates_args=())
    def plus(x: Tensor) -> Tensor:
        return x + 1

    plus.register_kernel("cpu")(lambda x: x + 5)
    x = taeda.zeros(1)
    try:
        with plus.set_kernel_enabled("cpu", False):
            assert plus(x).item() == 1
            with plus.set_kernel_enabled("cpu"):
                assert plus(x).item() == 5
            assert plus(x).item() == 1
        assert plus(x).item() == 5
        with (
            pytest.warns(UserWarning, match="no function for device 'cuda'"),
            plus.set_kernel_enabled("cuda"),
        ):
            pass
    finally:
        plus.remove()


def test_lists_of_operators_are_checked():
    from taeda_tensor_core.library import custom_op

    @custom_op("lists::wrong", mutates_args=(), device_types="meta")
    def wrong(x: Tensor, same: bool) -> list[Tensor]:
        return [x] if same else x

    try:
        with pytest.raises(
            NotImplementedError, match=r"no function for device 'cpu'; there are some for \['meta'\]"
        ):
            wrong(taeda.ones(1), True)
        with pytest.raises(RuntimeError, match="one of the arguments itself"):
            wrong(taeda.ones(1, device="meta"), True)
        with pytest.raises(RuntimeError, match="expected a list of tensors as result"):
            wrong(taeda.ones(1, device="meta"), False)
    finally:
        wrong.remove()


def test_private_names_of_operators_are_their_functions():
    aten, x = taeda.ops.aten, taeda.arange(4.0).reshape(2, 2)
    sparse = x.to_sparse()
    assert abs(aten.linalg_vector_norm.default(x, 2).item() - 14**0.5) < 1e-6
    assert aten.mT(x).tolist() == x.T.tolist() and aten.is_leaf(x) is True
    assert aten._nnz(sparse) == 3 and aten._values(sparse).tolist() == [1, 2, 3]
    assert aten.log_sigmoid(x).tolist() == taeda.ops.logsigmoid(x).tolist()
    assert aten.__and__.Tensor(x > 1, x > 0).tolist() == [[False, False], [True, True]]
    with pytest.raises(AttributeError, match="no operator named '__nonsense__'"):
        _ = aten.__nonsense__


def test_safe_softmax_has_gradients_where_all_of_a_line_is_left_out():
    pytest.importorskip("taeda_autograd")
    x = taeda.tensor([[1.0, 2.0], [-float("inf"), -float("inf")]], requires_grad=True)
    made = taeda.ops.aten._safe_softmax(x, -1)
    assert made[1].tolist() == [0, 0] and abs(made[0, 1].item() - 0.7310586) < 1e-6
    made[:, 1].sum().backward()
    assert x.grad[1].tolist() == [0, 0] and abs(x.grad[0, 1].item() - 0.1966119) < 1e-6


def test_results_that_may_be_absent_and_writes_without_a_letter():
    taeda.library.define(
        "absent_test::halves", "(Tensor x, Tensor! out, Tensor? more=None) -> (Tensor, Tensor?)"
    )

    taeda.library.register_kernel("absent_test::halves", "xpu", len)

    @taeda.library.register_kernel("absent_test::halves", "default")
    def halves(x, out, more=None):
        out.copy_(x)
        return x / 2, None if more is None else more * 3

    out = taeda.zeros(2)
    first, second = taeda.ops.absent_test.halves(taeda.ones(2), out, taeda.ones(1))
    assert first.tolist() == [0.5, 0.5] and second.tolist() == [3.0] and out.tolist() == [1.0, 1.0]
    first, second = taeda.ops.absent_test.halves(taeda.ones(2), out)
    assert first.tolist() == [0.5, 0.5] and second is None


def test_a_function_that_comes_before_its_operator_waits_for_it():
    early = library.Library("waits_here", "FRAGMENT")
    early.impl("waits_here::twice", lambda x: x + x, "CPU")
    library.impl("waits_here::thrice", "default", lambda x: x + x + x)
    with library.Library("waits_here", "DEF") as late:
        late.define("twice(Tensor x) -> Tensor")
        late.define("thrice(Tensor x) -> Tensor")
        x = taeda.tensor([1.0, 2.0])
        assert late.ns == "waits_here"
        assert taeda.ops.waits_here.twice(x).tolist() == [2.0, 4.0]
        assert taeda.ops.waits_here.thrice(x).tolist() == [3.0, 6.0]
    early.remove()


def test_schemas_name_dtypes_that_are_defaults():
    def cast(x: Tensor, dtype: taeda.dtype = taeda.float64) -> Tensor:
        return x.to(dtype) + 1

    schema = library.infer_schema(cast, mutates_args=())
    assert schema.endswith("dtype=float64) -> Tensor")
    with library.Library("casts_here", "DEF") as lib:
        lib.define("cast" + schema)
        lib.impl("cast", cast, "CPU")
        assert taeda.ops.casts_here.cast(taeda.ones(2)).dtype is taeda.float64


def test_a_function_takes_the_place_of_another_where_it_says_so():
    with library.Library("overridden", "DEF") as lib:
        lib.define("add_some(Tensor x) -> Tensor")
        lib.impl("add_some", lambda x: x + 1, "CPU")
        call = taeda.ops.overridden.add_some
        assert call(taeda.ones(1)).tolist() == [2.0]
        with pytest.raises(RuntimeError):
            lib.impl("add_some", lambda x: x + 2, "CPU")
        lib.impl("add_some", lambda x: x + 2, "CPU", allow_override=True)
        assert call(taeda.ones(1)).tolist() == [3.0]
        taeda.library.register_fake("overridden::add_some", lambda x: x.new_empty(1), lib=lib)
        taeda.library.register_fake(
            "overridden::add_some", lambda x: x.new_empty(3), lib=lib, _stacklevel=2, allow_override=True
        )
        assert call(taeda.ones(1, device="meta")).shape == (3,)


def test_overloads_of_operators_of_ones_own():
    with library._scoped_library("own_overloads", "FRAGMENT") as home:
        home.define("scale.Number(Tensor x, float by) -> Tensor", tags=["said"])
        home.define("scale.Both(Tensor x, Tensor by) -> Tensor")
        home.impl("scale.Number", lambda x, by: x * by, "CPU")
        home.impl("scale.Both", lambda x, by: x * by + 1, "CPU")
        library.register_fake("own_overloads::scale.Both", lambda x, by: taeda.empty_like(x))
        scale, x = taeda.ops.own_overloads.scale, taeda.tensor([1.0, 2.0])
        assert scale.overloads() == ["Number", "Both"] and scale.__name__ == "scale"
        assert scale(x, 3.0).tolist() == [3, 6] and scale(x, x).tolist() == [2, 5]
        assert scale.Both(x, x).tolist() == [2, 5] and scale.Number.name() == "own_overloads::scale.Number"
        assert scale.Both(x.to("meta"), x.to("meta")).shape == (2,)
        assert scale.Number.tags == ["said"] and scale.Both.tags == []
        with pytest.raises(
            TypeError, match=r"own_overloads::scale: no overload takes these arguments: .*'by'"
        ):
            scale(x, "much")
        with pytest.raises(AttributeError, match="Other"):
            scale.Other  # noqa: B018
        home.define("scale(Tensor x, float by, int times) -> Tensor")
        home.impl("scale", lambda x, by, times: x * by * times, "CPU")
        assert scale(x, 2.0, 2).tolist() == [4, 8] and scale.default(x, 1.0, 2).tolist() == [2, 4]
        assert pickle.loads(pickle.dumps(scale)) is scale
    assert not hasattr(taeda.ops.own_overloads, "scale")


def test_what_definitions_say_besides(name):
    from taeda_tensor_core.library._tags import _used

    @library.custom_op(name, mutates_args=(), tags="fast")
    def same(x: Tensor) -> Tensor:
        return x.clone()

    assert same._opoverload.tags == [_used[0].pt2_compliant_tag, "fast"]
    with pytest.raises(ValueError, match=r"'mutates_args'.*\[\].*writes into \['x'\]"):
        library.custom_op(f"{name}_", lambda x: None, mutates_args=(), schema="(Tensor(a!) x) -> ()")
    with pytest.raises(ValueError, match="expected a schema like"):
        library.define(f"{name}b", "b(Tensor x) -> Tensor")
    with library._scoped_library("custom_tests", "FRAGMENT") as home:

        @library.define(home, "thrice_here(Tensor x) -> Tensor")
        def thrice(x):
            return x * 3

        assert taeda.ops.custom_tests.thrice_here(taeda.ones(1)).item() == 3


def test_checks_of_lists_and_of_sizes_that_depend_on_values(name):
    @library.custom_op(name, mutates_args=())
    def places(x: Tensor) -> Tensor:
        return taeda.tensor(np.stack(np.nonzero(x.numpy()), 1))

    @places.register_fake
    def _(x):
        return taeda.empty(library.get_ctx().new_dynamic_size(), x.dim(), dtype=taeda.int64, device="meta")

    @places.register_vmap
    def _(info, dims, x):
        raise NotImplementedError("the sizes depend on values")

    x = taeda.tensor([[1.0, 0.0], [2.0, 3.0]])
    assert set(library.opcheck(places, (x,)).values()) == {"SUCCESS"}

    @library.custom_op(f"{name}l", mutates_args=())
    def halves(x: Tensor) -> list[Tensor]:
        return [taeda.tensor(part) for part in np.array_split(x.numpy(), 2)]

    halves.register_fake(lambda x: [taeda.empty_like(x[:1]), taeda.empty_like(x[1:])])
    assert set(library.opcheck(halves, (x,)).values()) == {"SUCCESS"}
    halves._functions["meta"] = lambda x: [taeda.empty_like(x), taeda.empty_like(x[1:])]
    with pytest.raises(library.OpCheckError, match=r"result 0 of the fake function has shape \(2, 2\)"):
        library.opcheck(halves, (x,))
    halves.remove()


def test_functions_may_give_arguments_back():
    with library._scoped_library("gives_back", "FRAGMENT") as home:
        home.define("same(Tensor x) -> Tensor")
        home.impl("same", lambda x: x, "CPU")
        home.define("grown(Tensor(a!) x) -> (Tensor, Tensor)")
        home.impl("grown", lambda x: (x.add_(1), x + 1), "CPU")
        home.define("counted(Tensor x) -> (Tensor, int)")
        home.impl("counted", lambda x: (x, 3), "CPU")
        home.define("whole(Tensor x) -> Tensor")
        home.impl("whole", lambda x: x, "CompositeImplicitAutograd")
        x, own = taeda.ones(2), taeda.ops.gives_back
        assert own.same(x).data_ptr() == x.data_ptr() and own.whole(x).data_ptr() == x.data_ptr()
        first, second = own.grown(x)
        assert x.tolist() == first.tolist() == [2, 2] and second.tolist() == [3, 3]
        assert own.counted(x)[1] == 3 and own.counted(x)[0].tolist() == [2, 2]


def test_programs_that_are_read_again_change_their_operators(name):
    def made(schema):
        if schema == "one":

            @library.custom_op(name, mutates_args=())
            def scale(x: Tensor) -> Tensor:
                return x * 2

        else:

            @library.custom_op(name, mutates_args=("out",))
            def scale(x: Tensor, by: float, out: Tensor) -> None:
                out.copy_(x * by)

        return scale

    space, short = name.split("::")
    for schema in ("one", "other", "one"):
        scale, out = made(schema), taeda.zeros(1)
        if schema == "one":
            assert scale(taeda.ones(1)).tolist() == [2.0]
        else:
            assert getattr(getattr(taeda.ops, space), short)(taeda.ones(1), 3.0, out) is None
            assert out.tolist() == [3.0]


def test_results_that_may_be_none(name):
    space, short = name.split("::")
    with library.Library(space, "DEF") as made:
        made.define(f"{short}(Tensor x, float above=0.0) -> (Tensor, Tensor?)")
        made.impl(short, lambda x, above=0.0: (x * 2, (x > above).nonzero() if above else None), "CPU")
        made.impl(short, lambda x, above=0.0: (taeda.empty_like(x), None), "Meta")
        made.define(f"{short}_none(Tensor x) -> Tensor?")
        made.impl(f"{short}_none", lambda x: None, "CompositeExplicitAutograd")
        ops, x = getattr(taeda.ops, space), taeda.tensor([1.0, 3.0])
        doubled, places = getattr(ops, short)(x)
        assert doubled.tolist() == [2.0, 6.0] and places is None
        doubled, places = getattr(ops, short)(x, 2.0)
        assert doubled.tolist() == [2.0, 6.0] and places.tolist() == [[1]]
        shape, places = getattr(ops, short)(x.to("meta"))
        assert shape.shape == (2,) and places is None
        assert getattr(ops, f"{short}_none")(x) is None


@pytest.mark.parametrize(
    "declared, given, expected",
    [
        ("float", taeda.tensor([2.5]), 2.5),
        ("float", taeda.tensor(3), 3.0),
        ("float?", taeda.tensor(2.5, dtype=taeda.bfloat16), 2.5),
        ("float[]", [taeda.tensor(1.5), np.float32(2)], [1.5, 2.0]),
        ("int", taeda.tensor(2.75), 2),
        ("int", True, 1),
        ("int?", np.bool_(True), 1),
        ("int[]", (1, taeda.tensor(2), True), [1, 2, 1]),
        ("int[]", np.array([3, 4]), [3, 4]),
        ("bool", taeda.tensor([0.0]), False),
        ("bool", 2, True),
        ("bool?", np.bool_(False), False),
        ("bool[]", [True, 0, taeda.tensor(2)], [1, 0, 1]),
    ],
)
def test_tensors_of_one_element_and_truths_stand_for_numbers(name, declared, given, expected):
    space, short = name.split("::")
    got = []
    with library.Library(space, "FRAGMENT") as lib:
        lib.define(f"{short}(Tensor x, {declared} k) -> Tensor")
        lib.impl(short, lambda x, k: got.append(k) or x.clone(), "CompositeExplicitAutograd")
        getattr(getattr(taeda.ops, space), short)(taeda.ones(1), given)
    assert got == [expected] and type(got[0]) is type(expected)


@pytest.mark.parametrize(
    "declared, given",
    [
        ("float", taeda.ones(2)),
        ("float", taeda.tensor(1j)),
        ("int", taeda.ones(0)),
        ("int", 2.5),
        ("bool", "yes"),
        ("bool[]", taeda.tensor(True)),
    ],
)
def test_what_is_no_number_is_refused(name, declared, given):
    space, short = name.split("::")
    with library.Library(space, "FRAGMENT") as lib:
        lib.define(f"{short}(Tensor x, {declared} k) -> Tensor")
        lib.impl(short, lambda x, k: x.clone(), "CompositeExplicitAutograd")
        with pytest.raises(RuntimeError, match=f"{short}: argument 'k' must be a"):
            getattr(getattr(taeda.ops, space), short)(taeda.ones(1), given)
