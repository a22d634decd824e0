"""Lists and dicts that cannot be written to: the arguments of nodes, which graphs must hear of when they change."""

from __future__ import annotations

from typing import Any, NoReturn

from taeda.utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation: arguments of a node are replaced as a whole, by "
        "node.args = new_args, node.kwargs = new_kwargs, node.update_arg or node.update_kwarg"
    )


def _closed(name: str, base: type, writers: str) -> type:
    members: dict[str, Any] = dict.fromkeys(writers.split(), _refuse)
    members["__module__"] = __name__
    members["__doc__"] = f"A {base.__name__} that cannot be written to."
    members["__hash__"] = lambda self: hash(tuple(self if base is list else self.items()))
    members["__reduce__"] = lambda self: (type(self), (base(self),))
    return type(name, (base,), members)


immutable_list = _closed(
    "immutable_list",
    list,
    "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort",
)
immutable_dict = _closed(
    "immutable_dict", dict, "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update"
)

for _kind, _base in ((immutable_list, list), (immutable_dict, dict)):
    _known = _pytree.SUPPORTED_NODES[_base]
    _pytree.register_pytree_node(
        _kind,
        _known.flatten_fn,
        lambda leaves, context, kind=_kind, make=_known.unflatten_fn: kind(make(leaves, context)),
        flatten_with_keys_fn=_known.flatten_with_keys_fn,
    )
