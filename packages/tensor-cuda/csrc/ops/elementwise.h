// Element-wise calls: from tensors that lie as they like to a kernel of a line.
#pragma once
#include <array>
#include <functional>
#include <span>

#include "kernels/elementwise.h"
#include "ops/call.h"

namespace taeda::cuda {

/// The kernels of a line (scalar/<family>.inc, kernels/own.inc) by its name.
const Row& line(const char* name);
void for_each_row(const std::function<void(const Row&)>& visit);
/// What a line computes in for operands of a dtype.
Class class_for(int dtype);

struct Numbers {
  std::array<Number, 3> as{};
  std::array<double, 3> real{};
};
/// Fills `out`, to which the operands are broadcast, by the kernel for a dtype that they meet in.
void run_line(const Call& call, const Row& row, int dtype, const Tensor& out, std::span<const Tensor* const> operands,
              const Numbers& numbers = {}, bool divides = false);
inline void run_line(const Call& call, const Row& row, int dtype, const Tensor& out,
                     std::initializer_list<const Tensor*> operands, const Numbers& numbers = {}, bool divides = false) {
  run_line(call, row, dtype, out, std::span(operands.begin(), operands.size()), numbers, divides);
}
/// Of any dtypes; `from` is broadcast.
void copy_elements(const Call& call, const Tensor& to, const Tensor& from);
/// Every element becomes a number.
void fill_elements(const Call& call, const Tensor& to, const Number& value, int dtype_of_value);
/// Of numbers in a row the sums up to each (ops/reduce.cpp).
void running_sums(const Call& call, const Tensor& out, const Tensor& self);
/// Sums over the dimensions whose bits are set.
void sum_into(const Call& call, const Tensor& out, const Tensor& self, uint64_t dimensions);
/// As those sums over the number of elements, of floating types.
void mean_into(const Call& call, const Tensor& out, const Tensor& self, uint64_t dimensions);
/// The number that a tensor without dimensions in host memory stands for.
Number number_of(const Tensor& tensor);

/// All lines' operators, and those by hand.
struct LineOperation {
  const char* name;
  const Row* row;  // null: by hand
  Function function;
};
const std::vector<LineOperation>& line_operations();
void run_plain_line(const Call& call, const Row& row);

}  // namespace taeda::cuda
