"""Facts about this installation, for reports of faults: ``python -m taeda.utils.collect_env``."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from typing import Any, NamedTuple


class SystemEnv(NamedTuple):
    """What a report says."""

    torch_version: str
    taeda_version: str
    python_version: str
    python_platform: str
    os: str
    cpu_info: str
    cpu_capability: str
    threads: int
    devices: list[str]
    pip_packages: list[str]


_WORTH_NAMING = ("taeda", "numpy", "scipy", "torchvision", "timm", "einops", "opt-einsum", "safetensors")


def run(command: str | list[str]) -> tuple[int, str, str]:
    """The exit status of a command, and what it wrote to its two outputs."""
    import subprocess

    done = subprocess.run(
        command, shell=isinstance(command, str), capture_output=True, text=True, errors="replace"
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def get_pip_packages(run_lambda: Any = None, patterns: Any = None) -> tuple[str, str]:
    """The word "pip", and the packages that matter with their versions, a line each."""
    return "pip", "\n".join(_packages())


def get_nvidia_driver_version(run_lambda: Any = None) -> str | None:
    """The version of the driver of NVIDIA's GPUs; None where there is none."""
    status, text, _ = (run_lambda or run)("nvidia-smi --query-gpu=driver_version --format=csv,noheader")
    return text.splitlines()[0] if status == 0 and text else None


def get_env_info() -> SystemEnv:
    """Collect the facts."""
    from taeda import version
    from taeda_registry.slots import tensor

    return SystemEnv(
        str(version.__version__),
        version.taeda,
        sys.version.replace("\n", " "),
        platform.platform(),
        platform.system(),
        platform.processor() or platform.machine(),
        tensor.backends.cpu.get_cpu_capability(),
        tensor.get_num_threads(),
        tensor.backends.names(),
        _packages(),
    )


def _packages() -> list[str]:
    found = {
        (dist.metadata["Name"] or "", dist.version)
        for dist in metadata.distributions()
        if (dist.metadata["Name"] or "").lower().startswith(_WORTH_NAMING)
    }
    return [f"{name}=={version}" for name, version in sorted(found)]


def pretty_str(envinfo: SystemEnv) -> str:
    """The facts, one a line."""
    return "\n".join(f"{name}: {value}" for name, value in envinfo._asdict().items())


def get_pretty_env_info() -> str:
    """The facts of this installation, one a line."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print them."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
