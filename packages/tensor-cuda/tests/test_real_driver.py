"""The end of the interface that opens the driver's library, with libraries made for the test in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import stand_ins

import taeda_tensor_cuda as cuda

# Memory is the host's and everything is done at once: what is tested is that the right functions are found and called.
WHOLE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static __thread void* current;
static __thread int mode, recording;
// FAKE_CALLS is a file for what is put into streams, in order.
static int called(const char* what, const char* name) {
  const char* file = getenv("FAKE_CALLS");
  FILE* to = file ? fopen(file, "a") : 0;
  return to ? fprintf(to, "%s %s\n", what, name), fclose(to) : 0;
}
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
int cuMemAlloc_v2(uint64_t* p, size_t n) {
  if (recording && mode != 2) return 900;
  return current ? (*p = (uintptr_t)aligned_alloc(512, n), 0) : 201;
}
// Addresses are memory of the host from the beginning; what is put there is counted.
static int pieces;
int cuMemAddressReserve(uint64_t* p, size_t n, size_t a, uint64_t at, unsigned long long f) {
  return *p = (uintptr_t)aligned_alloc(a, n), at || f;
}
int cuMemAddressFree(uint64_t p, size_t n) { return free((void*)p), 0; }
int cuMemCreate(unsigned long long* h, size_t n, const int* kind, unsigned long long f) {
  return *h = 7, n != 2 << 20 || kind[0] != 1 || kind[1] || kind[2] != 1 || kind[3] > 1;
}
int cuMemRelease(unsigned long long h) { return h != 7; }
int cuMemMap(uint64_t p, size_t n, size_t o, unsigned long long h, unsigned long long f) { return ++pieces, h != 7; }
int cuMemSetAccess(uint64_t p, size_t n, const int* access, size_t count) { return access[2] != 3 || count != 1; }
int cuMemUnmap(uint64_t p, size_t n) { return printf("%d pieces, %d away\n", pieces, (int)(n >> 21)), fflush(stdout); }
int cuMemFree_v2(uint64_t p) { return free((void*)p), 0; }
int cuPointerGetAttribute(void* to, int kind, uint64_t p) { return *(int*)to = kind == 2 ? 2 : 0, p == 0; }
int cuMemGetAddressRange_v2(uint64_t* start, size_t* n, uint64_t p) { return *start = p - 64, *n = 1 << 20, 0; }
int cuIpcGetMemHandle(char* handle, uint64_t p) { return memset(handle, 7, 64), memcpy(handle, &p, 8), 0; }
int cuIpcOpenMemHandle_v2(uint64_t* p, struct { char bytes[64]; } handle, unsigned flags) {
  static int opened;
  return flags != 1 || handle.bytes[63] != 7 || opened++ ? 1 : (memcpy(p, handle.bytes, 8), 0);
}
int cuIpcCloseMemHandle(uint64_t p) { return printf("closed\n"), fflush(stdout); }
int cuMemHostAlloc(void** p, size_t n, unsigned f) { return f == 1 ? (*p = malloc(n), 0) : 1; }
int cuMemFreeHost(void* p) { return free(p), 0; }
int cuStreamCreateWithPriority(void** s, unsigned f, int p) { return f == 1 ? (*s = malloc(1), 0) : 1; }
int cuStreamSynchronize(void* s) { return called("synchronize", ""), current ? 0 : 201; }
int cuStreamQuery(void* s) { return 0; }
int cuStreamWaitEvent(void* s, void* e, unsigned f) { return called("wait", ""), f != 0; }
int cuEventCreate(void** e, unsigned f) { return *e = malloc(1), 0; }
int cuEventDestroy_v2(void* e) { return free(e), 0; }
int cuEventRecord(void* e, void* s) { return called("record", ""), 0; }
int cuEventSynchronize(void* e) { return 0; }
int cuEventQuery(void* e) { return 600; }
int cuEventElapsedTime(float* ms, void* a, void* b) { return *ms = 1.5f, 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void* s) {
  return called("copy", "in"), memcpy((void*)to, from, n), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void* s) {
  return called("copy", "out"), memcpy(to, (void*)from, n), 0;
}
// A graph is what was launched meanwhile, as a text; memory is taken and images loaded under the relaxed mode alone.
static char recorded[1000];
int cuThreadExchangeStreamCaptureMode(int* m) { const int before = mode; return mode = *m, *m = before, 0; }
int cuStreamBeginCapture_v2(void* s, int m) { return s && !recording ? (recording = 1, recorded[0] = 0) : 900; }
int cuStreamEndCapture(void* s, void** g) { return recording ? (recording = 0, *g = recorded, 0) : 901; }
int cuStreamGetCaptureInfo_v3(void* s, int* state, uint64_t* number, void** g, void** d, void** e, size_t* n) {
  return *state = s && recording, *number = 5, g || d || e || n;
}
int cuGraphInstantiateWithFlags(void** x, void* g, unsigned long long f) { return *x = strdup(g), f != 0; }
int cuGraphLaunch(void* x, void* s) { return printf("runs%s\n", (char*)x), fflush(stdout); }
int cuGraphDestroy(void* g) { return 0; }
int cuGraphExecDestroy(void* x) { return free(x), 0; }
int cuGraphDebugDotPrint(void* g, const char* path, unsigned f) { return f != 1; }
// An image is a fat binary, or an ELF file; a function is its name.
int cuModuleLoadData(void** m, const void* image) {
  if (recording && mode != 2) return 900;
  const uint32_t mark = *(uint32_t*)image;
  return *m = (void*)image, mark != 0xba55ed50 && mark != 0x464c457f;
}
int cuModuleGetFunction(void** f, void* m, const char* name) { return *f = strdup(name), 0; }
// More shared memory than 48 KiB has to be asked for; the smallest devices that have so much have 99.
static unsigned granted = 48 << 10;
int cuFuncSetAttribute(void* f, int what, int n) { return what == 8 && n <= 99 << 10 ? (granted = n, 0) : 1; }
int cuLaunchKernel(void* f, unsigned x, unsigned y, unsigned z, unsigned t, unsigned u, unsigned v, unsigned shared,
                   void* stream, void** parameters, void** more) {
  if (shared > granted) return 1;
  const char *slow = getenv("FAKE_SLOW"), *refused = getenv("FAKE_REFUSES");
  if (slow) usleep(atoi(slow));
  if (refused && strstr(f, refused)) return 719;
  called("launch", f);
  if (recording && stream) return strcat(strcat(recorded, " "), (char*)f), 0;
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
# cuBLAS likewise: products by their definition, in float32. A handle is its stream and whether it has a workspace.
CUBLAS = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct handle { void* stream; size_t workspace; };
int cublasCreate_v2(struct handle** h) { return (*h = calloc(1, sizeof **h)) ? getenv("FAKE_CREATES") != 0 : 3; }
int cublasDestroy_v2(struct handle* h) { return free(h), 0; }
int cublasSetStream_v2(struct handle* h, void* stream) { return h->stream = stream, h->workspace = 0, 0; }
int cublasSetWorkspace_v2(struct handle* h, void* w, size_t n) { return h->workspace = n, 0; }
const char* cublasGetStatusString(int s) { return s == 1 ? "CUBLAS_STATUS_FAKE" : 0; }
#ifndef OLD
int cublasGemmStridedBatchedEx_64(struct handle* h, int ta, int tb, int64_t m, int64_t n, int64_t k, const float* alpha,
                                  const float* a, int at, int64_t lda, long long sa, const float* b, int bt,
                                  int64_t ldb, long long sb, const float* beta, float* c, int ct, int64_t ldc,
                                  long long sc, int64_t count, int compute, int algorithm) {
  if (at || bt || ct || (compute != 68 && compute != 77) || algorithm != -1 || h->workspace < 1 << 20) return 15;
  printf("product %lld %lld %lld x %lld, %d%d", (long long)m, (long long)n, (long long)k, (long long)count, ta, tb);
  puts(compute == 77 ? ", TF32" : "");
  fflush(stdout);
  for (int64_t i = 0; i < count * n * m; ++i) {
    const int64_t q = i / (n * m), x = i % m, y = i / m % n;
    float sum = 0;
    for (int64_t l = 0; l < k; ++l)
      sum += a[q * sa + (ta ? l + x * lda : x + l * lda)] * b[q * sb + (tb ? y + l * ldb : l + y * ldb)];
    float* to = &c[q * sc + x + y * ldc];
    *to = *alpha * sum + (*beta ? *beta * *to : 0);
  }
  return 0;
}
#endif
"""
HEAD = "import os, sys, taeda_tensor_core as tc, taeda_tensor_cuda as cuda\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory):
    """Makes a folder with a driver's library in it."""

    def make(*options: str) -> Path:
        texts = {"libcuda.so.1": WHOLE, "libcublas.so.13": CUBLAS}
        return stand_ins.build(tmp_path_factory.mktemp("driver"), texts, *options)

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
        "True 2 fake 1 (9, 0)",
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


@pytest.mark.parametrize("width", [64, 128])
def test_kernels_ask_for_their_shared_memory(library, tmp_path: Path, width: int) -> None:
    if not cuda.has_device_code():
        pytest.skip("built without nvcc, or with TAEDA_CUDA_ARCHITECTURES=none")
    file = tmp_path / "launches"
    run(
        library(),
        f"""
q = tc.zeros(2, 3, 129, {width}).bfloat16().to("cuda")
out, lse = tc.ops.fused_attention(q, q, q, None, True, 1.0)
tc.ops.fused_attention_backward(q, q, q, q, None, out, lse, True, 1.0, 7)
tc.get_device_module("cuda").synchronize()
""",
        FAKE_LAUNCHES=str(file),
    )
    # Four warps, each of 32 rows, or of 16 where the sums of two gradients of wide rows are in registers.
    blocks = 12 if width == 64 else 18
    assert file.read_text().splitlines()[-4:] == [
        f"taeda_flash_b{width} 12 128 12",
        "taeda_flash_shares_b 49 128 49",
        f"taeda_flash_query_b{width} 12 128 12",
        f"taeda_flash_keys_b{width} {blocks} 128 {blocks}",
    ]


def test_graphs_are_recorded_and_launched(library) -> None:
    if not cuda.has_device_code():
        pytest.skip("built without nvcc, or with TAEDA_CUDA_ARCHITECTURES=none")
    shown = run(
        library(),
        """
kind = tc.get_device_module("cuda")
g, x = kind.CUDAGraph(), tc.ones(5).to("cuda")
with kind.graph(g):
    y = tc.empty(1 << 20, device="cuda")
    z = x + x
    w = z * x
print("recorded")
g.replay()
g.replay()
g.reset()
""",
    )
    assert shown == ["recorded", "runs taeda_add_f taeda_mul_f", "runs taeda_add_f taeda_mul_f"]


def test_segments_expand_by_pieces(library) -> None:
    shown = run(
        library(),
        """
x = tc.empty(30 << 20, dtype=tc.uint8, device="cuda")
y = tc.empty(30 << 20, dtype=tc.uint8, device="cuda")
print(y.data_ptr() - x.data_ptr() == 30 << 20)
del x, y
tc.get_device_module("cuda").empty_cache()
""",
        TAEDA_CUDA_ALLOC_CONF="expandable_segments:True",
    )
    assert shown == ["True", "30 pieces, 30 away"]


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


def test_an_allocation_of_another_process_is_opened_once(library) -> None:
    shown = run(
        library(),
        """
x = tc.arange(8.0).to("cuda")
handles = tc.backends.export_memory(x), tc.backends.export_memory(x[2:4])
opened = [tc.backends.import_memory(handle) for handle in handles]
print(*(t.cpu().tolist() for t in opened))
del opened[0]
print("one is left")
opened.clear()
""",
    )
    assert shown == [f"{[float(i) for i in range(8)]} [2.0, 3.0]", "one is left", "closed"]


PRODUCTS = """
a, b = tc.arange(6.0).reshape(2, 3), tc.arange(12.0).reshape(3, 4)
found = (a.to("cuda") @ b.to("cuda")).cpu()
print(tc.equal(found, a @ b))
turned = tc.ops.linear(a.to("cuda"), b.t().contiguous().to("cuda")).cpu()
print(tc.equal(turned, a @ b), cuda.libraries()["cublas"])
"""


def test_products_go_to_cublas(library) -> None:
    folder = library()
    for environment in ({}, {"TAEDA_CUDA_LIBRARIES": str(folder)}):
        shown = run(folder, PRODUCTS, **environment)
        where = "libcublas.so.13" if not environment else f"{folder}/libcublas.so.13"
        assert shown == [
            "product 4 2 3 x 1, 00",
            "True",
            "product 4 2 3 x 1, 10",
            f"True {{'found': True, 'text': '{where}'}}",
        ]


def test_float32_is_multiplied_by_tf32_where_the_program_allows_it(library) -> None:
    shown = run(
        library(),
        """
x = tc.ones(2, 2).to("cuda")
matmul = tc.backends.cuda.matmul
print(matmul.allow_tf32, matmul.fp32_precision)
for change in (lambda: None, lambda: setattr(matmul, "allow_tf32", True), lambda: setattr(matmul, "allow_tf32", False),
               lambda: tc.set_float32_matmul_precision("high"), lambda: setattr(matmul, "fp32_precision", "ieee")):
    change()
    x @ x
print(matmul.allow_tf32)
for wrong in (("allow_tf32", 1), ("fp32_precision", "bf8")):
    try:
        setattr(matmul, *wrong)
    except (TypeError, ValueError) as error:
        print(error)
""",
    )
    product = "product 2 2 2 x 1, 00"
    tf32 = product + ", TF32"
    assert shown[:7] == ["False ieee", product, tf32, product, tf32, product, "False"]
    assert shown[7].startswith("allow_tf32: expected a bool") and shown[8].startswith(
        "fp32_precision: expected"
    )


def test_what_cublas_says_is_passed_on(library) -> None:
    (shown,) = run(
        library(),
        """
x = tc.ones(2, 2).to("cuda")
try:
    tc.mm(x, x)
except RuntimeError as error:
    print(error)
""",
        FAKE_CREATES="fails",
    )
    assert shown == "mm: cuda: product: cuBLAS: CUBLAS_STATUS_FAKE"


@pytest.mark.parametrize(
    ("options", "environment", "text"),
    [
        (["-DOLD"], {}, "libcublas.so.13 lacks cublasGemmStridedBatchedEx_64"),
        ([], {"TAEDA_CUDA_LIBRARIES": "none"}, "TAEDA_CUDA_LIBRARIES is 'none'"),
    ],
)
def test_without_cublas_the_own_kernels_multiply(library, options, environment, text: str) -> None:
    folder = library()
    if options:
        stand_ins.build(folder, {"libcublas.so.13": CUBLAS}, *options)
    shown = run(
        folder,
        """
x = tc.ones(2, 2).to("cuda")
print(cuda.libraries()["cublas"])
try:
    tc.mm(x, x)
except RuntimeError as error:  # no code for devices in this build
    print(error)
""",
        FAKE_LAUNCHES=str(folder / "launches"),
        **environment,
    )
    assert shown[0] == str({"found": False, "text": text})
    launched = folder.joinpath("launches").read_text() if cuda.has_device_code() else shown[1]
    assert "product" in launched
    assert cuda.has_device_code() or launched.startswith("mm: cuda: launch of ")


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
