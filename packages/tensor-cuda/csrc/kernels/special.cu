// Kernels of the special family's lines.
#include "scalar/bessel.h"
#include "scalar/cylinder.h"
#include "scalar/incomplete.h"
#include "scalar/math.h"
#include "scalar/normal.h"
#include "scalar/polynomials.h"

#define TAEDA_WIDE
#define TAEDA_FAMILY "special"
#define TAEDA_LINES "scalar/special.inc"
#define TAEDA_ROWS special_rows
#include "kernels/lines.h"
