"""PyTorch's names for a device that a program's own backend has: here a plug-in brings the device's name with it."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]


def rename_privateuse1_backend(backend_name: str) -> None:
    """Says which device the program means by its own backend: one whose plug-in is installed or loaded.

    Args:
        backend_name: The device's name, as its plug-in has it; nothing is renamed.

    Raises:
        RuntimeError: Nobody offers such a device, or the program has named another one before.

    Example:
        >>> taeda.utils.rename_privateuse1_backend("mydev")  # doctest: +SKIP
        >>> taeda.utils.generate_methods_for_privateuse1_backend()  # doctest: +SKIP
        >>> x = taeda.ones(2).mydev()  # doctest: +SKIP
    """
    global _chosen
    if _chosen not in (None, backend_name):
        raise RuntimeError(f"rename_privateuse1_backend: the backend is '{_chosen}' already")
    tensor.backends.device_count(backend_name)  # loads it, or raises with the names that are known
    _chosen = backend_name


_chosen: str | None = None


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype: Any = None,
) -> None:
    """Gives tensors and modules `x.is_mydev` and `x.mydev(device=None)`, of the device that was named before.

    Args:
        for_tensor, for_module: Which of the two.
        for_packed_sequence, for_storage, unsupported_dtype: Not used: packed sequences and storages move by `to`.

    Raises:
        RuntimeError: No device was named, or there are such methods.
    """
    if _chosen is None:
        raise RuntimeError(
            "generate_methods_for_privateuse1_backend: call rename_privateuse1_backend with the device's name first"
        )
    name = _chosen
    module = tensor.get_device_module(name)

    def place(device: Any) -> str:
        if device is None:
            return f"{name}:{module.current_device()}"
        text = str(device)
        return f"{name}:{text}" if text.isdigit() else text

    def is_there(self: Any) -> bool:
        """Whether it is on the device."""
        return self.device.type == name

    def move_tensor(self: Any, device: Any = None, non_blocking: bool = False, **_: Any) -> Any:
        """The tensor on the device; itself where it is there already."""
        return self.to(place(device), non_blocking=non_blocking)

    def move_module(self: Any, device: Any = None) -> Any:
        """The module, with its parameters and buffers on the device."""
        return self.to(place(device))

    added: list[tuple[Any, str, Any]] = []
    if for_tensor:
        added += [(tensor.Tensor, f"is_{name}", property(is_there)), (tensor.Tensor, name, move_tensor)]
    if for_module:
        added += [(nn.Module, name, move_module)]
    for owner, method, function in added:
        if hasattr(owner, method):
            raise RuntimeError(
                f"generate_methods_for_privateuse1_backend: {owner.__name__} has '{method}' already"
            )
        setattr(owner, method, function)
