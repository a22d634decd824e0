// CPU kernels of the special family: they follow from scalar/special.inc.
#include "taeda/ops/special.h"

#include "cpu/loops/special.h"

#include "cpu/lines.h"

namespace taeda::cpu {

// lines.h has given the lines' macros a meaning of their own by now.
#pragma push_macro("TAEDA_UNARY")
#pragma push_macro("TAEDA_UNARY_WHERE")
#pragma push_macro("TAEDA_BINARY")
#undef TAEDA_UNARY
#undef TAEDA_UNARY_WHERE
#undef TAEDA_BINARY
#define TAEDA_UNARY(NAME, ...) NAME,
#define TAEDA_UNARY_WHERE(NAME, ...) NAME,
#define TAEDA_BINARY(NAME, ...) NAME,
enum class Special {
#include "scalar/special.inc"
  kCount
};
#pragma pop_macro("TAEDA_BINARY")
#pragma pop_macro("TAEDA_UNARY_WHERE")
#pragma pop_macro("TAEDA_UNARY")

inline const ElementRow& row(Special line) {
  static const Rows<Special> lines{special_table(), least_special_table()};
  return lines.rows[int(line)];
}

namespace {

const bool registered = [] {
#define TAEDA_FAMILY Special
#include "scalar/special.inc"
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
