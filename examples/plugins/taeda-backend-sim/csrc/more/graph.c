/* Graphs: calls are kept with the places of their tensors, and made again, one after the other, without the host's
 * program in between. A processor that fuses would look at them here. */
#include <stdlib.h>
#include <string.h>

#include "more.h"

enum { kArguments = 32, kResults = 8, kInts = 8 };

typedef struct Step {
  taeda_op op;
  uint32_t arguments, results;
  taeda_value given[kArguments];
  int32_t from[kArguments];        /* place of the tensor, -1 where the value is a constant */
  int32_t to[kResults];            /* place of the result */
  int64_t ints[kArguments][kInts]; /* of arguments that are lists of numbers */
  char text[64];                   /* of an argument that is one */
} Step;
typedef struct Program {
  uint32_t steps, inputs, outputs, places;
  Step* step;
  int32_t* output;         /* places */
  taeda_tensor* constants; /* by place; null for what is computed */
} Program;

/* Which tensor is at which place, while a graph is read. */
typedef struct Places {
  taeda_tensor* known;
  uint32_t count;
} Places;
static int32_t place_of(const Places* places, taeda_tensor tensor) {
  for (uint32_t i = 0; i < places->count; ++i)
    if (places->known[i] == tensor) return (int32_t)i;
  return -1;
}
static int32_t new_place(Places* places, taeda_tensor tensor) {
  places->known[places->count] = tensor;
  return (int32_t)places->count++;
}
static int32_t constant(Program* program, Places* places, taeda_tensor tensor) {
  const int32_t place = new_place(places, tensor);
  api->tensor_retain(program->constants[place] = tensor);
  return place;
}

/* Lists of tensors and long ones of numbers are beyond this device: calls with them are for the program. */
static bool read_step(Program* program, Places* places, const taeda_graph_node* node, Step* step) {
  if (node->argument_count > kArguments || node->result_count > kResults) return false;
  *step = (Step){.op = node->op, .arguments = node->argument_count, .results = node->result_count};
  for (uint32_t i = 0; i < step->arguments; ++i) {
    const taeda_value* value = step->given + i;
    step->given[i] = node->arguments[i];
    step->from[i] = -1;
    if (value->kind == TAEDA_VALUE_TENSOR) {
      step->from[i] = place_of(places, value->as.tensor);
      if (step->from[i] < 0) step->from[i] = constant(program, places, value->as.tensor);
    } else if (value->kind == TAEDA_VALUE_TEXT && value->count < (int64_t)sizeof step->text) {
      memcpy(step->text, value->as.text, (size_t)value->count);
    } else if (value->kind == TAEDA_VALUE_INTS && value->count <= kInts) {
      memcpy(step->ints[i], value->as.integers, (size_t)value->count * 8);
    } else if (value->kind >= TAEDA_VALUE_INTS || value->kind == TAEDA_VALUE_TEXT) {
      return false;
    }
  }
  for (uint32_t i = 0; i < step->results; ++i) step->to[i] = new_place(places, node->results[i]);
  return true;
}

static void graph_release(void* context, taeda_executable executable) {
  Program* self = executable;
  for (uint32_t i = 0; self->constants && i < self->places; ++i) api->tensor_release(self->constants[i]);
  free(self->constants), free(self->output), free(self->step), free(self);
}

static int32_t graph_compile(void* context, int32_t index, const taeda_graph* graph, taeda_executable* executable) {
  uint32_t most = graph->input_count + graph->output_count;
  for (uint32_t i = 0; i < graph->node_count; ++i) most += graph->nodes[i].argument_count + graph->nodes[i].result_count;
  Program* made = calloc(1, sizeof *made);
  *made = (Program){.steps = graph->node_count,
                    .inputs = graph->input_count,
                    .outputs = graph->output_count,
                    .places = most,
                    .step = calloc(graph->node_count + 1, sizeof(Step)),
                    .output = calloc(graph->output_count + 1, sizeof(int32_t)),
                    .constants = calloc(most + 1, sizeof(taeda_tensor))};
  Places places = {.known = calloc(most + 1, sizeof(taeda_tensor))};
  bool fits = true;
  for (uint32_t i = 0; i < made->inputs; ++i) new_place(&places, graph->inputs[i]);
  for (uint32_t i = 0; i < made->steps && fits; ++i) fits = read_step(made, &places, graph->nodes + i, made->step + i);
  for (uint32_t i = 0; i < made->outputs; ++i) {
    made->output[i] = place_of(&places, graph->outputs[i]);
    if (made->output[i] < 0) made->output[i] = constant(made, &places, graph->outputs[i]);
  }
  free(places.known);
  if (!fits) return graph_release(context, made), TAEDA_DECLINED;
  *executable = made;
  return TAEDA_OK;
}

static int32_t run_step(const Step* step, taeda_tensor* at) {
  taeda_value given[kArguments], made[kResults];
  for (uint32_t i = 0; i < step->arguments; ++i) {
    given[i] = step->given[i];
    if (step->from[i] >= 0) given[i].as.tensor = at[step->from[i]];
    if (given[i].kind == TAEDA_VALUE_TEXT) given[i].as.text = step->text;
    if (given[i].kind == TAEDA_VALUE_INTS) given[i].as.integers = step->ints[i];
  }
  TRY(api->op_call(step->op, given, step->arguments, made, step->results));
  for (uint32_t i = 0; i < step->results; ++i) at[step->to[i]] = made[i].as.tensor;
  return TAEDA_OK;
}
static int32_t graph_run(void* context, taeda_executable executable, const taeda_tensor* inputs, taeda_tensor* outputs,
                         taeda_stream stream) {
  const Program* self = executable;
  taeda_tensor* at = calloc(self->places + 1, sizeof *at);
  int32_t status = TAEDA_OK;
  for (uint32_t i = 0; i < self->places; ++i) api->tensor_retain(at[i] = i < self->inputs ? inputs[i] : self->constants[i]);
  for (uint32_t i = 0; i < self->steps && status == TAEDA_OK; ++i) status = run_step(self->step + i, at);
  for (uint32_t i = 0; i < self->outputs && status == TAEDA_OK; ++i) api->tensor_retain(outputs[i] = at[self->output[i]]);
  for (uint32_t i = 0; i < self->places; ++i) api->tensor_release(at[i]);
  return free(at), status;
}

void sim_offer_graphs(taeda_backend* backend) {
  backend->graph_compile = graph_compile;
  backend->graph_run = graph_run;
  backend->graph_release = graph_release;
}
