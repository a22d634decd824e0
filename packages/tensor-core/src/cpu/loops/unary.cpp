// Inner loops of the unary family.
#include "scalar/unary.h"

#define TAEDA_LINES "scalar/unary.inc"
#define TAEDA_ROWS unary_rows
#include "cpu/loops/lines.h"
