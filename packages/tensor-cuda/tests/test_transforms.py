"""Fourier transforms: on the simulated driver, which computes by the definition, and a library made for the test."""

from __future__ import annotations

from pathlib import Path

import device_programs as programs
import pytest
import stand_ins
import test_real_driver as real

HEAD = """
import itertools
import numpy as np
import taeda_tensor_core as tc, taeda_tensor_cuda as cuda
from taeda_tensor_cuda._library import call
tc.manual_seed(SEED)
ops, tried = tc.ops, 0
NORMS = (None, "ortho", "forward")

def near(found, expected, *what):
    global tried
    tried += 1
    found = found.cpu().numpy()
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    bound = 1e-4 if found.dtype in (np.float32, np.complex64) else 1e-11
    assert np.allclose(found, expected, rtol=bound, atol=bound), (what, np.abs(found - expected).max())

def layouts(*shape, dtype):
    "Tensors of one shape as they may lie."
    def drawn(*sizes):
        return tc.randn(*sizes, dtype=dtype)
    last = shape[-1]
    yield "rows", drawn(*shape)
    yield "turned", drawn(*shape[::-1]).permute(*range(len(shape))[::-1])
    yield "part", drawn(*shape[:-1], last + 3)[..., 1 : last + 1]
    yield "apart", drawn(*shape[:-1], 2 * last)[..., ::2]
    yield "expanded", drawn(1, *shape[1:]).expand(*shape)
"""


def run(program: str, seed: int = 1, least: int = 1, **environment: str) -> None:
    programs.check(program, HEAD, least, seed, **environment)


EVERYTHING = """
for dtype, shape in itertools.product(
    (tc.float32, tc.float64, tc.complex64, tc.complex128),
    ((5,), (1,), (4, 6), (3, 1, 5), (2, 3, 4, 3), (2, 1, 3, 2, 2)),
):
    dims = [d for r in range(1, len(shape) + 1) for d in itertools.combinations(range(len(shape)), r)]
    dims += [d[::-1] for d in dims if len(d) > 1]
    for (name, x), (d, norm) in itertools.product(layouts(*shape, dtype=dtype), zip(dims, itertools.cycle(NORMS))):
        there, plain = x.to("cuda"), x.numpy()
        for way in ("fftn", "ifftn") + (() if dtype.is_complex else ("rfftn", "ihfftn")):
            if way == "ihfftn":
                flipped = {None: "forward", "forward": "backward", "ortho": "ortho"}[norm]
                expected = np.conj(np.fft.rfftn(plain, axes=d, norm=flipped))
            else:
                expected = getattr(np.fft, way)(plain, axes=d, norm=norm)
            near(getattr(tc.fft, way)(there, dim=d, norm=norm), expected, way, dtype, shape, name, d)
        for last in {2 * shape[d[-1]] - 2, 2 * shape[d[-1]] - 1} - {0}:
            sizes = [shape[k] for k in d[:-1]] + [last]
            expected = np.fft.irfftn(plain, s=sizes, axes=d, norm=norm)
            near(tc.fft.irfftn(there, s=sizes, dim=d, norm=norm), expected, "irfftn", dtype, shape, name, d)
        assert np.array_equal(there.cpu().numpy(), plain)  # what is read is kept
"""


@pytest.mark.parametrize("libraries", ["", "none"])
def test_every_transform_over_every_dimension_of_every_layout(libraries: str) -> None:
    run(EVERYTHING, least=5000, TAEDA_CUDA_LIBRARIES=libraries)


def test_results_go_where_the_call_wants_them() -> None:
    run(
        """
        x = tc.randn(4, 6, dtype=tc.complex128)
        expected = np.fft.fft2(x.numpy())
        wide = tc.zeros(4, 12, dtype=tc.complex128, device="cuda")
        turned = tc.zeros(6, 4, dtype=tc.complex128, device="cuda").t()
        for into in (wide[:, ::2], wide[:, 3:9], turned):
            tc.fft.fft2(x.to("cuda"), out=into)
            near(into, expected, into.stride())
        real = tc.zeros(4, 9, device="cuda")[:, 1:]
        tc.fft.irfft(tc.ones(4, 5, dtype=tc.complex64, device="cuda"), out=real)
        near(real, np.fft.irfft(np.ones((4, 5))).astype(np.float32), "real")
        same = x.to("cuda")
        ops._fft_c2c(same, [0, 1], 0, True, out=same)
        near(same, expected, "in place")
        y = tc.randn(2, 3, 2, 3, dtype=tc.complex128)
        same = y.to("cuda")
        ops._fft_c2c(same, [0, 1, 2, 3], 0, True, out=same)
        near(same, np.fft.fftn(y.numpy()), "in place, in two passes")
        unaligned = tc.randn(7, dtype=tc.float32)
        near(tc.fft.rfft(unaligned.to("cuda")[1:]), np.fft.rfft(unaligned.numpy()[1:]), "not aligned")
        for empty in (tc.zeros(0, 4), tc.zeros(3, 0, 2)):
            near(tc.fft.fft(empty.to("cuda")), np.fft.fft(empty.numpy()).astype(np.complex64), "empty")
        near(tc.fft.fftn(x.to("cuda"), dim=()), x.numpy(), "no dimension")
        """,
        least=10,
    )


def test_transforms_use_nvidias_library_and_say_what_fails() -> None:
    run(
        """
        x = tc.randn(3, 4, dtype=tc.complex64, device="cuda")
        assert cuda.libraries()["cufft"]["found"]
        for transformed in (lambda: tc.fft.fft(x), lambda: tc.fft.irfft2(x)):
            call(None, "fail", b"transform", 1)
            try:
                transformed()
            except RuntimeError as error:
                assert "fft" in str(error) and ": cuda: transform: unspecified failure" in str(error), error
                tried += 1
        near(tc.fft.fft(x), np.fft.fft(x.cpu().numpy()).astype(np.complex64), "afterwards")
        """,
        least=3,
    )


def test_gradients_are_those_of_the_cpu() -> None:
    pytest.importorskip("taeda_autograd", reason="gradients are a package of their own")
    run(
        """
        import taeda_autograd
        x = tc.randn(3, 8, dtype=tc.float64)
        def slope(t):
            t = t.detach().requires_grad_()
            (tc.fft.irfft(tc.fft.rfft(t, dim=0).abs().to(tc.complex128), dim=-1) ** 2).sum().backward()
            return t.grad
        near(slope(x.to("cuda")), slope(x).numpy(), "gradient")
        """
    )


def test_recorded_transforms_are_run_again() -> None:
    run(
        """
        kind, x = tc.get_device_module("cuda"), tc.ones(8, device="cuda")
        graph = kind.CUDAGraph()
        with kind.graph(graph):
            y = tc.fft.irfft(tc.fft.rfft(x, norm="ortho"), n=8)
        for value in (1.0, 5.0):
            x.fill_(value)
            graph.replay()
            near(y, np.full(8, value / np.sqrt(8), np.float32), value)
        """,
        least=2,
    )


# A plan is its stream and its workspace; transforms of one dimension of float32 by their definition.
CUFFT = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static struct plan { int made, automatic, from, to; long long n, sb, db, batch; void *stream, *work; } plans[9];
static int count;
static int fails(const char* what) { const char* e = getenv("FAKE_FFT"); return e && !strcmp(e, what); }
int cufftGetVersion(int* v) { return *v = 12345, 0; }
int cufftCreate(int* p) { return *p = count++, plans[*p].automatic = 1, plans[*p].stream = &count, 0; }
int cufftDestroy(int p) { return printf("destroyed\n"), fflush(stdout), 0; }
int cufftSetAutoAllocation(int p, int on) { return plans[p].automatic = on, 0; }
int cufftSetStream(int p, void* s) { return plans[p].stream = s, 0; }
int cufftSetWorkArea(int p, void* w) { return plans[p].work = w, 0; }
#ifndef OLD
int cufftXtMakePlanMany(int p, int rank, long long* n, long long* from, long long ss, long long sb, int type,
                        long long* to, long long ds, long long db, int made, long long batch, size_t* work, int in) {
  printf("plan of %d: %lld x %lld, %d to %d in %d, room %lld %lld, steps %lld %lld, between %lld %lld\n", rank,
         n[rank - 1], batch, type, made, in, from[rank - 1], to[rank - 1], ss, ds, sb, db);
  fflush(stdout);
  if (plans[p].automatic) return 3;
  plans[p] = (struct plan){1, 0, type, made, n[0], sb, db, batch, plans[p].stream, 0};
  return *work = 4096, fails("plan") ? 8 : 0;
}
int cufftXtExec(int p, float* in, float* out, int way) {
  struct plan* t = &plans[p];
  if (fails("run")) return 6;
  if (!t->made || !t->work || t->stream == &count) return 1;
  memset(t->work, 7, 4096);
  const int complex = t->from == 4, all = t->to == 4;
  for (long long b = 0; b < t->batch; ++b)
    for (long long k = 0; k < (complex || !all ? t->n : t->n / 2 + 1); ++k) {
      double re = 0, im = 0;
      for (long long j = 0; j < t->n; ++j) {
        const float* x = in + (complex ? 2 : 1) * (b * t->sb + j);
        const double a = way * 2 * M_PI * j * k / t->n, y = complex ? x[1] : 0;
        re += x[0] * cos(a) - y * sin(a), im += x[0] * sin(a) + y * cos(a);
      }
      float* y = out + 2 * (b * t->db + k);
      y[0] = re, y[1] = im;
    }
  return printf("run %s in %s\n", way < 0 ? "forward" : "backward", t->stream ? "a stream" : "the default stream"),
         fflush(stdout), 0;
}
#endif
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory):
    """Makes a folder with a driver's library in it, and one in cuFFT's place."""

    def make(*options: str) -> Path:
        folder = stand_ins.build(tmp_path_factory.mktemp("cufft"), {"libcuda.so.1": real.WHOLE})
        return stand_ins.build(folder, {"libcufft.so.12": CUFFT}, *options)

    return make


TRANSFORMS = """
x = tc.arange(12.0).reshape(2, 6)
z = tc.complex(x, x.flip(1))
def show(found, expected):
    print(tc.allclose(found.cpu(), expected, atol=1e-4))
show(tc.fft.rfft(x.to("cuda")), tc.fft.rfft(x))
with tc.Stream("cuda"):
    show(tc.fft.fft(z.to("cuda")), tc.fft.fft(z))
    show(tc.fft.fft(z.to("cuda")), tc.fft.fft(z))
show(tc.ops._fft_c2c(z.to("cuda"), [1], 0, False), tc.ops._fft_c2c(z, [1], 0, False))
"""


def test_transforms_go_to_cufft(library) -> None:
    folder = library()
    plan = "plan of 1: 6 x 2, {} to 4 in 4, room 6 {}, steps 1 1, between 6 {}"
    assert real.run(folder, TRANSFORMS + "print(cuda.libraries()['cufft'])") == [
        plan.format(0, 4, 4),
        "run forward in the default stream",
        "True",
        plan.format(4, 6, 6),
        "run forward in a stream",
        "True",
        "run forward in a stream",
        "True",
        "run backward in the default stream",
        "True",
        "{'found': True, 'text': 'libcufft.so.12', 'version': 12345}",
    ]


def test_what_cufft_says_is_passed_on(library) -> None:
    program = """
x = tc.ones(2, 3, dtype=tc.complex64).to("cuda")
try:
    print(tc.fft.fft(x).cpu().tolist() == tc.fft.fft(x.cpu()).tolist())
except RuntimeError as error:
    print(error)
"""
    folder = library()
    assert (
        real.run(folder, program, FAKE_FFT="run")[-1] == "fft_fft: cuda: transform: cuFFT: CUFFT_EXEC_FAILED"
    )
    assert real.run(folder, program, FAKE_FFT="plan")[1:] == ["destroyed", "True"]
    assert real.run(library("-DOLD"), program + "print(cuda.libraries()['cufft']['text'])") == [
        "True",
        "libcufft.so.12 lacks cufftXtMakePlanMany cufftXtExec",
    ]


PLANS = """
cache = tc.backends.cuda.cufft_plan_cache
def transform(n):
    x = tc.arange(float(n))
    found, expected = tc.fft.rfft(x.to("cuda")).cpu(), tc.fft.rfft(x)
    assert tc.allclose(found, expected, atol=1e-4), n
"""


def test_plans_are_kept_for_those_used_last() -> None:
    run(
        PLANS
        + """
assert (cache.size, cache.max_size) == (0, 4096)
for n in (2, 3, 4):
    transform(n)
assert cache.size == 3 and cache[0].size == 3 and cache["cuda:1"].size == 0
cache.max_size = 2
assert cache.size == 2
transform(9)
assert (cache.size, cache[0].max_size, cache[tc.device("cuda", 1)].max_size) == (2, 2, 4096)
cache.clear()
assert cache.size == 0
cache[0].max_size = 0
transform(5)
assert (cache.size, cache.max_size) == (0, 0)
def refused(kind, work, text):
    try:
        work()
    except kind as error:
        assert text in str(error), error
        return 1
    raise AssertionError(text)
tried += refused(ValueError, lambda: setattr(cache, "max_size", -1), "expected a number of plans from 0 on, found -1")
tried += refused(TypeError, lambda: setattr(cache, "max_size", 2.5), "expected an int, found float")
tried += refused(RuntimeError, lambda: cache[2], "expected a device from 0 to 1 (2 of them), found 2")
""",
        least=3,
        TAEDA_CUDA_DRIVER="simulated:2:64",
    )


@pytest.mark.parametrize("thread", ["0", "1"])
def test_plans_that_are_let_go_are_destroyed(library, thread: str) -> None:
    program = (
        PLANS
        + """
cache.max_size = 2
for n in (2, 3, 2, 4, 2, 3):
    transform(n)
print("cleared")
cache.clear()
for n in (5, 2):
    transform(n)
kind, x = tc.get_device_module("cuda"), tc.ones(7).to("cuda")
graph = kind.CUDAGraph()
with kind.graph(graph):
    y = tc.fft.rfft(x)
print("recorded")
cache.clear()
transform(6)
kind.synchronize()
print("end")
os._exit(0)
"""
    )
    told = real.run(library(), program, TAEDA_CUDA_LAUNCH_THREAD=thread)
    short = [line.partition(" x ")[0] for line in told if not line.startswith("run")]
    # 4 drives 3 out, and 3 then 4; of those that are cleared the one stays that a graph runs.
    plans = "plan of 1: {}".format
    assert (
        short[: short.index("cleared")]
        == [plans(n) for n in (2, 3)]
        + [plans(4), "destroyed"]
        + [
            plans(3),
            "destroyed",
        ]
        or thread == "1"
    )
    assert short.count("destroyed") == 6 and short[-1] == "end"
    assert [line for line in short if line.startswith("plan")] == [plans(n) for n in (2, 3, 4, 3, 5, 2, 7, 6)]
