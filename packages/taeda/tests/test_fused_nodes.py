"""Groups of nodes as modules, and conditions on sizes that are numbers."""

from __future__ import annotations

import pytest

import taeda
from taeda.fx import symbolic_trace
from taeda.fx.experimental import symbolic_shapes as sizes
from taeda.fx.passes.utils.fuser_utils import (
    erase_nodes,
    fuse_as_graphmodule,
    fuse_by_partitions,
    insert_subgm,
    topo_sort,
    validate_partition,
)


def program(x, y):
    a = taeda.sin(x)
    b = a + y
    c = taeda.relu(b)
    return c * a, b


def nodes_of(traced):
    return {node.name: node for node in traced.graph.nodes}


def same(made, x, y):
    return all(taeda.equal(*pair) for pair in zip(made(x, y), program(x, y), strict=True))


def test_groups_become_modules():
    x, y = taeda.randn(3), taeda.randn(3)
    for names, results in ((("sin", "add"), 2), (("relu", "mul"), 1), (("add",), 1)):
        traced = symbolic_trace(program)
        by_name = nodes_of(traced)
        made = fuse_by_partitions(traced, [[by_name[name] for name in names]])
        kinds = [node.op for node in made.graph.nodes]
        assert kinds.count("call_module") == 1 and same(made, x, y), names
        found = made.fused_0(*([x, y] if "sin" in names else [taeda.sin(x), y] if "add" in names else [y, x]))
        assert (isinstance(found, tuple) and len(found) == results) == (results > 1)


def test_steps_of_a_fusion():
    x, y = taeda.randn(3), taeda.randn(3)
    traced = symbolic_trace(program)
    by_name = nodes_of(traced)
    group = topo_sort([by_name["add"], by_name["sin"]])
    assert [node.name for node in group] == ["sin", "add"]
    part, inputs, outputs = fuse_as_graphmodule(traced, group, "Part", always_return_tuple=True)
    assert [n.name for n in inputs] == ["x", "y"] and [n.name for n in outputs] == ["sin", "add"]
    assert same(traced, x, y) and type(part).__name__ == "Part"
    insert_subgm(traced, part, inputs, outputs)
    erase_nodes(traced, group)
    traced.graph.lint()
    traced.recompile()
    assert same(traced, x, y) and traced.Part is part


def test_what_cannot_be_one_module():
    by_name = nodes_of(traced := symbolic_trace(program))
    assert validate_partition([by_name["sin"], by_name["add"]])
    assert not validate_partition([by_name["sin"], by_name["mul"]])  # relu lies between
    with pytest.raises(AssertionError, match="dependency cycles"):
        fuse_as_graphmodule(traced, [by_name["sin"], by_name["mul"]], "m")
    with pytest.raises(AssertionError, match="another graph"):
        fuse_as_graphmodule(symbolic_trace(program), [by_name["sin"]], "m")


def test_conditions_on_sizes():
    assert sizes.sym_and(True, 1) and not sizes.sym_and(True, False) and sizes.sym_or(False, 0, 2)
    assert sizes.sym_eq((1, 2), [1, 2]) and not sizes.sym_eq(1, 2)
    with pytest.raises(AssertionError, match="unexpected sym_eq"):
        sizes.sym_eq(1, (1,))
    assert sizes.has_static_value(3) and sizes.statically_known_false(2 > 3)
    assert sizes.optimization_hint(3) == sizes.guarding_hint_or_throw(3) == 3
    assert not sizes.has_free_unbacked_symbols(3)


def test_the_first_tensor_in_containers():
    from taeda.nn.parallel.parallel_apply import get_a_var

    x = taeda.ones(2)
    assert get_a_var([1, {"a": (None, x)}]) is x and get_a_var({"a": [1]}) is None
