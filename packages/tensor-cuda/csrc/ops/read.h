// What functions of whole kernels share: operands as rows, and bodies by the type that they compute in.
#pragma once
#include "ops/call.h"

namespace taeda::cuda {

/// A tensor's rows while a kernel works with them; nothing for what was not given.
class Read {
 public:
  Read(const Call& call, const Tensor& tensor) : rows_(tensor ? call.rows(tensor) : Tensor()) {}
  Array array() const { return rows_ ? rows_.array() : Array{}; }
  const Tensor& rows() const { return rows_; }

 private:
  Tensor rows_;
};
/// Of a tensor that the kernel has changed.
inline void write_back(const Call& call, const Tensor& to, const Read& changed) {
  if (to && changed.rows().handle() != to.handle()) call.copy(to, changed.rows());
}
template <template <class> class Body, class... Part>
void launch_in(const Call& call, int dtype, int64_t items, const Part&... parts) {
  if (dtype == TAEDA_FLOAT64) call.launch(Body<double>{parts...}, items);
  else call.launch(Body<float>{parts...}, items);
}

}  // namespace taeda::cuda
