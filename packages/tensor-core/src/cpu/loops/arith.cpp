// Inner loops of the arith family.
#include "scalar/arith.h"

#define TAEDA_LINES "scalar/arith.inc"
#define TAEDA_ROWS arith_rows
#include "cpu/loops/lines.h"
