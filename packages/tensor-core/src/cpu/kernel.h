// What the element-wise kernels share: choosing the compute dtype and the loop, then running the engine.
#pragma once
#include "cpu/loops/tables.h"
#include "taeda/infer.h"

#define TAEDA_ISA portable
#include "cpu/loops/loop.h"

namespace taeda::cpu {

using namespace loops;
using namespace loops::portable;

inline DType float_of(DType d) { return is_integral(d) ? default_dtype() : d; }

/// The row's loop for `d`; NotImplementedError names the operator and the dtype.
inline Loop need(const LoopRow& row, DType d, const char* op) {
  Loop loop = row.fn[int(d)];
  if (!loop) [[unlikely]]
    fail(ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(d));
  return loop;
}
/// The row's loop, else the other row's (rare dtypes).
inline Loop need(const LoopRow& row, const LoopRow& rare, DType d, const char* op) {
  return row.fn[int(d)] ? row.fn[int(d)] : need(rare, d, op);
}

inline const LoopRow& row(Unary code) {
  static const LoopRow* const rows = TAEDA_PICK(unary).rows;
  return rows[code];
}
inline const LoopRow& row(Binary code) {
  static const LoopRow* const rows = TAEDA_PICK(binary).rows;
  return rows[code];
}
inline const LoopRow& row(Ternary code) {
  static const LoopRow* const rows = TAEDA_PICK(ternary).rows;
  return rows[code];
}

inline void run_unary(Loop loop, const Tensor& out, DType result, const Tensor& in, DType d, const LoopParams* p = nullptr) {
  run_loop(loop, p, {{&out, result}, {&in, d}});
}
inline void run_binary(Loop loop, const Tensor& out, DType result, const Tensor& a, const Tensor& b, DType d, const LoopParams* p = nullptr) {
  run_loop(loop, p, {{&out, result}, {&a, d}, {&b, d}});
}

inline DType operands_dtype(const Tensor& a, const Tensor& b) { return compute_dtype(infer::common_dtype(a, b)); }

inline constexpr LoopRow no_row{};

/// Kernels of one operand whose result has the operand's dtype, or its floating counterpart.
template <Unary Code, const LoopRow& Rare = no_row>
void unary_same(const Tensor& out, const Tensor& self) {
  const DType d = compute_dtype(self.dtype());
  run_unary(need(row(Code), Rare, d, "unary"), out, d, self, d);
}
template <Unary Code, const LoopRow& Rare = no_row>
void unary_float(const Tensor& out, const Tensor& self) {
  const DType d = compute_dtype(float_of(self.dtype()));
  run_unary(need(row(Code), Rare, d, "unary"), out, d, self, d);
}
template <const LoopRow& Row>
void rare_float(const Tensor& out, const Tensor& self) {
  const DType d = compute_dtype(float_of(self.dtype()));
  run_unary(need(Row, d, "unary"), out, d, self, d);
}
template <Binary Code, const LoopRow& Rare = no_row>
void binary_same(const Tensor& out, const Tensor& a, const Tensor& b) {
  const DType d = operands_dtype(a, b);
  run_binary(need(row(Code), Rare, d, "binary"), out, d, a, b, d);
}
template <Binary Code>
void binary_bool(const Tensor& out, const Tensor& a, const Tensor& b) {
  const DType d = operands_dtype(a, b);
  run_binary(need(row(Code), d, "compare"), out, DType::Bool, a, b, d);
}
template <const LoopRow& Row>
void rare_same(const Tensor& out, const Tensor& a, const Tensor& b) {
  const DType d = operands_dtype(a, b);
  run_binary(need(Row, d, "binary"), out, d, a, b, d);
}
template <Binary Code, const LoopRow& Rare = no_row>
void binary_float(const Tensor& out, const Tensor& a, const Tensor& b) {
  const DType d = compute_dtype(float_of(infer::common_dtype(a, b)));
  run_binary(need(row(Code), Rare, d, "binary"), out, d, a, b, d);
}
template <const LoopRow& Row>
void rare_binary_float(const Tensor& out, const Tensor& a, const Tensor& b) {
  const DType d = compute_dtype(float_of(infer::common_dtype(a, b)));
  run_binary(need(Row, d, "binary"), out, d, a, b, d);
}
template <const LoopRow& Row>
void rare_bool(const Tensor& out, const Tensor& a, const Tensor& b) {
  const DType d = operands_dtype(a, b);
  run_binary(need(Row, d, "binary"), out, DType::Bool, a, b, d);
}

}  // namespace taeda::cpu

/// A functor of one or two elements without parameters, as a class template over the element type.
#define TAEDA_UNARY(NAME, EXPRESSION)                                   \
  template <class T>                                                    \
  struct NAME {                                                         \
    explicit NAME(const LoopParams*) {}                                 \
    auto operator()([[maybe_unused]] T x) const { return EXPRESSION; }  \
  };
#define TAEDA_BINARY(NAME, EXPRESSION)                                                     \
  template <class T>                                                                       \
  struct NAME {                                                                            \
    explicit NAME(const LoopParams*) {}                                                    \
    auto operator()([[maybe_unused]] T a, [[maybe_unused]] T b) const { return EXPRESSION; } \
  };
