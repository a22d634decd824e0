"""The end of the interface that opens the driver's library, with libraries made for the test in its place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import taeda_tensor_cuda as cuda

# Memory is the host's and everything is done at once: what is tested is that the right functions are found and called.
WHOLE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static __thread void* current;
int cuInit(unsigned f) { return getenv("FAKE_FAILS") ? 999 : 0; }
int cuGetErrorName(int s, const char** t) { return *t = s == 999 ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_FAKE", 0; }
int cuGetErrorString(int s, const char** t) { return *t = s == 999 ? "unknown error" : "a fake's error", 0; }
int cuDeviceGetCount(int* n) { return *n = getenv("FAKE_EMPTY") ? 0 : 2, 0; }
int cuDeviceGet(int* d, int i) { return *d = i + 10, 0; }
int cuDeviceGetName(char* t, int n, int d) { return strncpy(t, d == 11 ? "fake 1" : "fake 0", n), 0; }
int cuDeviceTotalMem_v2(size_t* n, int d) { return *n = 1 << 30, 0; }
int cuDeviceGetAttribute(int* v, int a, int d) { return *v = a == 75 ? 9 : a == 76 ? 0 : 132, 0; }
int cuDevicePrimaryCtxRetain(void** c, int d) { return *c = (char*)0 + d, 0; }
int cuCtxSetCurrent(void* c) { return current = c, 0; }
int cuCtxSynchronize(void) { return current ? 0 : 201; }
int cuMemGetInfo_v2(size_t* f, size_t* t) { return *f = 1 << 29, *t = 1 << 30, 0; }
int cuMemAlloc_v2(uint64_t* p, size_t n) { return current ? (*p = (uintptr_t)aligned_alloc(512, n), 0) : 201; }
int cuMemFree_v2(uint64_t p) { return free((void*)p), 0; }
int cuMemHostAlloc(void** p, size_t n, unsigned f) { return f == 1 ? (*p = malloc(n), 0) : 1; }
int cuMemFreeHost(void* p) { return free(p), 0; }
int cuStreamCreateWithPriority(void** s, unsigned f, int p) { return f == 1 ? (*s = malloc(1), 0) : 1; }
int cuStreamSynchronize(void* s) { return current ? 0 : 201; }
int cuStreamQuery(void* s) { return 0; }
int cuStreamWaitEvent(void* s, void* e, unsigned f) { return f != 0; }
int cuEventCreate(void** e, unsigned f) { return *e = malloc(1), 0; }
int cuEventDestroy_v2(void* e) { return free(e), 0; }
int cuEventRecord(void* e, void* s) { return 0; }
int cuEventSynchronize(void* e) { return 0; }
int cuEventQuery(void* e) { return 600; }
int cuEventElapsedTime(float* ms, void* a, void* b) { return *ms = 1.5f, 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void* s) { return memcpy((void*)to, from, n), 0; }
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void* s) { return memcpy(to, (void*)from, n), 0; }
// An image is a fat binary; a function is its name.
int cuModuleLoadData(void** m, const void* image) { return *m = (void*)image, *(uint32_t*)image != 0xba55ed50; }
int cuModuleGetFunction(void** f, void* m, const char* name) { return *f = strdup(name), 0; }
int cuLaunchKernel(void* f, unsigned x, unsigned y, unsigned z, unsigned t, unsigned u, unsigned v, unsigned shared,
                   void* stream, void** parameters, void** more) {
  const char* file = getenv("FAKE_LAUNCHES");
  FILE* to = file ? fopen(file, "a") : 0;
  if (to) fprintf(to, "%s %u %u %lld\n", (char*)f, x, t, *(long long*)parameters[1]), fclose(to);
  return 0;
}
#ifndef OLD
int cuMemcpyPeerAsync(uint64_t to, void* tc, uint64_t from, void* fc, size_t n, void* s) {
  return tc != fc ? (memcpy((void*)to, (void*)from, n), 0) : 1;
}
#endif
"""
HEAD = "import os, sys, taeda_tensor_core as tc, taeda_tensor_cuda as cuda\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory):
    """Makes a folder with a driver's library in it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")

    def make(*options: str) -> Path:
        folder = tmp_path_factory.mktemp("driver")
        folder.joinpath("fake.c").write_text(WHOLE)
        command = [compiler, "-w", "-shared", "-fPIC", *options, "fake.c", "-o", "libcuda.so.1"]
        subprocess.run(command, cwd=folder, check=True)
        return folder

    return make


def run(folder: Path, program: str, **more: str) -> list[str]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), **more}
    environment.pop("TAEDA_CUDA_DRIVER", None)
    command = [sys.executable, "-c", HEAD + program]
    made = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout.splitlines()


def test_devices_are_found_and_tensors_go_there(library) -> None:
    shown = run(
        library(),
        """
kind = tc.get_device_module("cuda")
print(kind.is_available(), kind.device_count(), kind.get_device_name(1), kind.get_device_capability())
x = tc.arange(4.0).to("cuda:1")
print(x.cpu().tolist(), x.to("cuda:0").cpu().tolist(), cuda.mem_get_info(1))
with tc.Stream("cuda") as stream:
    event = tc.Event("cuda", enable_timing=True)
    event.record()
    print(event.query(), tc.ones(3).pin_memory("cuda").to("cuda", non_blocking=True).cpu().tolist())
stream.synchronize()
x.record_stream(tc.Stream("cuda:1"))
del x
print(cuda.memory_snapshot(1)[0]["blocks"][0]["state"])
kind.synchronize()
""",
    )
    assert shown == [
        "True 2 fake 1 [9, 0]",
        f"[0.0, 1.0, 2.0, 3.0] [0.0, 1.0, 2.0, 3.0] ({1 << 29}, {1 << 30})",
        "False [1.0, 1.0, 1.0]",
        "active_pending_free",
    ]


def test_kernels_are_loaded_from_the_library_and_launched(library, tmp_path: Path) -> None:
    if not cuda.has_device_code():
        pytest.skip("built without nvcc, or with TAEDA_CUDA_ARCHITECTURES=none")
    file = tmp_path / "launches"
    run(
        library(),
        """
x = tc.zeros(1000).to("cuda:1")
y = x + x
z = y[::2] * 2.0
tc.get_device_module("cuda").synchronize()
""",
        FAKE_LAUNCHES=str(file),
    )
    # Four elements for each thread, and blocks of 256 of them.
    assert file.read_text().splitlines() == ["taeda_add_f 1 256 250", "taeda_mul_f 1 256 125"]


def test_a_child_of_a_fork_is_told(library) -> None:
    shown = run(
        library(),
        """
x = tc.ones(2).to("cuda")
sys.stdout.flush()
if os.fork() == 0:
    try:
        x.cpu()
    except RuntimeError as error:
        print(error)
    sys.stdout.flush()
    os._exit(0)
os.wait()
print(x.cpu().tolist())
""",
    )
    assert "CUDA was started before this process was forked" in shown[0] and "try: " in shown[0]
    assert "'spawn'" in shown[0] and shown[1] == "[1.0, 1.0]"


WHY = "print(tc.get_device_module('cuda').is_available(), cuda.unavailable_reason())"


def test_a_driver_that_is_too_old_is_named(library) -> None:
    (shown,) = run(library("-DOLD"), WHY)
    assert shown.startswith("False ") and "libcuda.so.1 has no cuMemcpyPeerAsync; try: " in shown


def test_a_driver_that_does_not_start_says_why(library) -> None:
    (shown,) = run(library(), WHY, FAKE_FAILS="1")
    assert "the CUDA driver does not start: unknown error (CUDA_ERROR_UNKNOWN); try: nvidia-smi" in shown


def test_a_machine_without_devices_says_so(library) -> None:
    (shown,) = run(library(), WHY, FAKE_EMPTY="1")
    assert shown.startswith("False ") and "the CUDA driver knows no device; try: nvidia-smi" in shown
