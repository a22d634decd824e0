"""What programs that measure a compiler call: there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def fresh_cache(cache_entries: Any = None, dir: str | None = None, delete: bool = True) -> Iterator[None]:
    """Context in which nothing compiled before is found: nothing is."""
    yield


fresh_inductor_cache = fresh_cache


def unread(*arguments: Any, **options: Any) -> Callable[[Any], Any]:
    """Take what a program tells a code generator about an operator; as a decorator, leave the function as it is."""
    return lambda function: function
