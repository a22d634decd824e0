// Memory formats by name: what they ask for, and whether a tensor has it.
#pragma once
#include <string_view>

#include "taeda/tensor.h"

namespace taeda::infer {

/// Whether the elements of `t` lie in that order without gaps. ValueError for names of no order.
TAEDA_API bool lies_as(const char* op, const Tensor& t, std::string_view format);

/// Whether the elements of `t` lie in the order of a channels-last format though with gaps, as those of a part of such
/// a tensor: the order that results of element-wise operators keep.
bool lies_with_gaps(const Tensor& t) noexcept;
/// Strides of that order without gaps.
Shape closed_strides(const Tensor& t);

/// The strides of a tensor of these sizes in 'channels_last' or 'channels_last_3d'. RuntimeError where the format is
/// for another number of dimensions.
Shape format_strides(const char* op, std::string_view format, IntSpan sizes);

}  // namespace taeda::infer
