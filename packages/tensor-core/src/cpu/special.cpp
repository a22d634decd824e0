// CPU kernels of the special family: they follow from scalar/special.inc.
#include "taeda/ops/special.h"

#define TAEDA_FAMILY Special
#define TAEDA_LINES "scalar/special.inc"
#define TAEDA_ROWS special_rows
#include "cpu/family.h"

namespace taeda::cpu {

namespace {

const bool registered = [] {
#include "cpu/register_lines.h"
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
