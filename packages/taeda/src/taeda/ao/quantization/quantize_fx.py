"""Quantizing models by their graphs, which is not there; the functions of `taeda.ao.quantization` change modules."""

from taeda import _absent

globals().update(
    _absent.functions(
        "taeda.ao.quantization.quantize_fx",
        "convert_fx convert_to_reference_fx fuse_fx prepare_fx prepare_qat_fx",
        "there is no quantization of graphs; use prepare and convert, which change modules",
    )
)
