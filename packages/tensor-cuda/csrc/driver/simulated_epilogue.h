// What is done to products before they are stored, on the host, by its definition.
#pragma once
#include "driver/product.h"

namespace taeda::cuda {

/// Whether the epilogue is one that cuBLASLt has for such elements: none for complex numbers, and of float64 no GELU,
/// no slopes and no sums.
bool finishes_on_host(const BlasProduct& product);
/// Whether what the epilogue reads and writes lies as cuBLASLt takes it.
bool is_valid_epilogue(const BlasProduct& product);
/// An element of c as it is stored, from alpha * op(a) @ op(b) + beta * c.
double finished(const BlasProduct& product, int64_t row, int64_t column, double value);
/// Beside the product: sums over its operands, and over its result when that is there.
void sum_on_host(const BlasProduct& product);

}  // namespace taeda::cuda
