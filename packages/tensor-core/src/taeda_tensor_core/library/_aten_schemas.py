"""Schemas of built-in operators as PyTorch tells them: derived, overload by overload, from what the operators declare.

The table of operators has one form where PyTorch has several overloads, plain words for sizes, and targets in front.
What follows from rules is worked out here; arguments that are others altogether stand in `OTHER`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from typing import Any, NamedTuple

__all__ = ["OTHER", "Part", "Told", "parsed", "told"]


class Part(NamedTuple):
    """An argument: its type with marks, its name, its default as text or None, and whether it goes by name alone."""

    type: str
    name: str
    default: str | None
    by_name: bool

    @property
    def value(self) -> Any:
        """The default; words stand for themselves."""
        with contextlib.suppress(ValueError, SyntaxError):
            return ast.literal_eval(self.default or "None")
        return self.default


class Told(NamedTuple):
    """A schema: arguments and the text of the results."""

    parts: tuple[Part, ...]
    results: str

    @property
    def result_texts(self) -> list[str]:
        """The results one by one."""
        inner = self.results[1:-1] if self.results.startswith("(") else self.results
        return _split(inner)

    def __str__(self) -> str:
        words, by_name = [], False
        for part in self.parts:
            if part.by_name and not by_name:
                words.append("*")
                by_name = True
            words.append(f"{part.type} {part.name}" + ("" if part.default is None else f"={part.default}"))
        return f"({', '.join(words)}) -> {self.results}"


def _split(text: str) -> list[str]:
    """What stands between the commas that no bracket holds."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return [part.strip() for part in (*found, text[start:]) if part.strip()]


@functools.cache
def parsed(schema: str) -> Told:
    """A schema from its text, whatever stands in front of the parenthesis."""
    arguments, _, results = schema.partition("(")[2].rpartition(" -> ")
    parts, by_name = [], False
    for text in _split(arguments.strip().removesuffix(")")):
        if text == "*":
            by_name = True
            continue
        said, equal, default = text.partition("=")
        kind, _, name = said.strip().rpartition(" ")
        parts.append(Part(kind, name, default if equal else None, by_name))
    return Told(tuple(parts), results)


#: Words of the table, and PyTorch's.
_WORDS = {"Operand": "Tensor", "DType": "ScalarType"}
#: Which operands are numbers, by overload.
_LAST = frozenset(
    ("Scalar", "Tensor_Scalar", "Scalar_mode", "Scalar_Other", "int_Scalar", "Scalar_out", "n_scalar", "other_scalar",
     "OutScalar_Other")
)  # fmt: skip
_FIRST = frozenset(("Scalar_Tensor", "Scalar_Self", "x_scalar", "self_scalar", "OutScalar_Self"))
#: What sizes are called that may be symbols, but for those of some operators.
_SIZES = frozenset(
    ("size", "sizes", "shape", "pad", "repeats", "split_sizes", "output_size", "normalized_shape", "storage_offset",
     "last_dim_size", "num_weights", "step", "start", "end", "index", "k", "n", "N", "C", "HxW", "bias_sizes",
     "output_padding", "groups", "padding_idx", "num_classes", "split_size", "sections", "shifts", "length",
     "ignore_index")
)  # fmt: skip
_PLAIN_SIZES = {
    "linspace": ("start", "end"), "logspace": ("start", "end"), "arange": ("start", "end", "step"),
    "range": ("start", "end", "step"), "adaptive_avg_pool1d": ("output_size",), "rot90": ("k",),
    "hsplit": ("sections",), "vsplit": ("sections",), "dsplit": ("sections",), "_embedding_bag": ("padding_idx",),
    "embedding_bag": ("padding_idx",), "polygamma": ("n",), "index_select": ("index",), "fft_fftfreq": ("n",),
    "fft_rfftfreq": ("n",),
}  # fmt: skip
_STRIDED = ("convolution", "conv", "as_strided", "empty_strided", "_pad")
_FACTORIES = frozenset(("dtype", "device", "requires_grad"))
#: The names that results have there; those of other names are told without.
_NAMED = frozenset(("values", "indices", "Q", "R", "L", "U", "S", "Vh", "V", "eigenvalues", "eigenvectors"))


def _word(kind: str) -> str:
    for ours, theirs in _WORDS.items():
        kind = re.sub(rf"\b{ours}\b", theirs, kind)
    return re.sub(r"!? if \w+\)", "!)", kind)


def _numbers(name: str, overload: str, parts: list[Part], operands: list[int]) -> list[Part]:
    """Operands that are numbers in this overload."""
    first = overload in _FIRST or (overload == "Scalar" and name.startswith("pow"))
    if first or overload in _LAST:
        place = operands[0 if first else -1] if operands else -1
        if place >= 0:
            parts[place] = parts[place]._replace(type="Scalar")
    if overload == "Scalar" and name.rstrip("_") in ("add", "sub", "rsub"):
        parts = [part._replace(by_name=False) for part in parts]
    return parts


_OPTIONS = [
    Part("ScalarType?", "dtype", "None", True), Part("Layout?", "layout", "None", True),
    Part("Device?", "device", "None", True), Part("bool?", "pin_memory", "None", True),
]  # fmt: skip
_FORMAT = Part("MemoryFormat?", "memory_format", "None", True)


def _made(name: str, overload: str, form: str, parts: list[Part]) -> list[Part]:
    """Where and how a new tensor is made is told in PyTorch's words."""
    if not {part.name for part in parts} >= _FACTORIES:
        return parts
    drawn = [part for part in parts if part.name == "generator"]
    kept = [part for part in parts if part.name not in _FACTORIES and part.name != "generator"]
    if drawn and "generator" in overload:
        kept.append(drawn[0]._replace(default=None))
    options = [] if form == "out" else list(_OPTIONS)
    if options and name == "randperm":
        options[0] = options[0]._replace(default="4")
    if name.endswith("_like") or name == "empty":
        options.append(_FORMAT)
    return [*kept, *options]


def _reduced(name: str, overload: str, parts: list[Part]) -> list[Part]:
    """Reductions have an overload without a dimension, and others with one or with several."""
    named = {part.name: place for place, part in enumerate(parts)}
    if parts[0].name != "self" or "dim" not in named or parts[named["dim"]].type != "int[]?":
        return parts
    place = named["dim"]
    if overload in ("dim", "dim_int") and name in ("any", "all", "prod"):
        parts[place] = Part("int", "dim", None, False)
    elif name in ("amax", "amin"):
        parts[place] = Part("int[1]", "dim", "[]", False)
    elif overload == "default" and name in ("sum", "mean", "prod", "any", "all", "nansum"):
        return [part for part in parts if part.name not in ("dim", "keepdim")]
    elif overload == "dims":
        return parts
    elif name in ("var", "std", "var_mean", "std_mean"):
        return _spread(overload, parts)
    elif overload != "default" or name in ("nansum", "nanmean", "logsumexp", "linalg_vector_norm"):
        whole = "None" if name in ("nansum", "nanmean", "linalg_vector_norm") else None
        parts[place] = Part("int[1]" if name == "logsumexp" else "int[1]?", "dim", whole, False)
    return parts


def _spread(overload: str, parts: list[Part]) -> list[Part]:
    """Variances and deviations."""
    known = {part.name: part for part in parts}
    dim = Part("int[1]?", "dim", "None" if overload == "correction" else None, False)
    keep = known["keepdim"]
    if overload == "correction":
        return [known["self"], dim, known["correction"], keep._replace(by_name=True)]
    return [
        known["self"],
        *([dim] if overload == "dim" else []),
        known["unbiased"],
        *([keep] if overload == "dim" else []),
    ]


def _sized(name: str, parts: list[Part]) -> list[Part]:
    """Which numbers are sizes, and how many of them a window has."""
    rank = re.search(r"(\d)d", name)
    pooled = rank is not None and ("pool" in name or name in ("im2col", "col2im"))
    if name in ("im2col", "col2im"):
        rank, pooled = re.search(r"(\d)", name), True
    if name.startswith(("upsample_", "_upsample_")) and rank is not None:
        parts = [
            part._replace(type=f"SymInt[{rank[1]}]") if part.name in ("output_size", "input_size") else part
            for part in parts
        ]
    padded = rank is not None and re.match(r"(reflection|replication)_pad", name)
    strided = any(word in name for word in _STRIDED)
    plain = _PLAIN_SIZES.get(name.rstrip("_"), ())
    made = []
    for part in parts:
        kind, default = part.type, part.default
        size = (part.name in _SIZES and part.name not in plain) or (
            strided and part.name in ("stride", "padding", "dilation")
        )
        if size and kind in ("int", "int?", "int[]", "int[]?"):
            kind = kind.replace("int", "SymInt")
        if part.name == "output_mask" and kind == "bool[]":
            kind = "bool[3]"
        if pooled and kind in ("int[]", "SymInt[]") and rank is not None:
            own = part.name == "output_size" and rank[1] != "1"
            kind = f"{'SymInt' if own else 'int'}[{rank[1]}]"
            default = default[1:-1] if default in ("[0]", "[1]") and rank[1] != "1" else default
        if padded and kind in ("int[]", "SymInt[]") and part.name == "padding" and rank is not None:
            kind = f"SymInt[{2 * int(rank[1])}]"
        made.append(part._replace(type=kind, default=default))
    return made


_RENAMED = {"input": "self", "grad": "grad_output"}


def _renamed(name: str, parts: list[Part]) -> list[Part]:
    """Names of arguments, and fractions without zeros behind the point."""
    if "pool" in name or "loss" in name or name in ("col2im", "binary_cross_entropy"):
        parts = [part._replace(name=_RENAMED.get(part.name, part.name)) for part in parts]
    if "_polynomial_" in name:
        parts = [part._replace(name="x") if part.name == "input" else part for part in parts]
    return [
        part._replace(default=re.sub(r"^(-?\d+\.)0$", r"\1", part.default))
        if part.default and part.type.startswith("float")
        else part
        for part in parts
    ]


def _results(text: str) -> str:
    """Results, without names that are ours alone."""
    if not text.startswith("(") or "Tensor" not in text:
        return text
    found = [part.rpartition(" ") for part in _split(text[1:-1])]
    if all(name in _NAMED for _, _, name in found):
        return text
    return f"({', '.join(kind or name for kind, _, name in found)})"


def _targets(form: str, told: Told, outputs: list[str]) -> Told:
    """What is written to, and given back: the first argument in place, further ones behind `out=`."""
    parts, results = told
    if form == "inplace" and parts:
        first = parts[0]._replace(type="Tensor(a!)") if parts[0].type.startswith("Tensor") else parts[0]
        return Told((first, *parts[1:]), first.type if first.type == "Tensor(a!)" else results)
    if form == "out":
        letters = "abcdef"[: len(outputs)]
        targets = [Part(f"Tensor({a}!)", name, None, True) for a, name in zip(letters, outputs, strict=True)]
        kinds = [f"Tensor({a}!)" for a in letters]
        if len(outputs) > 1 and results.startswith("(") and " " in _split(results[1:-1])[0]:
            names = [part.rpartition(" ")[2] for part in _split(results[1:-1])]
            kinds = [f"{kind} {name}" for kind, name in zip(kinds, names, strict=True)]
        return Told((*parts, *targets), f"({', '.join(kinds)})" if len(kinds) > 1 else kinds[0])
    return told


#: Schemas of overloads that share the name alone with an operator here.
OTHER = {
    "native_dropout": "(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    "native_group_norm": (
        "(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) "
        "-> (Tensor, Tensor, Tensor)"
    ),
    "native_group_norm_backward": (
        "(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, "
        "int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"
    ),
    "_native_batch_norm_legit.no_stats": (
        "(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) "
        "-> (Tensor, Tensor, Tensor)"
    ),
    "arange": (
        "(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
        "-> Tensor"
    ),
    "arange.start": (
        "(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor"
    ),
    "arange.start_step": (
        "(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor"
    ),
    "resize_": "(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    "round": "(Tensor self) -> Tensor",
    "round.decimals": "(Tensor self, *, int decimals) -> Tensor",
    "sort": "(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    "sort.stable": (
        "(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)"
    ),
    "squeeze.dim": "(Tensor(a) self, int dim) -> Tensor(a)",
    "sym_size": "(Tensor self) -> SymInt[]",
    "sym_size.int": "(Tensor self, int dim) -> SymInt",
    "sym_stride": "(Tensor self) -> SymInt[]",
    "sym_stride.int": "(Tensor self, int dim) -> SymInt",
    "sym_numel": "(Tensor self) -> SymInt",
    "sym_storage_offset": "(Tensor self) -> SymInt",
    "sym_is_contiguous": "(Tensor self, MemoryFormat memory_format=0) -> SymBool",
    "_local_scalar_dense": "(Tensor self) -> Scalar",
    "upsample_bilinear2d.vec": (
        "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor"
    ),
    "upsample_nearest2d.vec": "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
}


def told(
    name: str, overload: str, schema: str, form: str = "function", outputs: list[str] | None = None
) -> Told:
    """The schema of an overload.

    Args:
        name: The operator, in PyTorch's name.
        overload: "default" where it has no name.
        schema: Its text in the words of the table.
        form: "function", "inplace" or "out".
        outputs: What the targets of an out= form are called.
    """
    other = OTHER.get(name if overload == "default" else f"{name}.{overload}")
    if other is not None:
        return parsed(other)
    found = parsed(schema)
    operands = [place for place, part in enumerate(found.parts) if part.type == "Operand"]
    parts = [part._replace(type=_word(part.type)) for part in found.parts]
    parts = [
        part._replace(type="MemoryFormat?")
        if part.name == "memory_format"
        else part._replace(type="Layout?")
        if part.name == "layout"
        else part
        for part in parts
    ]
    if parts:
        parts = _numbers(name, overload, parts, operands)
        parts = _reduced(name, overload, _made(name, overload, form, parts))
        parts = _renamed(name, _sized(name, parts))
    results = _results(_word(found.results))
    if results.endswith("(a)[]") and parts:
        parts[0] = parts[0]._replace(type=parts[0].type.replace("(a)", "(a -> *)"))
    return _targets(form, Told(tuple(parts), results), outputs or [])
