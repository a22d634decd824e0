/* Element-wise operators: one formula for each class of numbers, in tables. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "sim.h"
#include "special.h"

/* What a formula may read: up to three elements a, b, c, and the numbers among the arguments k, l, m, in order. */
#define REAL(name, formula)                                                                                     \
  static double real_##name(double a, double b, double c, double k, double l, double m) {                      \
    return (void)a, (void)b, (void)c, (void)k, (void)l, (void)m, (formula);                                      \
  }
#define INT(name, formula)                                                                                      \
  static int64_t int_##name(int64_t a, int64_t b, int64_t c, int64_t k, int64_t l, int64_t m) {                \
    return (void)a, (void)b, (void)c, (void)k, (void)l, (void)m, (int64_t)(formula);                             \
  }
#define UINT(name, formula)                                                                                     \
  static uint64_t uint_##name(uint64_t a, uint64_t b, uint64_t c, uint64_t k, uint64_t l, uint64_t m) {        \
    return (void)a, (void)b, (void)c, (void)k, (void)l, (void)m, (uint64_t)(formula);                            \
  }
#define COMPLEX(name, formula)                                                                                  \
  static Complex complex_##name(Complex a, Complex b, Complex c, Complex k, Complex l, Complex m) {            \
    return (void)a, (void)b, (void)c, (void)k, (void)l, (void)m, (formula);                                      \
  }
#include "formulas.h"
#undef REAL
#undef INT
#undef UINT
#undef COMPLEX

typedef struct Formula {
  const char* name;
  union {
    double (*real)(double, double, double, double, double, double);
    int64_t (*whole)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
    uint64_t (*natural)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    Complex (*pair)(Complex, Complex, Complex, Complex, Complex, Complex);
  };
} Formula;

#define REAL(op, formula) {.name = #op, .real = real_##op},
#define INT(op, formula)
#define UINT(op, formula)
#define COMPLEX(op, formula)
static const Formula kReal[] = {
#include "formulas.h"
};
#undef REAL
#undef INT
#define REAL(op, formula)
#define INT(op, formula) {.name = #op, .whole = int_##op},
static const Formula kWhole[] = {
#include "formulas.h"
};
#undef INT
#undef UINT
#define INT(op, formula)
#define UINT(op, formula) {.name = #op, .natural = uint_##op},
static const Formula kNatural[] = {
#include "formulas.h"
};
#undef UINT
#undef COMPLEX
#define UINT(op, formula)
#define COMPLEX(op, formula) {.name = #op, .pair = complex_##op},
static const Formula kComplex[] = {
#include "formulas.h"
};
#define FIND(table, name) find(table, sizeof(table) / sizeof *(table), name)
static const Formula* find(const Formula* table, size_t count, const char* name) {
  for (size_t i = 0; i < count; ++i)
    if (strcmp(table[i].name, name) == 0) return table + i;
  return NULL;
}

/* Which element type the operands are brought to. */
typedef enum { TO_OUTPUT, TO_COMMON, TO_OWN, TO_BOOL } Meeting;
typedef struct Operator {
  const Formula* by_class[4];
  Meeting meeting;
  int mask;      /* place of an operand that is read as bool, or -1 */
  bool no_zero;  /* an integer divisor may not be 0 */
  bool is_limit; /* nan_to_num: absent numbers stand for the largest ones */
} Operator;

static bool listed(const char* name, const char* names) {
  const size_t length = strlen(name);
  for (const char* p = strstr(names, name); p; p = strstr(p + 1, name))
    if (p[-1] == ' ' && p[length] == ' ') return true;
  return false;
}

/* The type in which operands meet: dimensions outrank none, both outrank numbers, unless the kind of number is higher. */
static int common_dtype(const View* const* views, int count) {
  int best[3] = {-1, -1, -1};
  for (int i = 0; i < count; ++i) {
    const int rank = views[i]->number ? 2 : views[i]->ndim == 0 ? 1 : 0, dtype = views[i]->dtype;
    if (best[rank] < 0) best[rank] = dtype;
    else if (class_of(dtype) != class_of(best[rank]) || dtype > best[rank]) {
      const int high = dtype > best[rank] ? dtype : best[rank], low = dtype > best[rank] ? best[rank] : dtype;
      best[rank] = high == TAEDA_BFLOAT16 && low == TAEDA_FLOAT16 ? TAEDA_FLOAT32
                   : high == TAEDA_COMPLEX64 && low == TAEDA_FLOAT64 ? TAEDA_COMPLEX128
                   : high >= TAEDA_UINT8 && high < TAEDA_UINT64 && low > TAEDA_BOOL && low < TAEDA_UINT8 ? TAEDA_INT64
                                                                                                        : high;
    }
  }
  int out = best[0];
  for (int rank = 1; rank < 3; ++rank) {
    if (best[rank] < 0) continue;
    const Class mine = class_of(best[rank]);
    const bool higher = out >= 0 && (out == TAEDA_BOOL || (mine >= CLASS_REAL && mine > class_of(out)));
    if (out < 0) out = best[rank];
    else if (higher && out == TAEDA_FLOAT64 && mine == CLASS_COMPLEX) out = TAEDA_COMPLEX128;
    else if (higher) out = rank == 2 && mine == CLASS_REAL ? TAEDA_FLOAT32 : rank == 2 && mine == CLASS_COMPLEX ? TAEDA_COMPLEX64 : best[rank];
  }
  return out;
}

static double largest(int dtype) {
  return dtype == TAEDA_FLOAT16    ? 65504
         : dtype == TAEDA_BFLOAT16 ? 0x1.fep127
         : dtype == TAEDA_FLOAT32  ? FLT_MAX
                                   : DBL_MAX;
}

static int32_t run_elementwise(Call* call) {
  const Operator* op = call->table;
  const View* out = call->a[0].views;
  const View* views[3] = {0};
  Argument numbers[3];
  int operands = 0, scalars = 0;
  memset(numbers, 0, sizeof numbers);
  for (uint32_t i = call->outputs; i < call->count; ++i) {
    if (call->a[i].kind == TAEDA_VALUE_TENSOR && operands < 3)
      views[operands++] = call->a[i].views;
    else if (call->a[i].kind != TAEDA_VALUE_DTYPE && scalars < 3)
      numbers[scalars++] = call->a[i];
  }
  const int own = views[0]->dtype;
  const int dtype = op->meeting == TO_BOOL                                                      ? TAEDA_BOOL
                    : op->meeting == TO_COMMON                                                  ? common_dtype(views, operands)
                    : op->meeting == TO_OWN && (class_of(own) == CLASS_COMPLEX || out->dtype == TAEDA_BOOL) ? own
                                                                                                : out->dtype;
  const Class kind = class_of(dtype);
  const Formula* formula = op->by_class[kind];
  if (!formula) return fail(&call->job, TAEDA_E_NOT_IMPLEMENTED, "%s: not on device 'sim' for these element types", call->name);
  Array in[3] = {0};
  for (int i = 0; i < operands; ++i) {
    const View spread = broadcast(views[i], out);
    in[i] = i == op->mask ? load(call, &spread, TAEDA_BOOL) : load(call, &spread, dtype);
    if (i == op->mask && kind == CLASS_REAL) /* the formula sees all operands in one class */
      for (int64_t j = 0; j < out->n; ++j) in[i].f[j] = (double)in[i].i[j];
    if (i == op->mask && kind == CLASS_COMPLEX) in[i] = load(call, &spread, TAEDA_COMPLEX128);
  }
  for (int i = operands; i < 3; ++i) in[i] = in[0];
  if (op->no_zero && kind <= CLASS_UINT)
    for (int64_t j = 0; j < out->n; ++j)
      if (in[1].i[j] == 0) return fail(&call->job, TAEDA_E_ZERO_DIVISION, "%s: integer division by zero", call->name);
  Array to = array(call, kind, out->n);
  const int64_t n = out->n;
#define ARGUMENTS(x) in[0].x[j], in[1].x[j], in[2].x[j], k, l, m
  if (kind == CLASS_REAL) {
    double v[3];
    for (int i = 0; i < 3; ++i) {
      const bool absent = numbers[i].kind == TAEDA_VALUE_NONE;
      v[i] = !absent ? numbers[i].f : !op->is_limit ? NAN : i ? (i == 1 ? 1 : -1) * largest(dtype) : 0;
    }
    if (scalars < 3) v[2] = (double)size_of(dtype) * 8;
    const double k = v[0], l = v[1], m = v[2];
    for (int64_t j = 0; j < n; ++j) to.f[j] = formula->real(ARGUMENTS(f));
  } else if (kind == CLASS_COMPLEX) {
    const Complex k = numbers[0].c, l = numbers[1].c, m = numbers[2].c;
    for (int64_t j = 0; j < n; ++j) to.c[j] = formula->pair(ARGUMENTS(c));
  } else {
    const bool natural = kind == CLASS_UINT;
    const int64_t k = numbers[0].kind ? numbers[0].i : natural ? 0 : INT64_MIN;
    const int64_t l = numbers[1].kind ? numbers[1].i : natural ? -1 : INT64_MAX;
    const int64_t m = scalars == 3 ? numbers[2].i : dtype == TAEDA_BOOL ? 1 : (int64_t)size_of(dtype) * 8;
    for (int64_t j = 0; j < n; ++j) to.i[j] = formula->whole(ARGUMENTS(i));
  }
  store(out, to);
  return TAEDA_OK;
}

static int32_t copy_same(Call* call) {
  const View *to = call->a[0].views, from = broadcast(call->a[1].views, to);
  store(to, load(call, &from, from.dtype));
  return TAEDA_OK;
}
static int32_t arange_fill(Call* call) {
  const View* to = call->a[0].views;
  const Argument *start = &call->a[1], *step = &call->a[2];
  Array out = array(call, class_of(to->dtype), to->n);
  for (int64_t j = 0; j < to->n; ++j) {
    if (out.kind == CLASS_REAL) out.f[j] = start->f + (double)j * step->f;
    else if (out.kind == CLASS_COMPLEX) out.c[j] = start->c + j * step->c;
    else out.i[j] = start->i + j * step->i;
  }
  store(to, out);
  return TAEDA_OK;
}

enum { kMost = 200 };
int32_t sim_register_elementwise(void) {
  static const Kernel kCopies[] = {
      {"copy_same_", copy_same}, {"fill_", copy_same}, {"arange_fill_", arange_fill}};
  static Operator operators[kMost];
  static Kernel kernels[kMost];
  size_t count = 0;
  for (size_t i = 0; i < sizeof kReal / sizeof *kReal + sizeof kWhole / sizeof *kWhole; ++i) {
    const bool real = i < sizeof kReal / sizeof *kReal;
    const char* name = real ? kReal[i].name : kWhole[i - sizeof kReal / sizeof *kReal].name;
    if (!real && FIND(kReal, name)) continue;
    Operator* op = operators + count;
    const Formula* natural = FIND(kNatural, name);
    *op = (Operator){{FIND(kWhole, name), natural ? natural : FIND(kWhole, name), FIND(kReal, name), FIND(kComplex, name)}};
    op->meeting = listed(name, " eq ne lt le gt ge isclose ") ? TO_COMMON
                  : listed(name, " logical_and logical_or logical_xor logical_not ") ? TO_BOOL
                  : listed(name, " abs angle isnan isinf isfinite isneginf isposinf signbit ") ? TO_OWN
                                                                                              : TO_OUTPUT;
    op->mask = listed(name, " where ") ? 0 : listed(name, " masked_fill native_dropout_backward ") ? 1 : -1;
    op->no_zero = listed(name, " floor_divide trunc_divide fmod remainder ");
    op->is_limit = listed(name, " nan_to_num ");
    kernels[count++] = (Kernel){name, run_elementwise, op};
  }
  const int32_t status = sim_register(kCopies, 3);
  return status == TAEDA_OK ? sim_register(kernels, count) : status;
}
