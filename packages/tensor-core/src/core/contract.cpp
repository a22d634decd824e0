// Comparing the schema that a kernel was written for with the operator's own, and calling it across the difference.
#include "core/contract.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "taeda/stub.h"

namespace taeda {
namespace {

/// Where an argument of the kernel comes from: its place in the call, or nowhere (-1): the kernel's own default.
struct From {
  int place = -1;
  Value missing = {};
};
struct Difference {
  std::vector<From> arguments;
  std::vector<size_t> unknown;  // places in the call that the kernel was written without
  bool none() const {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].place != int(i)) return false;
    return unknown.empty();
  }
};

/// Operands are tensors to a kernel: a number has become one before.
bool same_type(const SchemaArgument& a, const SchemaArgument& b) {
  const auto plain = [](ArgumentType type) { return type == ArgumentType::Operand ? ArgumentType::Tensor : type; };
  return plain(a.type) == plain(b.type) && a.list == b.list && a.optional == b.optional &&
         a.optional_items == b.optional_items && a.written == b.written;
}

[[noreturn]] void refuse(const OpEntry& op, const Schema& theirs, const std::string& what) {
  fail(ErrorKind::Value, op.name, ": a kernel written for '", theirs.text, "' cannot serve '", op.schema, "': ", what);
}

/// Schemas of built-in operators leave out the name of the overload.
std::string_view plain_name(std::string_view name) { return name.substr(0, name.find('.')); }

Difference difference(const OpEntry& op, std::string_view text) {
  const Schema theirs = parse_schema(text);
  const Schema& ours = schema_of(op);
  if (plain_name(theirs.name) != plain_name(op.name)) refuse(op, theirs, "it is of another name");
  const auto same_result = [](const SchemaResult& a, const SchemaResult& b) {
    return a.type == b.type && a.list == b.list;
  };
  if (!std::ranges::equal(theirs.results, ours.results, same_result)) refuse(op, theirs, "its results are others");
  Difference out;
  std::vector<bool> taken(ours.arguments.size());
  for (const SchemaArgument& wanted : theirs.arguments) {
    const auto named = [&](const SchemaArgument& a) { return a.name == wanted.name; };
    const auto found = std::ranges::find_if(ours.arguments, named);
    if (found == ours.arguments.end()) {
      if (!wanted.has_default) refuse(op, theirs, "there is no argument '" + wanted.name + "', which has no default");
      const bool number = wanted.type == ArgumentType::Operand && std::holds_alternative<Scalar>(wanted.missing);
      out.arguments.push_back({-1, number ? Value(Tensor(std::get<Scalar>(wanted.missing))) : wanted.missing});
      continue;
    }
    if (!same_type(wanted, *found)) refuse(op, theirs, "argument '" + wanted.name + "' is of another type");
    const auto place = size_t(found - ours.arguments.begin());
    taken[place] = true;
    out.arguments.push_back({int(place), {}});
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i]) continue;
    if (!ours.arguments[i].has_default)
      refuse(op, theirs, "it has no argument '" + ours.arguments[i].name + "', which has no default");
    out.unknown.push_back(i);
  }
  return out;
}
Difference difference(const OpEntry& op, const WrittenFor& author) {
  return difference(op, author.schema.empty() ? std::string_view(op.schema) : author.schema);
}

bool same_number(const Scalar& a, const Scalar& b) {
  return (a.to_double() == b.to_double() || (std::isnan(a.to_double()) && std::isnan(b.to_double()))) &&
         a.imag() == b.imag();
}
bool same_number(const Tensor& number, const Tensor& other) {
  return number.is_wrapped_number() && number.dtype() == other.dtype() &&
         std::memcmp(number.bytes(), other.bytes(), size_t(number.item_bytes())) == 0;
}

/// Whether an argument has its default; an undefined tensor is None, and a number may have become a tensor.
bool is_default(const Value& value, const Value& missing) {
  if (auto* t = std::get_if<Tensor>(&value)) {
    if (!t->defined()) return std::holds_alternative<std::monostate>(missing);
    if (auto* number = std::get_if<Scalar>(&missing)) return same_number(*t, Tensor(*number));
  }
  if (value.index() != missing.index()) return false;
  return std::visit(
      [&]<class T>(const T& held) {
        const T& other = std::get<T>(missing);
        if constexpr (std::is_same_v<T, std::monostate>) return true;
        else if constexpr (std::is_same_v<T, Scalar>) return same_number(held, other);
        else if constexpr (std::is_same_v<T, Shape>) return std::ranges::equal(IntSpan(held), IntSpan(other));
        else if constexpr (std::is_same_v<T, std::vector<Tensor>>) return held.empty() && other.empty();
        else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, DType> ||
                           std::is_same_v<T, Device> || std::is_same_v<T, std::vector<double>>)
          return held == other;
        else return false;
      },
      value);
}

/// Results to be filled by a kernel whose operator makes none: their shapes and dtypes are those of a call without
/// elements.
Values made_for(const OpEntry& op, const Values& arguments) {
  Values bare;
  for (const Value& value : arguments) {
    bare.push_back(value);
    const auto strip = [](Tensor& t) {
      if (t.defined() && !t.is_wrapped_number())
        t = empty_strided(t.sizes(), contiguous_strides(t.sizes()), t.dtype(), Device{kMeta, 0});
    };
    if (auto* t = std::get_if<Tensor>(&bare.back())) strip(*t);
    if (auto* list = std::get_if<std::vector<Tensor>>(&bare.back())) std::ranges::for_each(*list, strip);
  }
  Values made = call_operator(op, std::move(bare));
  const Device device = device_of_call(arguments).value_or(Device());
  for (Value& value : made) {
    auto* t = std::get_if<Tensor>(&value);
    check(t && t->defined(), ErrorKind::NotImplemented, op.name,
          ": a kernel that fills outputs cannot serve an operator whose results are not all tensors");
    *t = empty(t->sizes(), t->dtype(), device);
  }
  return made;
}

/// The call by whatever else there is, for an argument that the kernel was written without.
Values otherwise(const OpEntry& op, KeySet keys, Values arguments, const std::string& who, size_t place) {
  const size_t outputs = arguments.size() - schema_of(op).arguments.size();
  if (op.kernels && !as_runtime(&op)) {
    if (const BoxedFn* other = stand_in(op, BackendId(std::countr_zero(keys.backends().bits()))))
      return (*other)(op, keys, std::move(arguments));
  } else if (RuntimeOp* own = as_runtime(&op)) {
    if (const auto functions = own->functions(); functions->composite && !outputs)
      return functions->composite(arguments);
  } else {
    return op.go_on_boxed(op, keys.without(Layer::Kernels), arguments);
  }
  fail(ErrorKind::NotImplemented, op.name, ": argument '", schema_of(op).arguments[place].name, "' is not known to ",
       who, ", which was written before there was one, and is not at its default; nothing else computes the operator ",
       "on this device");
}

}  // namespace

Kind convention_of(const OpEntry& op) {
  if (const RuntimeOp* own = as_runtime(&op)) return own->functions()->infer ? Kind::Structured : Kind::Direct;
  return op.kind == Kind::Structured ? Kind::Structured : Kind::Direct;
}

bool serves_as_it_is(const OpEntry& op, const WrittenFor& author) {
  return difference(op, author).none() && author.convention == convention_of(op);
}

BoxedFn adapted(const OpEntry& operation, const WrittenFor& author, WrittenKernel kernel, std::string who) {
  return [known = difference(operation, author), convention = author.convention, kernel = std::move(kernel),
          who = std::move(who)](const OpEntry& op, KeySet keys, Values arguments) {
    const Schema& schema = schema_of(op);
    const size_t outputs = arguments.size() - schema.arguments.size();
    for (const size_t place : known.unknown)
      if (!is_default(arguments[outputs + place], schema.arguments[place].missing))
        return otherwise(op, keys, std::move(arguments), who, place);
    const bool fills = convention == Kind::Structured;
    Values made = fills ? outputs ? Values(arguments.begin(), arguments.begin() + std::ptrdiff_t(outputs))
                                  : made_for(op, arguments)
                        : Values();
    Values given = made;
    for (const From& from : known.arguments)
      given.push_back(from.place < 0 ? from.missing : arguments[outputs + size_t(from.place)]);
    Values results = kernel(op, keys, made.size(), std::move(given));
    if (fills) return outputs ? Values() : made;
    if (!outputs) return results;
    const std::vector<Tensor> found = tensor_arguments(results);
    for (size_t i = 0; i < outputs; ++i) {
      const Tensor& output = std::get<Tensor>(arguments[i]);
      check(found[i].defined() && std::ranges::equal(found[i].sizes(), output.sizes()), ErrorKind::Value, op.name,
            ": result '", schema.results[i].name, "' of ", who, " must have shape ", shape_text(output.sizes()));
      stub::copy_into(output, found[i]);
    }
    return Values();
  };
}

}  // namespace taeda
