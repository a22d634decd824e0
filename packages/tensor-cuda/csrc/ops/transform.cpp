// Fourier transforms by NVIDIA's library, where it is there; else on the host.
#include <algorithm>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/hosted.h"

namespace taeda::cuda {
namespace {

/// Dimensions of a tensor in the order in which the library goes through them; those of size 1 are in no batch.
struct Order {
  std::vector<int> batch, points;
};
/// What lies far apart comes first. The last one of real numbers stays last.
Order order_of(const Tensor& t, std::span<const int> dims, bool keeps_last) {
  Order order;
  order.points.assign(dims.begin(), dims.end());
  const auto further = [&](int a, int b) { return t.stride(a) > t.stride(b); };
  std::stable_sort(order.points.begin(), order.points.end() - keeps_last, further);
  for (int d = 0; d < t.ndim(); ++d)
    if (t.size(d) != 1 && std::ranges::find(dims, d) == dims.end()) order.batch.push_back(d);
  std::ranges::stable_sort(order.batch, further);
  return order;
}
/// Whether a side lies as the library can be told; then `side` does.
bool lies(const Tensor& t, const Order& order, Transform::Side& side) {
  const int rank = int(order.points.size());
  side.data = t.address();
  const int real_size = is_complex_type(t.dtype()) ? t.item_size() / 2 : t.item_size();
  if (side.data % uint64_t(2 * real_size) != 0) return false;
  const auto size = [&](int d) { return t.size(order.points[size_t(d)]); };
  const auto stride = [&](int d) { return t.stride(order.points[size_t(d)]); };
  side.step = size(rank - 1) == 1 ? 1 : stride(rank - 1);
  if (side.step < 1) return false;
  int64_t distance = side.step;
  for (int d = rank; d-- > 0;) {
    int64_t& room = side.room[size_t(d)] = size(d);
    if (d > 0 && size(d - 1) != 1) {
      if (stride(d - 1) < 1 || stride(d - 1) % distance != 0) return false;
      room = stride(d - 1) / distance;
    }
    if (room < size(d)) return false;
    distance *= room;
  }
  side.between = order.batch.empty() ? distance : t.stride(order.batch.back());
  for (size_t k = 1; k < order.batch.size(); ++k)
    if (t.stride(order.batch[k - 1]) != t.stride(order.batch[k]) * t.size(order.batch[k])) return false;
  return side.between > 0;
}
/// Memory for such elements, packed in this order.
Tensor packed(const Call& call, const Tensor& like, const Order& order) {
  std::vector<int64_t> strides(size_t(like.ndim()), 1);
  int64_t behind = 1;
  for (const auto* dims : {&order.points, &order.batch})
    for (size_t k = dims->size(); k-- > 0;) {
      strides[size_t((*dims)[k])] = behind;
      behind *= like.size((*dims)[k]);
    }
  return call.view(call.empty(like.sizes(), like.dtype()), like.sizes(), strides);
}

/// Transforms over up to three dimensions. `gives_up` says that the input's elements are not wanted any more. False,
/// with nothing done, where the library is not there or has no way.
bool transform(const Call& call, Transformed kind, bool forward, const Tensor& out, const Tensor& in,
               std::span<const int> dims, bool gives_up = false) {
  const Tensor& real_side = kind == Transformed::FromReal ? in : out;
  const Order order = order_of(in, dims, kind != Transformed::Complex);
  Transform t;
  t.kind = kind;
  t.forward = forward;
  t.wide = out.dtype() == TAEDA_FLOAT64 || out.dtype() == TAEDA_COMPLEX128;
  t.rank = int32_t(dims.size());
  for (size_t k = 0; k < dims.size(); ++k) t.sizes[k] = real_side.size(order.points[k]);
  for (const int d : order.batch) t.batch *= in.size(d);
  const bool copies = !lies(in, order, t.from) || (kind == Transformed::ToReal && !gives_up);
  const bool fits = lies(out, order, t.to);
  const Tensor read = copies ? packed(call, in, order) : Tensor(), made = fits ? Tensor() : packed(call, out, order);
  if (copies) lies(read, order, t.from);
  if (!fits) lies(made, order, t.to);
  Driver& driver = own_machine()->driver();
  const SharedTransformPlan plan = driver.plan_transform(call.device().index, t);
  if (!plan) return false;
  if (copies) call.copy(read, in);
  const Tensor workspace = plan->workspace ? call.empty({int64_t(plan->workspace)}, TAEDA_UINT8) : Tensor();
  call.done(driver.transform(call.device().index, plan, t, workspace ? workspace.address() : 0, call.stream()),
            "transform");
  if (!fits) call.copy(out, made);
  return true;
}
/// Complex numbers, over any number of dimensions; the first pass reads `in`, the others go on in `out`.
bool transform_complex(const Call& call, const Tensor& out, const Tensor& in, std::span<const int> dims, bool forward) {
  const Tensor* from = &in;
  for (size_t left = dims.size(); left > 0; from = &out) {
    const size_t count = std::min(left, size_t(Transform::kMost));
    left -= count;
    if (!transform(call, Transformed::Complex, forward, out, *from, dims.subspan(left, count))) return false;
  }
  return true;
}
/// What one pass takes, with the last dimension, and what is left for passes over complex numbers.
struct Split {
  std::span<const int> left, taken;
  explicit Split(std::span<const int> dims) {
    const size_t count = std::min(dims.size(), size_t(Transform::kMost));
    left = dims.first(dims.size() - count);
    taken = dims.last(count);
  }
};

/// The dimensions that a call names.
std::vector<int> named(const Call& call, const Tensor& t) {
  std::vector<int> dims;
  for (const int64_t d : call.integers(1)) dims.push_back(wrapped(d, t.ndim()));
  return dims;
}
/// Multiplies by what the call's normalization asks for.
void normalize(const Call& call, const Tensor& out, const Tensor& real_side, std::span<const int> dims) {
  static const Row& scaled = line("scaled");
  const int64_t normalization = call.integer(2);
  if (normalization == 0) return;
  double points = 1;
  for (const int d : dims) points *= double(real_side.size(d));
  const double factor = normalization == 1 ? 1 / std::sqrt(points) : 1 / points;
  Numbers numbers;
  numbers.as[0] = {factor, 0, 0};
  numbers.real[0] = factor;
  run_line(call, scaled, out.dtype(), out, {&out}, numbers);
}
/// Apart from the output, which an earlier pass may have filled when a later one has no way.
Tensor apart(const Call& call, const Tensor& in, const Tensor& out) {
  if (in.address() != out.address()) return Tensor(in.handle());
  Tensor made = call.empty(in.sizes(), in.dtype());
  call.copy(made, in);
  return made;
}

void fft_c2c(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  const auto dims = named(call, self);
  if (out.numel() == 0) return;
  if (dims.empty()) return call.copy(out, self);
  if (!transform_complex(call, out, apart(call, self, out), dims, call.flag(3))) return compute_on_host(call, 1);
  normalize(call, out, self, dims);
}
void fft_r2c(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  const auto dims = named(call, self);
  if (out.numel() == 0) return;
  bool done = false;
  if (call.flag(3)) {
    const Split split(dims);
    done = transform(call, Transformed::FromReal, true, out, self, split.taken) &&
           transform_complex(call, out, out, split.left, true);
  } else {
    const Tensor numbers = call.empty(self.sizes(), out.dtype());
    call.copy(numbers, self);
    done = transform_complex(call, out, numbers, dims, true);
  }
  if (!done) return compute_on_host(call, 1);
  normalize(call, out, self, dims);
}
void fft_c2r(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  const auto dims = named(call, self);
  if (out.numel() == 0) return;
  const Split split(dims);
  const bool several = !split.left.empty();
  const Tensor between = several ? call.empty(self.sizes(), self.dtype()) : Tensor(self.handle());
  if (several && !transform_complex(call, between, self, split.left, false)) return compute_on_host(call, 1);
  if (!transform(call, Transformed::ToReal, false, out, between, split.taken, several)) return compute_on_host(call, 1);
  normalize(call, out, out, dims);
}

}  // namespace

const std::vector<Operation>& transform_operations() {
  static const std::vector<Operation> operations{{"_fft_c2c", fft_c2c}, {"_fft_c2r", fft_c2r}, {"_fft_r2c", fft_r2c}};
  return operations;
}

}  // namespace taeda::cuda
