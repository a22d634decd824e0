// Anomaly mode: one pass over the bytes of each gradient on the host, a position kept as code object and line.
#include "taeda/autograd/anomaly.h"

#include "taeda/arithmetic.h"
#include "taeda/autograd/hooks.h"
#include "taeda/ops.h"

namespace taeda::autograd {

bool anomaly_checks_nan = true;
void* (*record_location)() = nullptr;
std::string (*describe_location)(void* location) = nullptr;
void (*warn_location)(const std::string& text) noexcept = nullptr;

namespace {

template <class T>
bool has_nan(const T* data, int64_t count) noexcept {
  for (int64_t i = 0; i < count; ++i)
    if (data[i] != data[i]) return true;
  return false;
}

bool holds_nan(const Tensor& t) {
  if (!is_differentiable(t.dtype())) return false;
  if (t.device().backend == kCPU && t.dense() && t.dtype() == DType::Float32)
    return has_nan(t.data<float>(), t.numel());
  if (t.device().backend == kCPU && t.dense() && t.dtype() == DType::Float64)
    return has_nan(t.data<double>(), t.numel());
  const Tensor found = ops::any(ops::isnan(t), std::nullopt, false);
  const Tensor host = found.device().backend == kCPU ? found : ops::to_device(found, Device{});
  return *host.data<bool>();
}

std::string born(Node* node) {
  if (!node->extras || !node->extras->location || !describe_location) return "";
  return "; the node was made at:\n" + describe_location(node->extras->location);
}

}  // namespace

void note_location(Node* node) {
  if (!record_location) return;
  NodeExtras& extras = ensure_extras(node);
  if (!extras.location) extras.location = record_location();
}

void check_finite(Node* node, std::span<const Tensor> gradients) {
  if (!anomaly_checks_nan) return;
  Below quiet(Layer::Autograd);
  for (size_t i = 0; i < gradients.size(); ++i)
    check(!gradients[i].defined() || !holds_nan(gradients[i]), ErrorKind::Runtime, node->name(),
          " returned nan values in gradient ", i, " of its inputs", born(node));
}

void report_failure(Node* node) noexcept {
  if (warn_location) warn_location(std::string("error in ") + node->name() + born(node));
}

}  // namespace taeda::autograd
