// Inner loops of the special family.
#include "scalar/bessel.h"
#include "scalar/cylinder.h"
#include "scalar/incomplete.h"
#include "scalar/math.h"
#include "scalar/normal.h"
#include "scalar/polynomials.h"

#define TAEDA_LINES "scalar/special.inc"
#define TAEDA_ROWS special_rows
#include "cpu/loops/lines.h"
