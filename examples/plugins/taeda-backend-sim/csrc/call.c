/* From a call of taeda's to a job: arguments are copied, the kernel runs when its stream comes to it. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

void* take(Call* call, size_t nbytes) {
  void** block = calloc(1, nbytes + 16);
  if (!block) abort(); /* the simulated processor has no room for its own work */
  *block = call->blocks;
  call->blocks = block;
  return block + 2;
}
void give_up(Call* call) {
  while (call->blocks) {
    void** block = call->blocks;
    call->blocks = *block;
    free(block);
  }
}
static void end_call(Job* job) {
  give_up((Call*)job);
  free(job);
}
static int32_t run_call(Job* job) {
  const Kernel* kernel = ((Call*)job)->kernel;
  if (sim_must_fail(FAIL_KERNEL)) return fail(job, TAEDA_E_RUNTIME, "kernel '%s' failed on request", kernel->name);
  return kernel->run((Call*)job);
}

/* What a worker needs of a tensor. The bytes of a number, which lie with the host, are copied. */
int32_t sim_see(Call* call, taeda_tensor tensor, View* view) {
  taeda_tensor_info info = {.size = sizeof info};
  api->tensor_read(tensor, &info);
  if (!is_offered(info.dtype))
    return api->set_error(TAEDA_E_NOT_IMPLEMENTED, "device 'sim' does not compute with complex numbers, bfloat16 and uint64");
  *view = (View){.n = info.numel, .dtype = info.dtype, .ndim = info.ndim, .number = info.flags & TAEDA_TENSOR_NUMBER};
  for (int d = 0; d < info.ndim; ++d) view->sizes[d] = info.sizes[d], view->strides[d] = info.strides[d];
  const bool here = info.device.backend == sim_number;
  view->data = here ? worker_view(info.data) : memcpy(take(call, 16), info.data, info.item_size);
  return TAEDA_OK;
}
static int32_t copy_argument(Call* call, const taeda_value* from, Argument* to) {
  int32_t status = TAEDA_OK;
  *to = (Argument){.kind = from->kind, .count = from->count};
  if (from->kind == TAEDA_VALUE_TENSOR) {
    status = sim_see(call, from->as.tensor, to->view = take(call, sizeof(View)));
  } else if (from->kind == TAEDA_VALUE_INTS) {
    to->ints = memcpy(take(call, (size_t)from->count * 8), from->as.integers, (size_t)from->count * 8);
  } else if (from->kind == TAEDA_VALUE_FLOAT) {
    to->i = (int64_t)(to->f = from->as.real);
  } else {
    to->f = (double)(to->i = from->as.integer);
  }
  return status;
}
static int32_t copy_call(const Kernel* kernel, const taeda_call* from, Call* call) {
  *call = (Call){.job = {.run = run_call, .end = end_call, .name = kernel->name}, .kernel = kernel, .table = kernel->table};
  taeda_generator generator = NULL;
  int64_t most = 1;
  call->outputs = from->output_count;
  call->count = from->argument_count;
  for (uint32_t i = 0; i < call->count; ++i) {
    const taeda_value* value = from->arguments + i;
    const int32_t status = copy_argument(call, value, call->a + i);
    if (status != TAEDA_OK) return status;
    if (value->kind == TAEDA_VALUE_TENSOR && call->a[i].view->n > most) most = call->a[i].view->n;
    if (value->kind == TAEDA_VALUE_GENERATOR) generator = value->as.generator;
  }
  /* Philox counters, one for each element. */
  if (kernel->table != kRandomKernels) return TAEDA_OK;
  return api->generator_reserve(generator, from->device, (uint64_t)most, &call->seed, &call->offset);
}

/* Results whose shapes the computation found. New memory is in nobody's use, so it is filled here. */
static int32_t deliver(const Call* call, const taeda_call* to) {
  for (uint32_t i = 0; i < to->result_count; ++i) {
    const View* found = call->results + i;
    taeda_tensor_info info = {.size = sizeof info};
    if (!found->data) continue; /* not asked for */
    const int32_t status =
        api->tensor_empty(found->ndim, found->sizes, NULL, found->dtype, to->device, &to->results[i].as.tensor);
    if (status != TAEDA_OK) return status;
    to->results[i].kind = TAEDA_VALUE_TENSOR;
    api->tensor_read(to->results[i].as.tensor, &info);
    if (found->n) memcpy(worker_view(info.data), found->data, (size_t)found->n * size_of(found->dtype));
  }
  return TAEDA_OK;
}
static void leave_call(Job* job) {} /* to the thread that waits */
static int32_t launch(void* context, const taeda_call* from) {
  const Kernel* kernel = context;
  if (sim_must_fail(FAIL_LAUNCH)) return api->set_error(TAEDA_E_RUNTIME, "a launch failed on request");
  int32_t status = kernel->table == kAdds && sim_races() ? api->alert_not_deterministic(kernel->name) : TAEDA_OK;
  if (status != TAEDA_OK) return status;
  Call* call = malloc(sizeof *call);
  if (!call) return api->set_error(TAEDA_E_MEMORY, "out of host memory");
  if ((status = copy_call(kernel, from, call)) != TAEDA_OK) return end_call(&call->job), status;
  call->job.site = sim_site(from->op);
  Stream* stream = sim_stream(from->device.index, from->stream);
  if (from->result_count) call->job.end = leave_call;
  sim_submit(stream, &call->job);
  if (from->result_count == 0) return TAEDA_OK;
  status = sim_wait(stream);
  if (status == TAEDA_OK) status = deliver(call, from);
  end_call(&call->job);
  return status;
}
int32_t sim_register(const Kernel* kernels) {
  int32_t status = TAEDA_OK;
  for (const Kernel* k = kernels; k->name && status == TAEDA_OK; ++k)
    status = api->kernel_register(k->name, sim_number, launch, (void*)k, "taeda-backend-sim", NULL);
  return status;
}
