// Kernels of the arith family's lines.
#include "scalar/arith.h"

#define TAEDA_FAMILY "arith"
#define TAEDA_LINES "scalar/arith.inc"
#define TAEDA_ROWS arith_rows
#include "kernels/lines.h"
