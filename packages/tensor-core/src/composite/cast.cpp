// Conversions that may return their argument, and copies between devices.
#include "taeda/ops/cast.h"

#include "infer/memory_format.h"
#include "infer/numbers.h"
#include "taeda/backend.h"
#include "taeda/levels.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/shape.h"
#include "taeda/stream.h"
#include "taeda/tracking.h"

namespace taeda::impl {
namespace {

/// Lets a copy run later where memory of the host allows it.
template <class Copy>
void copy_with_host(const Tensor& host, Device device, bool non_blocking, const Copy& copy) {
  if (!non_blocking || !copies_later(host, device)) return copy(true);
  PinnedUse use(host, device);
  copy(false);
  use.queued();
}

}  // namespace

Tensor to_dtype(const Tensor& self, DType dtype) { return self.dtype() == dtype ? self : ops::cast(self, dtype); }

Tensor contiguous(const Tensor& self, std::string_view memory_format) {
  if (memory_format == "preserve_format") return self;
  return infer::lies_as("contiguous", self, memory_format) ? self : ops::clone(self, memory_format);
}

Tensor to_device(const Tensor& self, Device device) {
  if (self.device() == device) return self;
  const bool kept = self.dense() && !self.contiguous();
  const Tensor out = kept ? empty_strided(self.sizes(), self.strides(), self.dtype(), device)
                          : empty(self.sizes(), self.dtype(), device);
  ops::copy_(out, self);
  return out;
}

namespace {

/// The bytes of `from` to `to` on another device; both lie without gaps.
void copy_bytes(const Tensor& to, const Tensor& from, bool non_blocking) {
  const size_t bytes = size_t(from.numel() * from.item_bytes());
  const Device there = to.device(), here = from.device();
  if (here.backend == kCPU)
    return copy_with_host(from, there, non_blocking, [&](bool blocking) {
      backend(there.backend).copy_from_host(there, to.bytes(), from.bytes(), bytes, blocking);
    });
  if (there.backend == kCPU)
    return copy_with_host(to, here, non_blocking, [&](bool blocking) {
      backend(here.backend).copy_to_host(to.bytes(), here, from.bytes(), bytes, blocking);
    });
  if (here.backend == there.backend && backend(here.backend).copy_peer(there, to.bytes(), here, from.bytes(), bytes))
    return;
  const Tensor host = empty(from.sizes(), from.dtype());
  copy_bytes(host, from, false);
  copy_bytes(to, host, false);
}

/// Whether the elements lie in one gapless block, in the same order in both.
bool alike(const Tensor& a, const Tensor& b) {
  return a.dense() && b.dense() && infer::same_shape(a, b) &&
         (a.contiguous() ? b.contiguous() : std::ranges::equal(a.strides(), b.strides()));
}

}  // namespace

/// Between devices bytes travel as they lie where both sides are alike, else row-major; in the element type of the
/// receiver.
void copy_(const Tensor& self, const Tensor& src, bool non_blocking) {
  infer::check_number("copy_", "src", src, infer::computing(self.dtype()));
  if (!infer::same_shape(self, src)) {
    const Shape sizes = broadcast_shapes(self.sizes(), src.sizes(), "copy_");
    check(std::ranges::equal(sizes, self.sizes()), ErrorKind::Runtime, "copy_: argument 'src' of shape ",
          shape_text(src.sizes()), " cannot be broadcast to the shape ", shape_text(self.sizes()), " of 'self'");
  }
  if (self.numel() == 0) return;
  if (self.device() == src.device()) return ops::copy_same_(self, src);
  if (!backend(self.device().backend).has_memory()) return;
  if (!backend(src.device().backend).has_memory()) [[unlikely]]
    fail(ErrorKind::NotImplemented, "copy_: argument 'src': Cannot copy out of ", to_string(src.device()),
         " tensor; no data! Modules are moved by to_empty()");
  const Tensor typed = ops::to_dtype(src, self.dtype());
  const Tensor plain = alike(self, typed) ? typed : ops::contiguous(typed);
  const bool direct = alike(self, plain);
  const Tensor target = direct ? self : empty(plain.sizes(), self.dtype(), self.device());
  copy_bytes(target, plain, non_blocking && direct && plain.same(src));
  if (!direct) ops::copy_same_(self, target);
}

Tensor fill(const Tensor& self, const Tensor& value) {
  // A gradient that is recorded reaches `self` as zeros.
  const Tensor out = is_tracked(self) || is_carrier(self) ? ops::clone(self) : ops::empty_like(self);
  ops::fill_(out, value);
  return out;
}
void zero_(const Tensor& self) { ops::fill_(self, Tensor(0)); }

}  // namespace taeda::impl
