// Results that Python functions and plug-ins make: which may be absent, where they must lie, what is known of them.
#include <algorithm>
#include <map>

#include "taeda/backend.h"
#include "taeda/library.h"

namespace taeda {
namespace {

/// What each result of a direct operator is; inference does not run for these. `shape_of`: it has this argument's
/// shape.
struct Known {
  enum class Type : uint8_t { Any, Int64, First };  // First: that of the first argument
  Type type = Type::Any;
  int rank = -1;
  std::string_view shape_of = {};
};

const std::vector<Known>* known_results(std::string_view op) {
  using enum Known::Type;
  static const auto* table = new std::map<std::string_view, std::vector<Known>>{
      {"index", {{First}}},
      {"nonzero", {{Int64, 2}}},
      {"multinomial", {{Int64}}},
      {"poisson", {{First, -1, "self"}}},
      {"bincount", {{Any, 1}}},
      {"histc", {{First, 1}}},
      {"searchsorted", {{Int64}}},
      {"unique_all", {{First, 1}, {Int64, 1}, {Int64, -1, "self"}, {Int64, 1}}},
      {"unique_consecutive_all", {{First, 1}, {Int64}, {Int64, 1}}},
  };
  const auto found = table->find(op);
  return found == table->end() ? nullptr : &found->second;
}

std::string result_text(const ResultsOf& made, size_t i) {
  return std::string(made.op.name) + ": result '" + made.schema.results[i].name + "' of " + std::string(made.who);
}

void check_shape(const ResultsOf& made, size_t i, const Tensor& result, std::string_view like) {
  for (size_t a = 0; a < made.schema.arguments.size() && a < made.arguments.size(); ++a) {
    const Tensor& wanted = made.arguments[a];
    if (made.schema.arguments[a].name != like || !wanted.defined()) continue;
    if (!std::ranges::equal(result.sizes(), wanted.sizes())) [[unlikely]]
      fail(ErrorKind::Value, result_text(made, i), " must have the shape of argument '", like, "', ",
           shape_text(wanted.sizes()), ", found ", shape_text(result.sizes()));
  }
}

void check_known(const ResultsOf& made, size_t i, const Tensor& result, const Known& known) {
  if (known.type != Known::Type::Any && !made.arguments.empty() && made.arguments[0].defined()) {
    const DType wanted = known.type == Known::Type::Int64 ? DType::Int64 : made.arguments[0].dtype();
    if (result.dtype() != wanted) [[unlikely]]
      fail(ErrorKind::Type, result_text(made, i), " must have dtype ", name(wanted), ", found ", name(result.dtype()));
  }
  if (known.rank >= 0 && result.dim() != known.rank) [[unlikely]]
    fail(ErrorKind::Value, result_text(made, i), " must have ", known.rank, " dimension(s), found shape ",
         shape_text(result.sizes()));
  if (!known.shape_of.empty()) check_shape(made, i, result, known.shape_of);
}

}  // namespace

bool may_be_absent(const Schema& schema, size_t i, int64_t mask) {
  constexpr std::string_view gradients = "_backward";
  const std::string_view name = schema.name;
  return schema.results.size() > 1 && name.find(gradients) != name.npos && !(mask >> i & 1);
}

int64_t mask_of(const Schema& schema, const Values& arguments) {
  for (size_t i = 0; i < schema.arguments.size() && i < arguments.size(); ++i)
    if (schema.arguments[i].name == "output_mask")
      if (auto* mask = std::get_if<int64_t>(&arguments[i])) return *mask;
  return 0;
}

std::vector<Tensor> tensor_arguments(const Values& arguments) {
  std::vector<Tensor> out(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (auto* t = std::get_if<Tensor>(&arguments[i])) out[i] = *t;
  return out;
}

std::optional<Device> device_of_call(const Values& arguments) {
  std::optional<Device> found;
  const auto look = [&](const Tensor& t) {
    if (t.defined() && !t.is_wrapped_number() && (!found || found->backend == kCPU)) found = t.device();
  };
  for (const Value& v : arguments) {
    if (auto* t = std::get_if<Tensor>(&v)) look(*t);
    if (auto* list = std::get_if<std::vector<Tensor>>(&v)) std::ranges::for_each(*list, look);
    if (std::holds_alternative<Device>(v)) return std::nullopt;  // the call says itself where it wants its results
  }
  return found;
}

void check_device(const ResultsOf& made, size_t i, const Tensor& result, Device wanted) {
  if (result.device() != wanted) [[unlikely]]
    fail(ErrorKind::Runtime, result_text(made, i), " must be on device '", to_string(wanted), "', found one on '",
         to_string(result.device()), "'");
}

void check_layer_results(const ResultsOf& made, const Values& arguments, const Values& results) {
  // Operators of plug-ins may move data; element types and shapes are what layers change (autocast, batching).
  const std::optional<Device> wanted = made.op.go_on_boxed ? device_of_call(arguments) : std::nullopt;
  // What has no memory may stand for something that has: `__torch_dispatch__` of a wrapper may give what it wraps.
  if (!wanted || wanted->backend == kMeta) return;
  for (size_t i = 0; i < results.size(); ++i) {
    if (auto* t = std::get_if<Tensor>(&results[i]); t && t->defined()) check_device(made, i, *t, *wanted);
    if (auto* list = std::get_if<std::vector<Tensor>>(&results[i]))
      for (const Tensor& t : *list)
        if (t.defined()) check_device(made, i, t, *wanted);
  }
}

void check_kernel_results(const ResultsOf& made, Device device, std::span<const Tensor> results) {
  const std::vector<Known>* known = known_results(made.schema.name);
  constexpr std::string_view gradient = "grad_";
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) continue;
    check_device(made, i, results[i], device);
    if (known) check_known(made, i, results[i], (*known)[i]);
    const std::string_view name = made.schema.results[i].name;
    if (name.starts_with(gradient)) check_shape(made, i, results[i], name.substr(gradient.size()));
  }
}

}  // namespace taeda
