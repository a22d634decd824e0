// Products of halves by the backend's own kernels for tensor cores.
#include "ops/tensor_cores.h"

#include <array>
#include <atomic>

#include "kernels/tensor_product.h"

namespace taeda::cuda {
namespace {

constexpr int64_t kMost = int64_t(1) << 30;

/// Whether elements along one dimension of a factor lie beside each other, in chunks that begin at multiples of 16
/// bytes wherever the other dimensions lead.
template <class T>
bool packs(const Matrices& m, int64_t length, int64_t step, int64_t other) {
  constexpr int64_t kElements = Chunk<T>::kElements;
  return step == 1 && length % kElements == 0 && other % kElements == 0 && m.steps[0] % kElements == 0 &&
         m.array.data % sizeof(Chunk<T>) == 0;
}
template <class T>
void launch(const Call& call, Product3 p, int64_t batch) {
  using Body = TensorProduct<T>;
  p.tiles_n = (p.n + Body::kRows - 1) / Body::kRows;
  p.tiles_m = (p.m + Body::kColumns - 1) / Body::kColumns;
  const Body body{p, packs<T>(p.a, p.k, p.a.steps[2], p.a.steps[1]), packs<T>(p.b, p.k, p.b.steps[1], p.b.steps[2])};
  call.launch(body, batch * p.tiles_n * p.tiles_m);
}

}  // namespace

bool has_tensor_cores(int device) {
  static std::array<std::atomic<int8_t>, 64> known{};  // 0: not asked yet
  const auto place = size_t(device);
  if (place >= known.size()) return false;
  int8_t found = known[place].load(std::memory_order_relaxed);
  if (found == 0) {
    DeviceFacts facts;
    if (own_machine()->driver().facts(device, facts) != Status::Ok) return false;
    found = facts.major >= 8 ? 1 : -1;
    known[place].store(found, std::memory_order_relaxed);
  }
  return found > 0;
}
bool multiply_by_tensor_cores(const Call& call, Product3 product, int64_t batch) {
  const int dtype = product.a.array.dtype, made = product.out.array.dtype;
  if (!is_half_type(dtype) || product.b.array.dtype != dtype || !is_float_type(made) || made == TAEDA_FLOAT64 ||
      product.n >= kMost || product.m >= kMost || product.k >= kMost || !has_tensor_cores(call.device().index))
    return false;
  dtype == TAEDA_FLOAT16 ? launch<Half>(call, product, batch) : launch<BFloat16>(call, product, batch);
  return true;
}

}  // namespace taeda::cuda
