"""Containers taken apart and put together again."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import taeda
from taeda.utils import _pytree as pytree

Point = namedtuple("Point", "x y")

TREES = [
    3,
    None,
    [],
    [1, (2, 3), {"a": [4], "b": ()}],
    OrderedDict(b=1, a=2),
    defaultdict(list, a=[1]),
    deque([1, 2], maxlen=3),
    Point(1, [2]),
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_round_trip(tree):
    leaves, spec = pytree.tree_flatten(tree)
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree and type(again) is type(tree)
    assert spec == pytree.tree_structure(tree) and spec.num_leaves == len(leaves)
    assert pytree.tree_leaves(tree) == leaves


def test_results_of_operators_are_containers():
    result = taeda.ones(2, 2).max(0)
    doubled = pytree.tree_map(lambda t: t * 2, result)
    assert type(doubled) is type(result) and doubled.values.tolist() == [2.0, 2.0]


def test_map_over_several_trees():
    assert pytree.tree_map(lambda a, b: a + b, {"x": 1, "y": 2}, {"y": 20, "x": 10}) == {"x": 11, "y": 22}
    with pytest.raises(ValueError, match="arity mismatch"):
        pytree.tree_map(lambda a, b: a, [1, 2], [1])
    assert pytree.tree_map_only(int, lambda i: -i, [1, "a", 2.0]) == [-1, "a", 2.0]
    assert pytree.tree_map(
        len, [[1, 2], [3]], is_leaf=lambda t: isinstance(t, list) and t and t[0] in (1, 3)
    ) == [2, 1]
    assert (
        pytree.tree_all(bool, [1, 2]) and pytree.tree_any(bool, [0, 1]) and not pytree.tree_all(bool, [0, 1])
    )


def test_ways_to_leaves():
    keyed, _ = pytree.tree_flatten_with_path({"a": [1, Point(2, 3)]})
    assert [pytree.keystr(way) for way, _ in keyed] == ["['a'][0]", "['a'][1].x", "['a'][1].y"]
    assert pytree.key_get({"a": [1, Point(2, 3)]}, keyed[2][0]) == 3


def test_own_classes():
    @dataclasses.dataclass
    class Pair:
        first: int
        second: int

    pytree.register_dataclass(Pair)
    assert pytree.tree_map(lambda i: i + 1, Pair(1, 2)) == Pair(2, 3)
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_dataclass(Pair)


def test_forms_as_text():
    spec = pytree.tree_structure([1, {"a": (2,)}])
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="length 1 but the spec"):
        spec.unflatten([1])


def test_members_of_modules_are_dicts():
    net = taeda.nn.Linear(2, 1)
    for members in (net._parameters, vars(net)["_parameters"]):
        assert pytree.tree_map(lambda t: tuple(t.shape), members) == {"weight": (1, 2), "bias": (1,)}


def test_sizes_are_containers_and_keys_are_no_tuples():
    size = taeda.ones(2, 3).shape
    assert pytree.tree_flatten(size)[0] == [2, 3] and pytree.tree_map(lambda n: n + 1, {"s": size}) == {
        "s": (3, 4)
    }
    ways = [way for way, _ in pytree.tree_flatten_with_path([size, {"a": taeda.ones(2).max(0)}])[0]]
    first, values = ways[1], ways[2]
    assert [(type(key).__name__, key) for key in first] == [
        ("SequenceKey", pytree.SequenceKey(0)),
        ("SequenceKey", pytree.SequenceKey(1)),
    ]
    assert values == (pytree.SequenceKey(1), pytree.MappingKey("a"), pytree.SequenceKey(0))
    assert not any(isinstance(key, tuple) for key in values) and pytree.keystr(values) == "[1]['a'][0]"


def test_the_text_of_a_structure():
    assert str(pytree.tree_structure([2, {"a": 3, "b": (4, None)}, []])) == (
        "TreeSpec(list, None, [*,\n  TreeSpec(dict, ['a', 'b'], [*,\n    TreeSpec(tuple, None, [*,\n      *])]),\n"
        "  TreeSpec(list, None, [])])"
    )


def test_leaves_of_a_prefix_are_repeated_for_the_parts_in_their_places():
    from taeda.utils._cxx_pytree import broadcast_prefix

    assert broadcast_prefix(1, [1, 2, 3]) == [1, 1, 1]
    assert broadcast_prefix([1, (2,)], [{"a": 5, "b": (None, 6)}, (7,)]) == [1, 1, 1, 2]
    assert broadcast_prefix(None, [1, 2]) == [None, None]
    assert broadcast_prefix([(1, 2), 3], [(1, 2), (3, 4)], is_leaf=lambda x: isinstance(x, tuple)) == [
        (1, 2),
        3,
    ]
    with pytest.raises(ValueError, match="mismatch"):
        broadcast_prefix([1, 2, 3], [1, 2])
    with pytest.raises(ValueError):
        broadcast_prefix({"a": 1}, [1, 2])


def test_forms_of_leaves_are_of_a_class_of_their_own():
    _, spec = pytree.tree_flatten([1, (2,)])
    leaf, inner = spec.children()
    assert isinstance(leaf, pytree.LeafSpec) and not isinstance(inner, pytree.LeafSpec)
    assert pytree.LeafSpec() == leaf == inner.child(0) and copy.deepcopy(leaf) == leaf
    assert issubclass(pytree.LeafSpec, pytree.TreeSpec) and repr(pickle.loads(pickle.dumps(leaf))) == "*"


def test_the_text_of_a_structure_names_the_class_of_named_tuples():
    pair = namedtuple("Pair", "left right")
    assert str(pytree.tree_structure(pair(1, 2))) == f"TreeSpec(namedtuple, {pair!r}, [*,\n  *])"
