// Memory formats by name: what they ask for, and whether a tensor has it.
#pragma once
#include <string_view>

#include "taeda/tensor.h"

namespace taeda::infer {

/// Whether the elements of `t` lie in that order without gaps. ValueError for names of no order.
TAEDA_API bool lies_as(const char* op, const Tensor& t, std::string_view format);

/// Strides without gaps in the order in which the elements of the operands lie, which all broadcast to `sizes`: the
/// layout of an element-wise result where some have gaps. An earlier operand decides before a later one. Empty:
/// row-major.
Shape closed_strides(IntSpan sizes, std::span<const Tensor* const> operands);

/// Whether strides say that channels come last, also those of dimensions of size 1: others fit several layouts.
TAEDA_API bool channels_stand_last(const Tensor& t);
/// Whether strides say that the tensor lies row by row, also those of dimensions of size 1. A copy keeps others.
bool stands_in_rows(const Tensor& t);

/// Whether images or volumes, or parts of them, lie with their channels last. Of one channel, whose elements lie the
/// same in both orders, strides tell what a program asked for.
TAEDA_API bool channels_come_last(const Tensor& t);

/// Strides without gaps for images or volumes of `sizes` that lie as `like` does: empty where that is row by row.
TAEDA_API Shape image_strides(const Tensor& like, IntSpan sizes);

/// The strides of a tensor of these sizes in 'channels_last' or 'channels_last_3d'. RuntimeError where the format is
/// for another number of dimensions.
Shape format_strides(const char* op, std::string_view format, IntSpan sizes);

}  // namespace taeda::infer
