"""Graphs of exported programs: operators, expressions of sizes, notes of nodes, what is written."""

from __future__ import annotations

import io

import pytest

import taeda
from taeda import nn
from taeda.export import Dim, export
from taeda.fx.experimental.proxy_tensor import make_fx

aten = taeda.ops.aten


class Strided(nn.Module):
    """Layers whose sizes are quotients of those of their inputs."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        y = self.pool(self.convolution(x).relu())
        rows = y.shape[0] * y.shape[2] * y.shape[3]
        return self.last(y.permute(0, 2, 3, 1).reshape(rows, 4)), y


def nodes(program):
    return {node.name: node for node in program.graph.nodes}


def test_graphs_have_operators_and_expressions_of_sizes():
    net = Strided()
    sizes = {"x": {0: Dim("batch", max=64), 2: Dim.DYNAMIC, 3: Dim.AUTO}}
    program = export(net, (taeda.randn(2, 3, 16, 20),), dynamic_shapes=sizes)
    found = nodes(program)
    assert [n.name for n in program.graph.nodes][:5] == [
        "p_convolution_weight", "p_convolution_bias", "p_last_weight", "p_last_bias", "x"
    ]  # fmt: skip
    called = [n.target for n in program.graph.nodes if n.op == "call_function"]
    assert [target for target in called if isinstance(target, taeda._ops.OpOverload)] == [
        aten.conv2d.default, aten.relu.default, aten.max_pool2d.default, aten.permute.default,
        aten.reshape.default, aten.linear.default,
    ]  # fmt: skip
    batch, height, width = (str(size) for size in (found["x"].meta["val"].shape[i] for i in (0, 2, 3)))
    assert set(program.range_constraints) == {batch, height, width}
    pooled = found["max_pool2d"].meta["val"].shape
    assert isinstance(pooled[2], taeda.SymInt) and pooled[2] == 4 and str(pooled[1]) == "4"
    assert f'x: "f32[{batch}, 3, {height}, {width}]"' in str(program)
    file = io.BytesIO()
    taeda.export.save(program, file)
    again = taeda.export.load(file)
    assert str(again.graph_signature) == str(program.graph_signature)
    assert str(nodes(again)["linear"].meta["val"].shape) == str(found["linear"].meta["val"].shape)
    core = program.run_decompositions()
    assert aten.convolution.default in {node.target for node in core.graph.nodes}
    for shape in ((2, 3, 16, 20), (1, 3, 17, 9), (7, 3, 30, 41)):
        x = taeda.randn(shape)
        for runs in (program.module(), again.module(), core.module()):
            for mine, theirs in zip(runs(x), net(x), strict=True):
                taeda.testing.assert_close(mine, theirs)


def test_what_the_module_reads_may_be_trained():
    net = nn.Linear(3, 2)
    module = export(net, (taeda.ones(4, 3),)).module()
    assert [node.op for node in module.graph.nodes][:3] == ["get_attr", "get_attr", "placeholder"]
    module(taeda.ones(4, 3)).sum().backward()
    assert net.weight.grad.tolist() == [[4.0] * 3] * 2
    for node in module.graph.nodes:
        if node.target is aten.linear.default:
            node.replace_all_uses_with(module.graph.call_function(aten.neg.default, (node,)))
    with pytest.raises(ValueError, match="input tree spec"):
        module(taeda.ones(4, 3), taeda.ones(1))


class Adding(nn.Module):
    def forward(self, x, y):
        return x + y


def test_sizes_that_cannot_vary_alone():
    x = taeda.ones(4, 3)
    program = export(Adding(), (x, x), dynamic_shapes={"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}})
    first, second = (nodes(program)[name].meta["val"].shape for name in "xy")
    assert str(first) == str(second) and len(program.range_constraints) == 1
    assert program.module()(taeda.ones(6, 3), taeda.ones(6, 3)).shape == (6, 3)
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(taeda.ones(6, 3), taeda.ones(5, 3))
    fixed = export(Adding(), (x, x), dynamic_shapes={"x": {1: Dim.AUTO}, "y": None})
    assert fixed.range_constraints == {} and type(nodes(fixed)["x"].meta["val"].shape[1]) is int
    for said in (Dim("n"), Dim.DYNAMIC):
        with pytest.raises(taeda._dynamo.exc.UserError, match="Constraints violated"):
            export(Adding(), (x, x), dynamic_shapes={"x": {1: said}, "y": None})


def test_sizes_derived_from_others():
    class Later(nn.Module):
        def forward(self, x, y):
            return x + y[1:]

    n = Dim("n", min=2, max=10)
    program = export(Later(), (taeda.ones(3), taeda.ones(4)), dynamic_shapes=({0: n}, {0: n + 1}))
    symbol = str(nodes(program)["x"].meta["val"].shape[0])
    assert str(nodes(program)["y"].meta["val"].shape[0]) == f"{symbol} + 1"
    assert program.module()(taeda.ones(5), taeda.ones(6)).shape == (5,)
    with pytest.raises(AssertionError, match=r"y\.size\(\)\[0\] == n \+ 1"):
        program.module()(taeda.ones(5), taeda.ones(5))
    with pytest.raises(taeda._dynamo.exc.UserError, match="Constraints violated"):
        export(Later(), (taeda.ones(3), taeda.ones(4)), dynamic_shapes=({0: n}, {0: 2 * n}))
    assert repr(n + 1) == "n + 1" and repr(Dim("b", max=5)) == "Dim('b', min=0, max=5)"


class Writing(nn.Module):
    """What is written: counters, statistics, an input, a row of a buffer, a tensor of its own."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("rows", taeda.zeros(2, 3))

    def forward(self, x, y):
        self.rows[0] = x[0]
        own = x.clone().mul_(2)
        y.add_(own.sum())
        return self.norm(own) + self.rows.sum()


def test_new_values_in_the_place_of_writes():
    net = Writing()
    given = taeda.randn(4, 3), taeda.zeros(2)
    core = export(net, given, dynamic_shapes=({0: Dim("n", min=2)}, None)).run_decompositions()
    signature = core.graph_signature
    assert set(signature.buffers_to_mutate.values()) == {
        "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"
    }  # fmt: skip
    assert list(signature.user_inputs_to_mutate.values()) == ["y"]
    assert "mul_" not in nodes(core) and len(signature.user_outputs) == 1
    other, first, second = Writing(), taeda.zeros(2), taeda.zeros(2)
    other.load_state_dict(net.state_dict())
    x = taeda.randn(6, 3)
    taeda.testing.assert_close(core.module()(x, first), other(x, second))
    taeda.testing.assert_close(first, second)
    for name, value in other.state_dict().items():
        taeda.testing.assert_close(core.state_dict[name], value)


def test_nodes_tell_where_they_come_from():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(2, 2))

        def forward(self, x):
            return self.inner(x).tanh()

    made = nodes(export(Net(), (taeda.ones(1, 2),), strict=True))
    paths = list(made["linear"].meta["nn_module_stack"])
    assert paths == ["", "inner", "inner.0"] and list(made["tanh"].meta["nn_module_stack"]) == [""]
    assert made["linear"].meta["nn_module_stack"]["inner.0"][1] == "torch.nn.modules.linear.Linear"
    assert "self.inner(x).tanh()" in made["tanh"].stack_trace
    assert made["linear"].meta["source_fn_stack"] == [("inner.0", nn.Linear)]
    assert made["linear"].meta["torch_fn"][0] == "linear_1"


def test_only_operators_of_a_table_are_taken_apart():
    program = export(nn.Sequential(nn.Linear(3, 2), nn.GELU()), (taeda.ones(4, 3),))
    table = {aten.gelu.default: lambda x, approximate="none": taeda.sigmoid(x) * x}
    found = [n.target for n in program.run_decompositions(table).graph.nodes if n.op == "call_function"]
    assert found == [aten.linear.default, aten.sigmoid.default, aten.mul.Tensor]
    whole = taeda.export.default_decompositions()
    found = [n.target for n in program.run_decompositions(whole).graph.nodes if n.op == "call_function"]
    assert found == [aten.t.default, aten.addmm.default, aten.gelu.default]


def test_graphs_of_functions_with_sizes():
    made = make_fx(lambda x: x.reshape(x.shape[0] * 2, -1) + x.shape[1], tracing_mode="symbolic")(
        taeda.ones(4, 6)
    )
    assert [node.name for node in made.graph.nodes][:2] == ["x_1", "sym_size_int"]
    assert aten.view.default in {node.target for node in made.graph.nodes}
    for shape in ((4, 6), (2, 10), (5, 4)):
        x = taeda.randn(shape)
        assert taeda.equal(made(x), x.reshape(shape[0] * 2, -1) + shape[1])
    inner = make_fx(lambda p, x: p["w"] @ x)({"w": taeda.ones(2, 2)}, taeda.ones(2))
    names = [node.name for node in inner.graph.nodes]
    assert names[:2] == ["p_1", "x_1"] and inner.graph.find_nodes(op="placeholder")[0].meta["val"].shape == (
        2,
        2,
    )


def test_compilers_get_described_graphs():
    found = []

    def keep(gm, inputs):
        found.append(gm)
        return gm.forward

    def program(x):
        return nn.functional.relu(x) * 2

    assert taeda.compile(program, backend=keep)(taeda.ones(2)).tolist() == [2.0, 2.0]
    (gm,) = found
    text = gm.print_readable(print_output=False)
    assert 'relu: "f32[2]" = ' in text and "code: return nn.functional.relu(x) * 2" in text
    assert "inplace" not in gm.code and "L_x_ : torch.Tensor" in gm.code
    with taeda.compiler.set_stance("force_eager"):
        taeda.compile(program, backend=keep)(taeda.ones(2))
    assert len(found) == 1


def test_scripts_keep_attributes_with_types_and_refuse_names_that_are_not_there():
    import copy

    attribute = copy.deepcopy(taeda.jit.Attribute([1, 2], list[int]))
    assert attribute.value == [1, 2] and attribute.type == list[int]
    with pytest.raises(RuntimeError, match="undefined value missing"):
        taeda.jit.script(_reads_what_is_not_there)


def _reads_what_is_not_there(x):
    return missing(x)  # noqa: F821


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(taeda.tensor(2.0))

    def forward(self, x):
        return x * self.scale, x + x.shape[0]


class Outer(nn.Module):
    """A module that is called twice, one within a list, and a parameter that two modules read."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Inner(), nn.Sequential(nn.Linear(3, 3), nn.ReLU())])

    def forward(self, x):
        first, second = self.parts[0](x)
        third, _ = self.parts[0](first - second)
        return self.parts[1](third) * self.parts[0].scale


def test_unflattened_programs_call_what_modules_did():
    net = Outer()
    program = export(net, (taeda.randn(4, 3),), dynamic_shapes=({0: Dim("n")},))
    made = taeda.export.unflatten(program)
    called = [str(node.target) for node in made.graph.nodes if node.op == "call_module"]
    assert called == ["parts.0", "parts.0@1", "parts.1"]
    inner = [
        str(node.target) for node in made.get_submodule("parts.1").graph.nodes if node.op == "call_module"
    ]
    assert inner == ["0", "1"]
    assert set(net.state_dict()) <= set(made.state_dict())
    for x in (taeda.randn(4, 3), taeda.randn(7, 3)):
        taeda.testing.assert_close(made(x), net(x))
    made.set_submodule("parts.1", nn.Identity())
    first, second = net.parts[0](x)
    taeda.testing.assert_close(made(x), (first - second) * 4)
    with pytest.raises(AssertionError, match="Guard failed"):
        made(taeda.randn(4, 5))


def test_programs_of_fake_inputs_and_of_one_tensor_twice():
    from taeda._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = taeda.empty(4, 3)
    net = nn.Linear(3, 2)
    module = export(net, (x,), dynamic_shapes=({0: Dim("n")},)).module()
    given = taeda.randn(6, 3)
    taeda.testing.assert_close(module(given), net(given))
    both = export(Adding(), (given, given)).module()
    assert taeda.equal(both(given, given * 2), given * 3)


@pytest.mark.parametrize("strict", [True, False])
def test_calls_of_functions_and_layers_are_found_in_graphs(strict):
    from taeda.fx.passes.utils.source_matcher_utils import check_subgraphs_connected, get_source_partitions

    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 1)).eval()
    graph = export(net, (taeda.ones(1, 3, 6, 6),), strict=strict).module().graph
    found = get_source_partitions(graph, [nn.Conv2d, nn.ReLU, nn.BatchNorm2d, nn.Linear])
    assert set(found) == {nn.Conv2d, nn.BatchNorm2d, nn.ReLU}
    first, second = found[nn.Conv2d]
    (norm,), (last,) = found[nn.BatchNorm2d], found[nn.ReLU]
    assert [node.target for node in first.nodes if node.op != "get_attr"] == [aten.conv2d.default]
    assert [node.op for node in first.input_nodes] == [
        "placeholder"
    ] and norm.input_nodes == first.output_nodes
    assert check_subgraphs_connected(first, norm) and check_subgraphs_connected(last, second)
    assert not check_subgraphs_connected(first, second) and not check_subgraphs_connected(norm, first)
    kept = get_source_partitions(graph, [nn.Conv2d], lambda node: node not in second.nodes)
    assert [part.nodes for part in kept[nn.Conv2d]] == [first.nodes]


def test_objects_are_put_at_paths_of_all_calls():
    from taeda.export.unflatten import _assign_attr, _AttrKind

    net = nn.Module()
    net.add_module("part", nn.Module())
    net.add_module("part@1", nn.Module())
    weight, more = nn.Parameter(taeda.ones(2)), taeda.zeros(3)
    _assign_attr(weight, net, "part.weight", _AttrKind.PARAMETER)
    _assign_attr(more, net, "new.inner.more", _AttrKind.BUFFER, persistent=False)
    _assign_attr(nn.ReLU(), net, "new.act", _AttrKind.MODULE)
    _assign_attr(more, net, "const", _AttrKind.CONSTANT)
    assert net.part.weight is weight is getattr(net, "part@1").weight
    assert net.new.inner.more is more is net.const and not net.new.state_dict()
    assert isinstance(net.new.act, nn.ReLU)
    with pytest.raises(
        AssertionError, match=r"'from_obj' is a Tensor, expected a parameter for 'part\.weight'"
    ):
        _assign_attr(more, net, "part.weight", _AttrKind.PARAMETER)


def test_modules_of_a_program_are_listed_behind_what_it_takes_and_gives():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([nn.Linear(2, 2)])
            self.act = nn.ReLU()
            self.unused = nn.Linear(2, 2)

        def forward(self, x, more, *, factor):
            return {"sum": self.act(self.parts[0](x)) + more["a"], "product": (x * factor,)}

    one = taeda.ones(1)
    program = export(Net(), (taeda.ones(1, 2), {"a": one}), {"factor": one})
    whole, *modules = program.module_call_graph
    assert isinstance(whole, taeda.export.ModuleCallEntry) and whole.fqn == ""
    assert isinstance(whole.signature, taeda.export.ModuleCallSignature)
    assert whole.signature.in_spec == program.call_spec.in_spec and whole.signature.in_spec.num_leaves == 3
    assert whole.signature.out_spec == program.call_spec.out_spec
    assert whole.signature.forward_arg_names == ["x", "more", "factor"]
    assert {module.fqn for module in modules} == {"parts", "parts.0", "act", "unused"}
    assert all(module.signature is None for module in modules)


class Examples(nn.Module):
    """Layers called for one example of a batch, in vmaps with batches at several places."""

    def __init__(self):
        super().__init__()
        self.heads = nn.Parameter(taeda.randn(3, 4, 5))
        self.last = nn.Linear(5, 2)

    def forward(self, x):
        by_head = taeda.vmap(lambda w, one: taeda.tanh(one @ w), in_dims=(0, 1), out_dims=1)(self.heads, x)
        pairs = taeda.vmap(taeda.vmap(lambda a, b: (a - b).abs(), (None, 0)), (0, None))(
            x[:, 0, 0], x[:, 0, 1]
        )
        scaled = x.clone()
        taeda.vmap(lambda one: one.mul_(one.sum()), in_dims=2)(scaled)
        return taeda.vmap(self.last)(by_head), pairs, scaled


def test_programs_have_the_steps_of_vmaps():
    net = Examples()
    program = export(net, (taeda.randn(6, 3, 4),), dynamic_shapes={"x": {0: Dim("batch", min=2, max=64)}})
    file = io.BytesIO()
    taeda.export.save(program, file)
    file.seek(0)
    for kept in (program, program.run_decompositions(), taeda.export.load(file)):
        for size in (6, 9):
            x = taeda.randn(size, 3, 4)
            for found, expected in zip(kept.module()(x), net(x), strict=True):
                taeda.testing.assert_close(found, expected)
    x = taeda.randn(5, 3, 4)
    with taeda.no_grad():
        assert taeda.allclose(taeda.jit.trace(net, (x,))(x)[1], net(x)[1])
    with pytest.raises(taeda.onnx.errors.UnsupportedOperatorError, match="vmap has no counterpart"):
        taeda.onnx.export(net, (x,), io.BytesIO())


def test_errors_leave_no_vmap_of_a_program_in_force():
    module = export(Examples(), (taeda.randn(6, 3, 4),)).module()
    module.heads = nn.Parameter(taeda.randn(3, 7, 5))
    for run in (module, taeda.fx.Interpreter(module).run):
        with pytest.raises(RuntimeError, match="matmul"):
            run(taeda.randn(6, 3, 4))
        assert taeda.randn(2).shape == (2,)  # random numbers are refused in a vmap


class Shelf(nn.Module):
    """Parameters under names of parts that are no attributes."""

    def __init__(self):
        super().__init__()
        self.held = {"0.weight": nn.Parameter(taeda.ones(2)), "1.weight": nn.Parameter(taeda.full((2,), 3.0))}

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        yield from ((f"{prefix}.{name}".lstrip("."), value) for name, value in self.held.items())

    def forward(self, x):
        return x * self.held["0.weight"] + self.held["1.weight"]


def test_parameters_keep_the_names_that_a_module_tells():
    program = export(Shelf(), (taeda.ones(2),))
    assert list(program.state_dict) == ["0.weight", "1.weight"]
    assert program.module()(taeda.full((2,), 2.0)).tolist() == [5.0, 5.0]
