"""Results that come later."""

from __future__ import annotations

import threading
from types import GenericAlias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that somebody sets once, and that any number of threads may wait for.

    Args:
        devices: Accepted for PyTorch's sake: values of the cpu are complete when they are set.

    Example:
        >>> future = taeda.futures.Future()
        >>> doubled = future.then(lambda done: done.value() * 2)
        >>> future.set_result(3)
        >>> doubled.wait()
        6
    """

    def __class_getitem__(cls, kind: Any) -> Any:
        """The class, with the type of the value noted."""
        return GenericAlias(cls, kind)

    def __init__(self, *, devices: Any = None) -> None:
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Whether the value, or an exception, is there."""
        return self._done

    def wait(self) -> Any:
        """The value, when it has come; raises the exception where one was set."""
        with self._changed:
            self._changed.wait_for(self.done)
        return self.value()

    def value(self) -> Any:
        """The value of a future that is done.

        Raises:
            RuntimeError: It is not done.
        """
        if not self._done:
            raise RuntimeError("Future.value: the future is not done yet; use wait()")
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of what `callback` returns, which is called with this one when it is done.

        What the callback raises becomes the future's exception, a RuntimeError.
        """
        result: Future = Future()

        def run(done: Future) -> None:
            try:
                value = callback(done)
            except BaseException as error:
                failed = RuntimeError(f"{type(error).__name__}: {error}")
                failed.__cause__ = error
                result.set_exception(failed)  # also of Ctrl-C: others wait for it
                if not isinstance(error, Exception):
                    raise
            else:
                result.set_result(value)

        self.add_done_callback(run)
        return result

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call `callback` with this future when it is done, or at once; what it raises is logged and dropped."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        self._tell(callback)

    def _tell(self, callback: Callable[[Future], Any]) -> None:
        try:
            callback(self)
        except Exception:
            import logging

            logging.getLogger(__name__).exception("a callback of a future failed")

    def __reduce__(self) -> NoReturn:
        raise RuntimeError("Can not pickle torch.futures.Future: its value comes in this process")

    def set_result(self, result: Any) -> None:
        """Give the value.

        Raises:
            RuntimeError: It was given before.
        """
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give an exception in the value's place.

        Raises:
            TypeError: It is no exception.
        """
        if not isinstance(result, BaseException):
            raise TypeError(f"set_exception: expected an exception, found {type(result).__name__}")
        self._finish(None, result)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError("Future can only be marked completed once")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        leaving = None
        for callback in callbacks:
            try:
                self._tell(callback)
            except BaseException as found:  # Ctrl-C; futures that others wait for hang on those behind it
                leaving = leaving or found
        if leaving is not None:
            raise leaving


def collect_all(futures: list[Future]) -> Future:
    """A future that is done when all are; its value is the list of them."""
    result: Future = Future()
    lock, missing = threading.Lock(), len(futures)
    if not futures:
        result.set_result([])

    def one_more(_: Future) -> None:
        nonlocal missing
        with lock:
            missing -= 1
            last = missing == 0
        if last:
            result.set_result(list(futures))

    for future in futures:
        future.add_done_callback(one_more)
    return result


def wait_all(futures: list[Future]) -> list[Any]:
    """The values of all, when all are done; the first exception is raised."""
    return [future.wait() for future in collect_all(futures).wait()]
