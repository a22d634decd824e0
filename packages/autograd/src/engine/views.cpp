// Gradients of views by strides, and of writes through views.
#include "taeda/autograd/directions.h"
#include "taeda/autograd/views.h"

#include <algorithm>

#include "taeda/arithmetic.h"
#include "taeda/autograd/hooks.h"
#include "taeda/autograd/saved.h"
#include "taeda/ops.h"
#include "taeda/wrappers.h"

namespace taeda::autograd {
namespace {

/// Lowest and highest element that a geometry reaches, relative to its storage's origin.
std::pair<int64_t, int64_t> range_of(const Geometry& g) {
  int64_t low = g.offset, high = g.offset;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] == 0) return {0, -1};
    (g.strides[d] < 0 ? low : high) += (g.sizes[d] - 1) * g.strides[d];
  }
  return {low, high};
}

/// Whether two indices may name one element (expanded or overlapping windows).
bool may_overlap(const Geometry& g) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // |stride|, size
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] == 0) return false;
    if (g.sizes[d] > 1) dims.emplace_back(std::abs(g.strides[d]), g.sizes[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += (size - 1) * stride;
  }
  return false;
}

Tensor show(const Tensor& buffer, const Geometry& g, int64_t origin) {
  return ops::as_strided(buffer, g.sizes, g.strides, g.offset - origin);
}

Tensor flat_zeros(int64_t count, const Tensor& like) { return ops::new_zeros(like, Shape{count}); }

/// For each element of the geometry its place in the flat buffer.
Tensor places(const Geometry& g, int64_t origin, int64_t count, Device device) {
  const Tensor all = ops::arange(Scalar(int64_t(0)), Scalar(count), Scalar(int64_t(1)), DType::Int64, device);
  return ops::reshape(show(all, g, origin), Shape{-1});
}

/// Adds the elements of `values` at their places.
Tensor scatter_sum(const Tensor& values, const Geometry& g, int64_t origin, int64_t count) {
  return ops::index_add(flat_zeros(count, values), 0, places(g, origin, count, values.device()),
                        ops::reshape(values, Shape{-1}), Scalar(int64_t(1)));
}

}  // namespace

Geometry Geometry::of(const Tensor& t, const Tensor& base) {
  const int64_t bytes = t.bytes() - base.bytes();
  check(bytes % t.item_bytes() == 0, ErrorKind::NotImplemented, "the gradient of a view whose first element, of ",
        t.item_bytes(), " bytes, stands ", bytes, " bytes from its base is not implemented");
  return {Shape(t.sizes()), Shape(t.strides()), bytes / t.item_bytes()};
}

Tensor embed(const Tensor& grad, const Geometry& base, const Geometry& view) {
  const auto [base_low, base_high] = range_of(base);
  const auto [view_low, view_high] = range_of(view);
  if (base_high < base_low) return ops::new_zeros(grad, base.sizes);
  const int64_t low = view_high < view_low ? base_low : std::min(base_low, view_low);
  const int64_t count = std::max(base_high, view_high) - low + 1;
  Tensor buffer;
  if (may_overlap(view)) {
    buffer = scatter_sum(grad, view, low, count);
  } else {
    buffer = flat_zeros(count, grad);
    ops::copy_(show(buffer, view, low), grad);
  }
  if (!may_overlap(base)) return show(buffer, base, low);
  // Several indices of the base share an element: its gradient is divided among them.
  const Tensor ones = ops::ones(base.sizes, grad.dtype(), stated_device(grad));
  return show(buffer / scatter_sum(ones, base, low, count), base, low);
}

std::pair<Tensor, Tensor> materialize(const Tensor& values, const Geometry& base, const Geometry& part) {
  const auto [low, high] = range_of(base);
  const Tensor buffer = flat_zeros(std::max<int64_t>(0, high - low + 1), values);
  const Tensor whole = show(buffer, base, low);
  ops::copy_(whole, values);
  return {whole, show(buffer, part, low)};
}

namespace {
/// A complex base, or view, as the reals that it consists of.
Geometry in_reals(Geometry complex) {
  for (int64_t& s : complex.strides) s *= 2;
  complex.offset *= 2;
  complex.sizes.push_back(2);
  complex.strides.push_back(1);
  return complex;
}
Tensor reals_of(const Tensor& complex) { return ops::view_as_real(ops::contiguous(complex)); }
}  // namespace

void ViewBackward::apply(Tensor* grads, Tensor* result) {
  if (!grads[0].defined() || !wanted(0)) return;
  if (grads[0].dtype() == base_dtype) {
    result[0] = embed(grads[0], base, view);
    return;
  }
  // A complex base seen as reals, or the other way round: placed as reals.
  if (is_complex(base_dtype)) result[0] = ops::view_as_complex(ops::contiguous(embed(grads[0], in_reals(base), view)));
  else result[0] = embed(reals_of(grads[0]), base, in_reals(view));
}

void CopySlices::wrap(Node* node) {
  fn = Ref<Node>::share(node);
  ensure_extras(node).within = this;
}

CopySlices::~CopySlices() {
  if (fn && fn->extras && fn->extras->within == this) fn->extras->within = nullptr;
}

Ref<Node> CopySlices::view_node() const {
  auto node = make_node<ViewBackward>();
  node->edges[0] = {Ref<Node>::share(const_cast<CopySlices*>(this)), 0};
  node->base = base;
  node->view = view;
  node->base_dtype = outputs[0].dtype;
  node->outputs[0] = OutputInfo{view.sizes, view_dtype, outputs[0].device, true};
  take_place(node.get());
  return Ref<Node>::adopt(node.release());
}

void CopySlices::apply(Tensor* grads, Tensor* result) {
  if (!grads[0].defined()) return;
  const bool of_complex = is_complex(grads[0].dtype()), as_complex = is_complex(view_dtype);
  const bool reals = of_complex && !as_complex, pairs = as_complex && !of_complex;
  const auto [whole, part] = reals   ? materialize(reals_of(grads[0]), in_reals(base), view)
                             : pairs ? materialize(grads[0], base, in_reals(view))
                                     : materialize(grads[0], base, view);
  std::vector<Tensor> inner(std::max<size_t>(fn->edge_count, 1));
  Tensor given = ops::clone(part);
  if (pairs) given = ops::view_as_complex(ops::contiguous(given));
  fn->apply(&given, inner.data());
  if (wanted(0)) {
    if (inner[0].defined()) ops::copy_(part, pairs ? reals_of(inner[0]) : inner[0]);
    else ops::zero_(part);
    result[0] = reals ? ops::view_as_complex(ops::contiguous(whole)) : whole;
  }
  for (size_t i = 1; i < edge_count; ++i) result[i] = std::move(inner[i]);
}

}  // namespace taeda::autograd
