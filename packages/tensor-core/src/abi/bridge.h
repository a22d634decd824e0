// What the files of src/abi share: errors across the border, and values between C and C++.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <span>

#include "taeda/abi_call.h"
#include "taeda/library.h"

namespace taeda::abi {

/// Keeps the text (and, inside taeda, the exception itself) for this thread; gives `status` back.
int32_t set_error(int32_t status, const char* message) noexcept;
const char* last_error() noexcept;
/// In a catch block: keeps the exception that is being handled.
int32_t keep_error() noexcept;
/// How many errors this thread has noted: read before a callback it tells which are the callback's own.
extern constinit thread_local uint32_t errors_noted __attribute__((tls_model("initial-exec")));
/// How many of them belong to callbacks that have ended well.
extern constinit thread_local uint32_t errors_settled __attribute__((tls_model("initial-exec")));
inline void settle_errors() noexcept { errors_settled = errors_noted; }
/// Throws what a callback of a plug-in complained of; `what` ("sim: allocate") stands before its text. Of errors up to
/// number `before` nothing is said.
[[noreturn]] void throw_error(int32_t status, const std::string& what, uint32_t before = errors_settled);
/// Set while this thread keeps an exception that nobody has thrown on: it may hold Python objects.
extern constinit thread_local bool exception_kept __attribute__((tls_model("initial-exec")));
inline void check_status(int32_t status, const char* what) {
  if (status != TAEDA_OK) [[unlikely]]
    throw_error(status, what);
}
/// A callback has dealt with an error itself; its text stays.
void forget_exception() noexcept;

/// Runs the body of a function of the table; no exception leaves it.
template <class Body>
int32_t guarded(const Body& body) noexcept {
  try {
    body();
    return TAEDA_OK;
  } catch (...) {
    return keep_error();
  }
}

/// A place for a result; ValueError when it is null.
template <class T>
T& place(T* result, const char* function) {
  check(result != nullptr, ErrorKind::Value, function, ": the place of the result is null");
  return *result;
}
/// A handle as tensor; ValueError when it is null.
inline Tensor borrowed(taeda_tensor handle) {
  check(handle != nullptr, ErrorKind::Value, "taeda ABI: a tensor handle is null");
  return Tensor(Ref<TensorImpl>::share(reinterpret_cast<TensorImpl*>(handle)));
}
inline taeda_tensor given_away(Tensor t) { return reinterpret_cast<taeda_tensor>(t.ref().release()); }
inline OpEntry& entry(taeda_op op) {
  check(op != nullptr, ErrorKind::Value, "taeda ABI: an operator handle is null");
  return *reinterpret_cast<OpEntry*>(op);
}
inline taeda_op handle(const OpEntry& op) { return reinterpret_cast<taeda_op>(const_cast<OpEntry*>(&op)); }
Device from_c(taeda_device device);
DType dtype_from_c(int32_t code);

/// C values over boxed ones, which must live as long.
class Packed {
 public:
  explicit Packed(const Values& values);
  Packed(const Packed&) = delete;
  const taeda_value* data() const { return items_; }
  size_t size() const { return size_; }

 private:
  taeda_value packed(const Value& value);
  size_t size_;
  taeda_value* items_;
  taeda_value few_[8];
  std::unique_ptr<taeda_value[]> many_;
  std::vector<std::vector<taeda_tensor>> lists_;  // moving one moves no items
};

/// For messages: "a tensor".
const char* kind_name(uint32_t kind);
/// A value from C, borrowed, as an argument of this kind; numbers become tensors, and numbers of one kind another, as
/// in Python.
Value unpack(const taeda_value& value, const SchemaArgument& wanted, const char* op);
/// A result from C, taken over; none is left in its place.
Value take(const OpEntry& op, taeda_value& value);
/// Gives a boxed result away.
taeda_value give(Value value, const OpEntry& op);
/// Calls a C function with boxed values and takes its results over.
Values call_boxed(const CKernel& fn, const OpEntry& op, const Schema& schema, KeySet keys, const Values& arguments,
                  size_t outputs, size_t result_count, const std::string& who);

/// Tensors that a C function is lent for a call whose results it stores itself, with their references before it.
class Lent {
 public:
  struct Count {
    taeda_tensor handle;
    uint32_t held;  // references that the core itself has to it for the call, at least
    uint32_t before;
  };
  /// `copied`: the core holds a reference of its own for each place.
  void add(std::span<const taeda_value> values, bool copied);
  const Count* find(taeda_tensor handle) const;

 private:
  SmallVec<Count, 8> counts_;
};
/// What a C function has stored, before it is taken over.
struct Stored {
  const OpEntry& op;
  const Schema& schema;
  std::string_view who;
  std::span<const taeda_value> arguments;  // outputs first
  const Lent& lent;
  std::span<taeda_value> results;
};
/// TypeError where a result is missing, a null handle, or an argument that was stored without tensor_retain, as far as
/// the count proves it; where it does not, a missing reference is added.
void check_stored(const Stored& stored);
/// The same of gradients that a derivative has stored.
void check_gradients(const OpEntry& op, const Lent& lent, std::span<taeda_value> gradients);
/// Whether a list of tensors was made by value_tensors.
bool made_here(const taeda_value& list) noexcept;
/// Those checks, and what is known of the results of a direct operator.
void check_direct(const Stored& stored, Device device);
/// Who registers, for messages.
std::string owner_or(const char* owner);
/// While a plug-in starts: how to take away what was just registered, should the start fail.
void note_started(std::function<void()> undo);

// The functions of the table, by family.
int32_t tensor_read(taeda_tensor, taeda_tensor_info*);
void tensor_retain(taeda_tensor);
void tensor_release(taeda_tensor);
int32_t tensor_empty(int32_t, const int64_t*, const int64_t*, int32_t, taeda_device, taeda_tensor*);
int32_t tensor_view(taeda_tensor, int32_t, const int64_t*, const int64_t*, int64_t, taeda_tensor*);
int32_t tensor_wrap(void*, size_t, taeda_device, int32_t, const int64_t*, const int64_t*, int32_t, int32_t,
                    void (*)(void*, size_t, void*), void*, taeda_tensor*);
int32_t tensor_to_host(taeda_tensor, void*, size_t);
int32_t tensor_from_host(taeda_tensor, const void*, size_t);
uint32_t op_count();
int32_t op_at(uint32_t, taeda_op*);
int32_t op_find(const char*, taeda_op*);
int32_t op_read(taeda_op, taeda_op_info*);
int32_t op_call(taeda_op, const taeda_value*, uint32_t, taeda_value*, uint32_t);
int32_t op_define(const taeda_operator*, taeda_op*);
int32_t backend_register(const taeda_backend*, int32_t*);
int32_t backend_find(const char*, int32_t*);
int32_t kernel_register(const char*, int32_t, taeda_call_fn, void*, const char*, uint64_t*);
int32_t layer_register(const char*, int32_t, taeda_call_fn, void*, const char*, uint64_t*);
int32_t call_below(const taeda_call*);
int32_t layer_switch(int32_t, int32_t, int32_t*);
int32_t registration_remove(uint64_t);
int32_t generator_reserve(taeda_generator, taeda_device, uint64_t, uint64_t*, uint64_t*);
taeda_stream stream_current(taeda_device);
void* host_release();
void host_acquire(void*);
int32_t kernel_replace(const char*, int32_t, taeda_call_fn, void*, const char*, uint64_t*);
int32_t value_tensors(const taeda_tensor*, int64_t, taeda_value*);
void value_release(taeda_value*);
int32_t alert_not_deterministic(const char*);
int32_t deterministic();
int32_t observer_add(const taeda_observer*, uint64_t*);
int32_t observer_remove(uint64_t);
int32_t observed_tensors(const taeda_observed*, int32_t (*)(void*, taeda_tensor), void*);
int32_t observed_arguments(const taeda_observed*, int32_t (*)(void*, const taeda_value*, uint32_t), void*);
int32_t span_begin(const taeda_span*);
int32_t span_end(const taeda_span*);
uint64_t activity_origin();
int32_t activities_start(uint64_t);
int32_t activities_stop(void (*)(void*, const taeda_activity*), void*, uint64_t*);
const char* backend_name(int32_t);
int32_t kernel_add(const taeda_kernel*, uint64_t*);
int32_t object_tensor(void*, taeda_tensor*);
int32_t tensor_object(taeda_tensor, void**);
void error_object(int32_t);
int32_t dtype_define(const taeda_dtype*, int32_t*);
int32_t dtype_find(const char*, int32_t*);
int32_t device_current(int32_t);
uint64_t call_site(taeda_op);
int32_t set_error_at(int32_t, const char*, uint64_t);
/// A backend that notes activities has been registered, or is no more.
void add_activities(BackendId id, const taeda_backend& backend);
void remove_activities(BackendId id);

/// Copies as much of a growing struct as both sides know, the rest zero.
template <class T>
T known_part(const T* from, const char* what) {
  check(from != nullptr && from->size >= sizeof(size_t), ErrorKind::Value, "taeda ABI: ", what,
        " is null or its size is not set");
  T out{};
  std::memcpy(&out, from, std::min(from->size, sizeof(T)));
  out.size = sizeof(T);
  return out;
}
/// Fills as much of a caller's struct as it has room for.
template <class T>
void fill_part(T* to, const T& from) {
  const size_t size = to ? to->size : 0;
  check(size >= sizeof(size_t), ErrorKind::Value,
        "taeda ABI: a struct to fill is null, or its size is not set before the call");
  std::memcpy(to, &from, std::min(size, sizeof(T)));
  to->size = size;
}

}  // namespace taeda::abi
