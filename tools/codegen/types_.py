"""How schema types read in C++ and in the Python binding."""

from __future__ import annotations

from schema import Argument, Operator
from text import literal

CXX = {
    "Tensor": "const Tensor&",
    "Operand": "const Tensor&",
    "Tensor?": "const Tensor&",
    "Tensor[]": "TensorList",
    "Tensor?[]": "TensorList",
    "Scalar": "const Scalar&",
    "Scalar?": "const std::optional<Scalar>&",
    "int": "int64_t",
    "int?": "std::optional<int64_t>",
    "int[]": "IntSpan",
    "int[]?": "std::optional<IntSpan>",
    "float": "double",
    "float?": "std::optional<double>",
    "float[]": "std::span<const double>",
    "bool": "bool",
    "bool?": "std::optional<bool>",
    "str": "std::string_view",
    "str?": "std::optional<std::string_view>",
    "DType": "DType",
    "DType?": "std::optional<DType>",
    "Device": "Device",
    "Device?": "std::optional<Device>",
    "Generator?": "const Generator&",
}
RESULT = {
    "Tensor": "Tensor",
    "Tensor[]": "std::vector<Tensor>",
    "bool": "bool",
    "int": "int64_t",
    "float": "double",
    "Scalar": "Scalar",
    "DType": "DType",
}
SPECIAL = {
    "inf": "std::numeric_limits<double>::infinity()",
    "-inf": "-std::numeric_limits<double>::infinity()",
    "nan": "std::numeric_limits<double>::quiet_NaN()",
}


def default_value(arg: Argument) -> str | None:
    """The default as a C++ expression of the parameter's type; None when the argument is required."""
    text = arg.default
    if text is None:
        return None
    if text == "None":
        return {"Tensor?": "Tensor()", "Generator?": "Generator()"}.get(arg.type, "std::nullopt")
    if text in ("True", "False"):
        return text.lower()
    if text in SPECIAL:
        return SPECIAL[text]
    if arg.type == "int[]":
        return f"Shape{{{text.strip('[]')}}}" if text != "[]" else "IntSpan()"
    if arg.type == "float[]":
        return "std::span<const double>()"
    if arg.type in ("str", "str?"):
        return literal(text.strip("\"'"))
    if arg.type == "int?":
        return f"int64_t({text})"
    if arg.type in ("Scalar", "Scalar?"):
        return f"Scalar({text})" if any(c in text for c in ".e") else f"Scalar(int64_t({text}))"
    return text


def result_type(op: Operator) -> str:
    if not op.results:
        return "void"
    if len(op.results) == 1:
        return RESULT[op.results[0].type]
    return "std::tuple<" + ", ".join(RESULT[r.type] for r in op.results) + ">"


def parameters(args: tuple[Argument, ...], defaults: bool = False) -> str:
    out = []
    for a in args:
        text = f"{CXX[a.type]} {a.name}"
        if defaults and can_default(args, a):
            text += f" = {default_value(a)}"
        out.append(text)
    return ", ".join(out)


def can_default(args: tuple[Argument, ...], arg: Argument) -> bool:
    """C++ wants every parameter after a defaulted one defaulted; spans of temporaries are no defaults."""
    rest = args[args.index(arg) :]
    return all(a.default is not None for a in rest)


def types(args: tuple[Argument, ...]) -> str:
    return ", ".join(CXX[a.type] for a in args)


def names(args: tuple[Argument, ...]) -> str:
    return ", ".join(a.name for a in args)


def rounded_once(op: Operator, function: str) -> str:
    """The statement that leads a call on halves through float32, so that its steps do not round each by itself."""
    operands = [a for a in op.arguments if a.is_tensor or a.is_tensor_list]
    halves = ", ".join(a.name for a in operands)
    joint = ", ".join(a.name if a.is_tensor_list else f"TensorList(&{a.name}, 1)" for a in operands)
    given = ", ".join(f"in_float32({a.name})" if a in operands else a.name for a in op.arguments)
    only = f"{operands[0].name}.device().backend == 0 && " if op.steps_on else ""
    rounded = f"from_float32({function}({given}), joint_dtype({{{joint}}}))"
    return f"if ({only}any_half({halves})) [[unlikely]] return {rounded};"
