// Distances of batches that broadcast, and of the rows of one matrix.
#include "taeda/ops/distance.h"

#include <cmath>

#include "taeda/arithmetic.h"
#include "taeda/ops.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

/// Above which a product of matrices is worth its loss of digits.
constexpr int64_t kMany = 25;

bool by_product(std::string_view mode, int64_t p, int64_t r) {
  if (mode == "use_mm_for_euclid_dist_if_necessary") return p > kMany || r > kMany;
  if (mode == "use_mm_for_euclid_dist") return true;
  check(mode == "donot_use_mm_for_euclid_dist", ErrorKind::Value,
        "cdist: argument 'compute_mode' must be 'use_mm_for_euclid_dist_if_necessary', 'use_mm_for_euclid_dist' or "
        "'donot_use_mm_for_euclid_dist', got '",
        mode, "'");
  return false;
}

}  // namespace

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::string_view compute_mode) {
  for (const auto& [argument, t] : {std::pair<const char*, const Tensor&>{"x1", x1}, {"x2", x2}}) {
    check(t.dim() >= 2, ErrorKind::Runtime, "cdist: argument '", argument, "' has shape ", shape_text(t.sizes()),
          ", expected at least 2 dimensions");
    check(is_floating(t.dtype()), ErrorKind::Runtime, "cdist: argument '", argument, "' has dtype ", name(t.dtype()),
          ", expected a floating dtype");
  }
  check(x1.size(-1) == x2.size(-1), ErrorKind::Runtime, "cdist: argument 'x2' has shape ", shape_text(x2.sizes()),
        ", expected rows as long as those of 'x1' ", shape_text(x1.sizes()));
  check(p >= 0, ErrorKind::Runtime, "cdist: argument 'p' must not be negative, got ", p);
  const int64_t rows = x1.size(-2), others = x2.size(-2), length = x1.size(-1);
  const bool product = by_product(compute_mode, rows, others) && p == 2;
  const Shape batch =
      broadcast_shapes(x1.sizes().first(size_t(x1.dim()) - 2), x2.sizes().first(size_t(x2.dim()) - 2), "cdist");
  int64_t count = 1;
  for (const int64_t size : batch) count *= size;
  const auto widened = [&](const Tensor& t, int64_t own) {
    Shape sizes = batch;
    sizes.push_back(own);
    sizes.push_back(length);
    return ops::reshape(ops::expand(t, sizes), Shape{count, own, length});
  };
  const Tensor a = widened(x1, rows), b = widened(x2, others);
  const Tensor distances = product ? ops::euclidean_dist(a, b) : ops::cdist_forward(a, b, p);
  Shape sizes = batch;
  sizes.push_back(rows);
  sizes.push_back(others);
  return ops::reshape(distances, sizes);
}

Tensor pdist(const Tensor& input, double p) {
  check(input.dim() == 2, ErrorKind::Runtime, "pdist: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, M)");
  check(is_floating(input.dtype()), ErrorKind::Runtime, "pdist: argument 'input' has dtype ", name(input.dtype()),
        ", expected a floating dtype");
  check(p >= 0, ErrorKind::Runtime, "pdist: argument 'p' must not be negative, got ", p);
  return ops::pdist_forward(input, p);
}

Tensor pdist_backward(const Tensor& grad, const Tensor& input, double p, const Tensor& distances) {
  // As if all pairs had been computed, with gradients for those above the diagonal.
  check(input.dim() == 2, ErrorKind::Runtime, "pdist_backward: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, M)");
  const int64_t n = input.size(0);
  for (const auto& [argument, t] : {std::pair<const char*, const Tensor&>{"grad", grad}, {"distances", distances}})
    check(t.dim() == 1 && t.size(0) == n * (n - 1) / 2, ErrorKind::Runtime, "pdist_backward: argument '", argument,
          "' has shape ", shape_text(t.sizes()), ", expected (", n * (n - 1) / 2,
          ",), one for each two rows of 'input' ", shape_text(input.sizes()));
  const Tensor places = ops::triu_indices(n, n, 1, DType::Int64, stated_device(input));
  const Tensor at = ops::select(places, 0, 0) * Tensor(n) + ops::select(places, 0, 1);
  const auto spread = [&](const Tensor& t) {
    const Tensor half =
        ops::reshape(ops::index_copy(ops::zeros(Shape{n * n}, t.dtype(), stated_device(t)), 0, at, t), Shape{n, n});
    return ops::unsqueeze(half + ops::transpose(half, 0, 1), 0);
  };
  const Tensor batch = ops::unsqueeze(input, 0);
  return ops::squeeze_dims(ops::cdist_backward(spread(grad), batch, batch, p, spread(distances)), Shape{0});
}

}  // namespace taeda::impl
