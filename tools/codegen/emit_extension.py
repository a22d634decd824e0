"""Emits taeda/extension/ops.h and methods.inc: every operator as a function and a method of C++ over the C ABI."""

from __future__ import annotations

import re

from schema import Argument, Operator
from text import KEYWORDS, literal
from types_ import SPECIAL, can_default

PARAMETER = {
    "Tensor": "const Tensor&",
    "Operand": "const Operand&",
    "Tensor?": "const std::optional<Tensor>&",
    "Tensor[]": "TensorList",
    "Tensor?[]": "TensorList",
    "Scalar": "const Scalar&",
    "Scalar?": "const std::optional<Scalar>&",
    "int": "int64_t",
    "int?": "std::optional<int64_t>",
    "int[]": "IntArrayRef",
    "int[]?": "const OptionalIntArrayRef&",
    "float": "double",
    "float?": "std::optional<double>",
    "float[]": "ArrayRef<double>",
    "bool": "bool",
    "bool?": "std::optional<bool>",
    "str": "std::string_view",
    "str?": "std::optional<std::string_view>",
    "DType": "ScalarType",
    "DType?": "std::optional<ScalarType>",
    "Device": "const Device&",
    "Device?": "std::optional<Device>",
    "Generator?": "std::optional<Generator>",
}
RESULT = {
    "Tensor": "Tensor",
    "Tensor[]": "std::vector<Tensor>",
    "bool": "bool",
    "int": "int64_t",
    "float": "double",
    "Scalar": "Scalar",
}
# What taeda/extension/tensor.h says of tensors, and what operators.h makes, by hand.
BY_HAND = {
    *(
        "adopt",
        "share",
        "release",
        "defined",
        "info",
        "dim",
        "ndimension",
        "numel",
        "sizes",
        "strides",
        "size",
    ),
    *("stride", "scalar_type", "dtype", "device", "get_device", "options", "is_contiguous", "requires_grad"),
    *("is_cpu", "element_size", "itemsize", "nbytes", "data_ptr", "accessor", "item", "to", "cpu"),
    *("type_as", "c", "place", "tensor", "from_blob", "call_op"),
}
HEAD = """// Generated from ops/*.yaml by tools/codegen; edits are lost. Part of taeda/extension.h.
#pragma once
#include "taeda/extension/tensor.h"

namespace taeda {
inline namespace extension_v1 {

"""
FOOT = """
}  // namespace extension_v1
}  // namespace taeda
"""


def default_value(a: Argument) -> str:
    """The default as a C++ expression of the parameter's type."""
    text = a.default
    if text == "None":
        return "{}" if a.type == "Tensor?" else "std::nullopt"
    if text in ("True", "False"):
        return text.lower()
    if text in SPECIAL:
        return SPECIAL[text]
    if a.type in ("int[]", "float[]"):
        return "{" + text.strip("[]") + "}"
    if a.type in ("str", "str?"):
        return literal(text.strip("\"'"))
    if a.type == "int?":
        return f"int64_t({text})"
    if a.type in ("Scalar", "Scalar?"):
        return f"Scalar({text})"
    return text


def parameter(args: tuple[Argument, ...], a: Argument) -> str:
    text = f"{PARAMETER[a.type]} {a.name}"
    return f"{text} = {default_value(a)}" if can_default(args, a) else text


class Signature:
    """Parameters of a function, and what they pass to the operator in the order of its schema."""

    def __init__(self, op: Operator, receiver: Argument | None) -> None:
        options = [
            a for a in op.arguments if a.keyword_only and a.name in ("dtype", "device", "requires_grad")
        ]
        grouped = {a.name for a in options} >= {"dtype", "device"}
        inside = {a.name for a in options} if grouped else set()
        given = {"dtype": "options.dtype_opt()", "device": "options.device_opt()"}
        given["requires_grad"] = "options.requires_grad()"
        kept = tuple(a for a in op.arguments if a is not receiver and a.name not in inside)
        self.parameters = [parameter(kept, a) for a in kept]
        if grouped:
            # Generators are given more rarely than options.
            at = sum(a.type != "Generator?" for a in kept)
            self.parameters.sort(key=lambda text: "Generator>" in text)
            self.parameters.insert(at, "const TensorOptions& options = {}")
        self.types = tuple(re.sub(r" \w+( = .*)?$", "", p) for p in self.parameters)
        receiving = receiver.name if receiver else None
        self.passed = [
            given[a.name] if a.name in inside else "*this" if a.name == receiving else a.name
            for a in op.arguments
        ]

    def text(self, defaults: bool = True) -> str:
        """The parameter list."""
        return ", ".join(p if defaults else p.partition(" = ")[0] for p in self.parameters)


def result_type(op: Operator) -> str | None:
    """The C++ type of the results; None for what cannot be given to C."""
    if any(r.type not in RESULT for r in op.results):
        return None
    if not op.results:
        return "void"
    if len(op.results) == 1:
        return RESULT[op.results[0].type]
    return "std::tuple<" + ", ".join(RESULT[r.type] for r in op.results) + ">"


def body(name: str, result: str, passed: list[str], target: str = "") -> str:
    arguments = "".join(f", {p}" for p in passed)
    call = f'static const detail::Op op_("{name}"); '
    if target:
        return f"{{ {call}detail::call<void>(op_{arguments}); return {target}; }}"
    return f"{{ {call}return detail::call<{result}>(op_{arguments}); }}"


class Writer:
    """Collects functions and methods; of two with the same parameters the first stays."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.methods: list[str] = []
        self.definitions: list[str] = []
        self._known: set[tuple[str, str, tuple[str, ...]]] = set()

    def _fresh(self, place: str, name: str, types: tuple[str, ...]) -> bool:
        key = (place, name, types)
        # An operator of a keyword's name is reached by `call_op`.
        fresh = key not in self._known and name not in KEYWORDS
        self._known.add(key)
        return fresh

    def function(self, name: str, op_name: str, result: str, signature: Signature, target: str = "") -> None:
        """One function in the namespace."""
        if name in BY_HAND or not self._fresh("", name, signature.types):
            return
        given = "Tensor" if target else result
        text = body(op_name, result, signature.passed, target)
        self.functions.append(f"inline {given} {name}({signature.text()}) {text}")

    def method(self, name: str, op_name: str, result: str, signature: Signature, in_place: bool) -> None:
        """One method of Tensor."""
        if name in BY_HAND or not self._fresh("Tensor", name, signature.types):
            return
        given = "Tensor&" if in_place else result
        target = "const_cast<Tensor&>(*this)" if in_place else ""
        self.methods.append(f"  {given} {name}({signature.text()}) const;")
        text = body(op_name, result, signature.passed, target)
        self.definitions.append(
            f"inline {given} Tensor::{name}({signature.text(defaults=False)}) const {text}"
        )

    def operator(self, op: Operator) -> None:
        """All forms of one operator that C can be given."""
        result = result_type(op)
        if result is None:
            return
        whole = Signature(op, None)
        receiver = op.arguments[0] if op.arguments and op.arguments[0].type in ("Tensor", "Operand") else None
        writes = op.arguments[0].name if op.in_place_only and receiver is not None else ""
        base, dot, overload = op.name.partition(".")
        for name in op.names:
            if "function" in op.forms:
                self.function(name, op.name, result, whole, writes)
            if receiver is not None and "method" in op.forms:
                self.method(name, op.name, result, Signature(op, receiver), bool(writes))
            if receiver is not None and "inplace" in op.forms:
                self.method(name + "_", f"{base}_{dot}{overload}", "void", Signature(op, receiver), True)
        for namespace in ("linalg", "fft", "special"):
            for name in op.names_in(namespace):
                self.function(f"{namespace}_{name}", op.name, result, whole, writes)


def emit(families: dict[str, list[Operator]]) -> dict[str, str]:
    """Both files by their paths."""
    writer = Writer()
    for op in (op for ops in families.values() for op in ops):
        writer.operator(op)
    functions = "\n".join([*writer.functions, *writer.definitions])
    methods = "\n".join(writer.methods) + "\n"
    return {
        "include/taeda/extension/ops.h": HEAD + functions + FOOT,
        "include/taeda/extension/methods.inc": "  // Generated from ops/*.yaml by tools/codegen.\n" + methods,
    }
