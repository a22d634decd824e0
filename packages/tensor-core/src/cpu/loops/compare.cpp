// Inner loops of the compare family.
#include "scalar/compare.h"

#define TAEDA_LINES "scalar/compare.inc"
#define TAEDA_ROWS compare_rows
#include "cpu/loops/lines.h"
