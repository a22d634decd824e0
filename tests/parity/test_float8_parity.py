"""float8 beside PyTorch, bit for bit: all halves, a million floats, all codes, other dtypes, files both ways."""

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

import taeda  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Casting complex values")

NAMES = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
OTHERS = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]
OTHERS += ["complex128", "uint16", "uint32", "uint64"]


def bits(tensor, library):
    return np.array(tensor.view(library.uint8).numpy())


def both(array):
    return taeda.from_numpy(array), torch.from_numpy(array)


@pytest.fixture(params=NAMES)
def dtypes(request):
    return getattr(taeda, request.param), getattr(torch, request.param)


def test_all_halves(dtypes):
    for view in ("float16", "bfloat16"):
        mine, theirs = both(np.arange(65536, dtype=np.uint16))
        mine, theirs = mine.view(getattr(taeda, view)), theirs.view(getattr(torch, view))
        np.testing.assert_array_equal(bits(mine.to(dtypes[0]), taeda), bits(theirs.to(dtypes[1]), torch))


def test_a_million_floats(dtypes):
    rng = np.random.default_rng(11)
    raw = rng.integers(0, 2**32, 600_000, dtype=np.uint32).view(np.float32)
    near = (rng.standard_normal(500_000) * np.exp2(rng.uniform(-20, 18, 500_000))).astype(np.float32)
    codes = np.arange(256, dtype=np.uint8)
    exact = torch.from_numpy(codes).view(dtypes[1]).float().numpy()
    exact = np.sort(exact[np.isfinite(exact)])
    middles = ((exact[1:].astype(np.float64) + exact[:-1]) / 2).astype(np.float32)
    edges = np.concatenate(
        [middles, np.nextafter(middles, np.float32(9e9)), np.nextafter(middles, np.float32(-9e9))]
    )
    mine, theirs = both(np.concatenate([raw, near, edges, exact * np.float32(1.1)]))
    np.testing.assert_array_equal(bits(mine.to(dtypes[0]), taeda), bits(theirs.to(dtypes[1]), torch))
    for other in ("float64", "complex64"):
        some, same = mine[::7].to(getattr(taeda, other)), theirs[::7].to(getattr(torch, other))
        np.testing.assert_array_equal(bits(some.to(dtypes[0]), taeda), bits(same.to(dtypes[1]), torch))


def test_all_codes(dtypes):
    mine, theirs = (t.view(d) for t, d in zip(both(np.arange(256, dtype=np.uint8)), dtypes, strict=True))
    for other in ("float32", "float64", "float16"):
        np.testing.assert_array_equal(
            mine.to(getattr(taeda, other)).numpy(), theirs.to(getattr(torch, other)).numpy()
        )
    for name in NAMES:
        np.testing.assert_array_equal(
            bits(mine.to(getattr(taeda, name)), taeda), bits(theirs.to(getattr(torch, name)), torch)
        )


@pytest.mark.parametrize("other", OTHERS)
def test_other_dtypes(dtypes, other):
    values = np.array([0, 1, 2, 3, 7, 15, 29, 100, 120])
    mine, theirs = (t.to(getattr(lib, other)) for t, lib in zip(both(values), (taeda, torch), strict=True))
    mine, theirs = mine.to(dtypes[0]), theirs.to(dtypes[1])
    np.testing.assert_array_equal(bits(mine, taeda), bits(theirs, torch))
    assert mine.to(getattr(taeda, other)).tolist() == theirs.to(getattr(torch, other)).tolist()


def test_facts(dtypes):
    mine, theirs = (lib.finfo(d) for lib, d in zip((taeda, torch), dtypes, strict=True))
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution"):
        assert getattr(mine, field) == getattr(theirs, field), field
    assert repr(mine) == repr(theirs)
    for fact in ("is_floating_point", "is_complex", "is_signed", "itemsize"):
        assert getattr(dtypes[0], fact) == getattr(dtypes[1], fact), fact
    for other in OTHERS:
        for a, b in ((0, 1), (1, 0)):
            pair = [(d, getattr(lib, other)) for lib, d in zip((taeda, torch), dtypes, strict=True)]
            assert taeda.can_cast(pair[0][a], pair[0][b]) == torch.can_cast(pair[1][a], pair[1][b])


CALLS = {
    "add": lambda lib, x: x + x,
    "mul": lambda lib, x: x * 2.0,
    "neg": lambda lib, x: -x,
    "abs": lambda lib, x: x.abs(),
    "eq": lambda lib, x: x == x,
    "eq number": lambda lib, x: x == 2.3,
    "ne": lambda lib, x: x != x,
    "mixed": lambda lib, x: x + lib.ones(2, 3),
    "isnan": lambda lib, x: x.isnan(),
    "sum": lambda lib, x: x.sum(),
    "sum in float32": lambda lib, x: x.sum(dtype=lib.float32),
    "any": lambda lib, x: x.any(),
    "all": lambda lib, x: x.all(),
    "cat": lambda lib, x: lib.cat([x, x]),
    "stack": lambda lib, x: lib.stack([x, x]),
    "index": lambda lib, x: x[lib.tensor([1, 0])],
    "mask": lambda lib, x: x[lib.tensor([True, False])],
    "where": lambda lib, x: lib.where(lib.tensor([True, False, True]), x, 2.0),
    "roll": lambda lib, x: x.roll(1),
    "repeat": lambda lib, x: x.repeat(2, 1),
    "full": lambda lib, x: lib.full((2,), 0.3, dtype=x.dtype),
    "eye": lambda lib, x: lib.eye(3, dtype=x.dtype),
    "tensor": lambda lib, x: lib.tensor([1.1, 200.0, -0.01], dtype=x.dtype),
    "embedding": lambda lib, x: lib.nn.functional.embedding(lib.tensor([1, 0]), x),
    "item": lambda lib, x: x[0, 1].item(),
    "through": lambda lib, x: gradient(lib, x.dtype),
    "parameter": lambda lib, x: lib.nn.Parameter(x).data,
    "module": lambda lib, x: lib.nn.init.ones_(lib.nn.Linear(2, 2).to(x.dtype).weight.data),
    "arange": lambda lib, x: lib.arange(3, dtype=x.dtype),
    "rand": lambda lib, x: lib.rand(3, dtype=x.dtype),
    "exp": lambda lib, x: x.exp(),
    "frombuffer": lambda lib, x: lib.frombuffer(bytearray(b"abc"), dtype=x.dtype),
    "diag": lambda lib, x: x[0].diag(),
    "setitem": lambda lib, x: (x.__setitem__(0, 3.0), x)[1],
    "like": lambda lib, x: lib.zeros_like(x),
    "pad": lambda lib, x: lib.nn.functional.pad(x, (1, 1), value=2.0),
    "type": lambda lib, x: x.type(),
}


def gradient(lib, dtype):
    w = lib.tensor([1.0, -2.0, 3.0], requires_grad=True)
    (w.to(dtype).float() * lib.tensor([1.0, 2.0, 4.0])).sum().backward()
    return w.grad


@pytest.mark.parametrize("name", CALLS)
def test_what_operators_do(dtypes, name):
    found = []
    for lib, dtype in zip((taeda, torch), dtypes, strict=True):
        x = lib.tensor([[1.0, 2.0, 2.3], [4.0, 0.5, 8.0]]).to(dtype)
        try:
            result = CALLS[name](lib, x)
        except RuntimeError as error:
            result = isinstance(error, NotImplementedError) if name != "mixed" else "refused"
        if isinstance(result, lib.Tensor):
            result = (str(result.dtype).rpartition(".")[2], result.detach().tolist())
        found.append(result)
    if name == "abs" and "e8m0" in str(dtypes[1]):
        return  # PyTorch has no abs of numbers without a sign
    assert str(found[0]) == str(found[1])


def test_files(dtypes):
    codes = np.arange(256, dtype=np.uint8)
    mine, theirs = (t.view(d) for t, d in zip(both(codes), dtypes, strict=True))
    for write, read in ((taeda, torch), (torch, taeda), (taeda, taeda)):
        file = io.BytesIO()
        source = mine if write is taeda else theirs
        state = {"a": source, "b": source.reshape(16, 16).t()}
        write.save(state, file, **({"format": "torch"} if write is taeda else {}))
        file.seek(0)
        found = read.load(file)
        assert str(found["a"].dtype).rpartition(".")[2] == str(dtypes[1]).rpartition(".")[2]
        np.testing.assert_array_equal(bits(found["a"], read), codes)
        np.testing.assert_array_equal(bits(found["b"].contiguous(), read), codes.reshape(16, 16).T)
