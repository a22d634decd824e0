// Kernels of operators whose arithmetic is declared in lines (scalar/<family>.inc).
#pragma once
#include "cpu/kernel.h"
#include "cpu/loops/rows.h"

namespace taeda::cpu {

/// A family's rows: for this machine's instruction set, and for the base one what is compiled once.
template <class Line>
struct Rows {
  ElementRow rows[int(Line::kCount)];
  explicit Rows(FamilyRows family) {
    for (int i = 0; i < int(Line::kCount); ++i) {
      rows[i] = family.least[i];
      for (int d = 0; d < kDTypeCount; ++d)
        if (family.here[i].fn[d]) rows[i].fn[d] = family.here[i].fn[d];
    }
  }
  /// A line of the bits of float16 and bfloat16 numbers stands for `line` there.
  Rows of_halves(Line line, Line bits) && {
    for (const DType half : {DType::Float16, DType::BFloat16})
      rows[int(line)].set(half, rows[int(bits)].fn[int(DType::Int16)], half);
    return *this;
  }
};

/// In which dtype a line computes: as given (halves in float32), integers as floating-point numbers, or truth values.
enum class Operands { Given, AsFloat, AsBool };
constexpr DType dtype_for(const ElementRow& row, Operands operands, DType d) {
  if (row.fn[int(d)]) return d;
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
    const DType d = dtype_for(row(Line), Kind, x.dtype());
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
    const DType d = dtype_for(row(Line), Kind, infer::common_dtype(a, b));
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
    const DType d = dtype_for(row(Line), Kind, result_type(all));
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
