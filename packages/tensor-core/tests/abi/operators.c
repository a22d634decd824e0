/* New operators: with inference and kernels, with derivatives, in terms of others, with several results and lists. */
#include "support.h"

#ifndef PACKAGE
#define PACKAGE "poly"
#endif

/* Shape and element type of a tensor as those of a result. */
static int32_t like(taeda_tensor tensor, taeda_spec* spec) {
  taeda_tensor_info info;
  TRY(read_tensor(tensor, &info));
  spec->ndim = info.ndim;
  spec->dtype = info.dtype;
  for (int32_t d = 0; d < info.ndim; ++d) spec->sizes[d] = info.sizes[d];
  return TAEDA_OK;
}

/* Elements of a float64 tensor of any strides, to be freed. */
static int32_t elements(taeda_tensor tensor, double** data, int64_t* count) {
  taeda_tensor_info info;
  TRY(read_tensor(tensor, &info));
  if (info.dtype != TAEDA_FLOAT64) return api->set_error(TAEDA_E_TYPE, "poly: float64 only");
  *count = info.numel;
  *data = malloc((size_t)info.numel * sizeof(double) + 1);
  if (!*data) return api->set_error(TAEDA_E_MEMORY, "poly: no memory");
  const int32_t status = api->tensor_to_host(tensor, *data, (size_t)info.numel * sizeof(double));
  if (status != TAEDA_OK) free(*data);
  return status;
}

/* a * b, where b may be a number; gives `a` back. */
static int32_t times(taeda_value* a, taeda_value b) {
  const taeda_value both[] = {*a, b};
  taeda_value product;
  TRY(call1("mul", both, 2, &product));
  api->value_release(a);
  *a = product;
  return TAEDA_OK;
}

/* --- poly::cube(Tensor self, float k=1.0): k x^3, differentiable as often as one likes --- */

static int64_t inferred;
static int32_t cube_infer(void* context, const taeda_call* call, taeda_spec* results) {
  (void)context;
  ++inferred;
  return like(call->arguments[0].as.tensor, results);
}
static int32_t cube_kernel(void* context, const taeda_call* call) {
  double* data;
  int64_t count;
  (void)context;
  TRY(elements(call->arguments[1].as.tensor, &data, &count));
  const double k = call->arguments[2].as.real;
  for (int64_t i = 0; i < count; ++i) data[i] = k * data[i] * data[i] * data[i];
  const int32_t status = api->tensor_from_host(call->arguments[0].as.tensor, data, (size_t)count * sizeof(double));
  free(data);
  return status;
}
static int32_t cube_derivative(void* context, const taeda_call* call, const taeda_value* outputs,
                               const taeda_value* gradients) {
  (void)context, (void)outputs;
  taeda_value* gradient = &call->results[0];
  const taeda_value squared[] = {call->arguments[0], call->arguments[0]};
  TRY(call1("mul", squared, 2, gradient));
  TRY(times(gradient, float_value(3 * call->arguments[1].as.real)));
  return times(gradient, gradients[0]);
}

/* --- poly::totals(Tensor[] items, Scalar by=2): their sum, and that times `by` --- */

static int32_t totals_infer(void* context, const taeda_call* call, taeda_spec* results) {
  (void)context;
  if (call->arguments[0].count == 0) return api->set_error(TAEDA_E_VALUE, "poly::totals: argument 'items' is empty");
  TRY(like(call->arguments[0].as.tensors[0], results));
  results[1] = results[0];
  return TAEDA_OK;
}
static int32_t totals_kernel(void* context, const taeda_call* call) {
  double *sum, *data;
  int64_t count, others;
  const taeda_value* items = &call->arguments[2];
  const double by =
      call->arguments[3].kind == TAEDA_VALUE_INT ? (double)call->arguments[3].as.integer : call->arguments[3].as.real;
  (void)context;
  TRY(elements(items->as.tensors[0], &sum, &count));
  int32_t status = TAEDA_OK;
  for (int64_t n = 1; n < items->count && status == TAEDA_OK; ++n) {
    status = elements(items->as.tensors[n], &data, &others);
    if (status != TAEDA_OK) break;
    if (others != count) status = api->set_error(TAEDA_E_VALUE, "poly::totals: items of different sizes");
    for (int64_t i = 0; i < count && status == TAEDA_OK; ++i) sum[i] += data[i];
    free(data);
  }
  const size_t nbytes = (size_t)count * sizeof(double);
  if (status == TAEDA_OK) status = api->tensor_from_host(call->arguments[0].as.tensor, sum, nbytes);
  for (int64_t i = 0; i < count; ++i) sum[i] *= by;
  if (status == TAEDA_OK) status = api->tensor_from_host(call->arguments[1].as.tensor, sum, nbytes);
  free(sum);
  return status;
}
static int32_t totals_derivative(void* context, const taeda_call* call, const taeda_value* outputs,
                                 const taeda_value* gradients) {
  taeda_value gradient = {0};
  taeda_tensor items[8];
  const int64_t count = call->arguments[0].count;
  (void)context, (void)outputs;
  if (count > 8) return api->set_error(TAEDA_E_NOT_IMPLEMENTED, "poly::totals: at most 8 items");
  if (gradients[1].kind == TAEDA_VALUE_TENSOR) {
    gradient = gradients[1];
    api->tensor_retain(gradient.as.tensor);
    TRY(times(&gradient, call->arguments[1]));
  }
  if (gradients[0].kind == TAEDA_VALUE_TENSOR) {
    const taeda_value both[] = {gradients[0], gradient};
    taeda_value sum;
    if (gradient.kind == TAEDA_VALUE_NONE) {
      sum = gradients[0];
      api->tensor_retain(sum.as.tensor);
    } else {
      TRY(call1("add", both, 2, &sum));
      api->value_release(&gradient);
    }
    gradient = sum;
  }
  for (int64_t i = 0; i < count; ++i) {
    items[i] = gradient.as.tensor;
    api->tensor_retain(items[i]);
  }
  TRY(api->value_tensors(items, count, &call->results[0]));
  api->value_release(&gradient);
  return TAEDA_OK;
}

/* --- poly::weighed(Tensor self, Tensor? weight=None): in terms of others --- */

static int32_t weighed(void* context, const taeda_call* call) {
  const taeda_value squared[] = {call->arguments[0], call->arguments[0]};
  taeda_value product;
  (void)context;
  TRY(call1("mul", squared, 2, &product));
  if (call->arguments[1].kind != TAEDA_VALUE_NONE) TRY(times(&product, call->arguments[1]));
  const int32_t status = call1("sum", &product, 1, &call->results[0]);
  api->value_release(&product);
  return status;
}

/* --- poly::halved(Tensor self): a kernel that makes its result; its derivative fails --- */

static int32_t halved(void* context, const taeda_call* call) {
  const taeda_value product[] = {call->arguments[0], float_value(0.5)};
  (void)context;
  return call1("mul", product, 2, &call->results[0]);
}
static int32_t no_derivative(void* context, const taeda_call* call, const taeda_value* outputs,
                             const taeda_value* gradients) {
  (void)context, (void)outputs, (void)gradients;
  /* What was stored before a failure is given back by the caller. */
  call->results[0] = call->arguments[0];
  api->tensor_retain(call->results[0].as.tensor);
  return api->set_error(TAEDA_E_ZERO_DIVISION, "poly::halved: nobody can divide here");
}

/* --- poly::lender(Tensor self, Tensor[] items, int how): a derivative that gives what it was lent --- */

enum { RETAINED, GRADIENT, OUTPUT, ITEMS };
static int32_t lender_derivative(void* context, const taeda_call* call, const taeda_value* outputs,
                                 const taeda_value* gradients) {
  taeda_tensor items[8];
  const int64_t count = call->arguments[1].count, how = call->arguments[2].as.integer;
  (void)context;
  call->results[0] = how == OUTPUT ? outputs[0] : gradients[0];
  if (how != OUTPUT && how != GRADIENT) api->tensor_retain(gradients[0].as.tensor);
  for (int64_t i = 0; i < count && i < 8; ++i) {
    items[i] = gradients[0].as.tensor;
    if (how != ITEMS) api->tensor_retain(items[i]);
  }
  return api->value_tensors(items, count, &call->results[1]);
}

/* --- poly::odd(Tensor self, int how): inference that says strange things --- */

static int32_t odd_infer(void* context, const taeda_call* call, taeda_spec* results) {
  (void)context;
  TRY(like(call->arguments[0].as.tensor, results));
  switch (call->arguments[1].as.integer) {
    case 0: results->ndim = 65; break;
    case 1: results->dtype = 99; break;
    case 2:
      results->ndim = 1;
      results->sizes[0] = -4;
      break;
    case 3: return api->set_error(TAEDA_E_INDEX, "poly::odd: this is odd");
    case 4:
      results->ndim = results->dtype = -1; /* as if nothing had been stored */
      break;
    default: break;
  }
  return TAEDA_OK;
}
static int32_t nothing(void* context, const taeda_call* call) {
  (void)context, (void)call;
  return TAEDA_OK;
}

/* --- poly::caller(str name, Tensor self): calls an operator and passes on or swallows what goes wrong --- */

static int32_t caller(void* context, const taeda_call* call) {
  char name[64] = {0};
  (void)context;
  if (call->arguments[0].count > 63) return api->set_error(TAEDA_E_VALUE, "poly::caller: the name is too long");
  memcpy(name, call->arguments[0].as.text, (size_t)call->arguments[0].count);
  return call1(name, &call->arguments[1], 1, &call->results[0]);
}
static int32_t swallower(void* context, const taeda_call* call) {
  if (caller(context, call) == TAEDA_OK) return TAEDA_OK;
  return call1("neg", &call->arguments[1], 1, &call->results[0]);
}
static int32_t renamer(void* context, const taeda_call* call) {
  if (caller(context, call) == TAEDA_OK) return TAEDA_OK;
  return api->set_error(TAEDA_E_BUFFER, "poly::renamer: another error in its place");
}

TAEDA_PLUGIN_EXPORT int64_t count_inferred(void);
TAEDA_PLUGIN_EXPORT int64_t count_inferred(void) { return inferred; }
TAEDA_PLUGIN_EXPORT const char* error_text(void);
TAEDA_PLUGIN_EXPORT const char* error_text(void) { return api->last_error(); }

static int32_t start(const taeda_api* given) {
  static const taeda_operator cube = {.size = sizeof cube,
                                      .schema = PACKAGE "::cube(Tensor self, float k=1.0) -> Tensor",
                                      .owner = "poly of the test",
                                      .infer = cube_infer,
                                      .derivative = cube_derivative};
  static const taeda_operator totals = {
      .size = sizeof totals,
      .schema = PACKAGE "::totals(Tensor[] items, Scalar by=2) -> (Tensor total, Tensor scaled)",
      .infer = totals_infer,
      .derivative = totals_derivative};
  static const taeda_operator others[] = {
      {.size = sizeof *others,
       .schema = PACKAGE "::weighed(Tensor self, Tensor? weight=None) -> Tensor",
       .composite = weighed},
      {.size = sizeof *others, .schema = PACKAGE "::halved(Tensor self) -> Tensor", .derivative = no_derivative},
      {.size = sizeof *others,
       .schema = PACKAGE "::lender(Tensor self, Tensor[] items, int how) -> Tensor",
       .derivative = lender_derivative},
      {.size = sizeof *others, .schema = PACKAGE "::odd(Tensor self, int how) -> Tensor", .infer = odd_infer},
      {.size = sizeof *others, .schema = PACKAGE "::forgetful(Tensor self) -> Tensor", .composite = nothing},
      {.size = sizeof *others, .schema = PACKAGE "::caller(str name, Tensor self) -> Tensor", .composite = caller},
      {.size = sizeof *others,
       .schema = PACKAGE "::swallower(str name, Tensor self) -> Tensor",
       .composite = swallower},
      {.size = sizeof *others, .schema = PACKAGE "::renamer(str name, Tensor self) -> Tensor", .composite = renamer},
      {.size = sizeof *others, .schema = PACKAGE "::nothing(Tensor self) -> Tensor"}};
  taeda_op op;
  api = given;
  TRY(api->op_define(&cube, &op));
  TRY(api->op_define(&totals, NULL));
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) TRY(api->op_define(&others[i], NULL));
  TRY(api->kernel_register(PACKAGE "::cube", 0, cube_kernel, NULL, "poly of the test", NULL));
  TRY(api->kernel_register(PACKAGE "::totals", 0, totals_kernel, NULL, NULL, NULL));
  TRY(api->kernel_register(PACKAGE "::halved", 0, halved, NULL, NULL, NULL));
  TRY(api->kernel_register(PACKAGE "::lender", 0, halved, NULL, NULL, NULL));
  return api->kernel_register(PACKAGE "::odd", 0, nothing, NULL, NULL, NULL);
}
DESCRIBE("operators")
