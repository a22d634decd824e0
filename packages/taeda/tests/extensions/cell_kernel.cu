// A recurrent cell's gates as one kernel, as tutorials for PyTorch's CUDA extensions write them: accessors in kernels,
// a switch over types, the current stream and device.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>
#include <torch/extension.h>

#include <ATen/cuda/Atomic.cuh>

#include <vector>

template <class scalar_t>
__device__ __forceinline__ scalar_t sigmoid(scalar_t z) {
  return scalar_t(1) / (scalar_t(1) + exp(-z));
}

template <class scalar_t>
__global__ void gates_kernel(torch::PackedTensorAccessor32<scalar_t, 3, torch::RestrictPtrTraits> gates,
                             torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> old_cell,
                             torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> new_cell,
                             scalar_t* __restrict__ total) {
  const int n = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= gates.size(2)) return;
  new_cell[n][c] = old_cell[n][c] + tanh(gates[n][1][c]) * sigmoid(gates[n][0][c]);
  gpuAtomicAdd(total, new_cell[n][c]);
}

std::vector<torch::Tensor> cell_forward_cuda(torch::Tensor gates, torch::Tensor old_cell) {
  TORCH_CHECK(gates.device().type() == at::kCUDA && old_cell.is_cuda(), "cell: tensors must be on a CUDA device");
  const at::cuda::OptionalCUDAGuard guard(at::device_of(gates));
  auto new_cell = torch::zeros_like(old_cell);
  auto total = torch::zeros({1}, gates.options());
  const dim3 blocks((old_cell.size(1) + 255) / 256, old_cell.size(0));
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "cell_forward_cuda", ([&] {
                               gates_kernel<scalar_t><<<blocks, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
                                   gates.packed_accessor32<scalar_t, 3, torch::RestrictPtrTraits>(),
                                   old_cell.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),
                                   new_cell.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),
                                   total.data_ptr<scalar_t>());
                             }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {new_cell, total};
}
