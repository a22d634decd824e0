"""What may be said of an operator besides its schema."""

from __future__ import annotations

import enum

#: What a definition may say of its operator (`library.define(..., tags=...)`), and what `Overload.tags` tells.
Tag = enum.Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy",
)
