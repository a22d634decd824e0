"""The words for dtypes from before there were dtypes: FloatTensor, ByteStorage, `_cast_Half` are made of them."""

from __future__ import annotations

#: By dtype. `scalar_type_name` (core/shapes.cpp) has them for the texts of errors.
WORDS = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte",
    "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip
STORAGES = {dtype: f"{word}Storage" for dtype, word in WORDS.items()}
TENSORS = {dtype: f"{word}Tensor" for dtype, word in WORDS.items()}
