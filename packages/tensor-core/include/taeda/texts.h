// Pieces of messages in the words that programs and their tests know from PyTorch and look for.
#pragma once
#include <string>

#include "taeda/tensor.h"

namespace taeda {

/// "[2, 3]", where PyTorch's texts write sizes so.
TAEDA_API std::string bracketed(IntSpan sizes);
/// "index 5 is out of bounds for dimension 0 with size 2"
TAEDA_API std::string out_of_bounds(int64_t index, int64_t dim, int64_t size);
/// "Float", PyTorch's older name of a dtype.
TAEDA_API std::string_view scalar_type_name(DType dtype);
/// "result type Float can't be cast to the desired output type Long"
TAEDA_API std::string cast_refusal(DType result, DType wanted);

}  // namespace taeda
