/* Element-wise operators: formulas over rows, in the element type where the operands meet. */
#include <string.h>

#include "sim.h"
#include "special.h"

/* A formula reads up to three elements a, b, c, the first number k among the arguments, and the bits of the type. */
typedef struct Formula {
  const char* name;
  double (*real)(double, double, double, double, double);
  int64_t (*whole)(int64_t, int64_t, int64_t, int64_t, int64_t);
} Formula;
#define REAL(op, formula) \
  static double real_##op(double a, double b, double c, double k, double bits) { return (double)(formula); }
#define INT(op, formula) \
  static int64_t whole_##op(int64_t a, int64_t b, int64_t c, int64_t k, int64_t bits) { return (int64_t)(formula); }
#include "formulas.h"
#undef REAL
#undef INT
#define REAL(op, formula) {#op, real_##op, NULL},
#define INT(op, formula) {#op, NULL, whole_##op},
static const Formula kFormulas[] = {
#include "formulas.h"
};

typedef struct Operator {
  Formula by_class;
  bool common;  /* operands meet in their own type, not in that of the output */
  bool no_zero; /* an integer divisor may not be 0 */
} Operator;
static bool listed(const char* name, const char* names) {
  const char* p = strstr(names, name);
  return p && p[-1] == ' ' && p[strlen(name)] == ' ';
}

/* The type in which compared operands meet: that of the real ones that are no Python numbers, else the widest. */
static int common_dtype(const View* const* views, int count) {
  int real = -1, out = TAEDA_INT64;
  for (int i = 0; i < count; ++i) {
    if (is_real(views[i]->dtype)) out = TAEDA_FLOAT64;
    if (is_real(views[i]->dtype) && !views[i]->number && views[i]->dtype > real) real = views[i]->dtype;
  }
  return real >= 0 ? real : out;
}
static int32_t run_elementwise(Call* call) {
  const Operator* op = call->table;
  const Formula* formula = &op->by_class;
  const View *out = call->a[0].view, *views[3] = {0};
  Argument number = {0};
  int operands = 0;
  for (uint32_t i = call->outputs; i < call->count; ++i) {
    if (call->a[i].kind == TAEDA_VALUE_TENSOR && operands < 3) views[operands++] = call->a[i].view;
    else if (call->a[i].kind >= TAEDA_VALUE_BOOL && call->a[i].kind <= TAEDA_VALUE_FLOAT) number = call->a[i];
  }
  const int dtype = op->common ? common_dtype(views, operands) : out->dtype;
  if (!(is_real(dtype) ? formula->real != NULL : formula->whole != NULL))
    return fail(&call->job, TAEDA_E_NOT_IMPLEMENTED, "%s: not for these element types", call->kernel->name);
  Array in[3] = {{0}};
  const Array to = array(call, is_real(dtype), out->n);
  for (int i = 0; i < 3; ++i) {
    const View spread = broadcast(views[i < operands ? i : 0], out);
    in[i] = i && i >= operands ? in[0] : load(call, &spread, dtype);
  }
  const int64_t bits = dtype == TAEDA_BOOL ? 1 : (int64_t)size_of(dtype) * 8;
  for (int64_t j = 0; j < to.n; ++j) {
    if (to.real) to.f[j] = formula->real(in[0].f[j], in[1].f[j], in[2].f[j], number.f, (double)bits);
    else if (op->no_zero && in[1].i[j] == 0)
      return fail(&call->job, TAEDA_E_ZERO_DIVISION, "%s: integer division by zero", call->kernel->name);
    else to.i[j] = formula->whole(in[0].i[j], in[1].i[j], in[2].i[j], number.i, bits);
  }
  store(out, to);
  return TAEDA_OK;
}
static int32_t copy_same(Call* call) {
  const View *to = call->a[0].view, from = broadcast(call->a[1].view, to);
  return store(to, load(call, &from, from.dtype)), TAEDA_OK;
}
static int32_t arange_fill(Call* call) {
  const View* to = call->a[0].view;
  const Array out = array(call, is_real(to->dtype), to->n);
  for (int64_t j = 0; j < to->n; ++j) {
    if (out.real) out.f[j] = call->a[1].f + (double)j * call->a[2].f;
    else out.i[j] = call->a[1].i + j * call->a[2].i;
  }
  return store(to, out), TAEDA_OK;
}

enum { kFormulaCount = sizeof kFormulas / sizeof *kFormulas };
int32_t sim_register_elementwise(void) {
  static Operator operators[kFormulaCount];
  static Kernel kernels[kFormulaCount + 4] = {
      {"copy_same_", copy_same, NULL}, {"fill_", copy_same, NULL}, {"arange_fill_", arange_fill, NULL}};
  int count = 0;
  for (int i = 0; i < kFormulaCount; ++i) {
    Operator* op = operators;
    while (op < operators + count && strcmp(op->by_class.name, kFormulas[i].name) != 0) ++op;
    if (op == operators + count) kernels[3 + count++] = (Kernel){kFormulas[i].name, run_elementwise, op};
    op->by_class.name = kFormulas[i].name;
    if (kFormulas[i].real) op->by_class.real = kFormulas[i].real;
    if (kFormulas[i].whole) op->by_class.whole = kFormulas[i].whole;
    op->common = listed(op->by_class.name, " eq lt le signbit ");
    op->no_zero = listed(op->by_class.name, " floor_divide trunc_divide fmod remainder ");
  }
  return sim_register(kernels);
}
