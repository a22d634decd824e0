// Values that cannot be stored where they are sent.
#include "infer/cast.h"

#include "taeda/ops/cast.h"

namespace taeda::infer {

void fill_refused(const Tensor& value) {
  fail(ErrorKind::Runtime, "fill_: argument 'value' has shape ", shape_text(value.sizes()),
       ", expected a number or a 0-dimensional tensor");
}

void copy_broadcast(const Tensor& self, const Tensor& src) {
  const Shape sizes = broadcast_shapes(self.sizes(), src.sizes(), "copy_");
  check(std::ranges::equal(sizes, self.sizes()), ErrorKind::Runtime, "copy_: argument 'src' of shape ",
        shape_text(src.sizes()), " cannot be broadcast to the shape ", shape_text(self.sizes()), " of 'self'");
}

}  // namespace taeda::infer
