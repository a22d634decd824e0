"""The code generator: what it refuses and how it says so; what it writes follows from declarations alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OPS = ROOT / "packages" / "tensor-core" / "ops"

ADD = {
    "op": "plus",
    "schema": '"plus(Operand self, Operand other, *, Scalar alpha=1) -> Tensor"',
    "forms": "[function, method, inplace, out]",
    "kind": "structured",
    "infer": "'binary($op, self, other)'",
    "doc": "Sum.",
}
FLIP = {
    "op": "mirror.dims",
    "schema": '"mirror(Tensor self, int[] dims) -> (Tensor values, Tensor indices)"',
    "forms": "[function]",
    "kind": "composite",
    "varargs": "dims",
    "doc": "Reversed along dimensions.",
}


def yaml_of(*records: dict[str, str]) -> str:
    """Records as YAML text; values are written as they stand."""
    lines = ["# Declarations of a test."]
    for record in records:
        lines += [
            f"{'- ' if i == 0 else '  '}{key}: {value}" for i, (key, value) in enumerate(record.items())
        ]
    return "\n".join(lines) + "\n"


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "codegen" / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def generate(folder: Path, **families: str) -> subprocess.CompletedProcess[str]:
    """Writes the families below `folder`/ops and generates into `folder`/out."""
    (folder / "ops").mkdir(exist_ok=True)
    for family, text in families.items():
        (folder / "ops" / f"{family}.yaml").write_text(text)
    return run("generate.py", "--ops", folder / "ops", "--out", folder / "out")


def generate_layer(folder: Path, derivatives: str) -> subprocess.CompletedProcess[str]:
    generate(folder, sums=yaml_of(FLIP, ADD))
    (folder / "derivatives").mkdir(exist_ok=True)
    (folder / "derivatives" / "sums.yaml").write_text(derivatives)
    return run(
        "generate_autograd.py", "--ops", folder / "ops", "--derivatives", folder / "derivatives",
        "--out", folder / "layer",
    )  # fmt: skip


def contents(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"doc": '""'}, "doc"),
        ({"colour": "red"}, "colour"),
        ({"core": "maybe"}, "core"),
        ({"kind": "magic"}, "kind"),
        ({"module": "elsewhere"}, "module"),
        ({"aliases": "[elsewhere.plus]"}, "names no namespace of"),
        ({"aliases": "[signal.plus]"}, "names no namespace of"),
        ({"forms": "[function, macro]"}, "forms"),
        ({"schema": '"plus(Matrix self) -> Tensor"'}, "Matrix self"),
        ({"schema": '"minus(Tensor self) -> Tensor"'}, "minus"),
        ({"schema": '"plus(Tensor self) -> Matrix"'}, "Matrix"),
        ({"schema": '"plus(Tensor self, int self) -> Tensor"'}, "repeated"),
        ({"schema": '"plus(Tensor self, int a=1, int b) -> Tensor"'}, "'b'"),
        ({"schema": '"plus(int a) -> Tensor"'}, "method"),
        ({"schema": '"plus(Tensor self, Tensor other) -> Tensor(a)"'}, "'a'"),
        ({"schema": '"plus(Tensor(a!) self, Tensor other) -> Tensor(a)"'}, "only read"),
        ({"schema": '"plus(Tensor(a) self, Tensor(a) other) -> Tensor"'}, "share a letter"),
        ({"schema": '"plus(Tensor(a! if b) self, Tensor other) -> Tensor"'}, "'b'"),
        ({"schema": '"plus(Tensor self, Tensor other) -> Tensor(a!)"'}, "Tensor(a!)"),
        ({"schema": '"plus(Tensor(a!) self) -> ()"', "forms": "[function]"}, "end in '_'"),
        ({"one_value": "true"}, "one_value"),
        ({"steps_on": "cpu"}, "steps_on"),
        ({"varargs": "other"}, "varargs"),
        ({"signature": "'(input, *)'"}, "signature"),
        ({"kind": "composite"}, "infer"),
        ({"infer": "'binary(\"plus\", self, other)'"}, "repeats"),
        ({"check": "small(self)"}, "check"),
        ({"operands": "{absent: seen(self)}"}, "absent"),
        ({"named_alone": "true"}, "named_alone"),
    ],
)
def test_a_mistaken_record_is_refused_with_file_and_record(tmp_path: Path, change: dict, said: str) -> None:
    done = generate(tmp_path, sums=yaml_of(ADD | change))
    assert done.returncode == 1
    assert "sums.yaml: plus:" in done.stderr
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    done = generate(tmp_path, sums=yaml_of({k: v for k, v in ADD.items() if k != "doc"}))
    assert done.returncode == 1
    assert "sums.yaml: plus: " in done.stderr and "missing fields ['doc']" in done.stderr


def test_an_operator_declared_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    done = generate(tmp_path, sums=yaml_of(ADD), more=yaml_of(ADD))
    assert done.returncode == 1
    assert "more.yaml: plus" in done.stderr and "sums.yaml: plus" in done.stderr


def test_unsorted_records_are_refused(tmp_path: Path) -> None:
    done = generate(tmp_path, sums=yaml_of(ADD, FLIP))
    assert done.returncode == 1
    assert "sums.yaml: mirror.dims: records are sorted" in done.stderr


def test_text_that_is_no_yaml_is_refused_with_its_file(tmp_path: Path) -> None:
    done = generate(tmp_path, sums="- op: [")
    assert done.returncode == 1
    assert "sums.yaml" in done.stderr and "Traceback" not in done.stderr


def test_output_depends_on_the_declarations_alone(tmp_path: Path) -> None:
    for name in ("first", "second"):
        done = run("generate.py", "--ops", OPS, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_overloads_have_a_signature_where_one_tells_of_all(tmp_path: Path) -> None:
    other = FLIP | {"op": "mirror.one", "schema": '"mirror(Tensor self, int dim) -> Tensor"'}
    del other["varargs"]
    sized = other | {"signature": "'(input, *dims)'"}
    for last, said in ((other, False), (sized, True)):
        assert generate(tmp_path, sums=yaml_of(FLIP, last, ADD)).returncode == 0
        bound = (tmp_path / "out" / "bind_sums.cpp").read_text()
        assert ("mirror(input, *dims)\\n--" in bound) == said
        assert "plus($self, other, *, alpha=1, out=None)\\n--" in bound
        assert "plus_($self, other, *, alpha=1)\\n--" in bound


def test_only_changed_files_are_written_and_stale_ones_go(tmp_path: Path) -> None:
    generate(tmp_path, sums=yaml_of(ADD), turns=yaml_of(FLIP))
    out = tmp_path / "out"
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*.cpp")}
    (tmp_path / "ops" / "turns.yaml").unlink()
    generate(tmp_path, sums=yaml_of(ADD))
    assert not list(out.rglob("*turns*"))
    assert all(
        (out / f"{kind}_sums.cpp").stat().st_mtime_ns == before[out / f"{kind}_sums.cpp"]
        for kind in ("bind", "dispatch")
    )


def test_every_form_reaches_every_output(tmp_path: Path) -> None:
    done = generate(tmp_path, sums=yaml_of(FLIP, ADD))
    assert done.returncode == 0, done.stderr
    written = contents(tmp_path / "out")
    header, dispatch = written["include/taeda/ops/sums.h"], written["dispatch_sums.cpp"]
    for name in ("plus", "plus_", "plus_out", "mirror_dims"):
        assert f"struct TAEDA_API {name} {{" in header
        assert f" {name}(" in header
        assert f"constinit OpEntry op::{name}::entry" in dispatch
    assert 'infer::binary("plus", self, other)' in dispatch
    assert "std::tuple<Tensor, Tensor> mirror_dims(const Tensor& self, IntSpan dims)" in header
    assert "def plus_(" in written["_ops.pyi"]
    compile(written["_ops.pyi"], "_ops.pyi", "exec")
    assert [op["name"] for op in json.loads(written["ops.json"])] == ["mirror.dims", "plus"]


@pytest.mark.parametrize("where", ["", "cpu"])
def test_halves_are_led_through_float32_everywhere_or_on_the_cpu_alone(tmp_path: Path, where: str) -> None:
    record = ADD | {"kind": "composite", "steps": "true", "infer": None, "forms": "[function]"}
    record["schema"] = '"plus(Tensor self, Tensor other) -> Tensor"'
    record |= {"steps_on": where} if where else {}
    done = generate(tmp_path, sums=yaml_of({key: value for key, value in record.items() if value}))
    assert done.returncode == 0, done.stderr
    written = contents(tmp_path / "out")["dispatch_sums.cpp"]
    assert "any_half(self, other)" in written
    assert ("self.device().backend == 0 && any_half" in written) == bool(where)


@pytest.mark.parametrize(
    "namespace", ["fft", "linalg", "masked", "nn.functional", "signal.windows", "special"]
)
def test_a_namespace_is_made_of_what_is_declared_to_stand_there(tmp_path: Path, namespace: str) -> None:
    path = namespace.replace(".", "_")
    own = {"op": f"{path}_turn", "schema": f'"{path}_turn(Tensor self) -> Tensor"', "module": namespace}
    own |= {"forms": "[function, out]", "kind": "composite", "doc": "Turned."}
    done = generate(tmp_path, sums=yaml_of(ADD | {"aliases": f"[{namespace}.total]"}), turns=yaml_of(own))
    assert done.returncode == 0, done.stderr
    written = contents(tmp_path / "out")
    tables = written["bind_tables.cpp"]
    assert f"PyMethodDef* const all_{path}[] = {{sums_{path}, turns_{path}, nullptr}};" in tables
    assert f'all_namespaces[] = {{\n    {{"{namespace}", all_{path}}},\n    {{nullptr' in tables
    for family, name, group in (("sums", "total", "plus"), ("turns", "turn", f"{path}_turn")):
        table = written[f"bind_{family}.cpp"].partition(f"PyMethodDef {family}_{path}[] = {{")[2]
        assert f'{{"{name}", reinterpret_cast<PyCFunction>(fn_{group})' in table.partition("};")[0]
    assert f'"{path}_turn", ' in written["bind_turns.cpp"].partition("turns_nn_functions")[2]
    stub = written["_ops.pyi"]
    compile(stub, "_ops.pyi", "exec")
    classes = [f"{'    ' * depth}class {part}:" for depth, part in enumerate(namespace.split("."))]
    assert ("\n".join(classes) + "\n" in stub) == (namespace != "nn.functional")


def test_inference_by_the_name_of_a_function_alone_gets_the_operator_and_all_arguments(
    tmp_path: Path,
) -> None:
    assert generate(tmp_path, sums=yaml_of(ADD | {"infer": "sum_of"})).returncode == 0
    assert 'infer::sum_of("plus", self, other, alpha)' in contents(tmp_path / "out")["dispatch_sums.cpp"]


def test_arguments_of_a_direct_operator_are_checked_before_any_kernel(tmp_path: Path) -> None:
    draw = {
        "op": "draw_.chance",
        "schema": '"draw_(Tensor(a!) self, float p) -> ()"',
        "forms": "[function, method]",
        "kind": "direct",
        "check": "'chance(\"draw_\", p)'",
        "doc": "Chance.",
    }
    done = generate(tmp_path, sums=yaml_of(draw))
    assert done.returncode == 0, done.stderr
    dispatch = (tmp_path / "out" / "dispatch_sums.cpp").read_text()
    assert 0 < dispatch.index('infer::chance("draw_", p);') < dispatch.index("writer_of<op::draw__chance>")
    assert "return slots.self();" in (tmp_path / "out" / "bind_sums.cpp").read_text()


def test_a_formula_keeps_only_what_it_needs(tmp_path: Path) -> None:
    done = generate_layer(
        tmp_path,
        yaml_of(
            {
                "op": "mirror.dims",
                "self": '"mirror(grad, dims, self.sizes(), indices)"',
                "nondifferentiable": "[indices]",
            },
            {"op": "plus", "self": "grad * other", "other": "grad * alpha + result"},
        ),
    )
    assert done.returncode == 0, done.stderr
    source = contents(tmp_path / "layer")["layer_sums.cpp"]
    mirror, plus = source.split("struct PlusBackward")
    assert (
        "Shape self_sizes;" in mirror
        and "SavedTensor self_;" not in mirror
        and "mirror(grad, dims, self_sizes, indices)" in mirror
    )
    assert (
        "SavedTensor other_;" in plus
        and "SavedTensor self_;" not in plus
        and "save_output(result_, 0)" in plus
    )
    assert 'if (node->edges[0].node) node->other_.save(other, node.get(), "other");' in plus
    for tag in ("plus", "plus_", "plus_out", "mirror_dims"):
        assert f"register_layer(&op::{tag}::entry" in source


def test_a_recorded_decomposition_is_called_above_the_layer(tmp_path: Path) -> None:
    done = generate_layer(tmp_path, yaml_of({"op": "plus", "recorded": "decomposed"}))
    assert done.returncode == 0, done.stderr
    source = contents(tmp_path / "layer")["layer_sums.cpp"]
    call = "if (needs_grad(self, other)) return decomposed<op::plus>(self, other, alpha);"
    assert source.index(call) < source.index("Below", source.index(call))


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"op": "minus", "self": "grad"}, "minus"),
        ({"op": "plus", "alpha": "grad"}, "alpha"),
        ({"op": "plus", "self": "grad", "self, other": "grad"}, "two formulas"),
        ({"op": "plus", "self": '""'}, "expression"),
        ({"op": "plus", "self": "grad", "nondifferentiable": "[indices]"}, "indices"),
        ({"op": "plus", "self": "grad * other", "lent": "[result]"}, "no tensor arguments"),
        ({"op": "plus", "self": "grad * other", "node": "Plus-0"}, "node must be a name"),
        ({"op": "plus", "recorded": "grad + other"}, "decomposed"),
        ({"op": "plus", "recorded": "decomposed", "self": "grad"}, "in the place of formulas"),
    ],
)
def test_a_mistaken_formula_is_refused_with_file_and_record(tmp_path: Path, record: dict, said: str) -> None:
    done = generate_layer(tmp_path, yaml_of(record))
    assert done.returncode == 1
    assert f"sums.yaml: {record['op']}:" in done.stderr
    assert said in done.stderr
