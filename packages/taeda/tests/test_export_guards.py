"""Exported programs ask for what they were exported for: sizes, their bounds, values; none branches on elements."""

import copy
import inspect
import io
import math
from typing import NamedTuple

import pytest

import taeda
from taeda import nn
from taeda._dynamo.exc import UserError
from taeda.export import Dim
from taeda.fx.experimental.symbolic_shapes import ConstraintViolationError, GuardOnDataDependentSymNode
from taeda.utils import _pytree


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x, parts=None, *, scale=1.0):
        out = self.inner(x) * scale
        return out if parts is None else out + parts["a"].sum()


def exported(sizes=None, **options):
    given = (taeda.ones(2, 3), {"a": taeda.ones(4)})
    return taeda.export.export(Net(), given, {"scale": 2.0}, dynamic_shapes=sizes, **options)


def called(program, rows=2, columns=3, more=4, scale=2.0):
    return program.module()(taeda.ones(rows, columns), {"a": taeda.ones(more)}, scale=scale)


BATCH = {"x": {0: Dim("batch", min=2, max=10)}, "parts": {"a": None}, "scale": None}


def test_sizes_stay_as_they_are():
    program = exported()
    assert called(program).shape == (2, 2) and program.range_constraints == {}
    for options, text in (
        ({"rows": 3}, r"x\.size\(\)\[0\] == 2"), ({"columns": 4}, r"x\.size\(\)\[1\] == 3"),
        ({"more": 5}, r"parts\['a'\]\.size\(\)\[0\] == 4"), ({"scale": 3.0}, r"scale == 2\.0"),
    ):  # fmt: skip
        with pytest.raises(AssertionError, match=f"Guard failed: {text}"):
            called(program, **options)
    assert program.module(check_guards=False)(taeda.ones(5, 3), {"a": taeda.ones(1)}, scale=2.0).shape == (
        5,
        2,
    )


def test_sizes_vary_within_bounds():
    program = exported(BATCH)
    (bounds,) = program.range_constraints.values()
    assert str(bounds) == "VR[2, 10]" and 10 in bounds and 11 not in bounds
    assert called(program, rows=10).shape == (10, 2)
    with pytest.raises(AssertionError, match=r"x\.size\(\)\[0\] <= 10"):
        called(program, rows=11)
    with pytest.raises(AssertionError, match=r"x\.size\(\)\[0\] >= 2"):
        called(program, rows=1)
    file = io.BytesIO()
    taeda.export.save(program, file)
    file.seek(0)
    again = taeda.export.load(file)
    assert called(again, rows=5).shape == (5, 2) and again.range_constraints == program.range_constraints
    with pytest.raises(AssertionError, match="<= 10"):
        called(again, rows=11)


class Sum(nn.Module):
    def forward(self, x, *rest, **named):
        return x + sum(rest) + sum(named.values())


@pytest.mark.parametrize(
    "said",
    [
        lambda d: {"x": {0: d}, "rest": ({0: d}, {0: d}), "named": {"y": {0: d}}},
        lambda d: {"x": {0: d}, "rest": [{0: d}, {0: d}], "y": {0: d}},
        lambda d: ({0: d}, ({0: d}, {0: d}), {"y": {0: d}}),
    ],
)
def test_sizes_of_further_arguments_vary(said):
    x = taeda.ones(2, 3)
    program = taeda.export.export(Sum(), (x, x, x), {"y": x}, dynamic_shapes=said(Dim("batch")))
    inputs = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    assert inputs == ["x", "rest_0", "rest_1", "y"]
    x = taeda.ones(5, 3)
    assert program.module()(x, x, x, y=x).tolist() == [[4.0] * 3] * 5
    with pytest.raises(AssertionError, match=r"rest_0\.size\(\)\[1\] == 3"):
        program.module()(x, taeda.ones(5, 4), x, y=x)
    with pytest.raises(UserError, match="rest"):
        taeda.export.export(Sum(), (x, x, x), {"y": x}, dynamic_shapes={"rest": {0: Dim("batch")}})


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


class Named(NamedTuple):
    first: object
    second: object


class OfPairs(nn.Module):
    def forward(self, pair):
        return pair.first * 2 + pair.second.sum()


@pytest.fixture
def registered_pair():
    def named(pair):
        return [(_pytree.GetAttrKey("first"), pair.first), (_pytree.GetAttrKey("second"), pair.second)], None

    _pytree.register_pytree_node(
        Pair,
        lambda pair: ([pair.first, pair.second], None),
        lambda members, _: Pair(*members),
        serialized_type_name="test_export_guards.Pair",
        flatten_with_keys_fn=named,
    )
    yield
    _pytree._deregister_pytree_node(Pair)


@pytest.mark.parametrize("kind", [Pair, Named])
@pytest.mark.parametrize("say", [lambda kind, *said: list(said), lambda kind, *said: kind(*said)])
def test_sizes_within_registered_classes_vary(kind, say, registered_pair):
    said = say(kind, {0: Dim("n")}, None)
    program = taeda.export.export(OfPairs(), (kind(taeda.ones(3), taeda.ones(2)),), dynamic_shapes=(said,))
    assert program.module()(kind(taeda.ones(5), taeda.ones(2))).tolist() == [4.0] * 5
    with pytest.raises(AssertionError, match="second"):
        program.module()(kind(taeda.ones(5), taeda.ones(3)))


def test_one_size_is_the_same_everywhere():
    class Sum(nn.Module):
        def forward(self, x, y):
            return x.sum() + y.sum()

    size = Dim("n")
    program = taeda.export.export(Sum(), (taeda.ones(3), taeda.ones(3)), dynamic_shapes=({0: size}, (size,)))
    assert program.module()(taeda.ones(5), taeda.ones(5)).item() == 10.0
    with pytest.raises(AssertionError, match=r"y\.size\(\)\[0\] == x\.size\(\)\[0\]"):
        program.module()(taeda.ones(5), taeda.ones(4))
    each = {"x": {0: Dim.DYNAMIC}, "y": {0: Dim.AUTO}}
    free = taeda.export.export(Sum(), (taeda.ones(3), taeda.ones(3)), dynamic_shapes=each).module()
    assert free(taeda.ones(5), taeda.ones(4)).item() == 9.0


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"z": None}, "arg names"), (({0: 2},), "entries"), ({"x": {2: Dim("n")}}, "dimension 2"),
        ({"x": (None,)}, "expected 2, but got 1"), ({"x": {0: Dim("n", min=5)}}, "not in range"),
        ({"x": {0: 7}}, "says 7"),
        ({"x": {0: "n"}}, "expected Dim"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_inputs_is_told(sizes, text):
    with pytest.raises((UserError, ConstraintViolationError), match=text):
        exported(sizes)


class Branching(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


def test_branches_on_elements_are_refused():
    with pytest.raises(GuardOnDataDependentSymNode, match=r"data-dependent.*cond"):
        taeda.export.export(Branching(), (taeda.ones(2),))
    program = taeda.export.draft_export(Branching(), (taeda.ones(2),)).module()
    assert program(-taeda.ones(2)).tolist() == [0.0, 0.0]  # the way of the example

    class Chosen(nn.Module):
        def forward(self, x):
            return taeda.where(x.sum() > 0, x + 1, x - 1)

    assert taeda.export.export(Chosen(), (taeda.ones(2),)).module()(-taeda.ones(2)).tolist() == [-2.0, -2.0]


def test_numbers_are_taken_out_of_tensors_again():
    class Sized(nn.Module):
        def forward(self, x):
            n = x.max().item()
            return taeda.zeros(n + 1) + n, x * n

    program = taeda.export.export(Sized(), (taeda.tensor([2, 3]),)).module()
    zeros, product = program(taeda.tensor([4, 1]))
    assert zeros.tolist() == [4.0] * 5 and product.tolist() == [16, 4]


def test_programs_in_operators():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
            self.register_buffer("seen", taeda.zeros(()))
            self.fixed = taeda.ones(2)

        def forward(self, x, scale):
            self.seen.add_(1)
            return {"y": self.inner(x) * scale + self.fixed}

    net = Counting()
    sizes = {"x": {0: Dim("batch", max=8)}, "scale": None}
    program = taeda.export.export(net, (taeda.ones(2, 3), 2.0), dynamic_shapes=sizes)
    seen = net.seen.item()
    core = program.run_decompositions()
    assert net.seen.item() == seen  # it runs once more, and leaves no trace
    assert [n.name for n in core.graph.nodes if n.op == "placeholder"] == [
        "p_inner_0_weight", "p_inner_0_bias", "b_seen", "c_fixed", "x", "scale"
    ]  # fmt: skip
    found = [str(n.target) for n in core.graph.nodes if n.op == "call_function"]
    assert found == [
        "aten.add.Tensor", "aten.t.default", "aten.addmm.default", "aten.relu.default", "aten.mul.Tensor",
        "aten.add.Tensor",
    ]  # fmt: skip
    signature = core.graph_signature
    assert signature.inputs_to_parameters["p_inner_0_weight"] == "inner.0.weight"
    assert signature.user_inputs == ("x", 2.0) and signature.user_outputs == ("add_1",)
    assert signature.buffers_to_mutate == {"add": "seen"}
    state = [net.inner[0].weight, net.inner[0].bias, net.seen, net.fixed]
    counted, y = core.graph_module(*state, taeda.full((2, 3), 2.0), 2.0)
    assert counted.item() == seen + 1 and net.seen.item() == seen
    assert taeda.equal(y, net(taeda.full((2, 3), 2.0), 2.0)["y"])
    assert core.module()(taeda.ones(5, 3), 2.0)["y"].shape == (5, 2)


class Conditional(nn.Module):
    """A branch on a sum, with a layer, a buffer, a tensor and a size from around it."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.register_buffer("shift", taeda.ones(3))

    def forward(self, x, y):
        rows, moved = x.shape[0], y.sin()

        def up(x):
            return self.inner(x) + moved + self.shift

        def down(x):
            return x - moved * rows

        return taeda.cond(x.sum() > 0, up, down, (x,)) * 2


def test_both_branches_of_cond_are_exported():
    module = Conditional()
    given = (taeda.ones(2, 3), taeda.ones(3))
    program = taeda.export.export(module, given, dynamic_shapes={"x": {0: Dim("n")}, "y": None})
    file = io.BytesIO()
    taeda.export.save(program, file)
    file.seek(0)
    for runs in (program.module(), taeda.export.load(file).module()):
        for x in (taeda.ones(4, 3), -taeda.ones(5, 3)):
            assert taeda.equal(runs(x, taeda.full((3,), 0.5)), module(x, taeda.full((3,), 0.5)))
    (node,) = program.graph.find_nodes(op="call_function", target=taeda.cond)
    assert [part.target for part in node.args[1:3]] == ["true_graph_0", "false_graph_0"]
    called = {part.target for part in program.graph_module.false_graph_0.graph.nodes}
    aten = taeda.ops.aten
    assert {aten.mul.Tensor, aten.sub.Tensor} <= called and aten.linear.default not in called


def test_both_branches_of_cond_are_kept_as_operators():
    module, y = Conditional(), taeda.ones(3)
    program = taeda.export.export(module, (taeda.ones(2, 3), y)).run_decompositions()
    state = [program.state_dict[name] for name in ("inner.weight", "inner.bias", "shift")]
    for x in (taeda.ones(2, 3), -taeda.ones(2, 3)):
        (out,) = program.graph_module(*state, x, y)
        taeda.testing.assert_close(out, module(x, y))


def test_cond_inside_of_cond_and_of_containers():
    class Nested(nn.Module):
        def forward(self, both):
            def inner(pair):
                return taeda.cond(
                    pair["a"].max() > 2, lambda a: (a + 2, a), lambda a: (a * 3, -a), (pair["a"],)
                )

            first, second = taeda.cond(
                both["a"].sum() > 0, inner, lambda pair: (pair["b"] - 1, pair["a"] * 1), (both,)
            )
            return first + 10 * second

    runs = taeda.export.export(Nested(), ({"a": taeda.ones(2), "b": taeda.ones(2)},)).module()
    for value in (1.0, 3.0, -1.0):
        both = {"a": taeda.full((2,), value), "b": taeda.zeros(2)}
        assert taeda.equal(runs(both), Nested()(both))


def test_branches_that_do_not_fit_are_refused():
    class Uneven(nn.Module):
        def forward(self, x):
            return taeda.cond(x.sum() > 0, lambda x: (x, x), lambda x: (x,), (x,))

    class Asking(nn.Module):
        def forward(self, x):
            return taeda.cond(x.sum() > 0, lambda x: x if x.sum() > 1 else -x, lambda x: x, (x,))

    with pytest.raises(RuntimeError, match="cond: the branches gave"):
        taeda.export.export(Uneven(), (taeda.ones(2),))
    with pytest.raises(GuardOnDataDependentSymNode):
        taeda.export.export(Asking(), (taeda.ones(2),))


def test_export_leaves_buffers_and_inputs_as_they_were():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", taeda.zeros(()))
            self.register_buffer("last", taeda.zeros(2))
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            self.calls.add_(1)
            self.last = x * 2
            return self.norm(x.mul_(3))

    module, x = Counting(), taeda.ones(4, 2)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    program = taeda.export.export(module, (x,))
    assert taeda.equal(x, taeda.ones(4, 2))
    for name, value in module.state_dict().items():
        assert taeda.equal(value, before[name]), name
    program.module()(x)
    assert module.calls.item() == 1 and taeda.equal(x, taeda.full((4, 2), 3.0))


class Loop(nn.Module):
    """Newton's steps towards a square root, as many as they take, with a parameter and a tensor from around them."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(taeda.tensor(1.0))

    def forward(self, x):
        whole = x.sum() * self.scale

        def far(rounds, root):
            return ((root * root - whole).abs() > 1e-4) & (rounds < 50)

        def step(rounds, root):
            return rounds + 1, (root + whole / root) / 2

        rounds, root = taeda.while_loop(far, step, (taeda.tensor(0), taeda.ones(())))
        return rounds * 2, root


def test_loops_are_exported():
    module = Loop()
    program = taeda.export.export(module, (taeda.full((2,), 2.0),))
    (node,) = program.graph.find_nodes(op="call_function", target=taeda.while_loop)
    assert [part.target for part in node.args[:2]] == ["cond_graph_0", "body_graph_0"]
    decomposed = program.run_decompositions()
    for value in (0.1, 2.0, 5e4):
        x = taeda.full((2,), value)
        rounds, root = program.module()(x)
        assert rounds.item() == module(x)[0].item() > 0
        taeda.testing.assert_close(root, (2 * x[0]).sqrt(), rtol=1e-4, atol=1e-4)
        again = decomposed.module()(x)
        assert [y.item() for y in again] == [rounds.item(), root.item()]


def test_loops_that_do_not_fit_are_refused():
    class Growing(nn.Module):
        def forward(self, x):
            return taeda.while_loop(lambda x: x.sum() < 9, lambda x: taeda.cat([x, x]), (x,))

    class Uncarried(nn.Module):
        def forward(self, x):
            return taeda.while_loop(lambda n: n < 5, lambda n: n + x.sum(), (1,))

    for module, text in ((Growing(), "body_fn gave"), (Uncarried(), "expected tensors")):
        with pytest.raises(RuntimeError, match=f"while_loop: .*{text}"):
            taeda.export.export(module, (taeda.ones(2),))


def test_an_unflattened_program_has_the_names_of_the_module():
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
    module.register_buffer("shift", taeda.ones(3))
    module.forward = lambda x: module[1](module[0](x)) + module.shift
    made = taeda.export.unflatten(taeda.export.export(module, (taeda.ones(4, 2),)))
    assert list(made.state_dict()) == list(module.state_dict())
    other, x = copy.deepcopy(made), taeda.randn(4, 2)
    other.shift.zero_()
    nn.init.zeros_(other.get_parameter("0.weight"))
    taeda.testing.assert_close(made(x), module(x))
    assert not taeda.allclose(other(x), module(x))
    other.load_state_dict(module.state_dict())
    taeda.testing.assert_close(other(x), module(x))
    taeda.testing.assert_close(other.double()(x.double()), module.double()(x.double()))


class Both(nn.Module):
    def forward(self, given, scale=2.0):
        return given["a"] * scale + given["others"][0].sum()


def test_sizes_said_tensor_by_tensor():
    a, b = taeda.ones(2, 3), taeda.ones(4)
    shapes = taeda.export.ShapesCollection()
    shapes[a] = {0: Dim("n", max=9)}
    shapes[b] = (Dim.DYNAMIC,)
    assert len(shapes) == 2 and shapes[b] == (Dim.DYNAMIC,)
    runs = taeda.export.export(Both(), ({"a": a, "others": [b]},), dynamic_shapes=shapes).module()
    assert runs({"a": taeda.ones(5, 3), "others": [taeda.ones(7)]}).tolist() == [[9.0] * 3] * 5
    with pytest.raises(AssertionError, match="Guard failed"):
        runs({"a": taeda.ones(10, 3), "others": [taeda.ones(7)]})
    with pytest.raises(AssertionError, match="do not match"):
        shapes[a] = {1: Dim("n")}
    with pytest.raises(AssertionError, match="expected a tensor"):
        shapes[3] = {}
    with pytest.raises(ValueError, match="not found in the inputs"):
        taeda.export.export(Both(), ({"a": a, "others": [b.clone()]},), dynamic_shapes=shapes)


def test_sizes_shown_by_further_inputs():
    shapes = taeda.export.AdditionalInputs()
    shapes.add(({"a": taeda.ones(5, 3), "others": [taeda.ones(4)]},), {"scale": 2.0})
    given = {"a": taeda.ones(2, 3), "others": [taeda.ones(4)]}
    program = taeda.export.export(Both(), (given,), {"scale": 2.0}, dynamic_shapes=shapes)
    shapes.verify(program)
    runs = program.module()
    assert runs({"a": taeda.ones(8, 3), "others": [taeda.ones(4)]}, scale=2.0).shape == (8, 3)
    for wrong in (
        {"a": taeda.ones(8, 4), "others": [taeda.ones(4)]},
        {"a": taeda.ones(8, 3), "others": [taeda.ones(5)]},
    ):
        with pytest.raises(AssertionError, match="Guard failed"):
            runs(wrong, scale=2.0)
    shapes.add((given,), {"scale": 3.0})
    with pytest.raises(ValueError, match="differing values"):
        taeda.export.export(Both(), (given,), {"scale": 2.0}, dynamic_shapes=shapes)
    with pytest.raises(AssertionError, match="must be a tuple"):
        shapes.add([given])


def test_arguments_of_exports_have_names():
    for function, names in (
        (taeda.export.export, ("strict", "prefer_deferred_runtime_asserts_over_guards")),
        (taeda.export.draft_export, ("strict", "preserve_module_call_signature")),
        (taeda.export.save, ("opset_version", "pickle_protocol")),
        (taeda.export.load, ("expected_opset_version",)),
        (taeda.onnx.export, ("do_constant_folding", "optimize", "report", "artifacts_dir")),
        (taeda.fx.experimental.proxy_tensor.make_fx, ("pre_dispatch", "record_stack_traces")),
    ):
        assert set(names) <= set(inspect.signature(function).parameters)
        with pytest.raises(TypeError, match="misspelt"):
            function(Net(), (), misspelt=True)
    file = io.BytesIO()
    taeda.export.save(exported(), file, pickle_protocol=4)
    file.seek(0)
    assert called(taeda.export.load(file)).shape == (2, 2)


class Holding(nn.Module):
    """Tensors as plain attributes, and a buffer that is no part of the state."""

    def __init__(self):
        super().__init__()
        self.fixed = taeda.tensor([2.0, 3.0])
        self.weight = nn.Parameter(taeda.tensor([1.0, -1.0]))
        self.register_buffer("loose", taeda.tensor([0.5, 0.5]), persistent=False)

    def forward(self, x):
        return x * self.fixed + self.weight + self.loose


class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Holding()

    def forward(self, x, x_0):
        more = 10 if taeda.compiler.is_exporting() else 0
        return self.inner(x[0]) + self.inner.fixed + x_0 + more


def test_what_programs_hold_has_its_own_path_and_inputs_have_names_of_their_own():
    from taeda._export.utils import get_buffer, get_lifted_tensor_constant, get_param, is_buffer, is_param
    from taeda.export.exported_program import ExportedProgram, InputKind

    net = Around()
    program = taeda.export.export(net, ([taeda.ones(2)], taeda.zeros(2)))
    assert type(program) is ExportedProgram and not taeda.compiler.is_compiling()
    assert set(program.constants) == {"inner.fixed", "inner.loose"} and list(program.state_dict) == [
        "inner.weight"
    ]
    (spec,) = (s for s in program.graph_signature.input_specs if s.kind is InputKind.CONSTANT_TENSOR)
    assert spec.target == "inner.fixed" and spec.arg.name == "c_inner_fixed"
    assert program.graph_signature.user_inputs == ("x_0", "x_0_1")
    file = io.BytesIO()
    taeda.export.save(program, file)
    for each in (program, taeda.export.load(file), taeda.export.load(io.BytesIO(file.getvalue()))):
        assert each.module()([taeda.tensor([1.0, 2.0])], taeda.ones(2)).tolist() == [16.5, 19.5]
        assert each.graph_signature.lifted_tensor_constants == ("inner.fixed",)
    read = [node for node in program.graph.nodes if node.op == "placeholder"]
    assert [get_param(program, node) is net.inner.weight for node in read] == [
        is_param(program, n) for n in read
    ]
    assert (
        sum(is_buffer(program, node) for node in read) == sum(is_param(program, node) for node in read) == 1
    )
    core = program.run_decompositions()
    held = {node.name: node for node in core.graph.nodes if node.op == "placeholder"}
    assert is_param(core, held["p_inner_weight"]) and not is_param(core, held["b_inner_loose"])
    assert get_param(core, held["p_inner_weight"]) is net.inner.weight
    assert is_buffer(core, held["b_inner_loose"])
    assert get_buffer(core, held["b_inner_loose"]).tolist() == [0.5, 0.5]
    assert get_lifted_tensor_constant(core, held["c_inner_fixed"]).tolist() == [2.0, 3.0]
    assert get_param(core, held["x_0"]) is None


def test_sizes_in_the_order_of_the_signature_and_under_one_name():
    class Sums(nn.Module):
        def forward(self, a, first, second):
            return a.sum() + first.sum() - second.sum()

    given = (taeda.ones(4),), {"second": taeda.ones(4), "first": taeda.zeros(4)}
    program = taeda.export.export(Sums(), *given, dynamic_shapes=(None, {0: Dim("rows")}, None))
    assert program.module()(taeda.ones(4), second=taeda.ones(4), first=taeda.ones(9)).item() == 9
    other = (None, {0: Dim("rows", min=2)}, {0: Dim("rows", max=9)})
    with pytest.raises(UserError, match=r"different definitions VR\[0, 9\] and VR\[2, int_oo\] .* rows"):
        taeda.export.export(Sums(), *given, dynamic_shapes=other)


def test_sparse_inputs():
    class Dense(nn.Module):
        def forward(self, x):
            return x.to_dense() + 1

    x = taeda.eye(2).to_sparse()
    assert taeda.export.export(Dense(), (x,)).module()(x).tolist() == [[2, 1], [1, 2]]


class _Ways(nn.Module):
    """A program that goes on by what it asks of a size."""

    def __init__(self, asked):
        super().__init__()
        self.asked = asked

    def forward(self, x):
        return x + 1 if self.asked(x) else x - 1


@pytest.mark.parametrize(
    ("asked", "shape", "bounds"),
    [
        (lambda x: x.shape[0] > 5, (3, 4), (0, 5)),
        (lambda x: x.size(0) > 5, (8, 4), (6, None)),
        (lambda x: not x.shape[0] * 2 + 1 <= 20, (3, 4), (0, 9)),
        (lambda x: x.shape[0] // 8, (8, 4), (8, None)),
        (lambda x: x.shape[0] in (7, 9), (8, 4), (8, 8)),
        (lambda x: x.shape[0] < 1000, (8, 4), (0, None)),  # further than is looked
        (lambda x: x.shape[1] == 4, (8, 4), (0, None)),  # a size that stays
        (lambda x: x.shape[0] % 2 == 0, (4, 4), None),  # no bounds say it
        (lambda x: x.shape[0] == x.shape[1], (4, 4), None),
    ],
)
def test_a_way_taken_by_a_size_is_taken_within_the_sizes_that_go_it(asked, shape, bounds):
    program, x = _Ways(asked), taeda.arange(float(shape[0] * shape[1])).view(shape)
    if bounds != (0, None):
        with pytest.raises(UserError, match="Constraints violated"):  # it was said that all go
            taeda.export.export(program, (x,), dynamic_shapes=({0: Dim("rows")},))
    found = taeda.export.export(program, (x,), dynamic_shapes=({0: Dim.AUTO},))
    ranges = [(each.lower, each.upper) for each in found.range_constraints.values()]
    if bounds in (None, (8, 8)):
        assert ranges in ([], [bounds])
    else:
        assert ranges == [bounds]
    for rows in range(2, 20):
        y = taeda.arange(float(rows * 4)).view(rows, 4)
        within = (not ranges and rows == shape[0]) or any(
            least <= rows <= (rows if most is None else most) for least, most in ranges
        )
        if within:
            assert taeda.equal(found.module()(y), program(y))
        else:
            with pytest.raises(AssertionError, match="Guard failed"):
                found.module()(y)


def _of_rows(function):
    """A module that calls a function."""

    class Rows(nn.Module):
        def forward(self, x):
            return function(x)

    return Rows()


TAKEN = {
    "range": lambda x: sum(x[i] * 2 for i in range(x.shape[0])),
    "len": lambda x: taeda.stack([x[i] * i for i in range(len(x))]),
    "int": lambda x: x * int(x.shape[0]),
    "reshape": lambda x: x.reshape(len(x), -1) + 1,
    "repeated": lambda x: taeda.ones([2] * x.shape[0]).sum() + x,
    "iteration": lambda x: taeda.stack([row.sum() for row in x]),
    "unbind": lambda x: taeda.cat(x.unbind(0)),
    "root": lambda x: x / math.sqrt(x.shape[0]),
    "index": lambda x: x + [1, 2, 3, 4, 5, 6, 7, 8, 9][x.shape[0]],
    "unpacked": lambda x: (lambda a, b, c, d: a + b + c + d)(*x),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_size_that_is_taken_for_a_number_is_no_size_that_varies(name):
    net, x = _of_rows(TAKEN[name]), taeda.arange(12.0).reshape(4, 3)
    for said in (Dim("rows", min=2, max=8), Dim.DYNAMIC):
        with pytest.raises(UserError, match=r"Constraints violated(.|\n)*Suggested fixes(.|\n)* = 4"):
            taeda.export.export(net, (x,), dynamic_shapes={"x": {0: said}})
    program = taeda.export.export(net, (x,), dynamic_shapes={"x": {0: Dim.AUTO}}).module()
    assert taeda.equal(program(x + 1), net(x + 1))
    with pytest.raises(AssertionError, match=r"Guard failed: x\.size\(\)\[0\] == 4"):
        program(taeda.ones(6, 3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.mean(0) * (x.shape[0] ** 0.5),
        lambda x: x.sum(0) * (1 / x.shape[0]) + x.shape[0] / 2,
        lambda x: x * (x.shape[0] * 2.0 - 1) // (x.shape[1] + 0.5),
        lambda x: x + pow(x.shape[1], 2, 5),
    ],
)
def test_fractions_of_sizes_are_followed(function):
    net, x = _of_rows(function), taeda.arange(12.0).reshape(4, 3)
    program = taeda.export.export(net, (x,), dynamic_shapes={"x": {0: Dim("rows", min=2, max=8)}}).module()
    for rows in (2, 5, 8):
        y = taeda.arange(3.0 * rows).reshape(rows, 3)
        assert taeda.equal(program(y), net(y))


def test_a_branch_narrows_a_size_that_may_vary():
    net = _of_rows(lambda x: x * 2 if x.shape[0] > 5 else x + 1)
    for said in (Dim.DYNAMIC, Dim.AUTO):
        program = taeda.export.export(net, (taeda.ones(4, 3),), dynamic_shapes={"x": {0: said}}).module()
        assert taeda.equal(program(taeda.ones(5, 3)), taeda.full((5, 3), 2.0))
        with pytest.raises(AssertionError, match=r"Guard failed: x\.size\(\)\[0\] <= 5"):
            program(taeda.ones(6, 3))


def test_programs_that_do_another_thing_each_time_are_exported():
    class Counting(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x + self.calls

    program = taeda.export.export(Counting(), (taeda.ones(4),), dynamic_shapes={"x": {0: Dim("n", min=2)}})
    assert program.module()(taeda.ones(7)).shape == (7,)


def test_a_number_out_of_a_tensor_cuts_what_another_chose():
    class Best(nn.Module):
        def forward(self, scores, most):
            places = taeda.nonzero(scores > 0.15)
            n = taeda.minimum(most, taeda.tensor(places.shape[0])).item()
            taeda._check_is_size(n)
            kept, order = scores[scores > 0.15].sort(descending=True)
            rows, columns = places[order[:n]].unbind(dim=1)
            return kept[:n], rows, columns

    scores = taeda.tensor([[0.1, 0.3, 0.2], [0.12, 0.7, 0.9], [0.02, 0.8, 0.08]])
    program = taeda.export.export(Best(), (scores, taeda.tensor(4)))
    for given in ((scores, taeda.tensor(4)), (scores * 2, taeda.tensor(2)), (scores / 3, taeda.tensor(9))):
        for found, expected in zip(program.module()(*given), Best()(*given), strict=True):
            assert taeda.equal(found, expected)
