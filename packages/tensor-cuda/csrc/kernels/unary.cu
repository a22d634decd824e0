// Kernels of the unary family's lines.
#include "scalar/unary.h"

#define TAEDA_FAMILY "unary"
#define TAEDA_LINES "scalar/unary.inc"
#define TAEDA_ROWS unary_rows
#include "kernels/lines.h"
