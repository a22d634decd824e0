"""Questions about the compiler."""


def is_compile_supported(device_type: str) -> bool:
    """Whether functions can be compiled for a kind of device: False."""
    return False
