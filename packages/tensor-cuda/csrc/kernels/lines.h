// From the lines of one family (scalar/<family>.inc of the tensor core) to kernels. To be included once by
// kernels/<family>.cu, which names TAEDA_FAMILY, TAEDA_LINES and TAEDA_ROWS and includes the headers of the arithmetic.
//
// Which classes a line has kernels for follows from its dtypes: integers compute in 64 bits and are cut off when they
// are stored, which is the same for all that lines say; complex numbers compute in float64. With TAEDA_WIDE real
// numbers do so too: such lines compute in float64 whatever they are given.
#include "kernels/line.h"

#include "kernels/functors.inc"

namespace taeda::cuda {

namespace lines = loops::TAEDA_ISA;

/// How many elements a thread takes at a time.
enum class Cost { Light, Heavy, Once, LightReal, HeavyReal, HeavyFloat, HeavyWhole };
template <class C>
constexpr int taken(Cost cost) {
  if (is_complex<C> || cost == Cost::Once) return 1;
  return is_same<C, float> ? 4 : is_same<C, bool> ? 4 : 2;
}
/// How many packs of them of many elements: what takes long to compute keeps a device busy with one.
template <class C>
constexpr int packs(Cost cost) {
  if (!is_same<C, float> || cost == Cost::Once || cost == Cost::HeavyWhole) return 1;
  return cost == Cost::Light || cost == Cost::LightReal ? 4 : 2;
}

// The classes of a list of dtypes, and the letters that kernels' names end in.
#define TAEDA_CLASS_BOOL(DO, ...) DO(bool, b, __VA_ARGS__)
#define TAEDA_CLASS_INTS(DO, ...) DO(int64_t, i, __VA_ARGS__) DO(uint64_t, u, __VA_ARGS__)
#ifdef TAEDA_WIDE
#define TAEDA_CLASS_REALS(DO, ...) DO(double, d, __VA_ARGS__)
#else
#define TAEDA_CLASS_REALS(DO, ...) DO(float, f, __VA_ARGS__) DO(double, d, __VA_ARGS__)
#endif
#define TAEDA_CLASS_COMPLEX(DO, ...) DO(Complex128, c, __VA_ARGS__)
#define TAEDA_CLASSES_Truths TAEDA_CLASS_BOOL
#define TAEDA_CLASSES_Ints TAEDA_CLASS_INTS
#define TAEDA_CLASSES_Bits16(DO, ...)  // halves are converted as they are read
#define TAEDA_CLASSES_BoolInts(DO, ...) TAEDA_CLASS_BOOL(DO, __VA_ARGS__) TAEDA_CLASS_INTS(DO, __VA_ARGS__)
#define TAEDA_CLASSES_Floats TAEDA_CLASS_REALS
#define TAEDA_CLASSES_Complexes TAEDA_CLASS_COMPLEX
#define TAEDA_CLASSES_Inexact(DO, ...) TAEDA_CLASS_REALS(DO, __VA_ARGS__) TAEDA_CLASS_COMPLEX(DO, __VA_ARGS__)
#define TAEDA_CLASSES_Ordered(DO, ...) TAEDA_CLASS_INTS(DO, __VA_ARGS__) TAEDA_CLASS_REALS(DO, __VA_ARGS__)
#define TAEDA_CLASSES_BoolOrdered(DO, ...) TAEDA_CLASS_BOOL(DO, __VA_ARGS__) TAEDA_CLASSES_Ordered(DO, __VA_ARGS__)
#define TAEDA_CLASSES_Numbers(DO, ...) TAEDA_CLASSES_Ordered(DO, __VA_ARGS__) TAEDA_CLASS_COMPLEX(DO, __VA_ARGS__)
#define TAEDA_CLASSES_All(DO, ...) TAEDA_CLASS_BOOL(DO, __VA_ARGS__) TAEDA_CLASSES_Numbers(DO, __VA_ARGS__)

#define TAEDA_UNARY_WHERE TAEDA_UNARY
#define TAEDA_BINARY_WHERE TAEDA_BINARY

#define TAEDA_BODY(C, NAME, ARITY, COST) \
  Elementwise<lines::NAME##_line<C>, C, ARITY, taken<C>(Cost::COST), packs<C>(Cost::COST)>
#define TAEDA_LINE_KERNEL(C, LETTER, NAME, ARITY, COST) TAEDA_KERNEL(NAME##_##LETTER, TAEDA_BODY(C, NAME, ARITY, COST))
#define TAEDA_UNARY(NAME, TYPES, KIND, COST, ...) TAEDA_CLASSES_##TYPES(TAEDA_LINE_KERNEL, NAME, 1, COST)
#define TAEDA_BINARY(NAME, TYPES, KIND, COST, ...) TAEDA_CLASSES_##TYPES(TAEDA_LINE_KERNEL, NAME, 2, COST)
#define TAEDA_TERNARY(NAME, TYPES, KIND, COST, ...) TAEDA_CLASSES_##TYPES(TAEDA_LINE_KERNEL, NAME, 3, COST)
#include TAEDA_LINES
#undef TAEDA_UNARY
#undef TAEDA_BINARY
#undef TAEDA_TERNARY

#ifndef __CUDACC__
namespace {
template <class C, int N, int V, int P, template <class> class Line>
void set_kernel(Row& row) {
  row.kernels[int(class_of<C>)] = &kernel_of<Elementwise<Line<C>, C, N, V, P>>();
  row.elements[int(class_of<C>)] = V;
  row.packs[int(class_of<C>)] = P;
}
}  // namespace
const std::vector<Row>& TAEDA_ROWS() {
#define TAEDA_SET(C, LETTER, NAME, ARITY, COST) \
  set_kernel<C, ARITY, taken<C>(Cost::COST), packs<C>(Cost::COST), lines::NAME##_line>(row);
#define TAEDA_ROW(NAME, TYPES, KIND, ARITY, COST)                   \
  [] {                                                              \
    Row row{#NAME, Operands::KIND, ARITY, {}, {}, {}};              \
    TAEDA_CLASSES_##TYPES(TAEDA_SET, NAME, ARITY, COST) return row; \
  }(),
#define TAEDA_UNARY(NAME, TYPES, KIND, COST, ...) TAEDA_ROW(NAME, TYPES, KIND, 1, COST)
#define TAEDA_BINARY(NAME, TYPES, KIND, COST, ...) TAEDA_ROW(NAME, TYPES, KIND, 2, COST)
#define TAEDA_TERNARY(NAME, TYPES, KIND, COST, ...) TAEDA_ROW(NAME, TYPES, KIND, 3, COST)
  static const std::vector<Row> rows{
#include TAEDA_LINES
  };
  return rows;
}
#endif

}  // namespace taeda::cuda
