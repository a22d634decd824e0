// Kernels of the compare family's lines.
#include "scalar/compare.h"

#define TAEDA_FAMILY "compare"
#define TAEDA_LINES "scalar/compare.inc"
#define TAEDA_ROWS compare_rows
#include "kernels/lines.h"
