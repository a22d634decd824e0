// Lines of the arith family that kernels of other families compute with.
#pragma once
#include "cpu/loops/rows.h"

namespace taeda::cpu {

enum class SharedLine { add, add_alpha, clamp, div, maximum, minimum, mul, sqrt };
/// By SharedLine (cpu/arith.cpp).
extern const loops::ElementRow* const shared_lines[];
inline const loops::ElementRow& row(SharedLine line) { return *shared_lines[int(line)]; }

}  // namespace taeda::cpu
