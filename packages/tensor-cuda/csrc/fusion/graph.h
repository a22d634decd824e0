// Graphs of calls as they run: chains in one launch each, other calls as programs make them.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusion/chain.h"
#include "fusion/kernels.h"
#include "ops/call.h"

namespace taeda::cuda {

/// An argument of a call, kept: its lists and texts are its own, and its tensors are values of the graph.
struct KeptArgument {
  taeda_value value{};
  int place = -1;           // of a tensor: which value; -1: none
  std::vector<int> places;  // of a list of tensors
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::string text;
};
struct GraphCall {
  taeda_op op;
  std::vector<KeptArgument> arguments;
  std::vector<int> results;  // values; -1: nobody wants it
};
/// Calls that run together: several as a chain, or one.
struct Unit {
  std::vector<int> calls;
  Chain chain;
  int end = -1;                      // the call that folds, one of them
  std::vector<int> inputs, outputs;  // values
  std::vector<FusedNumber> numbers;  // of the chain
  int folded = -1, fold = -1;        // values: what is folded, and what it comes to
  uint64_t dimensions = 0;           // that are folded
  double divisor = 1;
  const FusedKernel* kernel = nullptr;
};

class FusedGraph {
 public:
  /// Null, and `why`, where no calls of it make a chain, or chains cannot be compiled.
  static std::unique_ptr<FusedGraph> make(int device, const taeda_graph& graph, std::string& why);
  ~FusedGraph();
  int32_t run(const taeda_tensor* inputs, taeda_tensor* outputs, StreamHandle stream) const;

 private:
  struct Maker;
  /// What is known of a value before it is there.
  struct Value {
    taeda_tensor constant = nullptr;  // owned
    int32_t dtype = 0;
    std::vector<int64_t> sizes, strides;
    int last_unit = -1;  // that uses it; of outputs of the graph none
  };
  struct Values;
  int32_t run_call(const GraphCall& call, Values& values) const;
  int32_t run_chain(const Unit& unit, Values& values, StreamHandle stream) const;

  int device_ = 0;
  size_t inputs_ = 0;
  std::vector<Value> values_;  // the inputs first
  std::vector<GraphCall> calls_;
  std::vector<Unit> units_;
  std::vector<int> outputs_;
};

/// Puts the functions of graphs into the table that taeda is given.
void offer_graphs(taeda_backend& backend);

}  // namespace taeda::cuda
