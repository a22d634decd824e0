// Memory formats by name: what they ask for, and whether a tensor has it.
#pragma once
#include <string_view>

#include "taeda/tensor.h"

namespace taeda::infer {

/// Whether the elements of `t` lie in that order without gaps. ValueError for names of no order.
TAEDA_API bool lies_as(const char* op, const Tensor& t, std::string_view format);

/// The strides of a tensor of these sizes in 'channels_last' or 'channels_last_3d'. RuntimeError where the format is
/// for another number of dimensions.
Shape format_strides(const char* op, std::string_view format, IntSpan sizes);

}  // namespace taeda::infer
