// LAPACK's operators, and those that read lengths and offsets anyway, for devices that have none: computed on the
// host, from where the results go back.
#include "core/decompose.h"
#include "decompose/common.h"
#include "taeda/levels.h"

namespace taeda::decompose {
namespace {

/// The device of the tensors among arguments.
Device device_of() { return {}; }
template <class First, class... Rest>
Device device_of(const First& first, const Rest&... rest) {
  if constexpr (std::is_same_v<First, Tensor>)
    if (first.defined() && first.device() != Device{}) return first.device();
  return device_of(rest...);
}

template <class T>
decltype(auto) to_host(const T& argument) {
  if constexpr (std::is_same_v<T, Tensor>) return argument.defined() ? ops::to_device(argument, Device{}) : argument;
  else return (argument);
}
Tensor back(const Tensor& t, Device device) { return ops::to_device(t, device); }
template <class... T>
std::tuple<T...> back(const std::tuple<T...>& results, Device device) {
  return std::apply([device](const T&... t) { return std::tuple<T...>(back(t, device)...); }, results);
}

template <auto function> struct OnHost;
template <class Result, class... Args, Result (*function)(Args...)> struct OnHost<function> {
  static Result call(Args... arguments) { return back(function(to_host(arguments)...), device_of(arguments...)); }
};

#define ON_HOST(operation)                                                                                       \
  static const AddDecomposition operation##_entry(#operation, &Boxed<&OnHost<&ops::operation>::call>::call,      \
                                                  erased<taeda::op::operation>(&OnHost<&ops::operation>::call)); \
  static const bool operation##_noted = (note_on_host(#operation), true);
ON_HOST(_linalg_det)
ON_HOST(_linalg_eig)
ON_HOST(_linalg_eigh)
ON_HOST(_linalg_slogdet)
ON_HOST(_linalg_solve_ex)
ON_HOST(_linalg_svd)
ON_HOST(_pivots_to_permutation)
ON_HOST(ctc_loss_backward)
ON_HOST(ctc_loss_forward)
ON_HOST(embedding_bag)
ON_HOST(geqrf)
ON_HOST(linalg_cholesky_ex)
ON_HOST(linalg_inv_ex)
ON_HOST(linalg_ldl_factor_ex)
ON_HOST(linalg_ldl_solve)
ON_HOST(linalg_lu_factor_ex)
ON_HOST(linalg_lu_solve)
ON_HOST(linalg_qr)
ON_HOST(linalg_solve_triangular)
#undef ON_HOST

/// a x b, each component of the two others.
Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  const auto turned = [dim](const Tensor& t, int64_t by) { return ops::roll(t, Shape{by}, Shape{dim}); };
  return turned(self, -1) * turned(other, -2) - turned(self, -2) * turned(other, -1);
}
DECOMPOSE(linalg_cross)

}  // namespace
}  // namespace taeda::decompose
