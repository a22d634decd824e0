// The lines of one family of element-wise operators: an enumeration of their names, and their rows.
//
// To be included once by cpu/<family>.cpp, at file scope, which names TAEDA_FAMILY (the enumeration), TAEDA_LINES and
// TAEDA_ROWS, and with TAEDA_OF_HALVES the lines that serve halves as they are stored. No other file sees a family's
// lines, so that a new one rebuilds that family alone; what others compute with stands in cpu/arith.h.
#include "cpu/lines.h"

namespace taeda::loops {
/// Of this machine (src/cpu/isa.cpp).
FamilyRows TAEDA_ROWS() noexcept;
}  // namespace taeda::loops

namespace taeda::cpu {

#define TAEDA_UNARY(NAME, ...) NAME,
#define TAEDA_BINARY TAEDA_UNARY
#define TAEDA_TERNARY TAEDA_UNARY
#define TAEDA_UNARY_WHERE TAEDA_UNARY
#define TAEDA_BINARY_WHERE TAEDA_UNARY
enum class TAEDA_FAMILY {
#include TAEDA_LINES
  kCount
};
#undef TAEDA_UNARY
#undef TAEDA_BINARY
#undef TAEDA_TERNARY
#undef TAEDA_UNARY_WHERE
#undef TAEDA_BINARY_WHERE

#ifndef TAEDA_OF_HALVES
#define TAEDA_OF_HALVES
#endif
const Rows<TAEDA_FAMILY> family_lines = Rows<TAEDA_FAMILY>(loops::TAEDA_ROWS()) TAEDA_OF_HALVES;
inline const ElementRow& row(TAEDA_FAMILY line) { return family_lines.rows[int(line)]; }

}  // namespace taeda::cpu
