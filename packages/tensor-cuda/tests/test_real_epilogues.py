"""The end of the interface that opens cuBLASLt, with a library made for the test in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import stand_ins
from test_real_driver import CUBLAS, WHOLE, run

import taeda_tensor_cuda as cuda

# Products by their definition, in float32, with a bias, ReLU, and sums of b. Descriptors are what they were told.
CUBLASLT = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct told { long long at[64]; int type; uint64_t rows, columns; int64_t ld; };
struct choice { uint64_t algorithm[8]; size_t workspace; int status; float waves; int reserved[4]; };
static int made;
static int set(struct told* t, int name, const void* value, size_t n) {
  return n > 8 || name >= 64 ? 7 : (t->at[name] = 0, memcpy(&t->at[name], value, n), 0);
}
static int make(struct told** t) { return *t = calloc(1, sizeof **t), ++made, 0; }
int cublasLtCreate(void** h) { return *h = malloc(1), getenv("FAKE_CREATES") != 0; }
int cublasLtMatrixLayoutCreate(struct told** t, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  return make(t), (*t)->type = type, (*t)->rows = rows, (*t)->columns = columns, (*t)->ld = ld, 0;
}
int cublasLtMatrixLayoutDestroy(struct told* t) { return --made, free(t), 0; }
int cublasLtMatrixLayoutSetAttribute(struct told* t, int name, const void* v, size_t n) { return set(t, name, v, n); }
int cublasLtMatmulDescCreate(struct told** t, int compute, int scale) {
  return make(t), (*t)->type = compute, scale != 0;
}
int cublasLtMatmulDescDestroy(struct told* t) { return --made, free(t), 0; }
int cublasLtMatmulDescSetAttribute(struct told* t, int name, const void* v, size_t n) { return set(t, name, v, n); }
int cublasLtMatmulPreferenceCreate(struct told** t) { return make(t); }
int cublasLtMatmulPreferenceDestroy(struct told* t) { return --made, free(t), 0; }
int cublasLtMatmulPreferenceSetAttribute(struct told* t, int name, const void* v, size_t n) {
  return set(t, name, v, n);
}
int cublasLtMatmulAlgoGetHeuristic(void* h, struct told* of, struct told* a, struct told* b, struct told* c,
                                   struct told* d, struct told* wanted, int most, struct choice* to, int* count) {
  printf("asks for %lld %lld %lld x %lld, %lld%lld, epilogue %lld, compute %d, vector at %d, aligned %lld %lld %lld\n",
         (long long)c->rows, (long long)c->columns, (long long)(of->at[3] ? a->rows : a->columns), c->at[5], of->at[3],
         of->at[4], of->at[7], of->type, (int)(of->at[8] % 16), wanted->at[5], wanted->at[6], wanted->at[8]);
  fflush(stdout);
  memset(to, 0, sizeof *to), to->algorithm[0] = 42, to->workspace = 1 << 20;
  *count = getenv("FAKE_NONE") ? 0 : 1;
  return c != d || most != 1 || wanted->at[1] != 32 << 20 || wanted->at[3] != 2;
}
#ifndef OLD
int cublasLtMatmul(void* h, struct told* of, const float* alpha, const float* a, struct told* la, const float* b,
                   struct told* lb, const float* beta, const float* c, struct told* lc, float* d, struct told* ld,
                   const uint64_t* algorithm, void* workspace, size_t nbytes, void* stream) {
  const int64_t m = lc->rows, n = lc->columns, k = of->at[3] ? la->rows : la->columns, count = lc->at[5];
  const int epilogue = (int)of->at[7];
  float* vector = (float*)of->at[8];
  if (la->type || lb->type || lc->type || *algorithm != 42 || !workspace || nbytes != 32 << 20) return 15;
  if (getenv("FAKE_FAILS")) return 1;
  printf("multiplies, %d descriptors\n", made);
  fflush(stdout);
  for (int64_t i = 0; i < count * n * m; ++i) {
    const int64_t q = i / (n * m), x = i % m, y = i / m % n;
    float sum = 0;
    for (int64_t l = 0; l < k; ++l)
      sum += a[q * la->at[6] + (of->at[3] ? l + x * la->ld : x + l * la->ld)] *
             b[q * lb->at[6] + (of->at[4] ? y + l * lb->ld : l + y * lb->ld)];
    float* to = &d[q * lc->at[6] + x + y * lc->ld];
    sum = *alpha * sum + (*beta ? *beta * *to : 0) + (epilogue & 4 ? vector[x] : 0);
    *to = epilogue & 2 && sum < 0 ? 0 : sum;
  }
  for (int64_t y = 0; y < n && epilogue & 512; ++y) {
    vector[y] = 0;
    for (int64_t l = 0; l < k; ++l) vector[y] += b[of->at[4] ? y + l * lb->ld : l + y * lb->ld];
  }
  return 0;
}
#endif
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory):
    """Makes a folder with a driver's library, cuBLAS and cuBLASLt in it."""

    def make(*options: str) -> Path:
        folder = stand_ins.build(
            tmp_path_factory.mktemp("epilogues"), {"libcuda.so.1": WHOLE, "libcublas.so.13": CUBLAS}
        )
        return stand_ins.build(folder, {"libcublasLt.so.13": CUBLASLT}, *options)

    return make


LINEAR = """
x, w, b = tc.arange(6.0).reshape(2, 3), tc.arange(12.0).reshape(4, 3) - 5, tc.arange(4.0)
d = [t.to("cuda") for t in (x, w, b)]
expected = x @ w.t() + b
"""


def test_a_layer_is_one_product_whose_way_is_asked_for_once(library) -> None:
    shown = run(
        library(),
        LINEAR
        + """
print(tc.equal(tc.ops.linear(*d).cpu(), expected))
print(tc.equal(tc.ops.linear(*d).cpu(), expected))
print(tc.equal(tc.addmm(d[2], d[0], d[1].t(), alpha=2).cpu(), 2 * (x @ w.t()) + b))
print(cuda.libraries()["cublaslt"])
moved = tc.cat([b[:1], b]).to("cuda")[1:]  # aligned otherwise
print(tc.equal(tc.ops.linear(d[0], d[1], moved).cpu(), expected))
tc.backends.cuda.matmul.allow_tf32 = True
print(tc.equal(tc.ops.linear(*d).cpu(), expected))
print(tc.equal(tc.ops.linear(*d).cpu(), expected))
print(tc.equal(tc.baddbmm(d[2], d[0][None].expand(2, 2, 3), d[1].t().expand(2, 3, 4)).cpu(), expected.expand(2, 2, 4)))
""",
    )
    asks = "asks for 4 2 3 x 1, 10, epilogue 4, compute {}, vector at {}, aligned 256 256 256"
    assert shown == [
        *(asks.format(68, 0), "multiplies, 4 descriptors", "True", "multiplies, 4 descriptors", "True"),
        *("multiplies, 4 descriptors", "True"),
        str({"found": True, "text": "libcublasLt.so.13"}),
        *(asks.format(68, 4), "multiplies, 8 descriptors", "True"),
        *(asks.format(77, 0), "multiplies, 12 descriptors", "True", "multiplies, 12 descriptors", "True"),
        "asks for 4 2 3 x 2, 10, epilogue 4, compute 77, vector at 0, aligned 256 256 256",
        *("multiplies, 16 descriptors", "True"),
    ]


def test_activations_and_sums_are_told(library) -> None:
    shown = run(
        library(),
        LINEAR
        + """
import ctypes
from taeda_tensor_cuda._library import call
out, sums = tc.zeros(2, 4).to("cuda"), tc.zeros(2).to("cuda")
def multiply(*epilogue):
    at = [t.data_ptr() for t in (d[1], d[0], out)]
    numbers = (ctypes.c_int64 * 24)(11, 11, 4, 2, 3, 1, at[0], 3, 0, 1, at[1], 3, 0, 0, at[2], 4, 0, 0, *epilogue)
    call(None, "multiply", 0, numbers, (ctypes.c_double * 2)(1, 0), None)
multiply(1, 0, 1, d[2].data_ptr(), 0, 0)
print(tc.equal(out.cpu(), expected.relu()))
multiply(0, 0, 4, sums.data_ptr(), 0, 0)
print(tc.equal(out.cpu(), x @ w.t()), tc.equal(sums.cpu(), x.sum(1)))
for kept in (0, out.data_ptr()):
    for epilogue in ((1, 0, 0), (2, 0, 0), (1, 1, 0), (2, 1, 0), (1, 1, 2), (2, 1, 2), (2, 0, 1)):
        multiply(*epilogue, sums.data_ptr() if epilogue[2] else 0, kept, 128 if kept else 0)
""",
    )
    told = [line.split("epilogue ")[1].split(",")[0] for line in shown if line.startswith("asks")]
    plain = [2, 32, 8 | 128, 64 | 128, 8 | 128 | 16, 64 | 128 | 16, 36]
    assert told == [str(n) for n in (6, 512, *plain, *(n | 128 for n in plain))]
    assert [line for line in shown if line.startswith("True")] == ["True", "True True"]


@pytest.mark.parametrize(
    ("options", "environment", "text"),
    [
        ([], {"FAKE_NONE": "1"}, None),
        (["-DOLD"], {}, "libcublasLt.so.13 lacks cublasLtMatmul"),
    ],
)
def test_without_a_way_the_bias_is_copied_and_added_to(
    library, options, environment, text: str | None
) -> None:
    folder = library(*options)
    shown = run(
        folder,
        LINEAR
        + """
print(cuda.libraries()["cublaslt"])
for _ in range(2):
    try:
        tc.ops.linear(*d)
    except RuntimeError as error:  # no code for devices in this build
        print(error)
""",
        FAKE_LAUNCHES=str(folder / "launches"),
        **environment,
    )
    # A kernel copies it, and cuBLAS multiplies; the way is looked for once.
    if cuda.has_device_code():
        assert len(folder.joinpath("launches").read_text().splitlines()) == 2
        assert [line for line in shown if line.startswith("product")] == ["product 4 2 3 x 1, 10"] * 2
    else:
        assert shown[-1].startswith("linear: cuda: launch of ")
    assert len([line for line in shown if line.startswith("asks")]) == (text is None)
    assert text is None or shown[0] == str({"found": False, "text": text})


def test_what_cublaslt_says_is_passed_on(library) -> None:
    # The driver that is made for the test starts, since FAKE_FAILS is set behind that.
    shown = run(
        library(),
        LINEAR
        + """
import ctypes
ctypes.CDLL(None).setenv(b"FAKE_FAILS", b"1", 1)
try:
    tc.ops.linear(*d)
except RuntimeError as error:
    print(error)
""",
    )
    assert shown[-1] == "linear: cuda: product: cuBLAS: CUBLAS_STATUS_FAKE"
