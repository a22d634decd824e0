// Outputs that the core has made for a kernel from Python: it fills them, or gives results that are put there.
#include "python/library.h"
#include "taeda/stub.h"

namespace taeda::py {
namespace {

std::string output_text(const OpEntry& op, const Schema& schema, size_t i, std::string_view who) {
  return std::string(op.name) + ": result '" + schema.results[i].name + "' of " + std::string(who);
}

/// A kernel has given an output another place or shape: the output is what it was, and that is an error.
void hold_in_place(const OpEntry& op, const Schema& schema, const Values& outputs, const std::vector<Tensor>& before,
                   std::string_view who) {
  size_t moved = outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& now = std::get<Tensor>(outputs[i]);
    if (same_place(now, before[i])) continue;
    assign_storage(now, before[i]);
    moved = i;
  }
  if (moved < outputs.size())
    fail(ErrorKind::Runtime, output_text(op, schema, moved, who), " was given another shape or memory than ",
         shape_text(before[moved].sizes()), " by its kernel: outputs are filled as they are");
}

void check_result(const OpEntry& op, const Schema& schema, size_t i, const Tensor& result, const Tensor& output,
                  std::string_view who) {
  if (result.dtype() != output.dtype())
    fail(ErrorKind::Type, output_text(op, schema, i, who), " must have dtype ", name(output.dtype()), ", found ",
         name(result.dtype()));
  if (!std::ranges::equal(result.sizes(), output.sizes()))
    fail(ErrorKind::Value, output_text(op, schema, i, who), " must have shape ", shape_text(output.sizes()), ", found ",
         shape_text(result.sizes()));
  if (result.device() != output.device())
    fail(ErrorKind::Runtime, output_text(op, schema, i, who), " must be on device '", to_string(output.device()),
         "', found one on '", to_string(result.device()), "'");
}

/// A kernel of an operator without results may give what it wrote to.
void check_nothing(const OpEntry& op, PyObject* found, const Values& arguments, std::string_view who) {
  if (found == Py_None) return;
  if (is_tensor(found))
    for (const Value& v : arguments)
      if (auto* t = std::get_if<Tensor>(&v); t && t->same(tensor_of(found))) return;
  fail(ErrorKind::Type, op.name, ": expected None from ", who, ", since the operator has no results, found ",
       type_name(found));
}

}  // namespace

void settle_outputs(const OpEntry& op, const Schema& schema, PyObject* found, const Values& arguments,
                    const std::vector<Tensor>& before, std::string_view who) {
  const Values outputs(arguments.begin(), arguments.begin() + std::ptrdiff_t(before.size()));
  hold_in_place(op, schema, outputs, before, who);
  if (outputs.empty()) return check_nothing(op, found, arguments, who);
  if (found == Py_None) return;
  const Values given = results_from_python(found, schema, who);
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(std::get<Tensor>(given[i]));
    check_result(op, schema, i, results[i], before[i], who);
  }
  const Below below(Layer::Autograd);
  for (size_t i = 0; i < results.size(); ++i)
    for (size_t k = 0; k < i; ++k)  // one that shows an output which is about to be overwritten
      if (!same_place(results[i], before[i]) && overlaps(results[i], before[k]))
        results[i] = stub::clone_of(results[i]);
  for (size_t i = 0; i < results.size(); ++i)
    if (!same_place(results[i], before[i])) stub::copy_into(std::get<Tensor>(outputs[i]), results[i]);
}

}  // namespace taeda::py
