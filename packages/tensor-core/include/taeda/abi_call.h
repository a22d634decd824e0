// From typed arguments to a C kernel: values packed on the stack, without boxing and without the heap.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>

#include "taeda/abi.h"
#include "taeda/dispatch.h"

namespace taeda::abi {

// A list of tensors goes to C as it is: an array of handles.
static_assert(sizeof(Tensor) == sizeof(taeda_tensor));

inline taeda_tensor handle(const Tensor& t) noexcept { return reinterpret_cast<taeda_tensor>(t.impl()); }
inline taeda_device to_c(Device d) noexcept { return {d.backend, d.index}; }

inline taeda_value none() noexcept { return taeda_value{}; }
inline taeda_value of_integer(uint32_t kind, int64_t v) noexcept {
  taeda_value out{};
  out.kind = kind;
  out.as.integer = v;
  return out;
}
template <class Pointer>
taeda_value of_list(uint32_t kind, Pointer items, size_t count) noexcept {
  taeda_value out{};
  out.kind = kind;
  out.count = int64_t(count);
  out.as.text = reinterpret_cast<const char*>(items);
  return out;
}

inline taeda_value pack(const Tensor& v) noexcept {
  taeda_value out{};
  if (!v.defined()) return out;
  out.kind = TAEDA_VALUE_TENSOR;
  out.as.tensor = handle(v);
  return out;
}
inline taeda_value pack(TensorList v) noexcept { return of_list(TAEDA_VALUE_TENSORS, v.data(), v.size()); }
inline taeda_value pack(int64_t v) noexcept { return of_integer(TAEDA_VALUE_INT, v); }
inline taeda_value pack(bool v) noexcept { return of_integer(TAEDA_VALUE_BOOL, v); }
inline taeda_value pack(DType v) noexcept { return of_integer(TAEDA_VALUE_DTYPE, int64_t(v)); }
inline taeda_value pack(double v) noexcept {
  taeda_value out{};
  out.kind = TAEDA_VALUE_FLOAT;
  out.as.real = v;
  return out;
}
inline taeda_value pack(Device v) noexcept {
  taeda_value out{};
  out.kind = TAEDA_VALUE_DEVICE;
  out.as.device = to_c(v);
  return out;
}
inline taeda_value pack(IntSpan v) noexcept { return of_list(TAEDA_VALUE_INTS, v.data(), v.size()); }
inline taeda_value pack(std::span<const double> v) noexcept { return of_list(TAEDA_VALUE_FLOATS, v.data(), v.size()); }
inline taeda_value pack(std::string_view v) noexcept { return of_list(TAEDA_VALUE_TEXT, v.data(), v.size()); }
inline taeda_value pack(const Generator& v) noexcept {
  taeda_value out{};
  if (!v) return out;
  out.kind = TAEDA_VALUE_GENERATOR;
  out.as.generator = reinterpret_cast<taeda_generator>(v.get());
  return out;
}
inline taeda_value pack(const Scalar& v) noexcept {
  switch (v.kind()) {
    case Scalar::Kind::Bool: return pack(v.to<bool>());
    case Scalar::Kind::Int: return pack(v.to<int64_t>());
    case Scalar::Kind::Float: return pack(v.to_double());
    default: break;
  }
  taeda_value out{};
  if (v.is_complex()) {
    out.kind = TAEDA_VALUE_COMPLEX;
    out.as.parts[0] = v.to_double();
    out.as.parts[1] = v.imag();
  } else {
    out.kind = TAEDA_VALUE_UINT;
    out.as.natural = v.to<uint64_t>();
  }
  return out;
}
template <class T>
taeda_value pack(const std::optional<T>& v) noexcept {
  return v ? pack(*v) : none();
}

/// Device of a call: that of the first tensor which is no number, unless that lies on the cpu and a later one does not.
template <class... A>
Device device_among(const A&... arguments) noexcept {
  const TensorImpl* chosen = nullptr;
  const auto look = [&](const Tensor& v) {
    if (v.defined() && (!chosen || chosen->device.backend == 0) && !v.is_wrapped_number()) chosen = v.impl();
  };
  const auto visit = [&]<class T>(const T& v) {
    if constexpr (std::is_same_v<T, Tensor>) look(v);
    else if constexpr (std::is_same_v<T, TensorList>)
      for (const Tensor& t : v) look(t);
  };
  (visit(arguments), ...);
  return chosen ? chosen->device : Device{};
}

/// Gives back what a result holds and leaves none.
TAEDA_API void release_result(taeda_value& result) noexcept;

/// What a C function stores its results in; gives back what nobody has taken over.
template <size_t N>
struct Returned {
  taeda_value items[N + 1] = {};
  ~Returned() {
    for (size_t i = 0; i < N; ++i)
      if (items[i].kind != TAEDA_VALUE_NONE) [[unlikely]]
        release_result(items[i]);
  }
};
template <>
struct Returned<0> {
  static constexpr taeda_value* items = nullptr;
};

/// Calls the C kernel of the device; throws what it complains of.
TAEDA_API void run(const OpEntry& op, Device device, const taeda_value* arguments, size_t count, size_t outputs,
                   taeda_value* results, size_t result_count);
/// A result that is not what the operator gives.
[[noreturn]] TAEDA_API void wrong_result(const OpEntry& op, const taeda_value& found, const char* expected);

/// A tensor, taken over; undefined where none was stored.
inline Tensor take_tensor(const OpEntry& op, taeda_value& v) {
  if (v.kind == TAEDA_VALUE_TENSOR) [[likely]] {
    v.kind = TAEDA_VALUE_NONE;
    return Tensor(Ref<TensorImpl>::adopt(reinterpret_cast<TensorImpl*>(v.as.tensor)));
  }
  if (v.kind != TAEDA_VALUE_NONE) wrong_result(op, v, "a tensor");
  return {};
}

TAEDA_API std::vector<Tensor> take_list(const OpEntry& op, taeda_value& v);

/// The results of a kernel that returns R; takes over their references.
template <class R>
struct Taken {
  static constexpr size_t count = 1;
  static R from(const OpEntry& op, taeda_value* results) {
    if constexpr (std::is_same_v<R, Tensor>) {
      if (results[0].kind == TAEDA_VALUE_NONE) [[unlikely]]
        wrong_result(op, results[0], "a tensor");
      return take_tensor(op, results[0]);
    } else if constexpr (std::is_same_v<R, std::vector<Tensor>>) {
      return take_list(op, results[0]);
    } else {
      wrong_result(op, results[0], "nothing that C can give");  // such results are those of composites only
    }
  }
};
template <>
struct Taken<void> {
  static constexpr size_t count = 0;
  static void from(const OpEntry&, const taeda_value*) {}
};
template <class... T>
struct Taken<std::tuple<T...>> {
  static constexpr size_t count = sizeof...(T);
  /// Of several results some may be absent (gradients that nobody asked for).
  static std::tuple<T...> from(const OpEntry& op, taeda_value* results) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>{static_cast<T>(take_tensor(op, results[I]))...};
    }(std::index_sequence_for<T...>());
  }
};

}  // namespace taeda::abi
