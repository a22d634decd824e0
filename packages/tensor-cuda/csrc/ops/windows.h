// Windows over images, as operators and as parts of others.
#pragma once
#include "kernels/windows.h"
#include "ops/call.h"

namespace taeda::cuda {

/// Of an argument that is given for all dimensions or for each.
inline int64_t part(const std::vector<int64_t>& of, int d) { return of[of.size() > 1 ? size_t(d) : 0]; }
/// Columns whose last so many dimensions are to be set; in those before there is one place.
inline Columns one_place_each(int dimensions) {
  Columns c{};
  for (int d = 0; d < Columns::kDimensions - dimensions; ++d)
    c.size[d] = c.kernel[d] = c.out[d] = c.stride[d] = c.dilation[d] = 1;
  return c;
}
/// Fills a row-major image with what lies over each of its elements in the columns.
void fold_into(const Call& call, Columns columns, const Tensor& image);

}  // namespace taeda::cuda
