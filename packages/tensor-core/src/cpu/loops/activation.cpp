// Inner loops of the activation family.
#include "scalar/activation.h"

#define TAEDA_LINES "scalar/activation.inc"
#define TAEDA_ROWS activation_rows
#include "cpu/loops/lines.h"
