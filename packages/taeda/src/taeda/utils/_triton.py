"""Whether kernels of other compilers can be had: they cannot."""


def has_triton() -> bool:
    """False."""
    return False


has_triton_package = has_triton_tma = has_triton
