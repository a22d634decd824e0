// Work of several devices together, where their backend offers it: what distributed programs stand on.
#pragma once
#include <memory>
#include <string>

#include "taeda/tensor.h"

namespace taeda {

enum class Reduction : uint8_t { Sum, Product, Min, Max };

/// A collective that was begun.
class TAEDA_API DeviceWork {
 public:
  virtual ~DeviceWork() = default;
  /// Waits; the error of the work comes out here.
  virtual void wait() = 0;
  virtual bool done() = 0;
};

/// One device's membership in a group. Every member makes the same calls in the same order; each begins work on the
/// calling thread's current stream of the device. Tensors are contiguous and lie on the device. ValueError for others
/// and for shapes that do not fit, NotImplementedError for work that the backend does not have.
class TAEDA_API DeviceGroup {
 public:
  using Work = std::unique_ptr<DeviceWork>;
  virtual ~DeviceGroup() = default;
  virtual Device device() const = 0;
  virtual int rank() const = 0;
  virtual int count() const = 0;
  virtual Work all_reduce(const Tensor& from, const Tensor& to, Reduction reduction) = 0;
  virtual Work broadcast(const Tensor& tensor, int root) = 0;
  virtual Work all_gather(const Tensor& from, const Tensor& to) = 0;
  virtual Work reduce_scatter(const Tensor& from, const Tensor& to, Reduction reduction) = 0;
  virtual Work send(const Tensor& tensor, int to) = 0;
  virtual Work recv(const Tensor& tensor, int from) = 0;
};

/// NotImplementedError where the device's backend has no collectives.
TAEDA_API std::shared_ptr<DeviceGroup> join_group(Device device, const std::string& name, int rank, int count);

}  // namespace taeda
