// Decompositions: operators in terms of others, for backends that have no kernel of their own.
//
// Unlike composites these operators are one kernel where speed counts. Two readers share what is written here:
//   * a backend without a kernel runs it below the layers, where it needs no derivative;
//   * while higher derivatives are recorded, autograd runs that of a `*_backward` operator above itself, so that its
//   steps are recorded.
//     Such a decomposition is the one formula of a gradient, to which kernels are held.
// Halves are computed with in float32 on both ways.
#pragma once
#include <tuple>
#include <type_traits>

#include "taeda/boxing.h"
#include "taeda/stub.h"

namespace taeda {

/// From the inputs of an operator to its results.
using Decomposition = Values (*)(Values inputs);

template <class Fn>
struct WithoutKeys;
template <class Result, class... Args>
struct WithoutKeys<Result(KeySet, Args...)> {
  using type = Result (*)(Args...);
};
/// A function with the arguments of an operator's schema.
template <class Op>
using TypedDecomposition = typename WithoutKeys<typename Op::Fn>::type;

/// `typed` may be null where only backends ask for it.
TAEDA_API void add_decomposition(const char* op, Decomposition decomposition, void* typed);
/// Null where there is none.
TAEDA_API Decomposition decomposition_of(std::string_view op);
/// The function behind it; an error where there is none.
TAEDA_API void* typed_decomposition(std::string_view op);

template <class Op>
void* erased(TypedDecomposition<Op> function) {
  return reinterpret_cast<void*>(function);
}
struct AddDecomposition {
  AddDecomposition(const char* op, Decomposition decomposition, void* typed = nullptr) {
    add_decomposition(op, decomposition, typed);
  }
};

/// `TAEDA_DECOMPOSE(name, "op", function)` for a typed function with the arguments of the schema.
#define TAEDA_DECOMPOSE(name, op, function) static const AddDecomposition name##_entry(op, &Boxed<&function>::call);

/// A result of arguments in float32 in the dtype that the first of them had.
TAEDA_API Tensor narrowed(const Tensor& t, DType first);

namespace detail {
template <class T>
decltype(auto) widened_argument(const T& argument) {
  if constexpr (std::is_same_v<T, Tensor>) return in_float32(argument);
  else return (argument);
}
inline Tensor narrowed_result(const Tensor& t, DType first) {
  return first == DType::Float16 || first == DType::BFloat16 ? narrowed(t, first) : t;
}
template <class... T>
std::tuple<T...> narrowed_result(const std::tuple<T...>& results, DType first) {
  return std::apply([first](const T&... t) { return std::tuple<T...>(narrowed_result(t, first)...); }, results);
}
inline DType first_dtype() { return DType::Float32; }
template <class T, class... Rest>
DType first_dtype(const T& argument, const Rest&... rest) {
  if constexpr (std::is_same_v<T, Tensor>)
    if (argument.defined()) return argument.dtype();
  return first_dtype(rest...);
}
}  // namespace detail

/// An operator by its decomposition, in the layers that hold where it is called.
template <class Op, class... Args>
auto decomposed(const Args&... args) {
  static const auto function = reinterpret_cast<TypedDecomposition<Op>>(typed_decomposition(Op::entry.name));
  auto result = detail::narrowed_result(function(detail::widened_argument(args)...), detail::first_dtype(args...));
  stub::settle(result);
  return result;
}

}  // namespace taeda
