"""Which attributes of a module are parameters, buffers and submodules (see Note in module.py)."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from taeda_nn._bind import Tensor
from taeda_nn._hooks import STATE_HOOKS, HookSet, taken_hooks
from taeda_nn.modules._state import Stateful, attributes, attributes_with, replace_attributes
from taeda_nn.parameter import Buffer, Parameter, UninitializedBuffer
from taeda_registry.forks import held_at_fork
from taeda_registry.turns import in_turn

if TYPE_CHECKING:
    from taeda_nn.modules.module import Module

_KINDS = ("parameter", "buffer", "module")
# Where the library's own classes are, as they say it.
_HOMES = (__package__.partition(".")[0], "torch.nn.")
# Members by kind, as PyTorch keeps them, and the names of them that are kept here.
_BOOKS = {f"_{kind}s": f"_{kind}_names" for kind in _KINDS}

# Called with (module, name, member) when one is registered; what a hook returns, unless None, stands in its place.
REGISTRATION_HOOKS: dict[str, OrderedDict[int, Any]] = {kind: OrderedDict() for kind in _KINDS}


def registered(kind: str, module: Module, name: str, value: Any) -> Any:
    """The member that registration hooks make of ``value``."""
    for hook in tuple(REGISTRATION_HOOKS[kind].values()):
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def _know_as_tree(made: type) -> None:
    """Let optree, where a program has it, see a mapping of members as the dict that it is in PyTorch."""
    optree = sys.modules.get("optree")
    if optree is None or made in _TREES or not hasattr(optree, "register_pytree_node"):
        return
    with _TREES_LOCK:
        if made in _TREES:  # another thread was first
            return
        optree.register_pytree_node(
            made,
            lambda members: (members.values(), tuple(members), tuple(members)),
            lambda names, values: dict(zip(names, values, strict=True)),
            namespace=optree.registry.__GLOBAL_NAMESPACE,
        )
        _TREES.add(made)


_TREES: set[type] = set()
_TREES_LOCK = held_at_fork(threading.Lock())


class Members(MutableMapping):
    """Live, ordered view of a module's members of one kind."""

    __slots__ = ("_kind", "_module")
    stands_for_dict = True  # in trees of containers

    def __new__(cls, module: Any = (), kind: str | None = None, **values: Any) -> Any:
        # Programs rebuild what they find in a module, mappings by their class: these become dicts of their own.
        return dict(module, **values) if kind is None else object.__new__(cls)

    def __init__(self, module: Module, kind: str) -> None:
        _know_as_tree(type(self))
        self._module, self._kind = module, kind

    @property
    def _names(self) -> dict[str, Any]:
        return getattr(self._module, f"_{self._kind}_names")

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return attributes(self._module)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if hasattr(type(self._module), name):
            keep_class_attribute(type(self._module), name)
            look_behind_property(type(self._module), name)
        ask_own_lookup(type(self._module), name)
        keep_member(self._module, self._kind, name, value, self._names.get(name, self._kind == "buffer"))

    def __delitem__(self, name: str) -> None:
        if name not in self._names:
            raise KeyError(name)
        drop_member(self._module, name)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._names))

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    # Views of a dict, as programs know them, of the members as they are now.
    def keys(self) -> Any:
        """The names, taken now."""
        return dict(self._names).keys()

    def items(self) -> Any:
        """Pairs of name and member, taken now."""
        return self.copy().items()

    def values(self) -> Any:
        """The members, taken now."""
        return self.copy().values()

    def copy(self) -> dict[str, Any]:
        """The members as a dict of their own."""
        names = self._names
        values = attributes_with(self._module, names)
        return {name: values[name] for name in names}

    def move_to_end(self, key: str, last: bool = True) -> None:
        """Let a member be the last one, or the first."""
        moved = {key: self._names[key]}
        rest = {name: mark for name, mark in self._names.items() if name != key}
        attributes(self._module)[f"_{self._kind}_names"] = rest | moved if last else moved | rest

    def __reversed__(self) -> Iterator[str]:
        return reversed(tuple(self._names))

    def __reduce__(self) -> Any:
        return dict, (self.copy(),)

    def __repr__(self) -> str:
        return repr(self.copy())


class KeptMembers(Members):
    """The view that stands in a module's ``__dict__``, where programs look for it; it does not keep the module."""

    __slots__ = ("_owner",)

    def __init__(self, module: Module, kind: str) -> None:
        _know_as_tree(type(self))
        self._owner, self._kind = weakref.ref(module), kind

    @property
    def _module(self) -> Module:  # type: ignore[override]
        found = self._owner()
        if found is None:
            raise RuntimeError(f"the module whose {self._kind}s these are is gone")
        return found


def _written(change: str) -> Any:
    """That method of a set, after which the module's buffers are as the set says."""

    def changed(self: Hidden, *given: Any) -> Any:
        result = getattr(set, change)(self, *given)
        names = self._names
        for name in tuple(names):
            names[name] = name not in self
        return self if result is not None and change.startswith("__") else result

    changed.__name__ = change
    return changed


class Hidden(set[str]):
    """The names of a module's buffers that are not persistent, as they are now; a change of it changes the module."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(name for name, persistent in names.items() if not persistent)
        self._names = names

    def __reduce__(self) -> Any:
        return set, (list(self),)

    def __repr__(self) -> str:
        return repr(set(self))

    add, discard, remove, pop, clear = map(_written, ("add", "discard", "remove", "pop", "clear"))
    update, __ior__ = map(_written, ("update", "__ior__"))
    difference_update, __isub__ = map(_written, ("difference_update", "__isub__"))
    intersection_update, __iand__ = map(_written, ("intersection_update", "__iand__"))
    symmetric_difference_update, __ixor__ = map(_written, ("symmetric_difference_update", "__ixor__"))


def member(module: Module, name: str) -> Any:
    """The member of that name: `Module.__getattr__`.

    Raises:
        AttributeError: There is none.
    """
    values = attributes(module)
    if any(name in values.get(book, ()) for book in _BOOKS.values()):
        return values[name]
    raise AttributeError(f"{type(module).__name__!r} object has no attribute {name!r}")


def _nobody() -> None:
    """No module."""


def have_lookup(base: type, owner: type) -> None:
    """Lets ``base.__getattr__`` be `member`, while ``owner``, which is ``base`` or below it, does not ask it.

    Every attribute is read more slowly from instances of a class with a ``__getattr__`` to be asked, and a class learns
    of one when it is made or when one is set or deleted. So the name is written into ``base`` where no statement writes
    it, and is absent while ``owner`` learns that it has none: in statements without a call, between which no other
    thread runs.
    """
    (names,) = gc.get_referents(vars(base))
    names["__getattr__"] = member
    try:
        del names["__getattr__"]
        owner.__getattr__ = member  # type: ignore[attr-defined]
        del owner.__getattr__  # type: ignore[attr-defined]
    finally:
        names["__getattr__"] = member


def shown_attributes(module: Module) -> dict[str, Any]:
    """A module's ``__dict__`` as programs see it: with views of its members under PyTorch's names."""
    values = attributes(module)
    if "_parameter_names" not in values:
        return Unmade(module)
    if type(values.get("_parameters")) is not KeptMembers:
        for book, kind in zip(_BOOKS, _KINDS, strict=True):
            values[book] = KeptMembers(module, kind)
    return values


def show_members(owner: type, shown: property) -> None:
    """Lets `__dict__` of ``owner``'s instances be ``shown``, also where a class in front of `Module` has its own.

    Every class without slots that is mixed in brings one.
    """
    found = next(vars(above)["__dict__"] for above in owner.__mro__ if "__dict__" in vars(above))
    if found is shown:
        return
    (own,) = gc.get_referents(vars(owner))  # no statement writes this name into a class that exists
    own["__dict__"] = shown
    owner._shows_members = True  # type: ignore[attr-defined]  # tells the interpreter that the class has changed


class Unmade(dict[str, Any]):
    """The ``__dict__`` of a module whose constructor has not run: attributes as pickles have them become members.

    A class whose ``__setstate__`` writes into its ``__dict__``, and does not call that of `Module`, comes here.
    """

    def __init__(self, module: Module) -> None:
        super().__init__(attributes(module))
        self._module = module

    def _write(self) -> dict[str, Any]:
        """The attributes themselves, as they are after what was just done here."""
        values = attributes(self._module)
        values.clear()
        dict.update(values, self)
        return values

    def update(self, *given: Any, **more: Any) -> None:  # type: ignore[override]
        new = dict(*given, **more)
        super().update(new)
        if is_pickled(new):
            take_pickled_state(self._module, new)
        else:
            attributes(self._module).update(new)

    def __ior__(self, given: Any) -> Unmade:  # type: ignore[override,misc]
        self.update(given)
        return self

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        attributes(self._module)[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._write()

    def setdefault(self, name: str, default: Any = None) -> Any:
        found = super().setdefault(name, default)
        attributes(self._module)[name] = found
        return found

    def pop(self, *given: Any) -> Any:
        found = super().pop(*given)
        self._write()
        return found

    def popitem(self) -> tuple[str, Any]:
        found = super().popitem()
        self._write()
        return found

    def clear(self) -> None:
        super().clear()
        self._write()


def is_pickled(state: Mapping[str, Any]) -> bool:
    """Whether attributes are laid out as `pickled_state`, and PyTorch's modules, give them."""
    return "_parameters" in state and "_parameter_names" not in state


def replace_shown(module: Module, values: dict[str, Any]) -> None:
    """Gives a module another ``__dict__``."""
    if is_pickled(values):
        replace_attributes(module, {})
        take_pickled_state(module, values)
    else:
        replace_attributes(module, values)


@in_turn
def replace_members(module: Module, kind: str, members: Mapping[str, Any]) -> None:
    """Let a module have these members of one kind, and no others; a copy of its ``__dict__`` keeps its own."""
    given, values, book = dict(members), attributes(module), f"_{kind}_names"
    before = values.get(book, {})
    for name in given:
        ask_own_lookup(type(module), name)
    values[f"_{kind}s"] = KeptMembers(module, kind)
    names = {name: before.get(name, True if kind == "buffer" else None) for name in given}
    stale = {name: values.get(name) for name in before}
    values |= given  # Note [Names and values of members]
    values[book] = names
    try:
        _forget(values, stale.keys() - given.keys())
    except BaseException:  # Ctrl-C in the midst of it
        _forget(values, stale.keys() - given.keys())
        raise


def _forget(values: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        values.pop(name, None)


class ClassAttribute:
    """An attribute of a class that submodules of its name do not hide, as PyTorch's, found after all others, do not.

    It takes the attribute's place in the class of the module, so that other classes pay nothing.
    """

    def __init__(self, name: str, value: Any) -> None:
        self._name, self._value = name, value

    def __get__(self, module: Module | None, owner: type) -> Any:
        if module is not None:
            values = attributes(module)
            if self._name in values and self._name not in values["_module_names"]:
                return values[self._name]
        bind = getattr(type(self._value), "__get__", None)
        return self._value if bind is None else bind(self._value, module, owner)

    def __set__(self, module: Module, value: Any) -> None:
        attributes(module)[self._name] = value

    def __delete__(self, module: Module) -> None:
        del attributes(module)[self._name]


class AskedMember:
    """Stands in a class for members of its instances: the class's own ``__getattr__`` is asked for them.

    PyTorch's modules keep members where the interpreter does not find them, and classes make something else of them in
    that method. Other attributes of the name are found at once.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, module: Module | None, owner: type) -> Any:
        values = {} if module is None else attributes(module)
        if self._name not in values or any(self._name in values.get(book, ()) for book in _BOOKS.values()):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")
        return values[self._name]

    def __set__(self, module: Module, value: Any) -> None:
        attributes(module)[self._name] = value

    def __delete__(self, module: Module) -> None:
        if self._name not in attributes(module):
            raise AttributeError(f"{type(module).__name__!r} object has no attribute {self._name!r}")
        del attributes(module)[self._name]


class KeptTable:
    """A name table of a class with a ``__setattr__`` of its own, which may write past `set_member`.

    Programs copy attribute by attribute what stands in another module's ``__dict__``, but for what PyTorch keeps its
    members in. The tables stand there too, and two modules must not share them: what is there stays.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, module: Module | None, owner: type) -> Any:
        return None if module is None else attributes(module).get(self._name)

    def __set__(self, module: Module, value: Any) -> None:
        attributes(module).setdefault(self._name, value)

    def __delete__(self, module: Module) -> None:
        attributes(module).pop(self._name, None)


def keep_tables(owner: type) -> None:
    """Lets modules of a class that assigns attributes in a way of its own keep their name tables."""
    if owner.__setattr__ is not set_member and not isinstance(vars(owner).get("_parameter_names"), KeptTable):
        for table in _BOOKS.values():
            setattr(owner, table, KeptTable(table))


def has_own_lookup(owner: type) -> bool:
    """Whether a class of modules, or one of those it is made of, defines ``__getattr__``."""
    return getattr(owner, "__getattr__", member) is not member


def ask_own_lookup(owner: type, name: str) -> None:
    """Lets members of that name be what ``owner``'s ``__getattr__`` makes of them, where it has one."""
    if has_own_lookup(owner) and not any(name in vars(above) for above in owner.__mro__):
        setattr(owner, name, AskedMember(name))


def look_behind_property(owner: type, name: str) -> None:
    """Lets a member be found where ``owner``'s property of its name raises AttributeError."""
    if isinstance(getattr(owner, name, None), property) and not has_own_lookup(owner):
        owner.__getattr__ = member  # type: ignore[attr-defined]


def keep_class_attribute(owner: type, name: str) -> None:
    """Lets ``owner``'s attribute be found before submodules of that name; classes of this package keep theirs."""
    found = next(vars(above)[name] for above in owner.__mro__ if name in vars(above))
    if not owner.__module__.startswith(_HOMES) and not hasattr(type(found), "__set__"):
        setattr(owner, name, ClassAttribute(name, found))


@in_turn
def keep_member(module: Module, kind: str, name: str, value: Any, mark: Any = None) -> None:
    """Lets a module have a member, of this kind alone; ``mark`` says of a buffer whether it is persistent.

    Note [Names and values of members]. A name without a value would be a module that nobody can walk through. Both are
    written, and deleted, in statements without a call: between them no other thread runs (`in_turn` sees to it where
    Python has no lock) and no interrupt comes.
    """
    values = attributes(module)
    parameters, buffers, modules = (
        values["_parameter_names"],
        values["_buffer_names"],
        values["_module_names"],
    )
    _gone = values.get(name)  # ends after what is written here: its end may run a program's code
    if kind == "parameter":
        if name in buffers:
            del buffers[name]
        if name in modules:
            del modules[name]
        parameters[name] = None
    elif kind == "buffer":
        if name in parameters:
            del parameters[name]
        if name in modules:
            del modules[name]
        buffers[name] = mark
    else:
        if name in parameters:
            del parameters[name]
        if name in buffers:
            del buffers[name]
        modules[name] = None
    values[name] = value


@in_turn
def drop_member(module: Module, name: str) -> bool:
    """Takes a member from a module that has it; whether it had (Note [Names and values of members])."""
    values = attributes(module)
    if "_parameter_names" not in values:
        return False
    _gone = values.get(name)
    for names in (values["_parameter_names"], values["_buffer_names"], values["_module_names"]):
        if name in names:
            del names[name]
            if name in values:
                del values[name]
            return True
    return False


@in_turn
def renew_member(module: Module, kind: str, name: str, value: Any) -> None:
    """Gives a member another value, unless the module has lost it meanwhile."""
    values = attributes(module)
    _gone = values.get(name)
    if name in values[f"_{kind}_names"]:
        values[name] = value


def forget_members(module: Module) -> None:
    """Makes the names of all members free, as a module that is initialised once more has none."""
    values = attributes(module)
    for kind in _KINDS:
        for name in tuple(values[f"_{kind}_names"]):
            drop_member(module, name)


def _kind_of(value: Any) -> str | None:
    if isinstance(value, Parameter):
        return "parameter"
    if isinstance(value, Stateful):  # every Module is, and nothing else
        return "module"
    return "buffer" if isinstance(value, (Buffer, UninitializedBuffer)) else None


def set_member(module: Module, name: str, value: Any) -> None:
    """Assigns an attribute: members are registered, other values must not replace a member of another type."""
    kind = _kind_of(value)
    parameters, modules, buffers = module._parameter_names, module._module_names, module._buffer_names
    if parameters is None or modules is None or buffers is None:  # attributes may be copied one by one
        if kind is not None:
            raise AttributeError(
                f"cannot assign {'parameters' if kind == 'parameter' else kind} before Module.__init__() call: "
                f"{name!r} needs super().__init__() of {type(module).__name__} first"
            )
        object.__setattr__(module, name, value)
        return
    known = name in parameters or name in modules or name in buffers
    if kind is None and not known:
        object.__setattr__(module, name, value)
        return
    values = attributes(module)
    if kind == "parameter":
        if name not in parameters and not drop_member(module, name):
            values.pop(name, None)
        module.register_parameter(name, value)
    elif name in parameters:
        _must_be(module, name, value, None, "parameter", "Parameter")
        module.register_parameter(name, None)
    elif kind == "module":
        if hasattr(type(module), name):
            keep_class_attribute(type(module), name)
            look_behind_property(type(module), name)
        ask_own_lookup(type(module), name)
        keep_member(module, kind, name, registered(kind, module, name, value))
    elif name in values["_module_names"]:
        _must_be(module, name, value, None, "module", "Module")
        values[name] = None
    elif name in values["_buffer_names"]:
        _must_be(module, name, value, Tensor, "buffer", "Tensor")
        persistent = value.persistent if kind == "buffer" else values["_buffer_names"][name]
        module.register_buffer(name, value, persistent)
    else:
        values.pop(name, None)
        module.register_buffer(name, value, value.persistent)


def _must_be(module: Module, name: str, value: Any, allowed: type | None, kind: str, expected: str) -> None:
    if value is not None and (allowed is None or not isinstance(value, allowed)):
        raise TypeError(
            f"{type(module).__name__}.{name} is a {kind}: expected a {expected} or None, got {type(value).__name__}"
        )


#: Where PyTorch's modules keep hooks.
_HOOKS = frozenset((*HookSet.attributes.values(), *STATE_HOOKS.values(), "_is_full_backward_hook"))
# Where they are kept here, and what copies do without.
_OWN_HOOKS = frozenset(("_hook_set", "_state_hooks", "_compiled_call_impl"))


def pickled_state(module: Module) -> dict[str, Any]:
    """A module's attributes in PyTorch's layout, so that either library unpickles the other's modules."""
    values = attributes(module)
    if "_parameter_names" not in values:
        return dict(values)
    members = {name for book in _BOOKS.values() for name in values[book]}
    members |= {*_BOOKS, *_BOOKS.values(), *_OWN_HOOKS}
    own = {k: v for k, v in values.items() if k not in members}
    books = {kind: {name: values[name] for name in values[book]} for kind, book in _BOOKS.items()}
    transient = {name for name, persistent in values["_buffer_names"].items() if not persistent}
    return {**own, **books, "_non_persistent_buffers_set": transient, **_pickled_hooks(values)}


def is_shown(state: object) -> bool:
    """Whether a state is a module's ``__dict__``, or a copy of it, as `shown_attributes` gives it."""
    return isinstance(state, dict) and not {*_BOOKS, *_BOOKS.values(), "_hook_set"} - state.keys()


def as_pickled(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes that a class gives as its state, a copy of its ``__dict__``, in the layout of `pickled_state`.

    A member has its place among those of its kind alone: classes ask whether its name is in their state.
    """
    books = {kind: dict(state[kind]) for kind in _BOOKS}
    shown = {*_BOOKS.values(), *_OWN_HOOKS}
    own = {
        name: value
        for name, value in state.items()
        if name not in shown and not any(book.get(name, _nobody) is value for book in books.values())
    }
    transient = {name for name, persistent in state["_buffer_names"].items() if not persistent}
    return {**own, **books, "_non_persistent_buffers_set": transient, **_pickled_hooks(state)}


def _pickled_hooks(values: Mapping[str, Any]) -> dict[str, Any]:
    # PyTorch's modules do not work without these two.
    hooks: dict[str, Any] = {name: OrderedDict() for name in ("_backward_hooks", "_forward_hooks")}
    if values["_hook_set"] is not None:
        hooks.update(values["_hook_set"].pickled())
    for kind, given in (values.get("_state_hooks") or {}).items():
        if given:
            hooks[STATE_HOOKS[kind]] = given
    return hooks


def take_pickled_state(module: Module, state: dict[str, Any]) -> None:
    """Gives an empty module the attributes that `pickled_state`, or PyTorch's modules, have."""
    values = attributes(module)
    if "_parameters" not in state:
        values.update(state)  # of a module that was not initialised, or in the layout of earlier versions
        return
    transient = state.get("_non_persistent_buffers_set", ())
    values["_hook_set"] = HookSet.from_pickled(state)
    values["_parameter_names"] = dict.fromkeys(state["_parameters"])
    values["_buffer_names"] = {name: name not in transient for name in state["_buffers"]}
    values["_module_names"] = dict.fromkeys(state["_modules"])
    for kind in _BOOKS:
        for name in state[kind]:
            ask_own_lookup(type(module), name)
        values.update(state[kind])
    if hooks := {kind: taken_hooks(state[name]) for kind, name in STATE_HOOKS.items() if state.get(name)}:
        values["_state_hooks"] = hooks
    elsewhere = {*_BOOKS, *_HOOKS, "_non_persistent_buffers_set"}
    for name, value in state.items():
        if name not in elsewhere and not isinstance(getattr(type(module), name, None), property):
            values[name] = value
