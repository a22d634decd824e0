"""Whole recurrent layers by the library, or step by step where it has no way, beside the cpu."""

from __future__ import annotations

import ctypes.util
from pathlib import Path

import device_programs as programs
import pytest
import stand_ins
from test_real_driver import WHOLE
from test_real_driver import run as run_real

HEAD = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import taeda as torch
import recurrent_program as rnn
from taeda import nn
from taeda_tensor_cuda._library import call
torch.manual_seed(SEED)

def fails(work):
    "Whether the next run of the library is part of the work."
    call(None, "fail", b"recurrence", 1)
    try:
        work()
    except RuntimeError as error:
        assert "cuda: recurrent layers: unspecified failure" in str(error), error
        return True
    finally:
        call(None, "fail", b"recurrence", 0)
    return False
"""


def run(program: str, seed: int = 1, **environment: str) -> None:
    programs.run(program, HEAD.replace("SEED", str(seed)), **environment)


@pytest.mark.parametrize("libraries", ["", "none"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_layers_of_all_kinds_with_and_without_the_library(libraries: str, dtype: str) -> None:
    run(
        f"""
        rnn.all_variants((torch.{dtype},))
        assert rnn.tried > 400, rnn.tried
        x = torch.ones(3, 2, 4, dtype=torch.{dtype}, device="cuda")
        for kind in rnn.KINDS:
            module = rnn.layer(kind, 2, True, False, True).to(x.dtype).to("cuda")
            assert fails(lambda: module(x)) == ({libraries!r} == ""), kind
        """,
        TAEDA_CUDA_LIBRARIES=libraries,
    )


def test_behind_a_thread_that_launches() -> None:
    run("rnn.all_variants((torch.float32,))", TAEDA_CUDA_LAUNCH_THREAD="1")


def test_what_is_not_for_the_library_goes_step_by_step() -> None:
    run(
        """
        x = torch.ones(3, 2, 4, device="cuda")
        module = nn.LSTM(4, 5, 2).to("cuda")
        cudnn = torch.backends.cudnn
        assert fails(lambda: module(x))
        with cudnn.flags(enabled=False):
            assert not fails(lambda: module(x))
        with cudnn.flags(deterministic=True):
            assert not fails(lambda: module(x))
        torch.use_deterministic_algorithms(True)
        assert not fails(lambda: module(x))
        torch.use_deterministic_algorithms(False)
        empty = module(torch.ones(3, 0, 4, device="cuda"))[0]
        assert tuple(empty.shape) == (3, 0, 5)
        try:
            module(x, (torch.ones(2, 2, 5, device="cuda"), torch.ones(2, 3, 5, device="cuda")))
        except RuntimeError as error:
            assert "c_0" in str(error), error
        else:
            raise AssertionError
        """
    )


def test_gradients_of_a_graph_that_is_retained_and_second_ones() -> None:
    run(
        """
        module = nn.GRU(4, 5, 2).to("cuda")
        x = torch.randn(3, 2, 4).to("cuda").requires_grad_()
        output, last = module(x)
        first, = torch.autograd.grad(output.sum(), x, retain_graph=True)
        again, = torch.autograd.grad(output.sum(), x, retain_graph=True)
        assert torch.equal(first, again)
        alone, = torch.autograd.grad(last.sum(), x, retain_graph=True)  # the output has no gradient
        with torch.backends.cudnn.flags(enabled=False):
            expected, = torch.autograd.grad(module(x)[1].sum(), x)
        assert torch.allclose(alone, expected, atol=1e-5)
        with_graph, = torch.autograd.grad(output.sum(), x, create_graph=True)
        try:
            with_graph.sum().backward()
        except NotImplementedError as error:
            assert "no second derivatives" in str(error) and "enabled=False" in str(error), error
        else:
            raise AssertionError
        with torch.backends.cudnn.flags(enabled=False):
            slope, = torch.autograd.grad(module(x)[0].sum(), x, create_graph=True)
        slope.sum().backward()
        for p in module.parameters():
            p.requires_grad_(False)  # the gradient of the input alone
        torch.autograd.grad(module(x)[0].sum(), x)
        """
    )


def test_layers_that_come_to_the_device_lie_in_one_piece() -> None:
    run(
        """
        def whole(module):
            spans = sorted((p.data_ptr(), p.numel() * p.element_size()) for p in module.parameters())
            return all(at + size == next[0] for (at, size), next in zip(spans, spans[1:]))
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            torch.manual_seed(SEED)
            host = kind(4, 5, 2, bidirectional=True)
            values = [p.detach().clone() for p in host.parameters()]
            owners = list(host.parameters())
            moved = host.to("cuda")
            assert whole(moved) and all(a is b for a, b in zip(moved.parameters(), owners, strict=True))
            assert all(torch.equal(a.cpu(), b) for a, b in zip(moved.parameters(), values, strict=True))
            assert whole(moved.half()) and whole(moved.float().cuda())
            assert whole(kind(4, 5, 2, device="cuda"))
            assert not any(p.is_cuda for p in moved.cpu().parameters())
        net = nn.Sequential(nn.Linear(4, 4), nn.LSTM(4, 5)).to("cuda")
        assert whole(net[1])
        """.replace("SEED", "1")
    )


def test_without_gradients_nothing_is_kept_for_them() -> None:
    run(
        """
        module = nn.LSTM(4, 64, 2).to("cuda")
        module.flatten_parameters()
        x = torch.ones(200, 8, 4, device="cuda")
        def held(work):
            before = torch.cuda.memory_allocated()
            result = work()
            return torch.cuda.memory_allocated() - before
        recorded = held(lambda: module(x))
        with torch.no_grad():
            assert held(lambda: module(x)) < recorded / 4
        """
    )


def test_weights_that_lie_as_the_library_wants_them_are_not_copied() -> None:
    run(
        """
        module = nn.LSTM(4, 5, 2, bidirectional=True).to("cuda")
        x = torch.ones(3, 2, 4, device="cuda")
        before = module(x)[0]
        def launches():
            with torch.profiler.profile() as profile:
                module(x)
                torch.cuda.synchronize()
            return sum(event.name == "taeda_same_f" for event in profile.events())
        assert launches() == 0  # `to` has put them so
        for p in module.parameters():
            p.data = p.detach().clone()
        apart = launches()
        module.flatten_parameters()
        assert apart == 16 and launches() == 0, apart
        assert torch.equal(module(x)[0], before)
        begin = module.weight_ih_l0.data_ptr()
        module.flatten_parameters()
        assert module.weight_ih_l0.data_ptr() == begin
        spans = sorted((p.data_ptr(), p.numel() * 4) for p in module.parameters())
        assert all(at + size == next[0] for (at, size), next in zip(spans, spans[1:]))
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        module(x)[0].sum().backward()
        optimizer.step()
        assert not torch.equal(module(x)[0], before)
        copy = nn.LSTM(4, 5, 2, bidirectional=True)
        copy.load_state_dict(module.state_dict())
        assert torch.allclose(copy(x.cpu())[0], module(x)[0].cpu(), atol=1e-5)
        """
    )


def test_dropout_between_layers_is_the_generators() -> None:
    run(
        """
        module = nn.LSTM(4, 64, 3, dropout=0.5, bidirectional=True).to("cuda")
        x = torch.randn(6, 4, 4).to("cuda")
        assert fails(lambda: module(x))
        torch.manual_seed(5)
        output, (h, c) = module(x)
        torch.manual_seed(5)
        with torch.backends.cudnn.flags(enabled=False):
            expected, (expected_h, expected_c) = module(x)
        for one, other in ((output, expected), (h, expected_h), (c, expected_c)):
            assert torch.allclose(one, other, atol=1e-5)
        output.sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())
        """
    )


def test_layers_in_a_graph() -> None:
    run(
        """
        module = nn.LSTM(4, 5, 2).to("cuda")
        x = torch.randn(3, 2, 4).to("cuda")
        with torch.no_grad():
            for _ in range(2):
                module(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                output = module(x)[0]
            x.copy_(torch.ones(3, 2, 4))
            graph.replay()
            expected = nn.LSTM(4, 5, 2)
            expected.load_state_dict(module.state_dict())
            assert torch.allclose(output.cpu(), expected(torch.ones(3, 2, 4))[0], atol=1e-5)
        """
    )


def test_on_a_device_at_hand() -> None:
    """With hardware: values and gradients of all variants beside the cpu."""
    if ctypes.util.find_library("cuda") is None:
        pytest.skip("needs NVIDIA's driver and a GPU")
    text = (Path(__file__).parent / "recurrent_program.py").read_text(encoding="utf-8")
    assert "comparisons" in programs.run(text, driver="")


# Layers that write down what they are told of; weights lie as `flatten_parameters` has them.
CUDNN = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct layers { int cell, bias, both, type, compute, math, inputs, hidden, out, count; unsigned flags; };
struct data { int layout, steps, batch, width, last; };
size_t cudnnGetVersion(void) { return 91501; }
const char* cudnnGetErrorString(int s) { return "CUDNN_STATUS_FAKE"; }
void cudnnGetLastErrorString(char* to, size_t n) { *to = 0; }
int cudnnCreate(void** h) { return *h = malloc(1), 0; }
int cudnnSetStream(void* h, void* s) { return 0; }
int cudnnBackendCreateDescriptor(int kind, void** d) { return 3000; }
int cudnnBackendDestroyDescriptor(void* d) { return 0; }
int cudnnBackendFinalize(void* d) { return 3000; }
int cudnnBackendSetAttribute(void* d, int n, int t, int64_t c, const void* v) { return 3000; }
int cudnnBackendGetAttribute(void* d, int n, int t, int64_t c, int64_t* f, void* v) { return 3000; }
int cudnnBackendExecute(void* h, void* p, void* v) { return 3000; }
static int alive;
static int make(void** d) { return *d = calloc(1, 256), ++alive, 0; }
static int end(void* d) { return free(d), --alive, 0; }
int cudnnCreateTensorDescriptor(void** d) { return make(d); }
int cudnnDestroyTensorDescriptor(void* d) { return end(d); }
int cudnnSetTensorNdDescriptor(int* d, int type, int n, const int* sizes, const int* strides) {
  for (int i = 0; i < 3; ++i) d[i] = sizes[i];
  return n != 3 || strides[2] != 1 || strides[1] != sizes[2] || strides[0] != sizes[1] * sizes[2];
}
int cudnnCreateDropoutDescriptor(void** d) { return make(d); }
int cudnnDestroyDropoutDescriptor(void* d) { return end(d); }
int cudnnSetDropoutDescriptor(void* d, void* h, float share, void* states, size_t n, unsigned long long seed) {
  return share != 0 || states || n;
}
int cudnnCreateRNNDescriptor(void** d) { return make(d); }
int cudnnDestroyRNNDescriptor(void* d) { return end(d); }
int cudnnSetRNNDescriptor_v8(struct layers* l, int algorithm, int cell, int bias, int both, int input, int type,
                             int compute, int math, int32_t inputs, int32_t hidden, int32_t out, int32_t count,
                             void* dropout, uint32_t flags) {
  *l = (struct layers){cell, bias, both, type, compute, math, inputs, hidden, out, count, flags};
  return getenv("FAKE_UNSUPPORTED") ? 3000 : algorithm || input || !dropout;
}
int cudnnCreateRNNDataDescriptor(void** d) { return make(d); }
int cudnnDestroyRNNDataDescriptor(void* d) { return end(d); }
int cudnnSetRNNDataDescriptor(struct data* d, int type, int layout, int steps, int batch, int width,
                              const int* lengths, void* fill) {
  *d = (struct data){layout, steps, batch, width, lengths[batch - 1]};
  return 0;
}
int cudnnGetRNNTempSpaceSizes(void* h, struct layers* l, int keeps, void* x, size_t* workspace, size_t* kept) {
  return *workspace = 4096, *kept = keeps ? 2048 : 0, 0;
}
static int gates(const struct layers* l) { return l->cell == 2 ? 4 : l->cell == 3 ? 3 : 1; }
static size_t matrices(const struct layers* l, int layer) {
  size_t sum = 0;
  for (int i = 0; i < layer; ++i) {
    const int in = i / (1 + l->both) ? l->out * (1 + l->both) : l->inputs;
    sum += (size_t)gates(l) * l->hidden * (in + l->out) + (l->out != l->hidden ? l->out * l->hidden : 0);
  }
  return sum;
}
int cudnnGetRNNWeightSpaceSize(void* h, struct layers* l, size_t* n) {
  const int all = l->count * (1 + l->both);
  return *n = 4 * (matrices(l, all) + (l->bias ? 2u * all * gates(l) * l->hidden : 0)), 0;
}
int cudnnGetRNNWeightParams(void* h, struct layers* l, int32_t layer, size_t n, const char* at, int32_t id, void* md,
                            void** m, void* bd, void** b) {
  const int in = layer / (1 + l->both) ? l->out * (1 + l->both) : l->inputs, g = gates(l);
  size_t before = matrices(l, layer);
  before += id < g ? (size_t)id * l->hidden * in : (size_t)g * l->hidden * in + (id - g) * l->hidden * l->out;
  *m = (void*)(at + 4 * before);
  const size_t vectors = matrices(l, l->count * (1 + l->both)) + (2 * layer * g + id) * l->hidden;
  return *b = l->bias && id < 2 * g ? (void*)(at + 4 * vectors) : 0, !at;
}
int cudnnRNNForward(void* h, struct layers* l, int keeps, const int32_t* lengths, struct data* xd, const float* x,
                    struct data* yd, float* y, int* hd, const float* hx, float* hy, int* cd, const float* cx, float* cy,
                    size_t wn, const float* w, size_t beside_n, void* beside, size_t kept_n, void* kept) {
  printf("cell %d, bias %d, both %d, type %d, compute %d, math %d, %d to %d to %d, %d layers, flags %u; ", l->cell,
         l->bias, l->both, l->type, l->compute, l->math, l->inputs, l->hidden, l->out, l->count, l->flags);
  printf("x %d: %d %d %d, last %d; y %d; h %d %d %d; c %d; keeps %d of %d; begins with %g, ends with %g\n", xd->layout,
         xd->steps, xd->batch, xd->width, xd->last, yd->width, hd[0], hd[1], hd[2], cd[2], keeps, (int)kept_n, w[0],
         w[wn / 4 - 1]);
  fflush(stdout);
  for (int i = 0; i < xd->batch * yd->width; ++i) y[i] = i;
  return getenv("FAKE_RUNS_FAIL") ? 5000 : lengths || !beside || beside_n != 4096 || keeps != (kept != 0) || !hx || !hy;
}
int cudnnRNNBackwardData_v8() { return 3000; }
int cudnnRNNBackwardWeights_v8() { return 3000; }
"""

# Filled from the host: the library of this test runs no kernels.
LAYERS = """
import taeda as torch
from taeda import nn
def layer(kind, *sizes, **more):
    module = getattr(nn, kind)(*sizes, **more)
    ordered = sorted(module.parameters(), key=lambda p: p.dim() == 1)
    flat = torch.cat([p.detach().reshape(-1) for p in ordered])
    flat[0], flat[-1] = 7, 9
    flat, at = flat.to("cuda"), 0
    for p in ordered:
        p.data = flat[at:at + p.numel()].view(p.shape)
        at += p.numel()
    return module
def states(*sizes):
    return torch.ones(*sizes).to("cuda")
x = torch.ones(6, 3, 4).to("cuda")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a driver's library and cuDNN in it."""
    texts = {"libcuda.so.1": WHOLE, "libcudnn.so.9": CUDNN}
    return stand_ins.build(tmp_path_factory.mktemp("recurrent"), texts)


def test_what_the_library_is_told(library: Path) -> None:
    shown = run_real(
        library,
        LAYERS
        + """
module = layer("LSTM", 4, 5, 2, bidirectional=True)
h, c = states(4, 3, 5), states(4, 3, 5)
with torch.no_grad():
    print(module(x, (h, c))[0].shape)
    torch.backends.cudnn.allow_tf32 = False
    module(x, (h, c))
    torch.backends.cudnn.allow_tf32 = True
module(x, (h, c))
layer("GRU", 4, 5, bias=False, batch_first=True)(x, states(1, 6, 5))
layer("LSTM", 4, 5, proj_size=2)(x, (states(1, 3, 2), states(1, 3, 5)))
packed = nn.utils.rnn.PackedSequence(torch.ones(6, 4).to("cuda"), torch.tensor([3, 2, 1]))
layer("RNN", 4, 5)(packed, states(1, 3, 5))
""",
    )
    both = (
        "cell 2, bias 2, both 1, type 0, compute 0, math {}, 4 to 5 to 5, 2 layers, flags 1; x 0: 6 3 4, last 6; "
        "y 10; h 4 3 5; c 5; keeps {}; begins with 7, ends with 9"
    )
    assert shown == [
        both.format(0, "0 of 0"),
        "Size([6, 3, 10])",
        both.format(3, "0 of 0"),
        both.format(0, "1 of 2048"),
        "cell 3, bias 0, both 0, type 0, compute 0, math 0, 4 to 5 to 5, 1 layers, flags 1; x 2: 3 6 4, last 3; "
        "y 5; h 1 6 5; c 5; keeps 1 of 2048; begins with 7, ends with 9",
        "cell 2, bias 2, both 0, type 0, compute 0, math 0, 4 to 5 to 2, 1 layers, flags 1; x 0: 6 3 4, last 6; "
        "y 2; h 1 3 2; c 5; keeps 1 of 2048; begins with 7, ends with 9",
        "cell 1, bias 2, both 0, type 0, compute 0, math 0, 4 to 5 to 5, 1 layers, flags 0; x 1: 3 3 4, last 1; "
        "y 5; h 1 3 5; c 5; keeps 1 of 2048; begins with 7, ends with 9",
    ]


CALL = """
try:
    layer("GRU", 4, 5)(x, states(1, 3, 5))
except RuntimeError as error:
    print(error)
"""


def test_what_the_library_says_is_passed_on(library: Path) -> None:
    shown = run_real(library, LAYERS + CALL, FAKE_RUNS_FAIL="1")
    assert "gru: cuda::recurrent_layers: cuda: recurrent layers: cuDNN: CUDNN_STATUS_FAKE" in shown[-1]


def test_what_the_library_does_not_support_goes_step_by_step(library: Path) -> None:
    shown = run_real(library, LAYERS + CALL, FAKE_UNSUPPORTED="1")
    # Nothing ran by the library; the steps ask for kernels, or for a product.
    assert not any(line.startswith("cell") for line in shown)
    assert all("recurrent layers" not in line for line in shown)
