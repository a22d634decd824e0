"""Extensions of C++, compiled by a real compiler: values across the border, derivatives, and what is kept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import taeda as torch
from taeda.utils import cpp_extension

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler: c++ is not on the path")
SOURCES = Path(__file__).parent / "extensions"

VALUES = r"""
#include <map>
using namespace taeda;

std::vector<int64_t> facts(const Tensor& x) { return {x.dim(), x.numel(), x.size(-1), x.stride(0), x.is_contiguous()}; }
std::string words(ScalarType type, Device device, Scalar number) {
  return detail::joined(type, " ", device, " ", number.toDouble());
}
ScalarType type_of_tensor(const Tensor& x) { return x.scalar_type(); }
Device device_of_tensor(const Tensor& x) { return x.device(); }
Scalar first(const Tensor& x) { return x.flatten()[0].item(); }
Tensor made(std::vector<int64_t> sizes, ScalarType type) { return full(sizes, 7, dtype(type)); }
Tensor maybe(std::optional<Tensor> x) { return x ? *x + 1 : Tensor(); }
std::vector<Tensor> halves(const Tensor& x) { return x.chunk(2, 0); }
std::tuple<Tensor, Tensor> best(const Tensor& x) { return x.max(1); }
Tensor mixed(const Tensor& x) { return ((2 * x - 1) / (x + 3) > 0.25).to(kInt64) + sum(x, {0, 1}).to(kInt64) % 5; }
double diagonal_sum(const Tensor& x) {
  const auto at = x.accessor<double, 2>();
  double out = 0;
  for (int64_t i = 0; i < x.size(0); ++i) out += at[i][i];
  return out;
}
void overwrite(Tensor x) { x.fill_(3); x += 1; x[0].zero_(); }
Tensor wrong(const Tensor& x) { return x.reshape({-1, 7}); }
Tensor out_of_range(const Tensor& x) { return x.select(5, 0); }
void refuse(int64_t n) { TAEDA_CHECK(n > 3, "n is ", n); }
Tensor numbers() { return tensor({1.5, 2.5, 3.5}, kFloat); }
std::vector<Tensor> kinds_of_numbers() {
  float sum = 2.5f;
  return {tensor(sum), tensor(1.5), tensor(3), tensor(true), tensor(2, kDouble), tensor({1, 2}), tensor({1.5}),
          tensor(std::vector<int>{7}), tensor(std::vector<double>{}), tensor({{1, 2}, {3, 4}}),
          tensor({{.5f}, {2.f}}, kDouble)};
}
Tensor ragged() { return tensor({{1, 2}, {3}}); }
bool same(const Tensor& a, const Tensor& b) { return a.is_same(b); }
std::vector<Tensor> bits(const Tensor& x) {
  return {x.__and__(6), x.__or__(9), x.__xor__(x + 1), x.__lshift__(2), (x & 0xF0).__rshift__(4)};
}
std::vector<Tensor> bits_in_place(const Tensor& x) {
  std::vector<Tensor> out;
  for (int i = 0; i < 8; ++i) out.push_back(x.clone());
  out[0] &= 6, out[1] |= 9, out[2] ^= 5;
  out[3].__iand__(6), out[4].__ior__(9), out[5].__ixor__(5), out[6].__ilshift__(2), out[7].__irshift__(1);
  return out;
}
"""
NAMES = [
    *(
        "facts",
        "words",
        "type_of_tensor",
        "device_of_tensor",
        "first",
        "made",
        "maybe",
        "halves",
        "best",
        "mixed",
    ),
    *(
        "diagonal_sum",
        "overwrite",
        "wrong",
        "out_of_range",
        "refuse",
        "numbers",
        "kinds_of_numbers",
        "ragged",
        "same",
        "bits",
        "bits_in_place",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("extensions"))


@pytest.fixture(scope="module")
def values(folder):
    return cpp_extension.load_inline("values", VALUES, functions=NAMES, build_directory=folder)


def test_facts_and_values_cross_the_border(values):
    x = torch.arange(6.0).reshape(2, 3)
    assert values.facts(x) == [2, 6, 3, 3, 1]
    assert values.facts(x.t()) == [2, 6, 2, 1, 0]
    assert values.words(torch.float16, "cpu", 2) == "float16 cpu 2"
    assert values.words(torch.bool, torch.device("cpu"), torch.tensor(2.5)) == "bool cpu 2.5"
    assert values.type_of_tensor(x.to(torch.int16)) is torch.int16
    assert values.device_of_tensor(x) == torch.device("cpu")
    assert [values.first(torch.tensor([v])) for v in (True, 3, 2.5, 1 + 2j)] == [True, 3, 2.5, 1 + 2j]
    assert values.first(torch.tensor([1.5], dtype=torch.bfloat16)) == 1.5
    assert torch.equal(values.made([2, 2], torch.int32), torch.full((2, 2), 7, dtype=torch.int32))
    assert values.maybe(None) is None
    assert torch.equal(values.maybe(x), x + 1)
    assert [t.tolist() for t in values.halves(x)] == [[[0.0, 1.0, 2.0]], [[3.0, 4.0, 5.0]]]
    assert [t.tolist() for t in values.best(x)] == [[2.0, 5.0], [2, 2]]
    assert torch.equal(values.mixed(x), ((2 * x - 1) / (x + 3) > 0.25).long() + x.sum().long() % 5)
    assert values.diagonal_sum(torch.eye(3, dtype=torch.float64) * 2) == 6
    assert values.numbers().tolist() == [1.5, 2.5, 3.5] and values.numbers().dtype is torch.float32
    assert values.same(x, x) and not values.same(x, x.clone())


def test_numbers_become_tensors_of_the_types_of_pytorch(values):
    found = [(t.tolist(), t.dtype) for t in values.kinds_of_numbers()]
    assert found == [
        (2.5, torch.float32), (1.5, torch.float32), (3, torch.int64), (True, torch.bool), (2.0, torch.float64),
        ([1, 2], torch.int64), ([1.5], torch.float32), ([7], torch.int64), ([], torch.float32),
        ([[1, 2], [3, 4]], torch.int64), ([[0.5], [2.0]], torch.float64),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="tensor: rows of 2 and 1 numbers"):
        values.ragged()


INDICES = r"""
#include <torch/extension.h>
using namespace torch::indexing;
using torch::Tensor;
std::vector<Tensor> reads(Tensor x, Tensor i, Tensor m) {
  return {x.index({0}), x.index({Slice(), 1}), x.index({Slice(1, None, 2), None, "..."}), x.index({Ellipsis, -1}),
          x.index({i}), x.index({i, Slice(0, 2), i}), x.index({Slice(), i}), x.index({m}), x.index({m, Slice(1)}),
          x.index({None, m, 1}), x.index({true, 0}), x.index({false}), x.index({torch::tensor(1), Ellipsis, i}),
          x.index({Slice(None, -1), None, i, Ellipsis}), x.index({x > 5}), x.index({torch::tensor(true), i})};
}
void writes(Tensor x, Tensor i, Tensor m) {
  x.index_put_({0}, 5.0);
  x.index_put_({Slice(), i, 0}, -1);
  x.index_put_({m, 2}, torch::ones({1}, x.options()) * 9);
  x.index_put_({x > 8}, 0.5);
  x.index_put_({1, Slice(None, 2)}, x.index({2, Slice(1)}));
  x.index_put_({torch::tensor({1, 0}), torch::tensor({2, 2})}, 7);
}
std::vector<Tensor> made() {
  const auto o = torch::TensorOptions().dtype(torch::kFloat64);
  return {torch::arange(5, o), torch::arange(1, 4, torch::kInt32), torch::arange(0, 1, 0.25, o), torch::eye(2, o)};
}
Tensor too_many(Tensor x) { return x.index({0, 0, 0, 0}); }
Tensor wrong_text(Tensor x) { return x.index({".."}); }
"""


@pytest.fixture(scope="module")
def indices(folder):
    names = ["reads", "writes", "made", "too_many", "wrong_text"]
    return cpp_extension.load_inline("indices", INDICES, functions=names, build_directory=folder)


def test_indices_of_pytorch_in_c(indices):
    x = torch.arange(24.0).reshape(2, 3, 4)
    i, m = torch.tensor([1, 0]), torch.tensor([[True, False, True], [False, True, True]])
    expected = [
        x[0], x[:, 1], x[1::2, None, ...], x[..., -1], x[i], x[i, 0:2, i], x[:, i], x[m], x[m, 1:], x[None, m, 1],
        x[True, 0], x[False], x[1, ..., i], x[:-1, None, i, ...], x[x > 5], x[torch.tensor(True), i],
    ]  # fmt: skip
    found = indices.reads(x, i, m)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape and torch.equal(one, other)
    for bad, error in ((indices.too_many, IndexError), (indices.wrong_text, RuntimeError)):
        with pytest.raises(error, match="index: "):
            bad(x)


def test_writes_at_indices_of_pytorch_in_c(indices):
    i, m = torch.tensor([1, 0]), torch.tensor([[True, False, True], [False, True, True], [False] * 3])
    x = torch.arange(27.0).reshape(3, 3, 3)
    expected = x.clone()
    indices.writes(x, i, m)
    expected[0] = 5.0
    expected[:, i, 0] = -1
    expected[m, 2] = torch.ones(1) * 9
    expected[expected > 8] = 0.5
    expected[1, :2] = expected[2, 1:]
    expected[torch.tensor([1, 0]), torch.tensor([2, 2])] = 7
    assert torch.equal(x, expected)


def test_options_follow_what_is_left_out_in_c(indices):
    found = [(t.tolist(), t.dtype) for t in indices.made()]
    assert found == [
        ([0.0, 1.0, 2.0, 3.0, 4.0], torch.float64), ([1, 2, 3], torch.int32),
        ([0.0, 0.25, 0.5, 0.75], torch.float64), ([[1.0, 0.0], [0.0, 1.0]], torch.float64),
    ]  # fmt: skip


def test_operators_of_bits_have_their_names_of_python(values):
    numbers = [0, 3, 90, 255]
    x = torch.tensor(numbers)
    assert [t.tolist() for t in values.bits(x)] == [
        [n & 6 for n in numbers],
        [n | 9 for n in numbers],
        [n ^ (n + 1) for n in numbers],
        [n << 2 for n in numbers],
        [(n & 0xF0) >> 4 for n in numbers],
    ]
    changed = [[n & 6 for n in numbers], [n | 9 for n in numbers], [n ^ 5 for n in numbers]]
    shifted = [[n << 2 for n in numbers], [n >> 1 for n in numbers]]
    assert [t.tolist() for t in values.bits_in_place(x)] == [*changed, *changed, *shifted]


def test_writes_count_and_are_refused_where_they_must_be(values):
    x = torch.ones(2, 2)
    before = x._version
    values.overwrite(x)
    assert x.tolist() == [[0, 0], [4, 4]] and x._version > before
    with pytest.raises(RuntimeError, match="leaf"):
        values.overwrite(torch.ones(2, 2, requires_grad=True))


def test_errors_keep_their_classes_and_texts(values):
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="reshape"):
        values.wrong(x)
    with pytest.raises(IndexError, match="select"):
        values.out_of_range(x)
    with pytest.raises(RuntimeError, match=r"expected n > 3. n is 2"):
        values.refuse(2)
    with pytest.raises(TypeError, match=r"taeda\.Tensor"):
        values.facts(3)
    with pytest.raises(RuntimeError, match="data_ptr: elements are float32, asked for float64"):
        values.diagonal_sum(torch.ones(2, 2))


def test_calls_are_recorded_for_gradients(values):
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    values.best(x)[0].sum().backward()
    assert x.grad.tolist() == [[0, 1], [0, 1]]


def cell(module):
    class Cell(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weights, bias, old_h, old_cell):
            new_h, new_cell, *kept = module.forward(input, weights, bias, old_h, old_cell)
            ctx.save_for_backward(new_cell, *kept, weights)
            return new_h, new_cell

        @staticmethod
        def backward(ctx, grad_h, grad_cell):
            d_old_h, d_input, d_weights, d_bias, d_old_cell = module.backward(
                grad_h.contiguous(), grad_cell.contiguous(), *ctx.saved_tensors
            )
            return d_input, d_weights, d_bias, d_old_h, d_old_cell

    return Cell.apply


def composed(input, weights, bias, old_h, old_cell):
    gates = torch.addmm(bias, torch.cat([old_h, input], 1), weights.t()).chunk(3, 1)
    new_cell = old_cell + torch.nn.functional.elu(gates[2]) * torch.sigmoid(gates[0])
    return torch.tanh(new_cell) * torch.sigmoid(gates[1]), new_cell


@pytest.mark.parametrize("source", ["taeda", "torch"])
def test_the_extension_of_a_tutorial_differentiates(source, folder, tmp_path):
    path = SOURCES / "lltm.cpp"
    if source == "torch":  # PyTorch's own include and namespace
        text = (
            path.read_text()
            .replace("<taeda/extension.h>", "<torch/extension.h>")
            .replace("taeda::", "torch::")
        )
        path = tmp_path / "lltm.cpp"
        path.write_text(text)
    module = cpp_extension.load(f"lltm_{source}", [str(path)], build_directory=folder)
    torch.manual_seed(0)
    sizes = [(3, 4), (15, 9), (1, 15), (3, 5), (3, 5)]
    given = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]
    for ours, wanted in zip(cell(module)(*given), composed(*given), strict=True):
        torch.testing.assert_close(ours, wanted)
    assert torch.autograd.gradcheck(cell(module), given)


@pytest.fixture(scope="module")
def functions(folder):
    return cpp_extension.load("functions", str(SOURCES / "functions.cpp"), build_directory=folder)


def double(*sizes):
    return [torch.rand(size, dtype=torch.float64, requires_grad=True) for size in sizes]


def test_functions_of_c_differentiate(functions):
    given = double((3, 4), (5, 4), 5)
    torch.testing.assert_close(functions.linear(*given), torch.nn.functional.linear(*given))
    assert torch.autograd.gradcheck(functions.linear, given)
    assert torch.autograd.gradgradcheck(functions.linear, given)
    assert torch.autograd.gradcheck(lambda *two: functions.linear(*two, None), given[:2])
    assert "LinearBackward" in type(functions.linear(*given).grad_fn).__name__
    assert not functions.linear(*(t.detach() for t in given)).requires_grad
    first = given[0].detach()
    functions.linear(first, *given[1:]).sum().backward()
    assert first.grad is None and given[1].grad is not None


def test_contexts_of_c_keep_values_lists_and_marks(functions):
    a, b = double(4, 4)
    power, product, places = functions.powers(1.5, [a, b], 3)
    torch.testing.assert_close(power, 1.5 * a**3)
    assert power.requires_grad and product.requires_grad and not places.requires_grad
    assert torch.autograd.gradcheck(lambda *two: functions.powers(1.5, list(two), 3)[:2], (a, b))
    copy = a * 1
    assert functions.doubled(copy) is copy
    copy.sum().backward()
    assert a.grad.tolist() == [2.0] * 4
    with pytest.raises(RuntimeError, match="leaf"):
        functions.doubled(a)


def test_what_a_function_of_c_saved_is_checked_for_writes(functions):
    given = double((3, 4), (5, 4))
    copies = [t * 1 for t in given]
    out = functions.linear(*copies, None)
    copies[1].mul_(2)
    with pytest.raises(RuntimeError, match="modified"):
        out.sum().backward()


def test_a_backward_of_c_must_fit(functions):
    (x,) = double(3)
    with pytest.raises(RuntimeError, match="Wrong: backward gave 1 gradients for 2 arguments"):
        functions.wrong(x).sum().backward()


def test_gradients_are_asked_for_from_c(functions):
    assert functions.slope(2.0) == 12.0
    assert torch.is_grad_enabled()


def test_operators_without_a_schema(functions):
    x = torch.tensor([3.0, 1.0, 2.0])
    space = torch.ops.cpp_functions
    assert space.twice(x, None).tolist() == [6, 2, 4] and space.twice(x, 2).tolist() == [12, 4, 8]
    assert [t.item() for t in space.ends(x, True)] == [1, 3] and [t.item() for t in space.ends(x, False)] == [
        3,
        2,
    ]
    assert space.version() == 7
    assert [t.tolist() for t in space.both(x, None, 2)] == [[6, 2, 4], [3, 1, 2]]
    given = double(2)[0]
    space.both(given, given, 3)[0].sum().backward()
    assert given.grad.tolist() == [3, 3]
    assert torch.autograd.gradcheck(space.linear, double((3, 4), (5, 4), 5))


def test_a_library_is_opened_by_its_path(functions):
    torch.ops.load_library(functions.__file__)
    with pytest.raises(OSError, match="load_library"):
        torch.ops.load_library(SOURCES / "functions.cpp")


def test_libraries_without_a_module_are_told_apart(folder):
    for name in ("first", "second"):
        source = Path(folder) / f"{name}.cpp"
        source.write_text(
            "#include <torch/script.h>\n"
            f"at::Tensor {name}(const at::Tensor& x) {{ return x + {len(name)}; }}\n"
            f'static auto registry = torch::RegisterOperators("cpp_{name}::add", &{name});\n'
        )
        cpp_extension.load(f"cpp_{name}", str(source), build_directory=folder, is_python_module=False)
    assert torch.ops.cpp_first.add(torch.zeros(1)).item() == 5
    assert torch.ops.cpp_second.add(torch.zeros(1)).item() == 6


def test_operators_with_kernels_and_derivatives(folder):
    assert (
        cpp_extension.load(
            "scaling", str(SOURCES / "scale.cpp"), build_directory=folder, is_python_module=False
        )
        is None
    )
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = torch.ops.scaling.scale(x, 3.0)
    assert y.tolist() == [3, -6] and torch.ops.scaling.scale(x).tolist() == [2, -4]
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]
    x.grad = None
    torch.ops.scaling.cube(x).sum().backward()
    assert x.grad.tolist() == [3, 12]
    with pytest.raises(NotImplementedError, match="scale: not for elements of int64"):
        torch.ops.scaling.scale(torch.tensor([1]))


def test_functions_under_the_keys_of_autograd_composites_and_shapes(folder):
    cpp_extension.load("keyed", str(SOURCES / "keys.cpp"), build_directory=folder)
    scale, quadruple = torch.ops.keyed.scale, torch.ops.keyed.quadruple
    assert scale(torch.ones(2)).tolist() == [3, 3]
    x = torch.ones(2, requires_grad=True)
    scale(x, 4.0).sum().backward()
    assert x.grad.tolist() == [6, 6]  # the function of recorded calls was asked, and its own call the kernel
    with torch.no_grad():
        assert not scale(x).requires_grad
    x.grad = None
    quadruple(x).sum().backward()
    assert quadruple(x).tolist() == [4, 4] and x.grad.tolist() == [8, 8]
    assert scale(torch.ones(2, 3, device="meta")).shape == (2, 3)
    y = torch.zeros(2)
    before = y._version
    torch.ops.keyed.add_one(y)
    assert y.tolist() == [1, 1] and y._version > before
    torch.library.opcheck(scale, (torch.ones(3),))


def test_what_cannot_be_built_is_refused_before_a_compiler_is_called():
    with pytest.raises(ValueError, match="must be an identifier"):
        cpp_extension.load("no-name", ["x.cpp"])
    with pytest.raises(ValueError, match="names no file"):
        cpp_extension.load("name", [])
    with pytest.raises(NotImplementedError, match="compiled for the cpu and CUDA"):
        cpp_extension.load("name", ["x.cpp"], with_sycl=True)


TINY = r"""
#include <Python.h>
#include "answer.h"

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tiny"};
extern "C" __attribute__((visibility("default"))) PyObject* PyInit_tiny() {
  PyObject* module = PyModule_Create(&definition);
  if (module) PyModule_AddIntConstant(module, "answer", ANSWER);
  return module;
}
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Loads a small extension with a compiler that counts what it compiles."""
    compiler, count = tmp_path / "compiler", tmp_path / "count"
    compiler.write_text(
        f'#!/bin/sh\ncase " $* " in *" -c "*) echo x >> {count} ;; esac\nexec {shutil.which("c++")} "$@"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    source, header = tmp_path / "tiny.cpp", tmp_path / "answer.h"
    source.write_text(TINY)
    header.write_text("#define ANSWER 1\n")

    def load(**options):
        return cpp_extension.load("tiny", str(source), build_directory=str(tmp_path / "kept"), **options)

    load.source, load.header = source, header
    load.compiled = lambda: len(count.read_text().splitlines()) if count.exists() else 0
    return load


def test_what_was_compiled_is_kept_by_its_content(tiny):
    first = tiny()
    assert first.answer == 1 and tiny.compiled() == 1
    tiny.source.touch()
    assert tiny() is first and tiny.compiled() == 1
    tiny.header.write_text("#define ANSWER 2\n")
    assert tiny().answer == 2 and tiny.compiled() == 2
    tiny.header.write_text("#define ANSWER 1\n")
    assert tiny().answer == 1 and tiny.compiled() == 2  # a change that is taken back finds the former library
    assert tiny(extra_cflags=["-DMORE"]).answer == 1 and tiny.compiled() == 3
    tiny.source.write_text(TINY + "\n// another text\n")
    assert tiny().answer == 1 and tiny.compiled() == 4


def test_errors_of_the_compiler_are_shown_and_leave_nothing_behind(tiny):
    tiny.source.write_text(TINY.replace("ANSWER)", "ANSWER + nonsense)"))
    for attempt in (1, 2):
        with pytest.raises(RuntimeError, match="Error building extension 'tiny'") as caught:
            tiny()
        text = str(caught.value)
        assert str(tiny.source) in text and "nonsense" in text and "error:" in text
        assert tiny.compiled() == attempt
    tiny.source.write_text(TINY)
    assert tiny().answer == 1


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


# Python itself imports no extension from a folder whose name the locale lacks letters for, since 3.13.
@pytest.mark.parametrize(
    ("locale", "built"), [({}, "größe und naïve"), (ASCII, "built")], ids=["UTF-8", "ASCII"]
)
def test_names_and_texts_of_any_letters(tmp_path, locale, built):
    folder = tmp_path / "größe und naïve"
    folder.mkdir()
    (folder / "zwölf.h").write_text("#define TWELVE 12  // ≥ 11\n", encoding="utf-8")
    program = tmp_path / "program.py"
    program.write_text(
        """
import sys
import taeda as torch
from taeda.utils import cpp_extension

options = dict(build_directory=sys.argv[1], extra_include_paths=[sys.argv[2]])
source = '#include "zwölf.h"\\ntaeda::Tensor more(const taeda::Tensor& x) { return x + TWELVE; }'
module = cpp_extension.load_inline("letters", [source], functions={"more": "größer 😀"}, **options)
assert module.more(torch.ones(2)).tolist() == [13, 13]
assert "größer 😀" in module.more.__doc__, ascii(module.more.__doc__)
try:
    cpp_extension.load_inline("wrong", ["int größe() { return π; }"], **options)
except RuntimeError as error:
    assert "Error building extension 'wrong'" in str(error)
else:
    raise AssertionError("not refused")
""",
        encoding="utf-8",
    )
    environment = {**os.environ, **locale}
    done = subprocess.run(
        [sys.executable, program, tmp_path / built, folder], env=environment, capture_output=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-4000:]
    made = list((tmp_path / built / "letters").rglob("headers.json"))
    assert [Path(name).name for name in json.loads(made[0].read_text(encoding="utf-8")) if "zw" in name] in (
        ["zwölf.h"],
        [os.fsencode("zwölf.h").decode("ascii", "surrogateescape")],
    )


def test_what_programs_ask_that_build_by_themselves(monkeypatch, tmp_path):
    """The compiler, the toolkit of CUDA, and how files are named."""
    monkeypatch.setenv("CXX", "mine -g")
    assert cpp_extension.get_cxx_compiler() == "mine -g"
    monkeypatch.delenv("CXX")
    assert cpp_extension.get_cxx_compiler() == "c++"
    assert cpp_extension._find_cuda_home() == cpp_extension.CUDA_HOME
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvcc").touch()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert cpp_extension._find_cuda_home() == str(tmp_path)
    assert [cpp_extension._is_cuda_file(name) for name in ("a.cu", "b.cuh", "c.cpp")] == [True, True, False]
    assert (cpp_extension.EXEC_EXT, cpp_extension.SHARED_FLAG) == ("", "-shared")
    assert cpp_extension.CLIB_EXT == cpp_extension.LIB_EXT
