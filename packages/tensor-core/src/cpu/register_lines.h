// Registers the kernels of a family's lines, but of those whose kernels are written by hand. To be included among
// statements, once, behind cpu/family.h.
#define TAEDA_UNARY(NAME, TYPES, KIND, ...) TAEDA_REGISTER_##KIND(NAME)
#define TAEDA_BINARY TAEDA_UNARY
#define TAEDA_TERNARY TAEDA_UNARY
#define TAEDA_UNARY_WHERE TAEDA_UNARY
#define TAEDA_BINARY_WHERE TAEDA_UNARY
#define TAEDA_REGISTER_Given(NAME) line_kernel<op::NAME, TAEDA_FAMILY::NAME, Operands::Given>();
#define TAEDA_REGISTER_AsFloat(NAME) line_kernel<op::NAME, TAEDA_FAMILY::NAME, Operands::AsFloat>();
#define TAEDA_REGISTER_AsBool(NAME) line_kernel<op::NAME, TAEDA_FAMILY::NAME, Operands::AsBool>();
#define TAEDA_REGISTER_ByHand(NAME)
#include TAEDA_LINES
