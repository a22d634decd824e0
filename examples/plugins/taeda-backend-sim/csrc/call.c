/* From a call of taeda's to a job: arguments are copied, the kernel runs when its stream comes to it. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void end_call(Job* job) {
  give_up((Call*)job);
  free(job);
}
static int32_t run_call(Job* job) {
  Call* call = (Call*)job;
  if (sim_must_fail(FAIL_KERNEL)) return fail(job, TAEDA_E_RUNTIME, "sim: kernel '%s' failed on request", call->name);
  return call->kernel(call);
}

/* What a worker needs of a tensor. The bytes of a number, which lie with the host, are copied. */
static void see(Call* call, taeda_tensor tensor, View* view) {
  taeda_tensor_info info = {.size = sizeof info};
  if (!tensor) {
    view->ndim = -1;
    return;
  }
  api->tensor_read(tensor, &info);
  *view = (View){.n = info.numel, .dtype = info.dtype, .ndim = info.ndim};
  if (info.ndim) {
    memcpy(view->sizes, info.sizes, (size_t)info.ndim * sizeof *view->sizes);
    memcpy(view->strides, info.strides, (size_t)info.ndim * sizeof *view->strides);
  }
  if (info.device.backend == sim_number)
    view->data = worker_view(info.data);
  else if (info.ndim == 0)
    view->data = memcpy(take(call, 16), info.data, info.item_size);
  view->number = (info.flags & TAEDA_TENSOR_NUMBER) != 0;
}

static void copy_argument(Call* call, const taeda_value* from, Argument* to) {
  to->kind = from->kind;
  to->count = from->count;
  switch (from->kind) {
    case TAEDA_VALUE_TENSOR:
      to->count = 1;
      see(call, from->as.tensor, to->views = take(call, sizeof(View)));
      break;
    case TAEDA_VALUE_TENSORS:
      to->views = take(call, (size_t)from->count * sizeof(View));
      for (int64_t i = 0; i < from->count; ++i) see(call, from->as.tensors[i], to->views + i);
      break;
    case TAEDA_VALUE_INTS:
      to->ints = memcpy(take(call, (size_t)from->count * 8), from->as.integers, (size_t)from->count * 8);
      break;
    case TAEDA_VALUE_TEXT: /* the only one that matters here is gelu's 'tanh' */
      to->f = from->count && from->as.text[0] == 't';
      break;
    case TAEDA_VALUE_FLOAT:
      to->c = to->f = from->as.real;
      to->i = (int64_t)from->as.real;
      break;
    case TAEDA_VALUE_COMPLEX:
      to->c = from->as.parts[0] + I * from->as.parts[1];
      to->f = from->as.parts[0];
      to->i = (int64_t)to->f;
      break;
    case TAEDA_VALUE_BOOL:
    case TAEDA_VALUE_INT:
    case TAEDA_VALUE_UINT:
    case TAEDA_VALUE_DTYPE:
      to->i = from->as.integer;
      to->c = to->f = from->kind == TAEDA_VALUE_UINT ? (double)from->as.natural : (double)from->as.integer;
      break;
    default:
      break;
  }
}

/* Philox counters for as many numbers as the kernel may draw. */
static int32_t reserve(Call* call, const taeda_call* from) {
  taeda_generator generator = NULL;
  int64_t most = 0;
  for (uint32_t i = 0; i < from->argument_count; ++i) {
    if (from->arguments[i].kind == TAEDA_VALUE_GENERATOR) generator = from->arguments[i].as.generator;
    if (from->arguments[i].kind == TAEDA_VALUE_TENSOR && call->a[i].views->n > most) most = call->a[i].views->n;
  }
  return api->generator_reserve(generator, from->device, (uint64_t)most + 1, &call->seed, &call->offset);
}

/* Results whose shapes follow from the arguments'; they stand before the arguments, as other outputs do. */
static int32_t make_results(const Kernel* kernel, const taeda_call* from) {
  const taeda_value* a = from->arguments;
  const char* letters = kernel->like;
  const bool masked = *letters == '*';
  for (uint32_t i = 0; i < from->result_count; ++i) {
    const char letter = letters[i + masked];
    if (masked && !(a[from->argument_count - 1].as.integer >> i & 1)) continue;
    taeda_tensor_info like = {.size = sizeof like};
    api->tensor_read(a[letter >= '0' && letter <= '9' ? letter - '0' : 0].as.tensor, &like);
    const int64_t* sizes = letter == 's'   ? a[2].as.integers
                           : letter == 'g' ? like.sizes + like.ndim - 1
                           : letter == 'n' ? like.sizes + 1
                                           : like.sizes;
    const int ndim = letter == 's' ? (int)a[2].count : letter == 'g' || letter == 'n' ? 1 : like.ndim;
    const int32_t status =
        api->tensor_empty(ndim, sizes, NULL, like.dtype, from->device, &from->results[i].as.tensor);
    if (status != TAEDA_OK) return status;
    from->results[i].kind = TAEDA_VALUE_TENSOR;
  }
  return TAEDA_OK;
}

static Call* copy_call(const Kernel* kernel, const taeda_call* from) {
  Call* call = calloc(1, sizeof *call);
  if (!call) return NULL;
  *call = (Call){.job = {.run = run_call, .end = end_call}, .kernel = kernel->run, .name = kernel->name};
  call->table = kernel->table;
  call->outputs = from->output_count;
  if (kernel->like) {
    for (uint32_t i = 0; i < from->result_count; ++i) copy_argument(call, from->results + i, call->a + i);
    call->outputs = from->result_count;
  }
  const uint32_t before = kernel->like ? call->outputs : 0;
  for (uint32_t i = 0; i < from->argument_count; ++i) copy_argument(call, from->arguments + i, call->a + before + i);
  call->count = before + from->argument_count;
  return call;
}

/* Results whose shapes the computation found. New memory is in nobody's use, so it is filled here. */
static int32_t deliver(const Call* call, const taeda_call* to) {
  for (uint32_t i = 0; i < to->result_count; ++i) {
    const View* found = call->results + i;
    taeda_tensor_info info = {.size = sizeof info};
    const int32_t status =
        api->tensor_empty(found->ndim, found->sizes, NULL, found->dtype, to->device, &to->results[i].as.tensor);
    if (status != TAEDA_OK) return status;
    to->results[i].kind = TAEDA_VALUE_TENSOR;
    api->tensor_read(to->results[i].as.tensor, &info);
    if (found->n) memcpy(worker_view(info.data), found->data, (size_t)found->n * size_of(found->dtype));
  }
  return TAEDA_OK;
}

typedef struct Waited {
  Job job;
  Call* call;
} Waited;
static int32_t run_waited(Job* job) {
  Call* call = ((Waited*)job)->call;
  const int32_t status = run_call(&call->job);
  memcpy(job->error, call->job.error, sizeof job->error);
  return status;
}
static void end_waited(Job* job) { (void)job; }

int32_t sim_call(void* context, const taeda_call* from) {
  const Kernel* kernel = context;
  if (sim_must_fail(FAIL_LAUNCH)) return api->set_error(TAEDA_E_RUNTIME, "sim: a launch failed on request");
  int32_t status = kernel->like ? make_results(kernel, from) : TAEDA_OK;
  if (status != TAEDA_OK) return status;
  Call* call = copy_call(kernel, from);
  if (!call) return api->set_error(TAEDA_E_MEMORY, "sim: out of host memory");
  if (kernel->draws) status = reserve(call, from);
  if (status != TAEDA_OK) return end_call(&call->job), status;
  Stream* stream = sim_stream(from->device.index, from->stream);
  if (from->result_count == 0 || kernel->like) return sim_submit(stream, &call->job), TAEDA_OK;
  Waited waited = {{.run = run_waited, .end = end_waited}, call};
  sim_submit(stream, &waited.job);
  status = sim_wait(stream);
  if (status == TAEDA_OK) status = deliver(call, from);
  end_call(&call->job);
  return status;
}

int32_t sim_register(const Kernel* kernels, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const int32_t status =
        api->kernel_register(kernels[i].name, sim_number, sim_call, (void*)(kernels + i), "taeda-backend-sim", NULL);
    if (status != TAEDA_OK) return status;
  }
  return TAEDA_OK;
}
