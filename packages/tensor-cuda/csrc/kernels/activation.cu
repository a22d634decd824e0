// Kernels of the activation family's lines.
#include "scalar/activation.h"

#define TAEDA_FAMILY "activation"
#define TAEDA_LINES "scalar/activation.inc"
#define TAEDA_ROWS activation_rows
#include "kernels/lines.h"
