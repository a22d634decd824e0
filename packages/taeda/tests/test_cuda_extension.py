"""Extensions with sources of CUDA: compiled by nvcc where there is one, else refused in clear words."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import taeda as torch
from taeda.utils import cpp_extension

SOURCES = Path(__file__).parent / "extensions"
needs_nvcc = pytest.mark.skipif(
    cpp_extension.CUDA_HOME is None or shutil.which("c++") is None, reason="needs nvcc and c++"
)
SETUP = """
from setuptools import setup
from taeda.utils.cpp_extension import BuildExtension, CUDAExtension

flags = {"cxx": ["-DANSWER=4"], "nvcc": ["-DANSWER=3"]}
sources = ["tiny.cpp", "tiny_kernel.cu"]
setup(
    name="tiny",
    ext_modules=[CUDAExtension("tiny", sources, extra_compile_args=flags)],
    cmdclass={"build_ext": BuildExtension},
)
"""
TINY = """
#include <Python.h>

int launched_on();
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tiny"};
extern "C" __attribute__((visibility("default"))) PyObject* PyInit_tiny() {
  PyObject* module = PyModule_Create(&definition);
  if (module) PyModule_AddIntConstant(module, "answer", 10 * ANSWER + launched_on());
  return module;
}
"""
TINY_KERNEL = """
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
int launched_on() { return ANSWER; }
"""


@pytest.fixture(autouse=True)
def _one_kind_of_device(monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")  # the fewer, the shorter the test


def refuses_the_cpu(module):
    with pytest.raises(RuntimeError, match="cell: tensors must be on a CUDA device"):
        module.forward(torch.zeros(2, 2, 3), torch.zeros(2, 3))


@needs_nvcc
def test_sources_of_cuda_are_compiled_and_loaded(tmp_path):
    sources = [str(SOURCES / name) for name in ("cell.cpp", "cell_kernel.cu")]
    module = cpp_extension.load(
        "cell_loaded", sources, build_directory=str(tmp_path), extra_cuda_cflags=["-O1"]
    )
    refuses_the_cpu(module)
    assert (
        cpp_extension.load("cell_loaded", sources, build_directory=str(tmp_path), extra_cuda_cflags=["-O1"])
        is module
    )
    if torch.cuda.is_available():
        gates, cell = torch.randn(2, 2, 300), torch.randn(2, 300)
        new, total = module.forward(gates.to("cuda"), cell.to("cuda"))
        expected = cell + gates[:, 1].tanh() * gates[:, 0].sigmoid()
        assert torch.allclose(new.cpu(), expected, atol=1e-6)
        assert torch.allclose(total.cpu(), expected.sum(), atol=1e-3)


@needs_nvcc
def test_texts_of_cuda_are_compiled(tmp_path):
    kernel = "__global__ void fill(float* to, float value) { to[threadIdx.x] = value; }\n"
    host = """
    void fill_row(taeda::Tensor x, double value) {
      TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "fill_row: on a CUDA device, without gaps");
      fill<<<1, x.numel(), 0, c10::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), value);
      AT_CUDA_CHECK(cudaGetLastError());
    }
    """
    host = "#include <torch/types.h>\n" + kernel + host
    module = cpp_extension.load_inline(
        "filling",
        "void fill_row(taeda::Tensor x, double value);",
        host,
        functions="fill_row",
        build_directory=str(tmp_path),
    )
    with pytest.raises(RuntimeError, match="fill_row: on a CUDA device"):
        module.fill_row(torch.zeros(3), 1.0)


@needs_nvcc
def test_setuptools_build_sources_of_cuda(tmp_path):
    for name, text in (("tiny.cpp", TINY), ("tiny_kernel.cu", TINY_KERNEL), ("setup.py", SETUP)):
        (tmp_path / name).write_text(text)
    build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(build, cwd=tmp_path, check=True)
    program = [sys.executable, "-c", "import tiny; print(tiny.answer)"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "43\n"


def test_without_nvcc_an_error_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(cpp_extension._cuda_toolkit, "home", lambda: None)
    source = tmp_path / "x.cu"
    source.write_text("")
    for ask in (
        lambda: cpp_extension.load("name", [str(source)]),
        lambda: cpp_extension.load_inline("name", "", "void f() {}", build_directory=str(tmp_path)),
        lambda: cpp_extension.CUDAExtension("name", ["x.cu"]),
        lambda: cpp_extension.include_paths("cuda"),
    ):
        with pytest.raises(OSError, match="need NVIDIA's compiler nvcc, which is not in CUDA_HOME"):
            ask()


def test_devices_to_compile_for_are_chosen_by_name(monkeypatch):
    chosen = cpp_extension._cuda_toolkit.architectures
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0 9.0+PTX")
    assert chosen() == [
        "-gencode=arch=compute_80,code=[sm_80]",
        "-gencode=arch=compute_90,code=[sm_90,compute_90]",
    ]
    assert chosen(["-arch=sm_80"]) == []
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "Volta")
    with pytest.raises(ValueError, match=r"expected devices such as '8.0;9.0\+PTX'.*found 'Volta'"):
        chosen()
