"""Graphs of programs beside PyTorch's: the same nodes, the same source, the same results after the same changes."""

import operator

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="graphs are compared with PyTorch's, which is not installed")
import taeda  # noqa: E402


def arithmetic(lib):
    def program(x, *rest, scale=1.5, **named):
        y = x[:, 0] ** 2 // 3 % 2 - (1 - x[:, 1]) / 4
        y += 1
        return lib.relu(y) @ x * scale, -x.T, ~(x > 0) | (x <= -1), {"k": [x[..., None], y.shape[0]]}

    return program


def functions(lib):
    def program(x, y):
        a, b = x.chunk(2, 1)
        z = lib.cat([a, b], dim=1).view(x.size(0), -1)
        z = lib.nn.functional.dropout(lib.nn.functional.gelu(z), 0.5, False)
        return lib.add(z, y, alpha=2).to(lib.float64).sum(dim=(0, 1), keepdim=True), lib.zeros(2)

    return program


def layers(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = lib.nn.Sequential(lib.nn.Conv2d(3, 4, 3), lib.nn.BatchNorm2d(4), lib.nn.ReLU())
            self.heads = lib.nn.ModuleList([lib.nn.Linear(4, 2) for _ in range(2)])
            self.scale = lib.nn.Parameter(lib.ones(4))
            self.register_buffer("shift", lib.ones(4))

        def forward(self, x, flip: bool = False):
            y = self.body(x).mean((2, 3)) * self.scale.exp() + self.shift
            return [head(y) for head in self.heads]

    lib.manual_seed(0)
    return Net().eval()


PROGRAMS = {"arithmetic": arithmetic, "functions": functions, "layers": layers}


def traced(lib, name):
    return lib.fx.symbolic_trace(PROGRAMS[name](lib))


@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes_and_their_names(name):
    mine, theirs = (
        [
            (n.op, n.name, [m.name for m in n.all_input_nodes], [m.name for m in n.users])
            for n in traced(lib, name).graph.nodes
        ]
        for lib in (taeda, torch)
    )
    assert mine == theirs


@pytest.mark.parametrize("name", ["arithmetic", "layers"])
def test_source_and_text(name):
    mine, theirs = traced(taeda, name), traced(torch, name)
    assert mine.code == theirs.code
    assert str(mine.graph) == str(theirs.graph)


def test_fixed_inputs():
    def program(pair, flip, times):
        return (pair["a"] - pair["b"]) * times if flip else pair["a"]

    codes = []
    for lib in (taeda, torch):
        fixed = {"flip": True, "times": 3, "pair": {"a": lib.fx.PH, "b": lib.fx.PH}}
        made = lib.fx.symbolic_trace(program, concrete_args=fixed)
        assert made({"a": lib.ones(1), "b": lib.zeros(1)}, True, 3).item() == 3.0
        codes.append(made.code)
    assert codes[0] == codes[1]


def nested(lib):
    return lambda x, y: lib.relu(x + y) + lib.relu(y).sum() * lib.relu(lib.relu(x))


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (lambda lib: lambda a: lib.relu(a), lambda lib: lambda a: lib.tanh(a) * 2),
        (lambda lib: lambda a, b: lib.relu(a + b), lambda lib: lambda a, b: a - b),
        (lambda lib: lambda a, b: (a + b, lib.relu(b)), lambda lib: lambda a, b: (b, a)),
        (lambda lib: lambda a: lib.sigmoid(a), lambda lib: lambda a: a),
    ],
)
def test_patterns(pattern, replacement):
    codes, counts = [], []
    for lib in (taeda, torch):
        made = lib.fx.symbolic_trace(nested(lib))
        counts.append(len(lib.fx.replace_pattern(made, pattern(lib), replacement(lib))))
        codes.append(made.code)
    assert counts[0] == counts[1] and codes[0] == codes[1]


def test_edited_graphs():
    found = []
    for lib in (taeda, torch):
        made = traced(lib, "layers")
        graph = made.graph
        relu = next(n for n in graph.nodes if n.target == "body.2")
        with graph.inserting_after(relu):
            added = graph.call_function(operator.mul, (relu, 2))
        relu.replace_all_uses_with(added, lambda user, new=added: user is not new)
        with graph.inserting_before(graph.output_node()):
            graph.call_method("sin", (added,))
        changed = graph.eliminate_dead_code()
        graph.lint()
        made.delete_all_unused_submodules()
        made.recompile()
        found.append((changed, made.code, [name for name, _ in made.named_modules()]))
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning")
def test_folded_normalization():
    results = []
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    from torch.fx.experimental.optimization import fuse as theirs

    from taeda.fx.experimental.optimization import fuse as mine

    for lib, fuse in ((taeda, mine), (torch, theirs)):
        made = fuse(layers(lib))
        results.append([n.name for n in made.graph.nodes])
        before, after = layers(lib)(lib.from_numpy(x)), made(lib.from_numpy(x))
        assert lib.allclose(before[1], after[1], atol=1e-5)
    assert results[0] == results[1]


def two_layers(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = lib.nn.Linear(3, 4), lib.nn.Linear(4, 2)
            self.scale = lib.nn.Parameter(lib.ones(2))

        def forward(self, x):
            return self.last(lib.relu(self.first(x))) + self.scale * 3

    return Net()


def passes(lib, net):
    if lib is taeda:
        from taeda.fx.experimental.const_fold import split_const_subgraphs
        from taeda.fx.experimental.meta_tracer import symbolic_trace
        from taeda.fx.passes.graph_manipulation import get_size_of_all_nodes, replace_target_nodes_with
        from taeda.fx.passes.split_utils import split_by_tags
        from taeda.fx.passes.tools_common import get_node_target, is_node_output_tensor, legalize_graph
    else:
        from torch.fx.experimental.const_fold import split_const_subgraphs
        from torch.fx.experimental.meta_tracer import symbolic_trace
        from torch.fx.passes.graph_manipulation import get_size_of_all_nodes, replace_target_nodes_with
        from torch.fx.passes.split_utils import split_by_tags
        from torch.fx.passes.tools_common import get_node_target, is_node_output_tensor, legalize_graph

    x = lib.ones(2, 3)
    graph = lib.fx.symbolic_trace(net)
    get_size_of_all_nodes(graph, [x])
    found = {"sizes": [tuple(n.size_bytes) for n in graph.graph.nodes if n.op != "output"]}
    calls = [n for n in graph.graph.nodes if n.op.startswith("call")]
    found["targets"] = [get_node_target(dict(graph.named_modules()), n) for n in calls]
    found["tensors"] = [is_node_output_tensor(n) for n in graph.graph.nodes]
    for index, node in enumerate(calls):
        node.tag = "early" if index < 2 else "late"
    parts, paths = split_by_tags(graph, ["early", "late"], return_fqn_mapping=True)
    found["parts"] = [(n.op, n.name) for n in parts.graph.nodes], paths
    folded = split_const_subgraphs(lib.fx.symbolic_trace(net))
    found["folded"] = sorted(n.op for n in folded.graph.nodes)
    shaped = symbolic_trace(lambda v: v.view(-1) if v.dim() == 2 and v.shape[1] == 3 else v, {"v": x})
    found["shaped"] = [(n.op, n.name) for n in shaped.graph.nodes]
    other = lib.fx.symbolic_trace(net)
    replace_target_nodes_with(other, "call_function", lib.relu, "call_function", lib.sigmoid)
    legalize_graph(other).recompile()
    found["values"] = [made(x).detach().numpy() for made in (parts, folded, shaped, other)]
    return found


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr")
def test_passes_over_graphs():
    theirs, mine = two_layers(torch), two_layers(taeda)
    mine.load_state_dict(
        {name: taeda.from_numpy(value.numpy()) for name, value in theirs.state_dict().items()}
    )
    expected, found = passes(torch, theirs), passes(taeda, mine)
    for left, right in zip(found.pop("values"), expected.pop("values"), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    assert found == expected


def test_a_circle_has_no_order():
    from taeda.fx.passes.tools_common import legalize_graph

    made = taeda.fx.symbolic_trace(lambda x: (x + 1) * 2)
    first, second = list(made.graph.nodes)[1:3]
    first.args = (second, 1)
    with pytest.raises(RuntimeError, match="circle"):
        legalize_graph(made)
