"""An interpreter of the pickle opcodes that data needs, within limits of memory, work and depth.

Opcodes: Python's documentation of ``pickletools``. What a name in the file means is asked of the caller; the machine
itself knows containers, numbers and text. Nothing of the file is hashed, compared or printed without a bound: a few
bytes can describe a tuple with more leaves than could ever be visited.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from sys import getsizeof
from typing import Any, Protocol

from taeda_tensor_core.checkpoint.common import MAX_KEY, MAX_PICKLED_DEPTH, Budget, fail, shown

# Leaves and branches that one key may have.
_DOUBLE = struct.Struct(">d")
MAX_KEY_PARTS = 1000
DICTS = (dict, OrderedDict, Counter)


class Names(Protocol):
    """What the machine asks of its caller."""

    def find(self, module: str, name: str) -> Any:
        """What stands for a name; fails where the name is not allowed."""

    def call(self, machine: Machine, what: Any, args: tuple[Any, ...]) -> Any:
        """The result of calling something that `find` returned."""

    def new(self, machine: Machine, what: Any, args: tuple[Any, ...]) -> Any:
        """An object of a class that `find` returned, made without initialising it."""

    def build(self, target: Any, state: Any) -> None:
        """Gives an object its state."""

    def refer(self, reference: Any) -> Any:
        """What a persistent id stands for."""

    def is_data(self, value: Any) -> bool:
        """Whether a value may stand in the result."""

    def old_text(self, data: bytes) -> Any:
        """What a string of Python 2 is."""


class Machine:
    """Runs the opcodes on a stack.

    Args:
        data: the pickle; bytes behind its end are left alone.
        names: what names and references mean.
        budget: what the objects may cost.
        at: where the pickle begins.
    """

    def __init__(self, data: bytes, names: Names, budget: Budget, at: int = 0) -> None:
        self._data, self.at, self._names, self.budget = data, at, names, budget
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # stacks under the marks
        self._memo: list[Any] = []
        self._collisions: dict[int, Counter[int]] = {}  # by container: keys by hash

    def run(self) -> Any:
        """The object that the pickle describes."""
        take = self.budget.take
        while True:
            code = self._data[self.at] if self.at < len(self._data) else self._cut_off()
            self.at += 1
            if code in _PUSHES:
                value = _PUSHES[code](self)  # may change which list the stack is
                take(8 + getsizeof(value) if code in _FRESH else 8)
                self._stack.append(value)
            elif code == _STOP:
                return self._finished(*self.replace(1))
            elif code in _ACTIONS:
                _ACTIONS[code](self)
            else:
                fail(f"the file has opcode {bytes([code])!r} at byte {self.at - 1}, which data does not need")

    # --- bytes ---

    def _cut_off(self) -> Any:
        fail("the pickle in the file is cut off")

    def take(self, count: int) -> bytes:
        if self.at + count > len(self._data):
            self._cut_off()
        self.at += count
        return self._data[self.at - count : self.at]

    def line(self) -> str:
        end = self._data.find(b"\n", self.at)
        if end < 0:
            self._cut_off()
        text = self._data[self.at : end].decode("utf-8")
        self.at = end + 1
        return text

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def long(self, size: int) -> int:
        return int.from_bytes(self.take(self.number(size)), "little", signed=True)

    def double(self) -> float:
        return float(_DOUBLE.unpack(self.take(8))[0])

    def text(self, size: int) -> str:
        return self.take(self.number(size)).decode("utf-8", "surrogatepass")

    def old_text(self, size: int) -> Any:
        return self._names.old_text(self.take(self.number(size)))

    def bytes(self, size: int) -> bytes:
        return self.take(self.number(size))

    # --- stack ---

    def mark(self) -> None:
        self.budget.take(64)
        self._below.append(self._stack)
        self._stack = []

    def marked(self) -> list[Any]:
        """What was pushed since the last mark."""
        if not self._below:
            fail("the pickle in the file takes from an empty stack")
        items, self._stack = self._stack, self._below.pop()
        return items

    def replace(self, count: int) -> tuple[Any, ...]:
        if len(self._stack) < count:
            fail("the pickle in the file takes from an empty stack")
        items = tuple(self._stack[len(self._stack) - count :])
        del self._stack[len(self._stack) - count :]
        return items

    def top(self, *kinds: type) -> Any:
        if not self._stack or type(self._stack[-1]) not in kinds:
            fail(f"the pickle in the file expects a {kinds[0].__name__}")
        return self._stack[-1]

    # --- containers ---

    def append(self) -> None:
        if not self._stack:
            fail("the pickle in the file takes from an empty stack")
        item = self._stack.pop()
        self.top(list).append(item)

    def extend(self) -> None:
        items = self.marked()
        self.budget.take(8 * len(items))
        self.top(list).extend(items)

    def set_item(self) -> None:
        key, value = self.replace(2)
        self.put_in(self.top(*DICTS), [key, value])

    def set_items(self) -> None:
        items = self.marked()
        self.put_in(self.top(*DICTS), items)

    def make_dict(self) -> None:
        items = self.marked()
        self._stack.append({})
        self.put_in(self._stack[-1], items)

    def put_in(self, target: dict[Any, Any], items: list[Any]) -> None:
        """Sets keys and values, which stand in turn."""
        if len(items) % 2:
            fail("the pickle in the file has a key without value")
        for i in range(0, len(items), 2):
            target[self._hashed(target, items[i])] = items[i + 1]

    def add_items(self) -> None:
        items = self.marked()
        self.add_to(self.top(set), items)

    def add_to(self, target: set[Any], items: Any) -> None:
        """Adds members to a set."""
        for item in items:
            target.add(self._hashed(target, item))

    def _hashed(self, container: Any, key: Any) -> Any:
        """A key after making sure that hashing and comparing it takes little time."""
        self.budget.take(100)
        kind = type(key)
        if kind is str or kind is bytes or kind is float or kind is bool or key is None:
            return key
        if kind is int:
            return key if abs(key) < MAX_KEY else fail("a key in the file is an int of more than 64 bits")
        if kind is not tuple:
            if self._names.is_data(key) and not isinstance(key, (list, set, bytearray, *DICTS)):
                return key
            fail(f"a key in the file is {shown(key)}")
        self.budget.take(16 * _parts(key))
        # Tuples with one hash can be made at will; each is compared with those before it.
        seen = self._collisions.setdefault(id(container), Counter())
        seen[hash(key)] += 1
        self.budget.take(100 + 8 * seen[hash(key)])
        return key

    # --- memory ---

    def put(self, key: int) -> None:
        if not self._stack:
            fail("the pickle in the file takes from an empty stack")
        if key > len(self._memo):
            self.budget.take(40 * (key - len(self._memo)))
            self._memo += [_NOTHING] * (key - len(self._memo))
        if key == len(self._memo):
            self._memo.append(self._stack[-1])
        else:
            self._memo[key] = self._stack[-1]

    def get(self, key: int) -> Any:
        if key >= len(self._memo) or self._memo[key] is _NOTHING:
            fail(f"the pickle in the file is malformed: it refers to object {key}, which is not there")
        return self._memo[key]

    # --- names ---

    def named(self) -> Any:
        module, name = self.replace(2)
        if not isinstance(module, str) or not isinstance(name, str):
            fail("the file refers to a name that is no text")
        return self._names.find(module, name)

    def refer(self) -> Any:
        return self._names.refer(*self.replace(1))

    def _args(self, args: Any) -> tuple[Any, ...]:
        self.budget.take(200)
        return args if type(args) is tuple else fail(f"the file calls something with {shown(args)}")

    def call(self) -> None:
        what, args = self.replace(2)
        self._stack.append(self._names.call(self, what, self._args(args)))

    def new(self) -> None:
        what, args = self.replace(2)
        self._stack.append(self._names.new(self, what, self._args(args)))

    def build(self) -> None:
        target, state = self.replace(2)
        self._names.build(target, state)
        self._stack.append(target)

    # --- the result ---

    def _finished(self, root: Any) -> Any:
        """``root`` after making sure that nothing but data is in it, in bounded depth."""
        depths: dict[int, int | None] = {}  # None while the walk is inside
        todo, within = [root], 0
        while todo:
            item = todo[-1]
            inside = self._inside(item)
            depth = depths.get(id(item), -1)
            if inside is None or (depth is not None and depth >= 0):
                todo.pop()
            elif depth is None:
                depths[id(todo.pop())] = self._depth(inside, depths)
                within -= 1
            else:
                depths[id(item)] = None
                within += 1
                if within > MAX_PICKLED_DEPTH:
                    fail(_TOO_DEEP)
                self.budget.take(100)
                for child in inside:
                    inside_itself = depths.get(id(child), -1) is None
                    if not inside_itself and not isinstance(child, _LEAVES):
                        todo.append(child)
        return root

    def _inside(self, item: Any) -> list[Any] | None:
        if isinstance(item, DICTS):
            return [*item.values(), *(vars(item).values() if type(item) is OrderedDict else ())]
        if isinstance(item, (list, tuple)):
            return item  # type: ignore[return-value]
        if not isinstance(item, (*_LEAVES, set, bytearray)) and not self._names.is_data(item):
            fail(f"the file holds {item}; only tensors, containers, numbers and strings are read")
        return None

    def _depth(self, inside: list[Any], depths: dict[int, int | None]) -> int:
        depth = 1 + max((depths.get(id(child)) or 0 for child in inside), default=0)
        return depth if depth <= MAX_PICKLED_DEPTH else fail(_TOO_DEEP)


_LEAVES = (str, bytes, int, float, complex, type(None))
_NOTHING = object()
_TOO_DEEP = f"the file nests containers deeper than {MAX_PICKLED_DEPTH}"


def _parts(key: tuple[Any, ...]) -> int:
    """How many parts a key has, counted wherever they appear; fails for what is no key."""
    count, todo = 0, [key]
    while todo:
        for item in todo.pop():
            count += 1
            if count > MAX_KEY_PARTS:
                fail(f"a key in the file has more than {MAX_KEY_PARTS} parts")
            if type(item) is tuple:
                todo.append(item)
            elif not isinstance(item, (str, bytes, int, float, type(None))) or (
                type(item) is int and abs(item) >= MAX_KEY
            ):
                fail(f"a key in the file holds {shown(item)}")
    return count


_STOP = ord(".")

_PUSHES: dict[int, Callable[[Machine], Any]] = {
    ord(code): action
    for code, action in {
        b"N": lambda m: None,
        b"\x88": lambda m: True,
        b"\x89": lambda m: False,
        b"]": lambda m: [],
        b")": lambda m: (),
        b"}": lambda m: {},
        b"\x8f": lambda m: set(),
        b"J": lambda m: m.number(4, signed=True),
        b"K": lambda m: m.number(1),
        b"M": lambda m: m.number(2),
        b"\x8a": lambda m: m.long(1),
        b"\x8b": lambda m: m.long(4),
        b"G": lambda m: m.double(),
        b"X": lambda m: m.text(4),
        b"\x8c": lambda m: m.text(1),
        b"\x8d": lambda m: m.text(8),
        b"U": lambda m: m.old_text(1),
        b"T": lambda m: m.old_text(4),
        b"C": lambda m: m.bytes(1),
        b"B": lambda m: m.bytes(4),
        b"\x8e": lambda m: m.bytes(8),
        b"\x85": lambda m: m.replace(1),
        b"\x86": lambda m: m.replace(2),
        b"\x87": lambda m: m.replace(3),
        b"t": lambda m: tuple(m.marked()),
        b"l": lambda m: m.marked(),
        b"h": lambda m: m.get(m.number(1)),
        b"j": lambda m: m.get(m.number(4)),
        b"c": lambda m: m._names.find(m.line(), m.line()),
        b"\x93": lambda m: m.named(),
        b"Q": lambda m: m.refer(),
    }.items()
}
# Those that make an object, whose memory counts.
_FRESH = frozenset(_PUSHES) - frozenset(b"N\x88\x89)KhjcQ\x93")

_ACTIONS: dict[int, Callable[[Machine], Any]] = {
    ord(code): action
    for code, action in {
        b"\x80": lambda m: m.take(1),
        b"\x95": lambda m: m.take(8),
        b"(": lambda m: m.mark(),
        b"0": lambda m: m.replace(1),
        b"1": lambda m: m.marked(),
        b"a": lambda m: m.append(),
        b"e": lambda m: m.extend(),
        b"s": lambda m: m.set_item(),
        b"u": lambda m: m.set_items(),
        b"d": lambda m: m.make_dict(),
        b"\x90": lambda m: m.add_items(),
        b"q": lambda m: m.put(m.number(1)),
        b"r": lambda m: m.put(m.number(4)),
        b"\x94": lambda m: m.put(len(m._memo)),
        b"R": lambda m: m.call(),
        b"\x81": lambda m: m.new(),
        b"b": lambda m: m.build(),
    }.items()
}
