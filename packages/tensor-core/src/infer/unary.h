// What the unary family shares with arithmetic.
#pragma once
#include "infer/arith.h"  // IWYU pragma: export
