"""Lists and dicts in the arguments of nodes, which cannot be changed in place.

A node's arguments are read where its users are counted; a change that nobody sees would make that count wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from taeda.utils import _pytree

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["immutable_dict", "immutable_list"]


def _forbid(cls: type, names: str) -> None:
    def make(name: str) -> Any:
        def refused(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
            raise TypeError(
                f"'{cls.__name__}' object does not support mutation ({name}). If you are attempting to modify the "
                "kwargs or args of a torch.fx.Node object, instead create a new copy of it and assign the copy to the "
                "node: new_args = list(node.args); ...; node.args = tuple(new_args)"
            )

        refused.__name__ = name
        return refused

    for name in names.split():
        setattr(cls, name, make(name))


class immutable_list(list):
    """A list that cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(iter(self)),)


class immutable_dict(dict):
    """A dict that cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (dict(self.items()),)


_forbid(
    immutable_list,
    "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort",
)
_forbid(immutable_dict, "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update")


def _dict_of(values: Iterable[Any], keys: list[Any]) -> immutable_dict:
    return immutable_dict(zip(keys, values, strict=True))


_pytree.register_pytree_node(
    immutable_list,
    lambda d: (list(d), None),
    lambda values, _: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda d: ([(_pytree.SequenceKey(i), item) for i, item in enumerate(d)], None),
)
_pytree.register_pytree_node(
    immutable_dict,
    lambda d: (list(d.values()), list(d)),
    _dict_of,
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda d: ([(_pytree.MappingKey(key), value) for key, value in d.items()], list(d)),
)
