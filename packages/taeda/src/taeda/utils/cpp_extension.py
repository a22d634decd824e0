"""C++ extensions of PyTorch cannot be built here; kernels and devices in C and C++ go through `taeda.abi_capsule`."""

from taeda import _absent

_REASON = "extensions of PyTorch's C++ API cannot be built; see the guide to backends in C, and taeda.library"
#: Homes of toolkits: none.
CUDA_HOME = ROCM_HOME = CUDNN_HOME = SYCL_HOME = None
IS_HIP_EXTENSION = False

BuildExtension = _absent.cls("taeda.utils.cpp_extension.BuildExtension", _REASON)
globals().update(
    _absent.functions(
        "taeda.utils.cpp_extension",
        "CUDAExtension CppExtension SyclExtension include_paths library_paths load load_inline",
        _REASON,
    )
)


def is_ninja_available() -> bool:
    """Whether the build tool ninja can be called."""
    import shutil

    return shutil.which("ninja") is not None
