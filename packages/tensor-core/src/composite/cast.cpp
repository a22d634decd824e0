// Conversions that may return their argument, and copies between devices.
#include "taeda/ops/cast.h"

#include "taeda/backend.h"
#include "taeda/ops/shape.h"

namespace taeda::impl {

Tensor to_dtype(const Tensor& self, DType dtype) { return self.dtype() == dtype ? self : ops::cast(self, dtype); }

Tensor contiguous(const Tensor& self, std::string_view memory_format) {
  if (memory_format == "channels_last" ? self.channels_last() : memory_format == "preserve_format" || self.contiguous()) return self;
  return ops::clone(self, memory_format);
}

Tensor to_device(const Tensor& self, Device device) {
  if (self.device() == device) return self;
  const Tensor out = empty(self.sizes(), self.dtype(), device);
  ops::copy_(out, self);
  return out;
}

/// Between devices bytes travel row-major by way of host memory.
void copy_(const Tensor& self, const Tensor& src, bool) {
  if (self.numel() == 0 && src.numel() == 0) return;
  const Shape sizes = broadcast_shapes(self.sizes(), src.sizes(), "copy_");
  check(std::equal(sizes.begin(), sizes.end(), self.sizes().begin(), self.sizes().end()), ErrorKind::Runtime, "copy_: argument 'src' of shape ",
        shape_text(src.sizes()), " cannot be broadcast to the shape ", shape_text(self.sizes()), " of 'self'");
  if (self.numel() == 0) return;
  if (self.device() == src.device()) return ops::copy_same_(self, src);
  if (!backend(self.device().backend).has_memory() || !backend(src.device().backend).has_memory()) return;
  const Tensor plain = ops::contiguous(ops::to_dtype(src, self.dtype()));
  const size_t bytes = size_t(plain.numel() * plain.item_bytes());
  const Tensor host = plain.device().backend == kCPU ? plain : empty(plain.sizes(), plain.dtype());
  if (!host.same(plain)) backend(plain.device().backend).copy_to_host(host.bytes(), plain.bytes(), bytes);
  if (self.device().backend == kCPU) return ops::copy_same_(self, host);
  const bool direct = self.contiguous() && infer::same_shape(self, plain);
  const Tensor target = direct ? self : empty(plain.sizes(), self.dtype(), self.device());
  backend(self.device().backend).copy_from_host(target.bytes(), host.bytes(), bytes);
  if (!direct) ops::copy_same_(self, target);
}

Tensor fill(const Tensor& self, const Tensor& value) {
  const Tensor out = ops::clone(self);
  ops::fill_(out, value);
  return out;
}
void zero_(const Tensor& self) { ops::fill_(self, Tensor(0)); }

}  // namespace taeda::impl
