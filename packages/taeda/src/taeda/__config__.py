"""How the installed libraries were built."""

from __future__ import annotations


def show() -> str:
    """Facts about the build, line by line."""
    from taeda import version
    from taeda_registry.slots import tensor

    capability = tensor.backends.cpu.get_cpu_capability()
    lines = [
        f"taeda {version.taeda}, for programs written for PyTorch {str(version.__version__).partition('+')[0]}",
        f"  - CPU capability usage: {capability}",
        f"  - threads: {tensor.get_num_threads()}",
        f"  - devices: {', '.join(tensor.backends.names())}",
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """How many threads operators use."""
    from taeda_registry.slots import tensor

    return f"ATen/Parallel:\n\tat::get_num_threads() : {tensor.get_num_threads()}\n"
