// The module of cell_kernel.cu.
#include <torch/extension.h>

#include <vector>

std::vector<torch::Tensor> cell_forward_cuda(torch::Tensor gates, torch::Tensor old_cell);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &cell_forward_cuda, "the cell's gates (CUDA)"); }
