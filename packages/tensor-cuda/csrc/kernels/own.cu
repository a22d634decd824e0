// Kernels of lines that only this backend has.
#include "kernels/own.h"

#define TAEDA_FAMILY "own"
#define TAEDA_LINES "kernels/own.inc"
#define TAEDA_ROWS own_rows
#include "kernels/lines.h"
