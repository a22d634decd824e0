"""Chains of operators in one kernel that is written at run time: compiled by the host's compiler, and by NVRTC."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import device_programs as programs
import pytest
import stand_ins
import test_real_driver as real

COMPILER = shutil.which("c++") or shutil.which("g++")

HEAD = """
import ctypes, glob, os
import numpy as np
import taeda_tensor_core as tc, taeda_tensor_cuda as cuda
from taeda_tensor_core.backends import compile_graph
from taeda_tensor_cuda import fusion
tc.manual_seed(SEED)
ops, tried = tc.ops, 0

def near(found, expected, what, bound=1e-5):
    global tried
    tried += 1
    found = found.cpu().numpy()
    assert found.shape == expected.shape and found.dtype == expected.dtype, (what, found.dtype, expected.dtype)
    assert np.allclose(found, expected, rtol=bound, atol=bound, equal_nan=True), (what, np.abs(found - expected).max())

def same(function, *tensors, whole=True, what=""):
    "The chain has the bits of the calls one by one; gives it."
    global tried
    fast = compile_graph(function, *tensors)
    assert fast.reason == "", fast.reason
    found, expected = fast(*tensors), function(*tensors)
    single = isinstance(found, tc.Tensor)
    for a, b in zip((found,) if single else found, (expected,) if single else expected, strict=True):
        tried += 1
        assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride(), (what, a.stride(), b.stride())
        a, b = a.cpu().contiguous(), b.cpu().contiguous()
        kind = {1: tc.uint8, 2: tc.int16, 4: tc.int32, 8: tc.int64}[a.element_size()]
        assert tc.equal(a.view(kind), b.view(kind)), (what, a, b)
    return fast
"""


@pytest.fixture
def run(tmp_path: Path):
    """Runs programs with a cache of the test's own and the host's compiler in NVRTC's place."""
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")

    def run(program: str, least: int = 1, **environment: str) -> str:
        given = {
            "TAEDA_CUDA_FUSION_CACHE": str(tmp_path / "cache"),
            "TAEDA_CUDA_SIMULATED_COMPILER": COMPILER,
            **environment,
        }
        text = textwrap.dedent(program) + f"\nassert tried >= {least}, tried\n"
        return programs.run(text, HEAD.replace("SEED", "1"), **given)

    return run


def test_chains_have_the_bits_of_their_operators(run) -> None:
    run(
        """
        def gelu(x, y):
            return ops.gelu(x * 0.5 + y, approximate="tanh") * 2 - x.abs().sqrt()
        def mixed(x, y):
            larger = x > y
            return tc.where(larger, x.sin(), y.exp()), larger, (x + y).to(tc.float64).tanh(), larger.to(tc.int32) + 3
        def numbers(x, y):
            return ops.clamp(x, -0.5, 0.5).add(y, alpha=3).pow(3) / 7, ops.elu(y, 1.5) + 1e-3
        for dtype in (tc.float32, tc.float64, tc.float16, tc.bfloat16):
            for size in (1, 3, 4, 1000, 4099):
                x, y = (tc.randn(size).to(dtype).to("cuda") for _ in range(2))
                for function in (gelu, mixed, numbers):
                    same(function, x, y, what=(function.__name__, dtype, size))
        x = tc.randn(64, dtype=tc.float64)
        fast = same(lambda t: ((t * 2).sin() + 1).exp(), x.to("cuda"))
        near(fast(x.to("cuda")), np.exp(np.sin(x.numpy() * 2) + 1), "numpy", 1e-13)
        k = tc.arange(-50, 50).to("cuda")
        same(lambda k: ((k * 3 - 7) & 5) | (k << 2), k)
        same(lambda k: (k.to(tc.uint8) * 3, -k.to(tc.int8), (k != 0).logical_not()), k)
        found = fusion.statistics()
        assert found["reason"] == "" and found["kernels"] == found["compiled"] and found["failed"] == 0, found
        """,
        least=140,
    )


def test_operands_lie_as_they_like(run) -> None:
    run(
        """
        def chain(x, bias):
            return (x + bias).relu() * bias.sigmoid().expand(x.shape) - 1.5
        x = tc.randn(6, 8, 12)
        for bias in (tc.randn(12), tc.randn(8, 1), tc.randn(6, 1, 1), tc.randn(()), tc.randn(6, 8, 12),
                     tc.randn(1, 1, 12)):
            for lies in (x, x.permute(2, 1, 0).contiguous().permute(2, 1, 0), x[:, :, 1:].clone(), x[::2], x[..., ::3],
                         x.flip(0).transpose(0, 1).contiguous().transpose(0, 1), x[:1].expand(6, 8, 12)):
                try:
                    tc.broadcast_tensors(lies, bias)
                except (RuntimeError, ValueError):
                    continue
                same(chain, lies.to("cuda") if lies.is_contiguous() else tc.empty_strided(
                    lies.shape, lies.stride(), device="cuda").copy_(lies) if 0 not in lies.stride()
                    else lies[:1].to("cuda").expand(lies.shape), bias.to("cuda"), what=(lies.stride(), bias.shape))
        unaligned = tc.randn(41).to("cuda")[1:]
        same(lambda t: t * 2 + 1, unaligned)
        # What was compiled for one layout runs in all.
        fast = compile_graph(lambda t: t * 2 + 1, tc.ones(8, 8, device="cuda"))
        turned = tc.randn(8, 8).to("cuda").t()
        near(fast(turned), turned.cpu().numpy() * 2 + 1, "turned")
        # More dimensions than kernels have: by its calls.
        many = tc.randn(*[2] * 20).to("cuda").permute(*range(0, 20, 2), *range(1, 20, 2))
        fast = compile_graph(lambda t, o: t * 2 + o, many, many.contiguous())
        assert fast.reason == ""
        near(fast(many, many.contiguous()), many.cpu().numpy() * 3, "many")
        """,
        least=25,
    )


def test_what_is_no_line_runs_between_chains(run) -> None:
    run(
        """
        weight, constant = tc.randn(8, 8).to("cuda"), tc.randn(8, device="cpu").to("cuda")
        def net(x, y):
            a = (x * 2).tanh()
            b = a @ weight            # needs the first chain,
            c = a + 1                 # which may take this,
            d = b.sigmoid() * c + constant   # and not this
            e = ops.cat([d, c], 1).sum(0)
            f, g = ops.split(d, 4, 1)
            return d, e, f.exp() - g.abs() / 3, x, constant, a.max(1)[1]
        x = tc.randn(5, 8).to("cuda")
        fast = same(net, x, x)
        for _ in range(3):
            x = tc.randn(5, 8).to("cuda")
            for found, expected in zip(fast(x, x), net(x, x)):
                near(found, expected.cpu().numpy(), "again")
        long = x
        def deep(t):
            for k in range(50):
                t = (t * 1.01 + k).sin()
            return t
        same(deep, x)
        def wide(t):
            return tuple(t * k + 1 for k in range(30))
        same(wide, x)
        # A call between them on another stream.
        index = tc.tensor([0, 1], device="cuda")
        fast = compile_graph(lambda t, i: ((t + 1) * 2).index_select(0, i), x, index)
        assert fast.reason == ""
        stream = tc.Stream("cuda")
        with stream:
            found = fast(x, index)
        stream.synchronize()
        near(found, (x.cpu().numpy()[:2] + 1) * 2, "on a stream")
        """,
        least=50,
    )


FOLDS = (
    programs.launches()
    + """
def folded(function, *tensors, bound=1e-6):
    "A launch for the chain and its fold; the numbers of the calls one by one."
    global tried
    tried += 1
    fast = compile_graph(function, *tensors)
    assert fast.reason == "", fast.reason
    found, count = counted(lambda: fast(*tensors))
    expected, calls = counted(lambda: function(*tensors))
    assert count == 1 and calls > 1, (count, calls)
    single = isinstance(found, tc.Tensor)
    for a, b in zip((found,) if single else found, (expected,) if single else expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride(), (a, b)
        a, b = (t.cpu().to(tc.float64).numpy() for t in (a, b))
        assert np.allclose(a, b, rtol=bound, atol=0, equal_nan=True), (a, b)
    return fast
"""
)


def test_folds_at_the_end_of_chains(run) -> None:
    program = """
        def numpy(t):
            return t.cpu().to(tc.float64).numpy()
        for dtype, bound in ((tc.float32, 1e-6), (tc.float64, 1e-13), (tc.bfloat16, 1e-2)):
            x = tc.rand(5, 7, 37).to(dtype).to("cuda")
            chain = lambda t: (t * 2 - 1).sin()
            for dims in ((2,), (1, 2), (0, 1, 2), (0, 2)):
                for keep in (False, True):
                    folded(lambda t: chain(t).sum(dims, keepdim=keep), x, bound=bound)
                    folded(lambda t: chain(t).mean(dims, keepdim=keep), x, bound=bound)
            folded(lambda t: ops.vector_norm(chain(t), 2.0, [2], False), x, bound=bound)
            found = folded(lambda t: chain(t).sum(-1), x, bound=bound)(x)
            near(found.to(tc.float64), np.sin(numpy(x) * 2 - 1).sum(-1), "numpy", 20 * bound)
        x = tc.rand(5, 7, 37).to("cuda")
        for order in (1, 0, 3, np.inf, -np.inf):
            folded(lambda t: ops.vector_norm(chain(t), float(order), [2], False), x)
        folded(lambda t: chain(t).amax(2), x)
        folded(lambda t: chain(t).amin((1, 2)), x)
        folded(lambda t: chain(t).var(2), x)
        folded(lambda t: (t * 2 > 1).any(2), x)
        folded(lambda t: (t * 2 > 1).sum(), x)
        def both(t):  # what is folded is wanted besides
            made = chain(t)
            return made, made.sum(-1)
        folded(both, x)
        k = tc.arange(-500, 500).reshape(4, 250).to("cuda")
        folded(lambda t: (t * 3 + 1).sum(1), k)
        folded(lambda t: (t & 3 | 1).prod(1), k)
        # Of operands that lie as they like, and are broadcast.
        x, bias = tc.randn(6, 8, 40).to("cuda"), tc.randn(8, 1).to("cuda")
        positive = lambda t, b: (t + b).exp()
        fast = compile_graph(lambda t, b: positive(t, b).sum(-1), x, bias)
        for lies in (x, x.cpu().transpose(0, 2).contiguous().to("cuda").transpose(0, 2), x[:1].expand(6, 8, 40)):
            near(fast(lies, bias), np.exp(lies.cpu().numpy() + bias.cpu().numpy()).sum(-1), "lies", 1e-5)
        images = tc.randn(2, 8, 6, 6).to("cuda").contiguous(memory_format=tc.channels_last)
        folded(lambda t: (t * 2).exp().sum(1), images[:, :, :, :].repeat(1, 4, 1, 1).contiguous(
            memory_format=tc.channels_last), bound=1e-5)
        """
    run(FOLDS + textwrap.dedent(program), least=60)


def test_long_folds_go_in_parts_and_their_bits_do_not_change(run) -> None:
    program = """
        for size in (4096, 4097, 100_003):
            x = tc.rand(size).to("cuda")
            fast = compile_graph(lambda t: (t * 2 - 0.5).sum(), x)
            assert fast.reason == ""
            found, count = counted(lambda: fast(x))
            assert tc.equal(found.cpu(), fast(x).cpu())
            expected = (x.cpu().numpy() * np.float32(2) - np.float32(0.5)).sum(dtype=np.float64)
            near(found, expected.astype(np.float32), size, 1e-6)
        rows = tc.rand(3, 20_001).to("cuda")
        fast = compile_graph(lambda t: (t * 2).exp().mean(1), rows)
        near(fast(rows), np.exp(rows.cpu().numpy() * 2).mean(1), "rows", 1e-5)
        """
    run(FOLDS + textwrap.dedent(program), least=4)


def test_what_needs_a_fold_runs_behind_it(run) -> None:
    program = """
        def normed(t):
            shifted = t * 2 + 1
            mean = shifted.mean(-1, keepdim=True)
            off = shifted - mean
            scale = (off * off).mean(-1, keepdim=True)
            return off / (scale + 1e-5).sqrt(), shifted.abs() + 1
        def softmax(t):
            shifted = (t * 0.5).sin()
            e = (shifted - shifted.amax(-1, keepdim=True)).exp()
            return e / e.sum(-1, keepdim=True)
        x = tc.randn(6, 64).to("cuda")
        for function in (normed, softmax):
            fast = compile_graph(function, x)
            assert fast.reason == "", fast.reason
            found, expected = fast(x), function(x)
            single = function is softmax
            for a, b in zip((found,) if single else found, (expected,) if single else expected, strict=True):
                near(a, b.cpu().numpy(), function.__name__, 1e-5)
        # Short lines, and neighbours that are not folded into one, stay calls of their own.
        for dims, y in (((1,), tc.randn(64, 5)), ((0,), tc.randn(64, 64))):
            y = y.to("cuda")
            fast = compile_graph(lambda t: ((t * 2).sin() + 1).sum(dims), y)
            found, count = counted(lambda: fast(y))
            assert count > 1
            near(found, (np.sin(y.cpu().numpy() * 2) + 1).sum(dims), dims, 1e-5)
        # More dimensions than kernels have: by its calls.
        many = tc.randn(*[2] * 12).to("cuda").permute(*range(0, 12, 2), *range(1, 12, 2))
        fast = compile_graph(lambda t, o: (t * 2 + o).exp().sum((6, 7, 8, 9, 10, 11)), many, many.contiguous())
        assert fast.reason == ""
        near(fast(many, many.contiguous()), np.exp(many.cpu().numpy() * 3).sum((6, 7, 8, 9, 10, 11)), "many", 1e-4)
        """
    run(FOLDS + textwrap.dedent(program), least=6)


def test_chains_are_recorded_for_graphs_of_the_driver(run) -> None:
    program = """
        kind, x = tc.get_device_module("cuda"), tc.ones(8, device="cuda")
        fast = compile_graph(lambda t: (t * 3 - 1).exp(), x)
        assert fast.reason == ""
        graph = kind.CUDAGraph()
        with kind.graph(graph):
            y = fast(x)
        for value in (1.0, 0.25):
            x.fill_(value)
            graph.replay()
            near(y, np.full(8, np.exp(value * 3 - 1), np.float32), value)
        """
    run(program, least=2)
    run(program, least=2, TAEDA_CUDA_LAUNCH_THREAD="1")


def test_the_reason_is_told(run) -> None:
    run(
        """
        x = tc.ones(4, device="cuda")
        def reason(function, *tensors):
            return compile_graph(function, *(tensors or (x,))).reason
        start = "device 'cuda' takes no such graph: "
        none = start + "no two calls of it make a chain of element-wise operators of one shape"
        assert reason(lambda t: t * 2) == none
        assert reason(lambda t: t.cumsum(0)) == none + "; 'cumsum' does not: it launches taeda_cumsum_d_each"
        assert reason(lambda t: t.flip(0)) == none + "; 'flip' does not: it is not element-wise"
        assert reason(lambda t: t.sum()) == none + "; 'sum' does not: it folds what no chain makes"
        assert reason(lambda t: t.argmax()) == none + "; 'argmax' does not: its fold is none by which chains end"
        z = tc.ones(4, dtype=tc.complex64, device="cuda")
        assert reason(lambda t: t * 2 + 1, z) == none + "; 'mul' does not: it computes with complex numbers"
        k = tc.ones(4, dtype=tc.int64, device="cuda")
        assert "may divide by zero" in reason(lambda t: t // 2 % 3, k)
        assert reason(lambda t: t * 2 + 1, x[:0]) == none + "; 'mul' does not: it has no elements"
        tried += 8
        """,
        least=8,
    )
    program = """
        x = tc.ones(4, device="cuda")
        fast = compile_graph(lambda t: t * 2 + 1, x)
        near(fast(x), np.full(4, 3, np.float32), "by its calls")
        assert {why!r} in fast.reason, fast.reason
        assert fusion.unavailable_reason() == {none!r}, fusion.unavailable_reason()
        """
    absent = "the simulated driver compiles only where TAEDA_CUDA_SIMULATED_COMPILER names a compiler"
    run(program.format(why=absent, none=absent), TAEDA_CUDA_SIMULATED_COMPILER="")
    run(program.format(why="false ended with 1", none=""), TAEDA_CUDA_SIMULATED_COMPILER="false")
    run(program.format(why="/no/such ended with", none=""), TAEDA_CUDA_SIMULATED_COMPILER="/no/such")


COUNTS = """
x = tc.arange(4.0).to("cuda")
fast = compile_graph(lambda t: t * 2 + 1, x)
near(fast(x), np.arange(4, dtype=np.float32) * 2 + 1, "chain")
compile_graph(lambda t: t * 3 + 5, x)  # the same text with other numbers
found = fusion.statistics()
assert found["kernels"] == 1, found
print({name: value for name, value in found.items() if isinstance(value, int) and value and name != "kernels"})
"""


def test_images_are_kept_in_files(run, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run(COUNTS) == "{'compiled': 1}\n"
    (file,) = cache.iterdir()
    assert run(COUNTS) == "{'from_files': 1}\n"
    assert run(COUNTS, TAEDA_CUDA_FUSION_CACHE="none") == "{'compiled': 1}\n"
    # What is not whole is made anew, whichever part of it.
    whole = file.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole + b"x", whole[:5000] + b"\0\1" + whole[5002:]):
        file.write_bytes(damaged)
        assert run(COUNTS) == "{'compiled': 1, 'damaged_files': 1}\n"
        assert run(COUNTS) == "{'from_files': 1}\n"
    # A whole file that is no library of the system's: made anew too.
    assert list(cache.iterdir()) == [file]


def test_another_text_with_the_same_number_is_no_match(run, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    run(COUNTS)
    (file,) = cache.iterdir()
    other = """
        x = tc.arange(4.0).to("cuda")
        near(compile_graph(lambda t: t.exp() - 1, x)(x), np.exp(np.arange(4, dtype=np.float32)) - 1, "chain")
        """
    run(other)
    (theirs,) = set(cache.iterdir()) - {file}
    whole = theirs.read_bytes()
    file.write_bytes(whole)
    assert run(COUNTS) == "{'compiled': 1, 'files_of_others': 1}\n"
    assert file.read_bytes() == whole


def test_a_folder_that_cannot_be_written_to_is_left_out(run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    where = str(tmp_path / "file" / "cache")
    assert run(COUNTS, TAEDA_CUDA_FUSION_CACHE=where) == "{'compiled': 1, 'unwritten_files': 1}\n"


def test_several_processes_write_at_once(run, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    program = HEAD.replace("SEED", "1") + COUNTS
    environment = {
        **os.environ,
        "TAEDA_CUDA_DRIVER": "simulated",
        "TAEDA_CUDA_FUSION_CACHE": str(cache),
        "TAEDA_CUDA_SIMULATED_COMPILER": str(COMPILER),
    }
    command = [sys.executable, "-W", "error", "-c", program]
    several = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    told = [process.communicate(timeout=300)[0] for process in several]
    assert all(process.returncode == 0 for process in several)
    assert set(told) <= {"{'compiled': 1}\n", "{'from_files': 1}\n"}
    assert len(list(cache.iterdir())) == 1
    assert run(COUNTS) == "{'from_files': 1}\n"


# --- NVRTC, which needs no device ---


def nvrtc() -> str:
    """The folder of NVIDIA's library."""
    found = [Path(each) for each in os.environ.get("TAEDA_CUDA_LIBRARIES", "").split(":") if each]
    found += [Path(each) / "nvidia" / "cu13" / "lib" for each in sys.path]
    found += [Path("/usr/local/cuda/lib64")]
    for folder in found:
        if (folder / "libnvrtc.so.13").is_file():
            return str(folder)
    pytest.skip("needs NVIDIA's libnvrtc.so.13 (the wheel nvidia-cuda-nvrtc)")


EVERY_LINE = """
x = tc.randn(64)
for dtype in (tc.float32, tc.bfloat16, tc.int64):
    t = x.to(dtype).to("cuda")
    def all_of(a):
        found = []
        for name in NAMES:
            try:
                found.append(getattr(ops, name)(a) if name in ONE else getattr(ops, name)(a, a))
            except (TypeError, RuntimeError, NotImplementedError, ValueError):
                continue  # the operator does not take the dtype
        return tuple(found)
    fast = compile_graph(all_of, t)
    print(fast.reason)
print(fusion.statistics())
"""
ONE = (
    "abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 "
    "expm1 floor frac i0 i0e i1 i1e lgamma log log10 log1p log2 neg rad2deg reciprocal round rsqrt "
    "sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc relu silu mish gelu hardsigmoid "
    "hardswish softplus elu leaky_relu logsigmoid hardshrink softshrink bitwise_not isfinite isinf isnan "
    "logical_not nan_to_num "
)
TWO = (
    "add sub mul div maximum minimum fmax fmin atan2 copysign hypot logaddexp logaddexp2 heaviside pow "
    "xlogy eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor gcd "
    "lcm nextafter fmod remainder floor_divide sigmoid_backward tanh_backward gelu_backward silu_backward "
)


def test_nvrtc_compiles_every_line(tmp_path: Path) -> None:
    folder = stand_ins.build(tmp_path, {"libcuda.so.1": real.WHOLE})
    names = f"NAMES, ONE = {ONE + TWO!r}.split(), {ONE!r}.split()\n"
    launches = tmp_path / "launches"
    told = real.run(
        folder,
        HEAD.replace("SEED", "1") + names + EVERY_LINE,
        TAEDA_CUDA_LIBRARIES=nvrtc(),
        TAEDA_CUDA_FUSION_CACHE=str(tmp_path / "cache"),
        FAKE_LAUNCHES=str(launches),
    )
    assert told[:-1] == [""] * 3
    found = eval(told[-1])
    assert found["compiler"].startswith("NVRTC 13.") and " sm_90 " in found["compiler"]
    assert found["compiled"] == found["kernels"] > 12 and found["failed"] == 0


EVERY_FOLD = """
x, k = tc.ones(4, 64).to("cuda"), tc.arange(64).to("cuda")
def norm(order):
    return lambda t: ops.vector_norm(t * 2 + 1, float(order), [-1], False)
folds = [lambda t: (t * 2 + 1).sum(-1), lambda t: (t * 2 + 1).prod(-1), lambda t: (t * 2 > 1).all(-1),
         lambda t: (t * 2 > 1).any(-1), lambda t: (t * 2 + 1).amax(-1), lambda t: (t * 2 + 1).amin(-1)]
of_real = [lambda t: (t * 2 + 1).var(-1), *map(norm, (0, 1, 2, 3, np.inf, -np.inf))]
for fold in folds + of_real:
    for t in (x,) if fold in of_real or fold in folds[4:] else (x, k):
        assert compile_graph(fold, t).reason == ""
print(fusion.statistics())
"""


def test_nvrtc_compiles_every_fold(tmp_path: Path) -> None:
    folder = stand_ins.build(tmp_path, {"libcuda.so.1": real.WHOLE})
    (told,) = real.run(
        folder,
        HEAD.replace("SEED", "1") + EVERY_FOLD,
        TAEDA_CUDA_LIBRARIES=nvrtc(),
        TAEDA_CUDA_FUSION_CACHE=str(tmp_path / "cache"),
        FAKE_LAUNCHES=str(tmp_path / "launches"),
    )
    found = eval(told)
    # A text for each fold and element type.
    assert found["compiled"] == found["kernels"] == 17 and found["failed"] == 0


def test_images_of_nvrtc_are_loaded_and_launched(tmp_path: Path) -> None:
    folder = stand_ins.build(tmp_path, {"libcuda.so.1": real.WHOLE})
    program = """
from taeda_tensor_core.backends import compile_graph
x = tc.ones(1000).to("cuda")
fast = compile_graph(lambda t: (t * 2 + 1).tanh(), x)
print(repr(fast.reason))
y = fast(x)
print(y.shape[0])
"""
    launches = tmp_path / "launches"
    environment = {
        "TAEDA_CUDA_LIBRARIES": nvrtc(),
        "TAEDA_CUDA_FUSION_CACHE": str(tmp_path / "cache"),
        "FAKE_LAUNCHES": str(launches),
    }
    assert real.run(folder, program, **environment) == ["''", "1000"]
    # 250 packs of four elements, in one block of 256 threads.
    assert launches.read_text().splitlines()[-1] == "taeda_fused 1 256 250"


def test_without_nvrtc_calls_run_one_by_one(tmp_path: Path) -> None:
    folder = stand_ins.build(tmp_path, {"libcuda.so.1": real.WHOLE})
    program = """
from taeda_tensor_core.backends import compile_graph
from taeda_tensor_cuda import fusion
x = tc.ones(4).to("cuda")
fast = compile_graph(lambda t: t * 2 + 1, x)
print(fast.reason)
print(fusion.unavailable_reason())
print(fast(x).shape[0])
"""
    why = "TAEDA_CUDA_LIBRARIES is 'none'"
    assert real.run(folder, program, TAEDA_CUDA_LIBRARIES="none") == [
        f"device 'cuda' takes no such graph: {why}",
        why,
        "4",
    ]
