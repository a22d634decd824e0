"""Programs as graphs: tracing, reading, changing, running, copying."""

import copy
import math
import operator
import pickle

import pytest

import taeda
from taeda import fx, nn
from taeda.fx.passes.graph_manipulation import replace_target_nodes_with
from taeda.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper

F = nn.functional


def keep_sign(x):
    return x if x.sum() > 0 else -x


fx.wrap("keep_sign")
fx.wrap("len")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.scale = nn.Parameter(taeda.full((4,), 2.0))
        self.register_buffer("shift", taeda.ones(4))

    def forward(self, x, gain: float = 1.0):
        batch, _ = x.shape
        y = self.body(x) * self.scale + self.shift
        return F.softmax(y.view(batch, -1) * gain, dim=1)


def lines(code):
    return [line.strip() for line in code.strip().splitlines()]


def test_a_function_becomes_a_graph_and_its_source():
    traced = fx.symbolic_trace(lambda x, y: taeda.relu(x) + y.sum(dim=0))
    assert str(traced.graph).splitlines() == [
        "graph():",
        "    %x : [num_users=1] = placeholder[target=x]",
        "    %y : [num_users=1] = placeholder[target=y]",
        "    %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})",
        "    %sum_1 : [num_users=1] = call_method[target=sum](args = (%y,), kwargs = {dim: 0})",
        "    %add : [num_users=1] = call_function[target=operator.add](args = (%relu, %sum_1), kwargs = {})",
        "    return add",
    ]
    assert lines(traced.code) == [
        "def forward(self, x, y):",
        "relu = torch.relu(x);  x = None",
        "sum_1 = y.sum(dim = 0);  y = None",
        "add = relu + sum_1;  relu = sum_1 = None",
        "return add",
    ]
    x = taeda.tensor([-1.0, 2.0])
    assert traced(x, taeda.ones(3, 2)).tolist() == [3.0, 5.0]


def test_a_module_keeps_its_members_and_its_results():
    net = Net()
    traced = fx.symbolic_trace(net)
    x = taeda.randn(5, 3)
    assert taeda.equal(traced(x), net(x)) and taeda.equal(traced(x, 3.0), net(x, 3.0))
    assert traced.state_dict().keys() == net.state_dict().keys()
    assert traced.body.get_submodule("0").weight is net.body[0].weight
    assert [n.target for n in traced.graph.nodes if n.op == "call_module"] == ["body.0", "body.1"]
    assert type(traced).__name__ == "Net" and isinstance(traced, fx.GraphModule)
    traced(x).sum().backward()
    assert net.scale.grad is not None
    traced.graph.lint()


def test_variable_arguments_defaults_and_keywords():
    def program(a, *rest, factor=2, **named):
        return (a + rest[0]) * factor + named["b"]

    traced = fx.symbolic_trace(program)
    targets = [n.target for n in traced.graph.nodes if n.op == "placeholder"]
    assert targets == ["a", "factor", "*rest", "**named"]
    assert traced(taeda.ones(1), 5, taeda.ones(1), b=1).tolist() == [11.0]


def test_marked_functions_and_functions_of_math_are_one_step():
    def program(x):
        return keep_sign(x) + len(x) + math.sqrt(x.size(0)) + math.sqrt(4)

    traced = fx.symbolic_trace(program)
    called = [n.target for n in traced.graph.nodes if n.op == "call_function"]
    assert called[:2] == [keep_sign, len] and called.count(math.sqrt) == 1
    assert traced(taeda.tensor([-1.0, -1.0, -1.0, -1.0])).tolist() == [9.0] * 4
    assert math.sqrt(9) == 3 and not hasattr(math.sqrt, "__wrapped__")
    assert len("ab") == 2 and nn.Module.__call__.__name__ == "__call__"


def test_marks_belong_to_the_outermost_level():
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("len")
    with pytest.raises(RuntimeError, match="callable or string"):
        fx.wrap(3)


@pytest.mark.parametrize(
    ("program", "error", "text"),
    [
        (lambda x: 1 if x else 2, fx.proxy.TraceError, "control flow"),
        (lambda x: [y for y in x], fx.proxy.TraceError, "cannot be iterated"),  # noqa: C416
        (lambda x: range(len_of(x)), RuntimeError, "'len' is not supported"),
    ],
)
def test_what_depends_on_values_is_refused(program, error, text):
    with pytest.raises(error, match=text):
        fx.symbolic_trace(program)
    assert not fx._symbolic_trace.is_fx_tracing()


def len_of(x):
    return x.__len__()


def test_given_values_are_held_to():
    def program(x, double):
        return x * 2 if double else x

    traced = fx.symbolic_trace(program, concrete_args={"double": True})
    assert traced(taeda.ones(1), True).tolist() == [2.0]
    with pytest.raises(AssertionError, match="specialized to have value True"):
        traced(taeda.ones(1), False)


def test_sizes_are_taken_apart():
    traced = fx.symbolic_trace(lambda x: x.reshape(x.shape[0] * 2, -1)[..., None, 1:].transpose(0, 1))
    x = taeda.arange(24.0).reshape(2, 3, 4)
    assert taeda.equal(traced(x), x.reshape(4, -1)[..., None, 1:].transpose(0, 1))
    assert isinstance(fx.Proxy(fx.Graph().placeholder("x")), fx.Proxy)


def test_nodes_can_be_changed():
    traced = fx.symbolic_trace(lambda x: taeda.relu(x) + 1)
    node = next(n for n in traced.graph.nodes if n.target is taeda.relu)
    with traced.graph.inserting_after(node):
        new = traced.graph.call_function(taeda.neg, (node.args[0],))
    assert node.replace_all_uses_with(new) == [n for n in traced.graph.nodes if n.name == "add"]
    with pytest.raises(RuntimeError, match="1 users"):
        traced.graph.erase_node(new)
    traced.graph.erase_node(node)
    traced.recompile()
    assert traced(taeda.ones(1)).tolist() == [0.0]
    traced.graph.lint()
    with pytest.raises(TypeError, match="immutable_list"):
        traced.graph.call_function(taeda.cat, ([new],)).args[0].append(1)


def test_what_nobody_uses_goes():
    def program(x):
        taeda.sigmoid(x)
        return x.add(1)

    traced = fx.symbolic_trace(program)
    assert traced.graph.eliminate_dead_code() and not traced.graph.eliminate_dead_code()
    traced.recompile()
    assert [n.name for n in traced.graph.nodes] == ["x", "add", "output"]
    assert traced(taeda.zeros(1)).tolist() == [1.0]


def test_lint_finds_what_stands_in_the_wrong_order():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(taeda.relu, (x,))
    b = graph.call_function(taeda.neg, (a,))
    graph.output(b)
    a.append(a)
    b.append(a)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()


def test_graphs_are_made_by_hand_from_a_dict_of_members():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(
        graph.call_function(taeda.mul, (graph.call_module("part.linear", (x,)), graph.get_attr("scale")))
    )
    members = {"part.linear": nn.Linear(2, 2), "scale": taeda.full((2,), 3.0)}
    module = fx.GraphModule(members, graph)
    x = taeda.randn(1, 2)
    assert taeda.equal(module(x), members["part.linear"](x) * 3)
    with pytest.raises(RuntimeError, match="not provided in ``root``"):
        fx.GraphModule({}, graph)


def test_copies_and_pickles_compute_the_same():
    traced = fx.symbolic_trace(Net())
    x = taeda.randn(2, 3)
    deep, loaded = copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))
    for other in (deep, loaded, copy.copy(traced)):
        assert taeda.equal(other(x), traced(x)) and other.code == traced.code
        assert other.graph.owning_module is other
    assert deep.scale is not traced.scale and deep.graph is not traced.graph


def test_a_folder_has_a_module_that_computes_the_same(tmp_path, monkeypatch):
    traced = fx.symbolic_trace(Net())
    traced.to_folder(tmp_path / "written_net", "WrittenNet")
    monkeypatch.syspath_prepend(str(tmp_path))
    from written_net import WrittenNet

    x = taeda.randn(2, 3)
    assert taeda.equal(WrittenNet()(x), traced(x))


def test_interpreters_see_each_step_and_transformers_change_them():
    traced = fx.symbolic_trace(Net())
    seen = []

    class Noting(fx.Interpreter):
        def run_node(self, n):
            seen.append(n.op)
            return super().run_node(n)

    class Softer(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(F.log_softmax if target is F.softmax else target, args, kwargs)

    x = taeda.randn(2, 3)
    assert taeda.equal(Noting(traced).run(x), traced(x)) and seen[0] == "placeholder" and seen[-1] == "output"
    assert taeda.allclose(Softer(traced).transform()(x).exp(), traced(x), atol=1e-6)
    with pytest.raises(RuntimeError, match="parameter x"):
        fx.Interpreter(traced).run()


class Outputs(dict):
    """What a layer gives: a dictionary with attributes."""

    __getattr__ = dict.__getitem__


class Layer(nn.Module):
    def forward(self, x):
        return Outputs(out=x * 2, seen=[x])


def test_interpreters_hand_values_on_as_they_are():
    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, Layer) or super().is_leaf_module(m, module_qualified_name)

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer()

        def forward(self, x):
            outputs = self.layer(x)
            outputs.seen.append(x)
            return outputs.out.reshape(x.shape[:2].numel()), outputs.seen

    net = Whole()
    traced = fx.GraphModule(net, Leaves().trace(net))
    flat, seen = fx.Interpreter(traced).run(taeda.ones(2, 3))
    assert flat.tolist() == [2.0] * 6 and len(seen) == 2


def test_functions_are_exchanged_in_a_whole_module():
    net = fx.symbolic_trace(lambda x, y: x + y)
    replace_target_nodes_with(net, "call_function", operator.add, "call_function", operator.mul)
    assert net(3, 4) == 12


def test_managers_of_passes_write_the_code_anew():
    def multiply(gm):
        for node in gm.graph.find_nodes(op="call_function", target=taeda.add):
            node.target = taeda.mul

    manager = PassManager(passes=[pass_result_wrapper(multiply)])
    made = manager(fx.symbolic_trace(lambda a, b: taeda.add(a, b))).graph_module
    assert made(taeda.tensor(3.0), taeda.tensor(4.0)).item() == 12.0


def test_shapes_are_noted():
    traced = fx.symbolic_trace(Net())
    fx.passes.shape_prop.ShapeProp(traced).propagate(taeda.randn(5, 3))
    by_name = {n.name: n.meta.get("tensor_meta") for n in traced.graph.nodes}
    assert tuple(by_name["body_0"].shape) == (5, 4) and by_name["softmax"].dtype is taeda.float32


def test_patterns_are_replaced_wherever_they_stand():
    def program(x, w):
        return taeda.cat([taeda.relu(x).neg(), taeda.relu(w).neg()]).sum()

    traced = fx.symbolic_trace(program)
    found = fx.replace_pattern(traced, lambda a: taeda.relu(a).neg(), lambda a: taeda.exp(a))
    assert len(found) == 2
    assert not traced.graph.find_nodes(op="call_function", target=taeda.relu)
    assert traced(taeda.zeros(2), taeda.zeros(3)).item() == 5.0
    # What is used outside the pattern stays.
    kept = fx.symbolic_trace(lambda x: taeda.relu(x).neg() + 1)
    next(n for n in kept.graph.nodes if n.op == "output").args = (tuple(kept.graph.nodes)[1:3],)
    assert fx.replace_pattern(kept, lambda a: taeda.relu(a).neg(), lambda a: taeda.exp(a)) == []


def test_a_tracer_decides_what_is_a_leaf_and_reads_members():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, nn.Sequential)

        def getattr(self, attr, attr_val, parameter_proxy_cache):
            read.append(attr)
            return attr_val

    read = []
    graph = Whole().trace(Net())
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["body"]
    assert {"scale", "shift"} <= set(read)


def test_where_a_step_was_made_is_noted():
    graph = fx.Tracer().trace(Net())
    linear = next(n for n in graph.nodes if n.name == "body_0")
    assert list(linear.meta["nn_module_stack"].values()) == [("body", nn.Sequential), ("body.0", nn.Linear)]


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor, self.layer = nn.Parameter(taeda.full((2,), 3.0)), nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x) * self.factor.exp()


def test_a_tracer_may_patch_calls_and_members_of_modules_itself():
    inner = fx._symbolic_trace

    class Own(fx.Tracer):
        def trace(self, root, concrete_args=None):
            self.root, self.graph, self.tensor_attrs, cache, read = root, fx.Graph(), {}, {}, []
            function, args = self.create_args_for_root(type(root).forward, True, concrete_args)

            def member(module, name):
                value = inner._orig_module_getattr(module, name)
                read.append(name)
                return self.getattr(name, value, cache)

            def called(module, *args, **kwargs):
                return self.call_module(
                    module, lambda *a, **k: inner._orig_module_call(module, *a, **k), args, kwargs
                )

            with inner._Patcher() as patcher:
                patcher.patch_method(nn.Module, "__getattr__", member, deduplicate=False)
                patcher.patch_method(nn.Module, "__call__", called, deduplicate=False)
                self.create_node("output", "output", (self.create_arg(function(*args)),), {})
            assert {"factor", "layer"} <= set(read)
            return self.graph

    module = Scale()
    graph = Own().trace(module)
    assert [node.op for node in graph.nodes] == [
        "placeholder", "call_module", "get_attr", "call_method", "call_function", "output",
    ]  # fmt: skip
    x = taeda.ones(1, 2)
    assert taeda.equal(fx.GraphModule(module, graph)(x), module(x))
    assert nn.Module.__call__ is inner._orig_module_call
    assert nn.Module.__getattribute__ is object.__getattribute__
    with pytest.raises(AttributeError) as caught:
        _ = module.layer.nothing
    assert len(caught.traceback) == 1, "attributes are read as before the trace"


def test_what_is_patched_once_is_left_alone():
    class Owner:
        def call(self):
            return 1

    with fx._symbolic_trace._Patcher() as patcher:
        patcher.patch_method(Owner, "call", lambda self: 2)
        patcher.patch_method(Owner, "call", lambda self: 3)
        assert Owner().call() == 2
    assert Owner().call() == 1
