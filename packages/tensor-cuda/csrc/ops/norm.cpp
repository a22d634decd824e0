// Normalisation of groups, and gradients of that of rows.
#include "kernels/norm.h"

#include <algorithm>

#include "ops/read.h"

namespace taeda::cuda {
namespace {

int64_t product(std::span<const int64_t> sizes) {
  int64_t made = 1;
  for (const int64_t size : sizes) made *= size;
  return made;
}
/// The gradient that a bit of the mask asks for.
Tensor wanted(const Call& call, int64_t mask, int bit, std::span<const int64_t> sizes, int dtype) {
  return mask & bit ? call.empty(sizes, dtype) : Tensor();
}
Array array_of(const Tensor& tensor) { return tensor ? tensor.array() : Array{}; }
void give(const Call& call, Tensor (&gradients)[3]) {
  for (int i = 0; i < 3; ++i)
    if (gradients[i]) call.result(i, std::move(gradients[i]));
}

// --- rows ---

/// Portions of rows that are summed apart: more blocks than columns give, and sums of fewer numbers.
int64_t portions(int64_t rows) { return std::clamp<int64_t>(rows / 512, 1, 64); }

/// Sums over rows, and of their products with what was normalised, into `bias` and `weight` where these are wanted.
void column_sums(const Call& call, const Array& grad, const Normalised& of, int64_t rows, const Tensor& weight,
                 const Tensor& bias, int dtype) {
  if (!weight && !bias) return;
  const int64_t columns = of.length, tiles = (columns + 31) / 32, parts = portions(rows);
  const int whole = dtype == TAEDA_FLOAT64 ? TAEDA_FLOAT64 : TAEDA_FLOAT32;
  if (parts == 1)
    return launch_in<ColumnSums>(call, dtype, tiles, grad, of.in, of.mean, of.rstd, array_of(bias), array_of(weight),
                                 rows, columns, parts);
  const Tensor some = call.empty({2, parts, columns}, whole);
  const uint64_t half = uint64_t(parts * columns * some.item_size());
  const Array sums{some.address(), whole, 0}, products{some.address() + half, whole, 0};
  launch_in<ColumnSums>(call, dtype, tiles * parts, grad, of.in, of.mean, of.rstd, sums, products, rows, columns,
                        parts);
  const Array none{};
  if (bias)
    launch_in<ColumnSums>(call, dtype, tiles, sums, none, none, none, bias.array(), none, parts, columns, int64_t(1));
  if (weight)
    launch_in<ColumnSums>(call, dtype, tiles, products, none, none, none, weight.array(), none, parts, columns,
                          int64_t(1));
}
void layer_norm_backward(const Call& call) {
  const Tensor given = call.tensor(0), input = call.tensor(1);
  const auto shape = call.integers(2);
  const int64_t length = product(shape), mask = call.integer(6), rows = length ? input.numel() / length : 0;
  const int dtype = given.dtype();
  Tensor made[3] = {wanted(call, mask, 1, input.sizes(), dtype), wanted(call, mask, 2, shape, dtype),
                    wanted(call, mask, 4, shape, dtype)};
  const Read grad(call, given), in(call, input), mean(call, call.tensor(3)), rstd(call, call.tensor(4)),
      weight(call, call.tensor(5));
  const Normalised of{in.array(), weight.array(), {}, array_of(made[0]), mean.array(), rstd.array(), length, 1, 1, 0};
  if (made[0] && length) launch_in<RowGradient>(call, dtype, rows, of, grad.array());
  column_sums(call, grad.array(), of, rows, made[1], made[2], dtype);
  give(call, made);
}
void native_group_norm(const Call& call) {
  const Tensor out = call.output(0), mean = call.output(1), rstd = call.output(2);
  const Tensor input = call.rows(call.tensor(0));
  const int64_t groups = call.integer(1), rows = input.size(0) * groups, length = rows ? input.numel() / rows : 0;
  const Read weight(call, call.tensor(2)), bias(call, call.tensor(3));
  const Target to(call, out), to_mean(call, mean), to_rstd(call, rstd);
  const int64_t inner = std::max<int64_t>(product(input.sizes().subspan(2)), 1);
  const Normalised n{input.array(),   weight.array(), bias.array(), to.array(), to_mean.array(),
                     to_rstd.array(), length,         groups,       inner,      call.real(4)};
  launch_in<LayerNorm>(call, out.dtype(), rows, n);
  for (const Target* t : {&to, &to_mean, &to_rstd}) t->done();
}

void group_norm_backward(const Call& call) {
  const Tensor given = call.tensor(0), input = call.rows(call.tensor(1));
  const int64_t groups = call.integer(2), mask = call.integer(6), rows = input.size(0) * groups;
  const int dtype = given.dtype();
  const std::array<int64_t, 1> channels{input.size(1)};
  Tensor made[3] = {wanted(call, mask, 1, input.sizes(), dtype), wanted(call, mask, 2, channels, dtype),
                    wanted(call, mask, 4, channels, dtype)};
  const Read grad(call, given), mean(call, call.tensor(3)), rstd(call, call.tensor(4)), weight(call, call.tensor(5));
  const int64_t inner = std::max<int64_t>(product(input.sizes().subspan(2)), 1);
  const Normalised of{
      input.array(), weight.array(), {}, array_of(made[0]), mean.array(), rstd.array(), rows ? input.numel() / rows : 0,
      groups,        inner,          0};
  if (made[0]) launch_in<RowGradient>(call, dtype, of.length ? rows : 0, of, grad.array());
  if (made[1] || made[2])
    launch_in<ChannelGradient>(call, dtype, channels[0], input.size(0), channels[0], inner, groups, grad.array(),
                               input.array(), mean.array(), rstd.array(), array_of(made[1]), array_of(made[2]));
  give(call, made);
}

}  // namespace

const std::vector<Operation>& norm_operations() {
  static const std::vector<Operation> operations{
      {"group_norm_backward", group_norm_backward},
      {"layer_norm_backward", layer_norm_backward},
      {"native_group_norm", native_group_norm},
  };
  return operations;
}

}  // namespace taeda::cuda
