"""Writes the skeletons of a new operator: `python tools/new_operator.py FAMILY NAME --kind KIND`.

Declaration, derivative, computation and sample record get a place each, with a gap where something must be thought.
The generator, tools/codegen/check.py, ruff and the compiler complain of every gap until it is filled. What the kinds
are is said in docs/guides/add-an-operator.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPS = "packages/tensor-core/ops"
SOURCES = "packages/tensor-core/src"
DERIVATIVES = "packages/autograd/derivatives"
RECORDS = "packages/testing/src/taeda_testing/records"


@dataclass(frozen=True)
class Kind:
    """What the skeletons of a kind of operator differ in."""

    arguments: str
    fields: tuple[str, ...]
    computed: str  # the file of the computation, below SOURCES, but for the family's name
    parameters: str
    differentiated: tuple[str, ...]


KINDS = {
    "elementwise": Kind(
        "Operand self, Operand other",
        ("forms: [function, method, inplace, out]", "kind: structured", "elementwise: true", "infer: binary"),
        "scalar/{}.inc",
        "",
        ("self", "other"),
    ),
    "reduction": Kind(
        "Tensor self, int[]? dim=None, bool keepdim=False",
        ("forms: [function, method, out]", "kind: structured", "infer: extremum"),
        "cpu/{}.cpp",
        "const Tensor& out, const Tensor& self, std::optional<IntSpan> dim, bool keepdim",
        ("self",),
    ),
    "composite": Kind(
        "Tensor self",
        ("forms: [function, method]", "kind: composite"),
        "composite/{}.cpp",
        "const Tensor& self",
        (),
    ),
    "inference": Kind(
        "Tensor self",
        ("forms: [function, method, out]", "kind: structured"),
        "cpu/{}.cpp",
        "const Tensor& out, const Tensor& self",
        ("self",),
    ),
}


def insert_record(text: str, record: str) -> str:
    """A YAML list of records with one more, in its place by name."""
    name = re.search(r"^- op: (\S+)", record, re.M)[1]
    for match in re.finditer(r"^- op: (\S+)$", text, re.M):
        if match[1] >= name:
            return text[: match.start()] + record + text[match.start() :]
    return text.rstrip("\n") + "\n" + record


def insert_before(text: str, line: str, lines: str) -> str:
    """The text with further lines before the last line that begins so."""
    at = text.rindex("\n" + line) + 1
    return text[:at] + lines + text[at:]


def declaration(name: str, kind: Kind) -> str:
    fields = "".join(f"  {field}\n" for field in kind.fields)
    return f"- op: {name}\n  schema: '{name}({kind.arguments}) -> Tensor'\n{fields}  doc: ''\n"


def derivative(name: str, kind: Kind) -> str:
    return f"- op: {name}\n" + "".join(f"  {argument}: ''\n" for argument in kind.differentiated)


def computation(name: str, kind: Kind) -> str:
    """A function with a gap, and its registration where it is a kernel."""
    gap = f'#error "{name}: what does it compute?"\n'
    if kind.computed.startswith("scalar"):
        return f"{gap}TAEDA_BINARY({name}, Ordered, Given, Light, )\n"
    if kind.computed.startswith("composite"):
        return f"\nTensor {name}({kind.parameters}) {{\n{gap}}}\n\n"
    function = f"\nnamespace {{\nvoid {name}_kernel({kind.parameters}) {{\n{gap}}}\n"
    return f"{function}const bool has_{name} = (kernel<op::{name}>(kCPU, {name}_kernel), true);\n}}  // namespace\n"


def inference(name: str, kind: Kind) -> str:
    return (
        f'\nSpec {name}(const Tensor& self) {{\n#error "{name}: what shape and dtype has its result?"\n}}\n\n'
    )


def sample_record(name: str) -> str:
    return f'    OpRecord("{name}", reference_of_{name}, samples_of_{name}),\n'


def skeletons(root: Path, family: str, name: str, kind: Kind) -> dict[Path, str]:
    """Files and their new texts.

    Raises:
        SystemExit: the family does not exist, or the name is taken.
    """
    families = sorted(path.stem for path in (root / OPS).glob("*.yaml"))
    if family not in families:
        raise SystemExit(f"new_operator: there is no family {family!r}; those are {', '.join(families)}")
    for path in (root / OPS).glob("*.yaml"):
        if re.search(rf"^- op: {re.escape(name)}$", path.read_text(encoding="utf-8"), re.M):
            raise SystemExit(f"new_operator: {name!r} is declared already in {path.name}")
    declared, computed = root / OPS / f"{family}.yaml", root / SOURCES / kind.computed.format(family)
    if not computed.exists():
        raise SystemExit(f"new_operator: family {family!r} has no {computed.name} for operators of this kind")
    text, lines = computed.read_text(encoding="utf-8"), computation(name, kind)
    files = {
        declared: insert_record(declared.read_text(encoding="utf-8"), declaration(name, kind)),
        computed: text + lines
        if computed.suffix == ".inc"
        else insert_before(text, "}  // namespace taeda", lines),
    }
    if kind.differentiated:
        path = root / DERIVATIVES / f"{family}.yaml"
        files[path] = insert_record(path.read_text(encoding="utf-8"), derivative(name, kind))
    if kind is KINDS["inference"]:
        path = root / SOURCES / "infer" / f"{family}.cpp"
        files[path] = insert_before(
            path.read_text(encoding="utf-8"), "}  // namespace taeda::infer", inference(name, kind)
        )
    path = root / RECORDS / f"{family}.py"
    files[path] = insert_before(path.read_text(encoding="utf-8"), "]", sample_record(name))
    return files


def main(arguments: list[str] | None = None) -> int:
    """Write the skeletons and name their places; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family")
    parser.add_argument("name")
    parser.add_argument("--kind", choices=KINDS, default="composite")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository; default: this one")
    chosen = parser.parse_args(arguments)
    for path, text in skeletons(chosen.root, chosen.family, chosen.name, KINDS[chosen.kind]).items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(chosen.root))
    return 0


if __name__ == "__main__":
    sys.exit(main())
