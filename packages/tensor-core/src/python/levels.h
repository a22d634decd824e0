// Levels whose rule is a Python callable, and Python objects as payloads.
#pragma once
#include <set>

#include "python/library.h"
#include "taeda/levels.h"

namespace taeda::py {

/// The rule is called as rule(operator's name, arguments); it is kept while the level is in force, as is what says
/// whether a tensor of the level shows that it requires a gradient.
struct PythonLevel final : Level {
  std::optional<Callback> rule, requires_grad;
  std::set<std::string, std::less<>> composites;          // that it takes
  std::shared_ptr<const std::vector<bool>> element_wise;  // operators by id, which are computed without the rule
  PythonLevel(std::string name, bool sees_all) : Level(std::move(name), sees_all) {}

  bool takes(const OpEntry& op) const override;
  Values call(const OpEntry& op, Values arguments) override;
};

struct PythonPayload final : Payload {
  PyObject* object;
  PythonPayload(Ref<Level> level, PyObject* kept) : Payload(std::move(level)), object(Py_NewRef(kept)) {}
  ~PythonPayload() override { let_go(); }
  int traverse(PyVisit visit, void* arg) const override { return object ? visit(object, arg) : 0; }
  void clear() noexcept override { let_go(); }

 private:
  void let_go() noexcept;
};

/// A tensor without memory that carries an object, and stays together with its wrapper.
Object carrier_of(PythonLevel& level, PyObject* object, IntSpan sizes, DType dtype, Device device);

/// An element-wise operator for a level whose tensors carry tensors of a batch, which is their first dimension; nothing
/// where the level's rule has to see it. Holds Python's lock.
std::optional<Values> call_element_wise(PythonLevel& level, const OpEntry& op, const Values& arguments);

}  // namespace taeda::py
