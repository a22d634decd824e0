"""Containers taken apart into their leaves and put together again.

Lists, tuples, dicts, named tuples, ordered and default dicts and deques are containers, and classes that
`register_pytree_node` has declared; everything else is a leaf. None is a leaf.

Example:
    >>> leaves, spec = tree_flatten({"a": [1, 2], "b": (3,)})
    >>> leaves
    [1, 2, 3]
    >>> tree_unflatten([10, 20, 30], spec)
    {'a': [10, 20], 'b': (30,)}
"""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, overload

from taeda_registry.slots import tensor

__all__ = [
    "Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "GetAttrKey", "KeyEntry", "KeyPath",
    "LeafSpec", "MappingKey", "PyTree",
    "PyTreeSpec", "SequenceKey", "ToDumpableContextFn", "TreeSpec", "UnflattenFn", "is_namedtuple",
    "is_namedtuple_class", "is_namedtuple_instance",
    "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr", "register_constant",
    "register_dataclass",
    "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf",
    "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only",
    "tree_map_only_", "tree_map_with_path",
    "tree_structure", "tree_unflatten", "treespec_dumps", "treespec_loads", "treespec_pprint",
]  # fmt: skip

T = TypeVar("T")
Context = Any
DumpableContext = Any
PyTree = Any
FlattenFn = Callable[[Any], tuple[list[Any], Any]]
FlattenWithKeysFn = Callable[[Any], tuple[list[tuple[Any, Any]], Any]]
UnflattenFn = Callable[[Iterable[Any], Any], Any]
ToDumpableContextFn = Callable[[Any], Any]
FromDumpableContextFn = Callable[[Any], Any]
IsLeaf = Callable[[Any], bool] | None


# --- keys: the way to a leaf ---


# Not tuples: programs tell a key from a way, which is a tuple of keys.
@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """An item of a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The item."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A value of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The value."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """An attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Its value."""
        return getattr(obj, self.name)


KeyEntry = Any
KeyPath = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """The way to a leaf as Python writes it, such as ``['a'][0]``."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What stands at the end of a way."""
    for key in kp:
        obj = key.get(obj)
    return obj


# --- kinds of containers ---


class NodeDef(NamedTuple):
    """How containers of one class are taken apart and put together."""

    type: type
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None
    serialized_type_name: str | None
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


SUPPORTED_NODES: dict[type, NodeDef] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """Let instances of a class count as containers.

    Args:
        cls: The class itself; derived classes are others.
        flatten_fn: Gives the list of children, and whatever else is needed to make the container again.
        unflatten_fn: Makes a container of children and that.
        serialized_type_name: Its name in `treespec_dumps`.
        to_dumpable_context: Turns the rest of `flatten_fn`'s result into what JSON can hold.
        from_dumpable_context: Turns it back.
        flatten_with_keys_fn: As `flatten_fn`, with (key, child) in the place of children.

    Raises:
        ValueError: The class is registered already, or only one way between contexts and JSON is given.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(
        cls, flatten_fn, unflatten_fn, flatten_with_keys_fn, serialized_type_name, to_dumpable_context,
        from_dumpable_context,
    )  # fmt: skip


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    del SUPPORTED_NODES[cls]


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Let instances of a dataclass count as containers of their fields."""
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"register_dataclass: expected a dataclass, found {cls!r}")
    names = field_names or [field.name for field in dataclasses.fields(cls) if field.init]
    names = [name for name in names if name not in (drop_field_names or ())]

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        present = [name for name in names if getattr(obj, name) is not None]
        absent = [name for name in names if getattr(obj, name) is None]
        return [getattr(obj, name) for name in present], (present, absent)

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    def with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
        children, context = flatten(obj)
        return [(GetAttrKey(name), child) for name, child in zip(context[0], children, strict=True)], context

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys
    )


def register_constant(cls: type) -> None:
    """Let instances of a class count as containers of nothing, equal when they are equal."""
    register_pytree_node(
        cls, lambda obj: ([], obj), lambda _, obj: obj, flatten_with_keys_fn=lambda obj: ([], obj)
    )


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class was made by `namedtuple`."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(type(name) is str for name in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether an object is a named tuple or a class of such."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is one of C's named tuples, such as results of operators."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, name, None), int) for name in ("n_sequence_fields", "n_fields"))
    )


def is_structseq_instance(obj: Any) -> bool:
    """Whether an object is of such a class."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether an object is of such a class, or one itself."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _keyed_sequence(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(i), item) for i, item in enumerate(obj)], None


def _keyed_mapping(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(key), value) for key, value in obj.items()], list(obj)


def _dict_flatten(d: Mapping[Any, T]) -> tuple[list[T], list[Any]]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[T], context: Iterable[Any]) -> dict[Any, T]:
    return dict(zip(context, values, strict=True))


def _install() -> None:
    def register(
        cls: type, flatten: Any, unflatten: Any, name: str, keyed: Any, to: Any = None, back: Any = None
    ) -> None:
        register_pytree_node(
            cls, flatten, unflatten, serialized_type_name=name, flatten_with_keys_fn=keyed, to_dumpable_context=to,
            from_dumpable_context=back,
        )  # fmt: skip

    register(list, lambda d: (d, None), lambda v, _: list(v), "builtins.list", _keyed_sequence)
    register(tuple, lambda d: (list(d), None), lambda v, _: tuple(v), "builtins.tuple", _keyed_sequence)
    register(tensor.Size, lambda d: (list(d), None), lambda v, _: tuple(v), "taeda.Size", _keyed_sequence)
    register(dict, _dict_flatten, _dict_unflatten, "builtins.dict", _keyed_mapping)
    register(
        OrderedDict, _dict_flatten, lambda v, keys: OrderedDict(zip(keys, v, strict=True)),
        "collections.OrderedDict", _keyed_mapping,
    )  # fmt: skip
    register(
        defaultdict,
        lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda v, context: defaultdict(context[0], zip(context[1], v, strict=True)),
        "collections.defaultdict",
        lambda d: (_keyed_mapping(d)[0], [d.default_factory, list(d)]),
    )
    register(
        deque, lambda d: (list(d), d.maxlen), lambda v, maxlen: deque(v, maxlen=maxlen), "collections.deque",
        lambda d: (_keyed_sequence(d)[0], d.maxlen),
    )  # fmt: skip


class _NamedTuples:
    """How all named tuples are taken apart; their class is the context."""


def _keyed_named(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
    if not is_namedtuple_class(type(obj)):  # results of operators
        return _keyed_sequence(obj)[0], type(obj)
    return [(GetAttrKey(n), v) for n, v in zip(obj._fields, obj, strict=True)], type(obj)


def _unflatten_named(values: Iterable[Any], cls: Any) -> Any:
    return cls._make(values) if is_namedtuple_class(cls) else cls(tuple(values))


SUPPORTED_NODES[_NamedTuples] = NodeDef(
    _NamedTuples,
    lambda d: (list(d), type(d)),
    _unflatten_named,
    _keyed_named,
    "collections.namedtuple",
    None,
    None,
)
_install()
# How each container is taken apart, in the words in which programs ask for it to declare containers of their own.
for _stem, _cls in (
    ("list", list), ("tuple", tuple), ("dict", dict), ("ordereddict", OrderedDict), ("defaultdict", defaultdict),
    ("deque", deque), ("namedtuple", _NamedTuples),
):  # fmt: skip
    _node = SUPPORTED_NODES[_cls]
    globals().update(
        {
            f"_{_stem}_flatten": _node.flatten_fn,
            f"_{_stem}_unflatten": _node.unflatten_fn,
            f"_{_stem}_flatten_with_keys": _node.flatten_with_keys_fn,
        }
    )


def _get_node_type(tree: Any) -> type | None:
    """The registered class of a container; None for leaves."""
    cls = type(tree)
    if cls in SUPPORTED_NODES:
        return cls
    if getattr(cls, "stands_for_dict", False):  # the members of a module
        return dict
    return _NamedTuples if is_namedtuple_class(cls) or is_structseq_class(cls) else None


def _is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    return _get_node_type(tree) is None or (is_leaf is not None and is_leaf(tree))


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether an object is no container, or `is_leaf` says so."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) is None


# --- the form of a tree ---


class TreeSpec:
    """The form of a tree: what is left of it without its leaves."""

    __slots__ = ("children_specs", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_children = len(children_specs)
        leaf = type is None
        self.num_leaves = 1 if leaf else sum(child.num_leaves for child in children_specs)
        self.num_nodes = 1 + sum(child.num_nodes for child in children_specs)

    def is_leaf(self) -> bool:
        """Whether it stands for a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The forms of its children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The form of one child."""
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """A tree of this form.

        Raises:
            ValueError: The number of leaves is another.
        """
        values = list(leaves)
        if len(values) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(values)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(values))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        children = [child._build(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of a tree at the places of this form's leaves.

        Raises:
            ValueError: The tree is not of this form.
        """
        found: list[Any] = []
        self._collect(tree, found)
        return found

    def _collect(self, tree: Any, found: list[Any]) -> None:
        if self.type is None:
            found.append(tree)
            return
        if _get_node_type(tree) != self.type and not (_is_dict(self.type) and _is_dict(_get_node_type(tree))):
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)  # type: ignore[index]
        if _is_dict(self.type):
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {list(keys)!r}, but got {list(tree)!r}.")
            children = [tree[key] for key in keys]
        elif len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)} for {type(tree)!r}."
            )
        elif self.type is not deque and context != self.context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for spec, child in zip(self.children_specs, children, strict=True):
            spec._collect(child, found)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type == other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_nodes))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        name = "namedtuple" if self.type is _NamedTuples else self.type.__name__
        inner = f",\n{' ' * (indent + 2)}".join(child.__repr__(indent + 2) for child in self.children_specs)
        return f"TreeSpec({name}, {self.context}, [{inner}])"


PyTreeSpec = TreeSpec


def _is_dict(cls: Any) -> bool:
    return cls in (dict, OrderedDict, defaultdict)


class LeafSpec(TreeSpec):
    """The form of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()


# --- taking apart and putting together ---


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    kind = None if is_leaf is not None and is_leaf(tree) else _get_node_type(tree)
    if kind is None:
        yield tree
        return
    for child in SUPPORTED_NODES[kind].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of the arguments of a call."""
    found: list[Any] = []
    for item in (*args, *kwargs.values()):
        found.extend(tree_iter(item))
    return found


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The list of leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The list of leaves, and the form."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _get_node_type(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """The form."""
    return tree_flatten(tree, is_leaf)[1]


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """A tree of leaves and a form."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got "
            f"{type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree whose leaves are `func` of the tree's, and of the parts of `rests` at the same places.

    Example:
        >>> tree_map(lambda x, y: x + y, {"a": 1}, {"a": 10})
        {'a': 11}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [spec.flatten_up_to(rest) for rest in rests]
    return spec._build(iter([func(*row) for row in zip(leaves, *columns, strict=True)]))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call `func` as `tree_map` does; gives the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [spec.flatten_up_to(rest) for rest in rests]
    for row in zip(leaves, *columns, strict=True):
        func(*row)
    return tree


def _matcher(what: Any) -> Callable[[Any], bool]:
    if isinstance(what, type | tuple) or (hasattr(what, "__instancecheck__") and not callable(what)):
        return lambda item: isinstance(item, what)
    if callable(what):
        return what
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


@overload
def map_only(type_or_types_or_pred: type[T]) -> Callable[[Callable[[T], Any]], Callable[[Any], Any]]: ...
@overload
def map_only(type_or_types_or_pred: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]: ...
def map_only(type_or_types_or_pred: Any) -> Any:
    """Decorator: a function that leaves what is not of the types, or not accepted, as it is."""
    accepts = _matcher(type_or_types_or_pred)
    return lambda func: lambda item: func(item) if accepts(item) else item


def tree_map_only(
    type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """`tree_map` for leaves of some types, or that a predicate accepts; others stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """`tree_map_` for leaves of some types, or that a predicate accepts."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves satisfy a predicate."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether a leaf satisfies a predicate."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves of some types satisfy a predicate."""
    accepts = _matcher(type_or_types)
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if accepts(leaf))


def tree_any_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether a leaf of some types satisfies a predicate."""
    accepts = _matcher(type_or_types)
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if accepts(leaf))


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The list of (way, leaf), and the form."""
    return list(_walk((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The list of (way, leaf)."""
    return list(_walk((), tree, is_leaf))


def _walk(way: KeyPath, tree: Any, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else _get_node_type(tree)
    if kind is None:
        yield way, tree
        return
    node = SUPPORTED_NODES[kind]
    if node.flatten_with_keys_fn is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}.")
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _walk((*way, key), child, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map` whose function gets the way to the leaf first."""
    keyed, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [spec.flatten_up_to(rest) for rest in rests]
    return spec._build(
        iter([func(way, leaf, *row) for (way, leaf), *row in zip(keyed, *columns, strict=True)])
    )


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree, each as often as the part of `full_tree` in its place has leaves.

    Raises:
        ValueError: `full_tree` cannot be made of the other by putting trees in the places of leaves.

    Example:
        >>> broadcast_prefix([1, 2, 3], [1, 2, (3, 4)])
        [1, 2, 3, 3]
    """
    leaves, spec = tree_flatten(prefix_tree, is_leaf)
    parts = spec.flatten_up_to(full_tree)
    return [
        leaf
        for leaf, part in zip(leaves, parts, strict=True)
        for _ in range(tree_structure(part, is_leaf).num_leaves)
    ]


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """Leaves of `tree`, those of the form's subtrees repeated; None where the forms do not fit."""
    if _is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) != treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


# --- forms as text ---


def treespec_pprint(treespec: TreeSpec) -> str:
    """The form as text."""
    return repr(treespec)


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The form as JSON.

    Raises:
        NotImplementedError: A class in it has no serialized name, or a context that JSON cannot hold.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"treespec_dumps(treespec): Expected `treespec` to be instance of TreeSpec but got {type(treespec)}."
        )
    return json.dumps([1 if protocol is None else protocol, _dumped(treespec)])


def _dumped(spec: TreeSpec) -> Any:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    node = SUPPORTED_NODES[spec.type]
    if node.serialized_type_name is None or spec.type is _NamedTuples:
        raise NotImplementedError(
            f"No registered serialization name for {spec.context if spec.type is _NamedTuples else spec.type} found."
        )
    context = node.to_dumpable_context(spec.context) if node.to_dumpable_context else json.dumps(spec.context)
    return {
        "type": node.serialized_type_name,
        "context": context,
        "children_spec": list(map(_dumped, spec.children_specs)),
    }


def treespec_loads(serialized: str) -> TreeSpec:
    """The form of JSON that `treespec_dumps` wrote."""
    _, content = json.loads(serialized)
    return _loaded(content)


def _loaded(content: Mapping[str, Any]) -> TreeSpec:
    if content["type"] is None:
        return _LEAF
    found = [node for node in SUPPORTED_NODES.values() if node.serialized_type_name == content["type"]]
    if not found:
        raise NotImplementedError(f"Deserialization of {content['type']!r} is not registered.")
    node = found[0]
    raw = content["context"]
    context = node.from_dumpable_context(raw) if node.from_dumpable_context else json.loads(raw)
    return TreeSpec(node.type, context, list(map(_loaded, content["children_spec"])))
