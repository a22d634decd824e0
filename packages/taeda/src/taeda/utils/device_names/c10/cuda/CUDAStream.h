// What PyTorch has under this name: the stream in which taeda's own work goes.
#pragma once
#include "c10/cuda/CUDAException.h"

namespace taeda::cuda {

using DeviceIndex = int;

/// Number of the backend "cuda"; RuntimeError where it is not loaded.
inline int32_t backend() {
  static const int32_t number = Device("cuda").c().backend;
  return number;
}
/// Index of the device that "cuda" stands for on this thread.
inline DeviceIndex current_device() {
  TAEDA_CHECK(TAEDA_API_HAS(&api(), device_current), "taeda is too old to say which device is the current one");
  return api().device_current(backend());
}

/// A stream, borrowed while it is the current one.
class CUDAStream {
 public:
  CUDAStream(cudaStream_t stream, DeviceIndex device) : stream_(stream), device_(device) {}
  operator cudaStream_t() const { return stream_; }
  cudaStream_t stream() const { return stream_; }
  DeviceIndex device_index() const { return device_; }
  void synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_;
  DeviceIndex device_;
};

/// The calling thread's current stream; of the current device without an index.
inline CUDAStream getCurrentCUDAStream(DeviceIndex index = -1) {
  if (index < 0) index = current_device();
  return {static_cast<cudaStream_t>(api().stream_current({backend(), index})), index};
}

}  // namespace taeda::cuda
