"""What pipes are: their methods by name, one iterator at a time, chunks."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from typing import Any, ClassVar

from taeda_data.dataset import Dataset, IterableDataset, T_co

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]


class DataChunk(list):
    """A batch, as a list that knows the elements that it was made from."""

    def __init__(self, items: Iterable[Any]) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The elements in brackets."""
        return indent + "[" + ", ".join(str(item) for item in self) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        """The elements as they were given."""
        yield from self.items


class _Steps:
    """Methods that steps with a name add to all pipes of their kind."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, name: str) -> Any:
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return partial(function, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """``pipe.function_name(...)`` calls ``function(pipe, ...)``."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: type, *_options: Any) -> None:
        """``pipe.function_name(...)`` makes a ``cls_to_register(pipe, ...)``; Exception if the name is taken."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        def make(source: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = wraps(cls_to_register, updated=())(make)

    def __repr__(self) -> str:
        return str(type(self).__qualname__)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *type(self).functions})


class _OneAtATime:
    """An iterator that ends with an error when another one has begun to read its pipe.

    What a generator yields is read from its first item on, whatever else was asked for before; so it begins then.
    """

    def __init__(self, pipe: IterDataPipe, make: Callable[[Any], Iterable[Any]]) -> None:
        self._pipe, self._make = pipe, make
        self._items: Iterator[Any] | None = None
        self._number = 0
        if not inspect.isgeneratorfunction(make):
            self._begin()

    def _begin(self) -> Iterator[Any]:
        self._number = self._pipe.__dict__["_iterators"] = self._pipe.__dict__.get("_iterators", 0) + 1
        self._pipe.reset()
        made = self._make(self._pipe)
        self._items = made if made is self._pipe else iter(made)  # type: ignore[assignment]  # a pipe may read itself
        return self._items  # type: ignore[return-value]

    def __iter__(self) -> _OneAtATime:
        return self

    def __next__(self) -> Any:
        items = self._begin() if self._items is None else self._items
        if self._pipe.__dict__.get("_iterators", 0) != self._number:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from the same "
                f"IterDataPipe: {self._pipe!r}\nThis may be caused multiple references to the same IterDataPipe. "
                "We recommend using `.fork()` if that is necessary."
            )
        return next(items)


class IterDataPipe(_Steps, IterableDataset[T_co]):
    """A step that is read from its beginning to its end.

    A class defines ``__iter__``, and ``reset()`` where it keeps something of a reading; that is called before each.
    Only the iterator made last may be read on.

    Example:
        >>> from taeda_data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(6)).map(lambda x: x * x).filter(lambda x: x % 2 == 0))
        [0, 4, 16]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    getstate_hook: ClassVar[Callable[..., Any] | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = cls.__dict__.get("__iter__")
        if own is None:
            return

        @wraps(own)
        def begin(self: IterDataPipe) -> Any:
            return _OneAtATime(self, own)

        cls.__iter__ = begin  # type: ignore[method-assign]

    def reset(self) -> None:
        """Forgets what is left of the reading before."""

    def with_shuffle(self, shuffle: bool) -> IterDataPipe:
        """The pipe with every `Shuffler` in it switched on or off; with one at its end where there is none."""
        switches = [step for step in steps_of(self) if hasattr(type(step), "set_shuffle")]
        for step in switches:
            step.set_shuffle(shuffle)
        if switches or not shuffle:
            return self
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware "
            "that the default buffer size might not be sufficient for your task.",
            stacklevel=3,
        )
        return self.shuffle()

    def __getstate__(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k != "_iterators"}
        hook = IterDataPipe.getstate_hook
        return state if hook is None else hook(state)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[..., Any] | None) -> None:
        """What pickles hold of a pipe is ``hook_fn`` of its attributes; None takes the hook away."""
        if IterDataPipe.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        IterDataPipe.getstate_hook = hook_fn


class MapDataPipe(_Steps, Dataset[T_co]):
    """A step that is read by keys; it defines ``__getitem__`` and, where it has one, ``__len__``."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


def steps_of(pipe: Any) -> Iterator[Any]:
    """A pipe and all that it takes from, each once."""
    seen: set[int] = set()
    waiting = [pipe]
    while waiting:
        step = waiting.pop()
        if id(step) in seen:
            continue
        seen.add(id(step))
        if isinstance(step, (list, tuple)):
            waiting += step
        elif isinstance(step, (IterDataPipe, MapDataPipe)) or hasattr(step, "deal"):
            yield step
            waiting += vars(step).values()


class functional_datapipe:
    """Decorator of a pipe's class: the step becomes a method, of this name, of all pipes of its kind.

    Raises:
        TypeError: the class is no pipe.
        Exception: the name is taken.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: type) -> type:
        if not (isinstance(cls, type) and issubclass(cls, (IterDataPipe, MapDataPipe))):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        kind = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        kind.register_datapipe_as_function(self.name, cls)
        return cls


class _IterDataPipeSerializationWrapper(IterDataPipe):
    """A pipe as a loader's workers get it: the pipe itself, which pickles as other objects do."""

    def __init__(self, datapipe: IterDataPipe) -> None:
        self._datapipe = datapipe

    def __iter__(self) -> Iterator[Any]:
        yield from self._datapipe

    def __len__(self) -> int:
        return len(self._datapipe)  # type: ignore[arg-type]


class _MapDataPipeSerializationWrapper(MapDataPipe):
    """The same, for pipes that are read by keys."""

    def __init__(self, datapipe: MapDataPipe) -> None:
        self._datapipe = datapipe

    def __getitem__(self, idx: Any) -> Any:
        return self._datapipe[idx]

    def __len__(self) -> int:
        return len(self._datapipe)  # type: ignore[arg-type]
