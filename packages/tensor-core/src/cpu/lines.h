// Kernels of operators whose arithmetic is declared in lines (scalar/<family>.inc).
#pragma once
#include "cpu/kernel.h"

namespace taeda::cpu {

// The lines of each family by name.
#define TAEDA_UNARY(NAME, ...) NAME,
#define TAEDA_BINARY(NAME, ...) NAME,
#define TAEDA_TERNARY(NAME, ...) NAME,
#define TAEDA_UNARY_WHERE(NAME, ...) NAME,
#define TAEDA_BINARY_WHERE(NAME, ...) NAME,
enum class Arith {
#include "scalar/arith.inc"
  kCount
};
enum class Unary {
#include "scalar/unary.inc"
  kCount
};
enum class Compare {
#include "scalar/compare.inc"
  kCount
};
enum class Activation {
#include "scalar/activation.inc"
  kCount
};
#undef TAEDA_UNARY
#undef TAEDA_BINARY
#undef TAEDA_TERNARY
#undef TAEDA_UNARY_WHERE
#undef TAEDA_BINARY_WHERE

/// A family's rows: for this machine's instruction set, and for the base one what is compiled once.
template <class Line>
struct Rows {
  ElementRow rows[int(Line::kCount)];
  Rows(const ElementRow* here, const ElementRow* base) {
    for (int i = 0; i < int(Line::kCount); ++i) {
      rows[i] = base[i];
      for (int d = 0; d < kDTypeCount; ++d)
        if (here[i].fn[d]) rows[i].fn[d] = here[i].fn[d];
    }
  }
};
inline const Rows<Arith> arith_lines{tables().arith, least_tables().arith};
inline const Rows<Unary> unary_lines{tables().unary, least_tables().unary};
inline const Rows<Compare> compare_lines{tables().compare, least_tables().compare};
inline const Rows<Activation> activation_lines{tables().activation, least_tables().activation};
inline const ElementRow& row(Arith line) { return arith_lines.rows[int(line)]; }
inline const ElementRow& row(Unary line) { return unary_lines.rows[int(line)]; }
inline const ElementRow& row(Compare line) { return compare_lines.rows[int(line)]; }
inline const ElementRow& row(Activation line) { return activation_lines.rows[int(line)]; }

/// In which dtype a line computes: as given (halves in float32), integers as floating-point numbers, or truth values.
enum class Operands { Given, AsFloat, AsBool };
constexpr DType dtype_for(Operands operands, DType d) {
  return operands == Operands::AsBool    ? DType::Bool
         : operands == Operands::AsFloat ? compute_dtype(float_of(d))
                                         : compute_dtype(d);
}

inline void run_line(const ElementRow& row, const char* op, DType d, const Tensor& out, const Tensor& x,
                     const LoopParams* p = nullptr) {
  const Loop loop = need(row, d, op);
  run_loop(loop, p, {{&out, row.result[int(d)]}, {&x, d}});
}
inline void run_line(const ElementRow& row, const char* op, DType d, const Tensor& out, const Tensor& a,
                     const Tensor& b, const LoopParams* p = nullptr) {
  const Loop loop = need(row, d, op);
  run_loop(loop, p, {{&out, row.result[int(d)]}, {&a, d}, {&b, d}});
}
inline void run_line(const ElementRow& row, const char* op, DType d, const Tensor& out, const Tensor& a,
                     const Tensor& b, const Tensor& c, const LoopParams* p = nullptr) {
  const Loop loop = need(row, d, op);
  run_loop(loop, p, {{&out, row.result[int(d)]}, {&a, d}, {&b, d}, {&c, d}});
}

/// The kernel of a line, from the operator's signature: tensors are the operands, numbers the parameters.
template <class Op, auto Line, Operands Kind, class Signature> struct LineKernel;
template <class Op, auto Line, Operands Kind, class... Number>
struct LineKernel<Op, Line, Kind, void(const Tensor&, const Tensor&, Number...)> {
  static void run(const Tensor& out, const Tensor& x, Number... numbers) {
    const DType d = dtype_for(Kind, x.dtype());
    if constexpr (sizeof...(Number) == 0) {
      run_line(row(Line), Op::entry.name, d, out, x);
    } else {
      const LoopParams p{Scalar(numbers)...};
      run_line(row(Line), Op::entry.name, d, out, x, &p);
    }
  }
};
template <class Op, auto Line, Operands Kind, class... Number>
struct LineKernel<Op, Line, Kind, void(const Tensor&, const Tensor&, const Tensor&, Number...)> {
  static void run(const Tensor& out, const Tensor& a, const Tensor& b, Number... numbers) {
    const DType d = dtype_for(Kind, infer::common_dtype(a, b));
    if constexpr (sizeof...(Number) == 0) {
      run_line(row(Line), Op::entry.name, d, out, a, b);
    } else {
      const LoopParams p{Scalar(numbers)...};
      run_line(row(Line), Op::entry.name, d, out, a, b, &p);
    }
  }
};
template <class Op, auto Line, Operands Kind, class... Number>
struct LineKernel<Op, Line, Kind, void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Number...)> {
  static void run(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c, Number... numbers) {
    const Tensor all[] = {a, b, c};
    const DType d = dtype_for(Kind, result_type(all));
    if constexpr (sizeof...(Number) == 0) {
      run_line(row(Line), Op::entry.name, d, out, a, b, c);
    } else {
      const LoopParams p{Scalar(numbers)...};
      run_line(row(Line), Op::entry.name, d, out, a, b, c, &p);
    }
  }
};
template <class Op, auto Line, Operands Kind>
void line_kernel() {
  kernel<Op>(kCPU, &LineKernel<Op, Line, Kind, typename Op::Kernel>::run);
}

}  // namespace taeda::cpu

// Around #include "scalar/<family>.inc": registers the kernels of the lines, but of those whose kernels are written by
// hand. TAEDA_FAMILY names the enumeration.
#define TAEDA_UNARY(NAME, TYPES, KIND, ...) TAEDA_REGISTER_##KIND(NAME)
#define TAEDA_BINARY(NAME, TYPES, KIND, ...) TAEDA_REGISTER_##KIND(NAME)
#define TAEDA_TERNARY(NAME, TYPES, KIND, ...) TAEDA_REGISTER_##KIND(NAME)
#define TAEDA_UNARY_WHERE(NAME, TYPES, KIND, ...) TAEDA_REGISTER_##KIND(NAME)
#define TAEDA_BINARY_WHERE(NAME, TYPES, KIND, ...) TAEDA_REGISTER_##KIND(NAME)
#define TAEDA_REGISTER_Given(NAME) line_kernel<op::NAME, TAEDA_FAMILY::NAME, Operands::Given>();
#define TAEDA_REGISTER_AsFloat(NAME) line_kernel<op::NAME, TAEDA_FAMILY::NAME, Operands::AsFloat>();
#define TAEDA_REGISTER_AsBool(NAME) line_kernel<op::NAME, TAEDA_FAMILY::NAME, Operands::AsBool>();
#define TAEDA_REGISTER_ByHand(NAME)
