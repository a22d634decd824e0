"""What the current device can do."""

from __future__ import annotations

__all__ = ["is_bf16_supported", "is_tf32_supported"]

#: The first compute capability with bfloat16 and TF32 of its own (NVIDIA's Ampere).
_FIRST = (8, 0)


def _is_recent() -> bool:
    from taeda_registry.slots import tensor

    kind = tensor.get_device_module("cuda")
    return bool(kind.is_available() and kind.get_device_capability() >= _FIRST)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a device that computes with bfloat16.

    Args:
        including_emulation: Also where it is computed through float32, which every device can.

    Example:
        >>> taeda.cuda.is_bf16_supported()
        True
    """
    from taeda_registry.slots import tensor

    return bool(tensor.get_device_module("cuda").is_available()) if including_emulation else _is_recent()


def is_tf32_supported() -> bool:
    """Whether the current device multiplies float32 by TF32 where that is allowed.

    Example:
        >>> taeda.cuda.is_tf32_supported()
        True
    """
    return _is_recent()
