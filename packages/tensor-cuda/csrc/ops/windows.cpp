// Images as columns of windows.
#include "ops/windows.h"

#include "ops/elementwise.h"

namespace taeda::cuda {
namespace {

/// im2col and col2im: the arguments behind the tensor and, of col2im, its output's size.
Columns columns_of(const Call& call, const Tensor& image, int first) {
  Columns c = one_place_each(2);
  const auto kernel = call.integers(first), dilation = call.integers(first + 1), padding = call.integers(first + 2),
             stride = call.integers(first + 3);
  const int from = image.ndim() - 3;
  c.images = from ? image.size(0) : 1;
  c.channels = image.size(from);
  for (int i = 0; i < 2; ++i) {
    const int d = 1 + i;
    c.size[d] = image.size(from + 1 + i);
    c.kernel[d] = part(kernel, i);
    c.dilation[d] = part(dilation, i);
    c.padding[d] = part(padding, i);
    c.stride[d] = part(stride, i);
    c.out[d] = (c.size[d] + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1) / c.stride[d] + 1;
  }
  c.step_depth = Columns::product(c.out);
  c.step_image = c.channels * Columns::product(c.kernel) * c.step_depth;
  c.item = image.item_size();
  return c;
}
void im2col(const Call& call) {
  const Tensor out = call.output(0), input = call.rows(call.tensor(0));
  if (out.numel() == 0) return;
  const Target to(call, out);
  Columns c = columns_of(call, input, 1);
  c.image = input.array();
  c.columns = to.array();
  call.launch(Unfold{c}, out.numel());
  to.done();
}
void col2im(const Call& call) {
  const Tensor out = call.output(0), input = call.rows(call.tensor(0));
  if (out.numel() == 0) return;
  const Target to(call, out);
  Columns c = columns_of(call, out, 2);
  c.columns = input.array();
  fold_into(call, c, to.tensor());
  to.done();
}

}  // namespace

void fold_into(const Call& call, Columns columns, const Tensor& image) {
  columns.image = image.array();
  switch (class_for(image.dtype())) {
    // Sums wrap, so those of natural numbers are the same.
    case Class::Int:
    case Class::UInt: return call.launch(FoldColumns<int64_t>{columns}, image.numel());
    case Class::Float: return call.launch(FoldColumns<float>{columns}, image.numel());
    case Class::Complex: return call.launch(FoldColumns<Complex128>{columns}, image.numel());
    default: return call.launch(FoldColumns<double>{columns}, image.numel());
  }
}

const std::vector<Operation>& window_operations() {
  static const std::vector<Operation> operations{
      {"col2im", col2im},
      {"im2col", im2col},
  };
  return operations;
}

}  // namespace taeda::cuda
