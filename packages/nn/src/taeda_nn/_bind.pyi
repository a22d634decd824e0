# What type checkers see: the first-party tensors; at run time the active provider's.
from collections.abc import Callable, Iterable
from typing import Any

from taeda_tensor_core import Tensor as Tensor
from taeda_tensor_core import no_grad as no_grad

tensor: Any
autograd: Any
has_autograd: bool
disabled_torch_function: Any

def overridable(functions: Iterable[Callable[..., Any]]) -> None: ...
def placed(namespace: str) -> dict[str, Callable[..., Any]]: ...
def provided(name: str) -> Callable[..., Any] | None: ...
def op(name: str) -> Callable[..., Any]: ...
