"""Versions: whose programs run here, and which taeda it is.

``taeda.__version__`` names the version of PyTorch whose programs are meant to run, since that is what they compare it
with; its local part is taeda's own version, as PEP 440 has it for such builds.
"""

from __future__ import annotations

from taeda.torch_version import TorchVersion

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "taeda", "xpu"]

#: taeda's own version, that of the installed distribution.
taeda = "0.1.0"
__version__ = TorchVersion(f"2.13.0+taeda{taeda}")
debug = False
#: Toolkits that the library was built with: none.
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
#: Known to who builds from a repository only.
git_version = "Unknown"
