// Graphs of calls for backends that can run them as a whole.
#pragma once
#include <memory>
#include <vector>

#include "taeda/dispatch.h"

namespace taeda {

/// One call. Its tensors without elements (of "meta") are inputs of the graph or results of calls before it.
struct GraphCall {
  const OpEntry* op;
  Values arguments;             // in the order of the schema
  std::vector<Tensor> results;  // undefined where nobody wants one
};
struct Graph {
  std::vector<GraphCall> calls;
  std::vector<Tensor> inputs, outputs;
};

/// A graph that a backend has made ready.
class TAEDA_API Executable {
 public:
  virtual ~Executable() = default;
  /// Tensors of the device, of the shapes and dtypes of the inputs; gives one for each output. ValueError for others.
  virtual std::vector<Tensor> run(const std::vector<Tensor>& inputs) = 0;
};

/// Null where the backend of the device has no graphs, or declines this one; `why` is then what it says of that, if
/// anything.
TAEDA_API std::unique_ptr<Executable> compile_graph(Device device, const Graph& graph, std::string& why);

}  // namespace taeda
