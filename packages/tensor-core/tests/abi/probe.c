/* What C sees of arguments and tensors, as operators whose results say it. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "support.h"

#ifndef PACKAGE
#define PACKAGE "probe"
#endif

/* A float64 vector of `count` numbers as result. */
static int32_t numbers(const double* values, int64_t count, taeda_value* result) {
  const taeda_device cpu = {0, 0};
  taeda_tensor made;
  TRY(api->tensor_empty(1, &count, NULL, TAEDA_FLOAT64, cpu, &made));
  *result = tensor_value(made);
  return api->tensor_from_host(made, values, (size_t)count * sizeof *values);
}

/* Of each argument: kind, count, and a number that stands for its value. */
static int32_t kinds(void* context, const taeda_call* call) {
  double out[64 * 3];
  (void)context;
  for (uint32_t i = 0; i < call->argument_count; ++i) {
    const taeda_value* v = &call->arguments[i];
    double value = -1;
    switch (v->kind) {
      case TAEDA_VALUE_TENSOR: {
        taeda_tensor_info info;
        TRY(read_tensor(v->as.tensor, &info));
        value = (double)info.numel + (info.flags & TAEDA_TENSOR_NUMBER ? 1000 : 0);
        break;
      }
      case TAEDA_VALUE_BOOL:
      case TAEDA_VALUE_INT:
      case TAEDA_VALUE_DTYPE: value = (double)v->as.integer; break;
      case TAEDA_VALUE_UINT: value = (double)v->as.natural; break;
      case TAEDA_VALUE_FLOAT: value = v->as.real; break;
      case TAEDA_VALUE_COMPLEX: value = v->as.parts[0] * 10 + v->as.parts[1]; break;
      case TAEDA_VALUE_TEXT: value = v->count ? v->as.text[v->count - 1] : 0; break;
      case TAEDA_VALUE_DEVICE: value = v->as.device.backend * 10 + v->as.device.index; break;
      case TAEDA_VALUE_INTS: value = v->count ? (double)v->as.integers[v->count - 1] : 0; break;
      case TAEDA_VALUE_FLOATS: value = v->count ? v->as.reals[v->count - 1] : 0; break;
      case TAEDA_VALUE_TENSORS:
        value = 0;
        for (int64_t n = 0; n < v->count; ++n) value = value * 2 + (v->as.tensors[n] != NULL);
        break;
      case TAEDA_VALUE_GENERATOR: {
        uint64_t seed, offset;
        TRY(api->generator_reserve(v->as.generator, call->device, 3, &seed, &offset));
        value = (double)seed * 1000 + (double)offset;
        break;
      }
      default: break;
    }
    out[3 * i] = v->kind;
    out[3 * i + 1] = (double)v->count;
    out[3 * i + 2] = value;
  }
  return numbers(out, 3 * (int64_t)call->argument_count, &call->results[0]);
}

/* Everything that tensor_read tells: numbers first, then sizes and strides, then the first element if it is float64. */
static int32_t facts(void* context, const taeda_call* call) {
  taeda_tensor_info info;
  double out[10 + 2 * TAEDA_MAX_DIMS];
  int64_t n = 0;
  (void)context;
  TRY(read_tensor(call->arguments[0].as.tensor, &info));
  out[n++] = info.ndim;
  out[n++] = info.dtype;
  out[n++] = info.device.backend;
  out[n++] = info.device.index;
  out[n++] = (double)info.numel;
  out[n++] = info.flags;
  out[n++] = info.item_size;
  out[n++] = info.data ? (double)((const char*)info.data - (const char*)info.storage) : -1;
  out[n++] = (double)info.storage_size;
  for (int32_t d = 0; d < info.ndim; ++d) out[n++] = (double)info.sizes[d];
  for (int32_t d = 0; d < info.ndim; ++d) out[n++] = (double)info.strides[d];
  return numbers(out, n, &call->results[0]);
}

/* As much of the struct as an older plug-in knows: what lies beyond stays as it was. */
static int32_t short_facts(void* context, const taeda_call* call) {
  taeda_tensor_info info;
  (void)context;
  memset(&info, 0x5a, sizeof info);
  info.size = offsetof(taeda_tensor_info, strides);
  TRY(api->tensor_read(call->arguments[0].as.tensor, &info));
  const unsigned char* beyond = (const unsigned char*)&info + info.size;
  double untouched = 1;
  for (size_t i = 0; i < sizeof info - info.size; ++i) untouched *= beyond[i] == 0x5a;
  const double out[] = {(double)info.size, (double)info.sizes[0], untouched};
  return numbers(out, 3, &call->results[0]);
}

static int32_t view(void* context, const taeda_call* call) {
  taeda_tensor made;
  (void)context;
  TRY(api->tensor_view(call->arguments[0].as.tensor, (int32_t)call->arguments[1].count, call->arguments[1].as.integers,
                       call->arguments[2].as.integers, call->arguments[3].as.integer, &made));
  call->results[0] = tensor_value(made);
  return TAEDA_OK;
}

static int32_t make(void* context, const taeda_call* call) {
  taeda_tensor made;
  const taeda_value* strides = &call->arguments[1];
  (void)context;
  TRY(api->tensor_empty((int32_t)call->arguments[0].count, call->arguments[0].as.integers,
                        strides->kind == TAEDA_VALUE_NONE ? NULL : strides->as.integers,
                        (int32_t)call->arguments[2].as.integer, call->arguments[3].as.device, &made));
  call->results[0] = tensor_value(made);
  return TAEDA_OK;
}

static int64_t released;
static void release(void* data, size_t nbytes, void* context) {
  released += (int64_t)nbytes;
  *(int64_t*)context += 1;
  free(data);
}
static int64_t releases;

/* 0, 1, 2 ... in memory of the plug-in's, `room` elements, shown by the given sizes and strides. */
static int32_t wrap(void* context, const taeda_call* call) {
  const int64_t room = call->arguments[0].as.integer;
  const taeda_device cpu = {0, 0};
  taeda_tensor made;
  double* data = malloc((size_t)room * sizeof *data);
  (void)context;
  for (int64_t i = 0; i < room; ++i) data[i] = (double)i;
  const taeda_value* strides = &call->arguments[2];
  const int32_t status =
      api->tensor_wrap(data, (size_t)room * sizeof *data, cpu, (int32_t)call->arguments[1].count,
                       call->arguments[1].as.integers, strides->kind == TAEDA_VALUE_NONE ? NULL : strides->as.integers,
                       TAEDA_FLOAT64, (int32_t)call->arguments[3].as.integer, release, &releases, &made);
  if (status != TAEDA_OK) {
    free(data);
    return status;
  }
  call->results[0] = tensor_value(made);
  return TAEDA_OK;
}

/* Writes through the pointer of a tensor, and through tensor_from_host. */
static int32_t scribble(void* context, const taeda_call* call) {
  taeda_tensor_info info;
  double* data;
  (void)context;
  TRY(read_tensor(call->arguments[0].as.tensor, &info));
  const size_t nbytes = (size_t)info.numel * info.item_size;
  data = malloc(nbytes + 1);
  int32_t status = api->tensor_to_host(call->arguments[0].as.tensor, data, nbytes);
  if (info.dtype == TAEDA_FLOAT64)
    for (int64_t i = 0; i < info.numel; ++i) data[i] += 1;
  if (status == TAEDA_OK)
    status = api->tensor_from_host(call->arguments[0].as.tensor, data, nbytes + (size_t)call->arguments[1].as.integer);
  free(data);
  if (status != TAEDA_OK) return status;
  call->results[0] = call->arguments[0];
  api->tensor_retain(call->results[0].as.tensor);
  return TAEDA_OK;
}

/* Splits, and joins the pieces in reverse: results and arguments that are lists. */
static int32_t shuffle(void* context, const taeda_call* call) {
  const taeda_value split[] = {call->arguments[0], int_value(call->arguments[1].as.integer)};
  taeda_value pieces, joined[1];
  (void)context;
  TRY(call1("split", split, 2, &pieces));
  taeda_tensor turned[64];
  if (pieces.count > 64) {
    api->value_release(&pieces);
    return api->set_error(TAEDA_E_VALUE, "probe::shuffle: too many pieces");
  }
  for (int64_t i = 0; i < pieces.count; ++i) turned[i] = pieces.as.tensors[pieces.count - 1 - i];
  joined[0].kind = TAEDA_VALUE_TENSORS;
  joined[0].reserved = 0;
  joined[0].count = pieces.count;
  joined[0].as.tensors = turned;
  const int32_t status = call1("cat", joined, 1, &call->results[0]);
  api->value_release(&pieces);
  return status;
}

/* Results that are no tensors, and more results than the operator has. */
static int32_t same(void* context, const taeda_call* call) {
  taeda_op op;
  taeda_value results[3];
  (void)context;
  memset(results, 0x5a, sizeof results);
  TRY(api->op_find("equal", &op));
  TRY(api->op_call(op, call->arguments, 2, results, 3));
  const double out[] = {results[0].kind, (double)results[0].as.integer, results[1].kind, results[2].kind};
  return numbers(out, 4, &call->results[0]);
}

/* In-place and out= forms: they write into an argument and give nothing. */
static int32_t grow(void* context, const taeda_call* call) {
  taeda_op op;
  const taeda_value in_place[] = {call->arguments[0], call->arguments[0]};
  const taeda_value out_form[] = {call->arguments[1], call->arguments[0], float_value(10)};
  taeda_value result;
  (void)context;
  TRY(api->op_find("add_", &op));
  TRY(api->op_call(op, in_place, 2, &result, 1));
  if (result.kind != TAEDA_VALUE_NONE) return api->set_error(TAEDA_E_RUNTIME, "probe::grow: a result of add_");
  TRY(api->op_find("mul.out", &op));
  TRY(api->op_call(op, out_form, 3, NULL, 0));
  call->results[0] = call->arguments[1];
  api->tensor_retain(call->results[0].as.tensor);
  return TAEDA_OK;
}

/* Waits without the host's lock. */
static int32_t unlocked(void* context, const taeda_call* call) {
  (void)context;
  void* token = api->host_release();
  void* again = api->host_release(); /* given up already: nothing to give */
  const double out[] = {token != NULL, again != NULL, api->stream_current(call->device) == NULL};
  api->host_acquire(again);
  api->host_acquire(token);
  return numbers(out, 3, &call->results[0]);
}

/* Calls an operator on a thread of the plug-in's own, which knows nothing of Python, and brings its error back. */
struct errand {
  char name[64];
  const taeda_value* argument;
  taeda_value result;
  int32_t status;
  char text[256];
};
static void* on_errand(void* given) {
  struct errand* errand = given;
  errand->status = call1(errand->name, errand->argument, 1, &errand->result);
  if (errand->status != TAEDA_OK) strncpy(errand->text, api->last_error(), sizeof errand->text - 1);
  return NULL;
}
static int32_t threaded(void* context, const taeda_call* call) {
  struct errand errand = {.argument = &call->arguments[1]};
  pthread_t thread;
  (void)context;
  memcpy(errand.name, call->arguments[0].as.text, (size_t)call->arguments[0].count & 63);
  void* token = api->host_release();
  const int failed = pthread_create(&thread, NULL, on_errand, &errand);
  if (!failed) pthread_join(thread, NULL);
  api->host_acquire(token);
  if (failed) return api->set_error(TAEDA_E_RUNTIME, "probe::threaded: no thread");
  if (errand.status != TAEDA_OK) return api->set_error(errand.status, errand.text);
  call->results[0] = errand.result;
  return TAEDA_OK;
}

/* Counts the operators and finds this one among them. */
static int32_t census(void* context, const taeda_call* call) {
  taeda_op_info mine = {.size = sizeof mine}, other = {.size = sizeof other};
  double found = 0, core = 0, bad = 0;
  const uint32_t count = api->op_count();
  (void)context;
  TRY(api->op_read(call->op, &mine));
  for (uint32_t i = 0; i < count; ++i) {
    taeda_op op;
    TRY(api->op_at(i, &op));
    TRY(api->op_read(op, &other));
    found += strcmp(other.name, mine.name) == 0;
    core += other.core;
    bad += other.kind < 0 || other.kind > TAEDA_KIND_COMPOSITE || !strstr(other.schema, "->");
  }
  taeda_op beyond;
  const double out[] = {(double)count, found, core, bad, api->op_at(count, &beyond)};
  return numbers(out, 5, &call->results[0]);
}

TAEDA_PLUGIN_EXPORT int64_t bytes_released(void);
TAEDA_PLUGIN_EXPORT int64_t bytes_released(void) { return released; }
TAEDA_PLUGIN_EXPORT int64_t count_releases(void);
TAEDA_PLUGIN_EXPORT int64_t count_releases(void) { return releases; }

static int32_t start(const taeda_api* given) {
  static const taeda_operator operators[] = {
      {.size = sizeof *operators,
       .schema =
           PACKAGE "::kinds(Tensor a, Operand b, Tensor? c, Scalar d, Scalar? e, int f, int? g, int[] h, int[]? i, "
                   "float j, float[] k, bool l, str m, str? n, DType o, DType? p, Device q, Device? r, Generator? s, "
                   "Tensor[] t, Tensor?[] u, Operand v=7) -> Tensor",
       .composite = kinds},
      {.size = sizeof *operators, .schema = PACKAGE "::number(Scalar d) -> Tensor", .composite = kinds},
      {.size = sizeof *operators, .schema = PACKAGE "::facts(Tensor self) -> Tensor", .composite = facts},
      {.size = sizeof *operators, .schema = PACKAGE "::short_facts(Tensor self) -> Tensor", .composite = short_facts},
      {.size = sizeof *operators,
       .schema = PACKAGE "::view(Tensor self, int[] sizes, int[] strides, int offset) -> Tensor",
       .composite = view},
      {.size = sizeof *operators,
       .schema = PACKAGE "::make(int[] sizes, int[]? strides, DType dtype, Device device) -> Tensor",
       .composite = make},
      {.size = sizeof *operators,
       .schema = PACKAGE "::wrap(int room, int[] sizes, int[]? strides=None, bool readonly=False) -> Tensor",
       .composite = wrap},
      {.size = sizeof *operators,
       .schema = PACKAGE "::scribble(Tensor self, int extra=0) -> Tensor",
       .composite = scribble},
      {.size = sizeof *operators, .schema = PACKAGE "::shuffle(Tensor self, int size) -> Tensor", .composite = shuffle},
      {.size = sizeof *operators, .schema = PACKAGE "::same(Tensor self, Tensor other) -> Tensor", .composite = same},
      {.size = sizeof *operators, .schema = PACKAGE "::grow(Tensor self, Tensor out) -> Tensor", .composite = grow},
      {.size = sizeof *operators, .schema = PACKAGE "::unlocked(Tensor self) -> Tensor", .composite = unlocked},
      {.size = sizeof *operators,
       .schema = PACKAGE "::threaded(str name, Tensor self) -> Tensor",
       .composite = threaded},
      {.size = sizeof *operators, .schema = PACKAGE "::census(Tensor self) -> Tensor", .composite = census}};
  api = given;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; ++i) TRY(api->op_define(&operators[i], NULL));
  return TAEDA_OK;
}
DESCRIBE("probe")
