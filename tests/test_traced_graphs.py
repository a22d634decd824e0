"""Graphs of operators under PyTorch's names, which programs read that count what a network costs."""

import pytest

import taeda


def kinds(graph):
    return [node.kind() for node in graph.nodes() if node.kind().startswith("aten::")]


def test_operators_have_pytorchs_names_and_arguments():
    net = taeda.nn.Sequential(
        taeda.nn.Conv2d(3, 4, 3), taeda.nn.BatchNorm2d(4), taeda.nn.ReLU(), taeda.nn.Flatten()
    )
    graph, result = taeda.jit._get_trace_graph(net, taeda.ones(2, 3, 8, 8))
    assert result.shape == (2, 144)
    names = ["_convolution", "batch_norm", "add_", "relu", "flatten"]  # then a batch is counted
    assert kinds(graph) == [f"aten::{name}" for name in names]
    conv = graph.findNode("aten::_convolution")
    inputs = list(conv.inputs())
    assert len(inputs) == 13 and inputs[6].toIValue() is False
    assert inputs[0].type().sizes() == [2, 3, 8, 8] and inputs[1].type().sizes() == [4, 3, 3, 3]
    assert conv.output().type().sizes() == [2, 4, 6, 6] and conv.output().isCompleteTensor()
    assert [v.toIValue() for v in inputs[3].node().inputs()] == [1, 1]
    norm = graph.findNode("aten::batch_norm")
    assert norm.inputsSize() == 9 and list(norm.inputs())[5].toIValue() is True
    # The tensors it was given, then parameters and buffers.
    assert len(list(graph.inputs())) == 1 + len(net.state_dict())
    assert next(graph.outputs()).node().kind() == "aten::flatten"


def test_transposed_convolutions_say_so():
    net = taeda.nn.ConvTranspose2d(2, 3, 2, stride=2, output_padding=1)
    graph, _ = taeda.jit._get_trace_graph(net, (taeda.ones(1, 2, 4, 4),))
    values = [v.toIValue() for v in graph.findNode("aten::_convolution").inputs()]
    assert values[6] is True
    padding = list(graph.findNode("aten::_convolution").inputs())[7]
    assert [v.toIValue() for v in padding.node().inputs()] == [1, 1]


def test_values_follow_writes_and_lists():
    def program(x, y):
        z = taeda.cat([x, y])
        z.add_(1)
        return z.max(0).values

    graph, _ = taeda.jit._get_trace_graph(program, (taeda.ones(2, 3), taeda.zeros(2, 3)))
    assert kinds(graph) == ["aten::cat", "aten::add_", "aten::max"]
    cat, add, largest = (graph.findNode(kind) for kind in kinds(graph))
    assert [v.type().sizes() for v in cat.inputsAt(0).node().inputs()] == [[2, 3], [2, 3]]
    assert add.inputsAt(0) is cat.output() and largest.inputsAt(0) is add.output()
    assert add in cat.output().uses()
    assert largest.outputsSize() == 2
    assert "aten::add_(" in str(graph)


def test_scopes_are_what_hooks_push():
    net = taeda.nn.Sequential(taeda.nn.Linear(2, 3), taeda.nn.Tanh())
    for name, module in net.named_modules():
        module.register_forward_pre_hook(
            lambda m, args, name=name: taeda._C._get_tracing_state().push_scope(name)
        )
        module.register_forward_hook(lambda m, args, result: taeda._C._get_tracing_state().pop_scope())
    graph, _ = taeda.jit._get_trace_graph(net, taeda.ones(1, 2))
    assert graph.findNode("aten::linear").scopeName() == "0"
    assert graph.findNode("aten::tanh").scopeName() == "1"


def test_there_is_a_trace_only_inside():
    seen = []

    def program(x):
        seen.append(
            (taeda._C._get_tracing_state() is not None, taeda.jit.is_tracing(), taeda._C._is_tracing())
        )
        raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        taeda.jit._get_trace_graph(program, taeda.ones(1))
    assert seen == [(True, True, True)]
    assert taeda._C._get_tracing_state() is None and not taeda.jit.is_tracing()
    assert taeda.ones(1).add(1).item() == 2.0


def test_attributes_of_nodes_are_given_by_their_kind():
    def program(x):
        return x.clamp(0.5).sum(1, keepdim=True).to("cpu")

    graph, _ = taeda.jit._get_trace_graph(program, (taeda.ones(2, 3),))
    constants = [node for node in graph.nodes() if node.hasAttribute("value")]
    found = {(kind := node.kindOf("value")): getattr(node, kind)("value") for node in constants}
    assert found["f"] == 0.5 and type(found["i"]) is int
    one = next(node for node in constants if node.kindOf("value") == "f")
    assert not one.hasAttribute("other") and one.attributeNames() == ["value"]
    with pytest.raises(RuntimeError, match="'other' is undefined"):
        one.kindOf("other")
    with pytest.raises(RuntimeError, match="'value' has the wrong type: 'f' gives it, not 's'"):
        one.s("value")
