// Checks of the creation family.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

/// arange_fill_: strides of one dimension are followed.
inline void arange_fill(const Tensor& self) {
  check(self.dim() <= 1, ErrorKind::Runtime, "arange_fill_: argument 'self' has shape ", shape_text(self.sizes()),
        ", expected one dimension");
}

}  // namespace taeda::infer
