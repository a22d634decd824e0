// C functions over graphs, for Python.
#include "harness.h"

using namespace taeda::cuda;

namespace {

Graph& graph_of(void* graph) { return *static_cast<Graph*>(graph); }

}  // namespace

TAEDA_CUDA_EXPORT int taeda_cuda_new_pool(void* m, uint64_t* pool) {
  return on(m, [&](Machine& machine) { return *pool = machine.graphs().new_pool(), Status::Ok; });
}
/// The number of the recording that a stream belongs to; 0: none.
TAEDA_CUDA_EXPORT int taeda_cuda_capture_of(void* m, int device, void* stream, uint64_t* number) {
  return on(m, [&](Machine& machine) {
    *number = 0;
    return machine.graphs().any() ? machine.driver().capture_of(device, stream, *number) : Status::Ok;
  });
}
TAEDA_CUDA_EXPORT int taeda_cuda_graph_make(void* m, int device, void** graph) {
  return on(m, [&](Machine& machine) { return *graph = new Graph(machine, device), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_graph_end(void* m, void* graph) {
  return on(m, [&](Machine&) { return delete static_cast<Graph*>(graph), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_graph_begin_capture(void* m, void* graph, void* stream, uint64_t pool, int mode) {
  return on(m, [&](Machine&) { return graph_of(graph).begin(stream, pool, CaptureMode(mode)); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_graph_end_capture(void* m, void* graph) {
  return on(m, [&](Machine&) { return graph_of(graph).end(); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_graph_instantiate(void* m, void* graph) {
  return on(m, [&](Machine&) { return graph_of(graph).instantiate(); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_graph_drop_recording(void* m, void* graph) {
  return on(m, [&](Machine&) { return graph_of(graph).drop_recording(), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_graph_replay(void* m, void* graph, void* stream) {
  return on(m, [&](Machine&) { return graph_of(graph).replay(stream); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_graph_reset(void* m, void* graph) {
  return on(m, [&](Machine&) { return graph_of(graph).reset(), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_graph_draw(void* m, void* graph, const char* path) {
  return on(m, [&](Machine&) { return graph_of(graph).draw(path); });
}
