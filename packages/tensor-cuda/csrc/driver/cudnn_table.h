// The functions of cuDNN, as they were found in its library.
#pragma once
#include "driver/cudnn.h"
#include "driver/cudnn_functions.h"

namespace taeda::cuda {

struct Cudnn::Table {
#define TAEDA_CUDNN_POINTER(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TAEDA_CUDNN_FUNCTIONS(TAEDA_CUDNN_POINTER)
  TAEDA_CUDNN_RECURRENT_FUNCTIONS(TAEDA_CUDNN_POINTER)
#undef TAEDA_CUDNN_POINTER
};

/// The library's number of an element type of the ABI; below 0 where it has none.
int cudnn_type_of(int dtype);

}  // namespace taeda::cuda
