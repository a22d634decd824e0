// What functions of operators are written with: the arguments of a call, memory for it, and launches.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/machine.h"
#include "kernels/launch.h"
#include "taeda/abi.h"

namespace taeda::cuda {

/// The table, and the backend's number; set when the plug-in starts.
extern const taeda_api* api;
extern int32_t backend_number;

/// Thrown within a function of an operator: its status goes across the border, its text has been set.
struct Failure {
  int32_t status;
};
[[noreturn]] void fail(int32_t status, const std::string& text);
inline void passed(int32_t status) {
  if (status != TAEDA_OK) throw Failure{status};
}

/// A tensor that is not there yet: what is known of it. Its handle is odd, so that nobody takes it for one of taeda's.
struct StandIn {
  taeda_tensor_info facts{};
  std::vector<int64_t> sizes, strides;
  taeda_tensor handle() { return reinterpret_cast<taeda_tensor>(reinterpret_cast<uintptr_t>(&facts) + 1); }
};

class Tensor;
struct FoldEnd;
struct Row;
struct Numbers;
enum class Class : int;
/// Takes down what an operator's function would launch, instead of a launch (fusion/).
class Recorder {
 public:
  /// Thrown where a function does more than a line or a fold.
  struct Refused {
    std::string why;
  };
  [[noreturn]] void refuse(const std::string& why) const { throw Refused{why}; }
  virtual void line(const Row& row, Class c, const Tensor& out, std::span<const Tensor* const> operands,
                    const Numbers& numbers, bool may_divide_by_zero) = 0;
  /// Of the dimensions whose bits are set.
  virtual void fold(const FoldEnd& end, const Tensor& out, const Tensor& self, uint64_t dimensions, double divisor) = 0;

 protected:
  ~Recorder() = default;
};

/// A tensor's facts, and one owner of it if it was made here.
class Tensor {
 public:
  Tensor() = default;
  /// Borrowed, or owned.
  explicit Tensor(taeda_tensor handle, bool owned = false);
  Tensor(Tensor&& other) noexcept : handle_(other.handle_), owned_(other.owned_), facts_(other.facts_) {
    other.owned_ = false;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(owned_, other.owned_);
    std::swap(facts_, other.facts_);
    return *this;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() {
    if (owned_) api->tensor_release(handle_);
  }

  explicit operator bool() const { return handle_ != nullptr; }
  taeda_tensor handle() const { return handle_; }
  /// The same elements, taken for those of another type of their size; borrowed.
  Tensor taken_for(int dtype) const {
    Tensor other(handle_);
    other.facts_.dtype = dtype;
    return other;
  }
  /// Hands the owner over.
  taeda_tensor release() {
    if (!owned_) api->tensor_retain(handle_);
    owned_ = false;
    return handle_;
  }
  int dtype() const { return facts_.dtype; }
  int ndim() const { return facts_.ndim; }
  int64_t numel() const { return facts_.numel; }
  int64_t size(int d) const { return facts_.sizes[d < 0 ? d + facts_.ndim : d]; }
  int64_t stride(int d) const { return facts_.strides[d < 0 ? d + facts_.ndim : d]; }
  std::span<const int64_t> sizes() const { return {facts_.sizes, size_t(facts_.ndim)}; }
  std::span<const int64_t> strides() const { return {facts_.strides, size_t(facts_.ndim)}; }
  int item_size() const { return int(facts_.item_size); }
  bool contiguous() const { return facts_.flags & TAEDA_TENSOR_CONTIGUOUS; }
  bool number() const { return facts_.flags & TAEDA_TENSOR_NUMBER; }
  /// Whether the elements lie with the host: of a number, or of what stands for one.
  bool on_host() const { return facts_.device.backend != backend_number; }
  /// Whether so much memory from an address on is that which the tensor shows a part of.
  bool holds(Address from, size_t nbytes) const {
    const Address begin = Address(reinterpret_cast<uintptr_t>(facts_.storage));
    return facts_.storage && from >= begin && from + nbytes <= begin + facts_.storage_size;
  }
  const void* host_data() const { return facts_.data; }
  /// Whether both show parts of the same memory.
  bool shares_with(const Tensor& other) const { return facts_.storage && facts_.storage == other.facts_.storage; }
  Address address() const { return Address(reinterpret_cast<uintptr_t>(facts_.data)); }
  Array array() const { return {address(), facts_.dtype, 0}; }

 private:
  taeda_tensor handle_ = nullptr;
  bool owned_ = false;
  taeda_tensor_info facts_{};
};

bool is_complex_type(int dtype);
bool is_float_type(int dtype);
inline bool is_whole_type(int dtype) { return dtype <= TAEDA_UINT64; }
bool is_half_type(int dtype);
/// The dtype in which operands meet, as the core has it.
int common_dtype(std::initializer_list<const Tensor*> tensors);

/// A call of an operator, on its device and stream.
class Call {
 public:
  Call(const char* name, int32_t number, const taeda_call& call);
  /// One that is taken down: its tensors may be StandIns.
  Call(const char* name, const taeda_call& call, Recorder& recorder)
      : name_(name), number_(0), call_(call), trouble_(nullptr), recorder_(&recorder) {}

  const char* name() const { return name_; }
  /// Arguments count from 0 behind the outputs.
  Tensor output(int i) const { return Tensor(call_.arguments[i].as.tensor); }
  Tensor tensor(int i) const;
  int64_t integer(int i) const { return value(i).as.integer; }
  bool flag(int i) const { return value(i).as.integer != 0; }
  double real(int i) const;
  Number number(int i) const;
  bool given(int i) const { return value(i).kind != TAEDA_VALUE_NONE; }
  std::string_view text(int i) const { return {value(i).as.text, size_t(value(i).count)}; }
  std::vector<int64_t> integers(int i) const;
  std::vector<double> reals(int i) const;
  std::vector<Tensor> tensors(int i) const;
  taeda_generator generator(int i) const {
    return value(i).kind == TAEDA_VALUE_GENERATOR ? value(i).as.generator : nullptr;
  }
  const taeda_value& value(int i) const { return call_.arguments[call_.output_count + uint32_t(i)]; }
  int count() const { return int(call_.argument_count - call_.output_count); }
  void result(int i, Tensor&& tensor) const;
  /// Null where the call is computed.
  Recorder* recorder() const { return recorder_; }
  taeda_device device() const { return call_.device; }
  StreamHandle stream() const { return call_.stream; }

  /// Contiguous memory of the device, which lasts as long as the work that is queued while it is held.
  Tensor empty(std::span<const int64_t> sizes, int dtype) const;
  Tensor empty(std::initializer_list<int64_t> sizes, int dtype) const {
    return empty(std::span(sizes.begin(), sizes.size()), dtype);
  }
  /// A view of it, with other sizes and strides.
  Tensor view(const Tensor& of, std::span<const int64_t> sizes, std::span<const int64_t> strides,
              int64_t offset = 0) const;
  /// As a tensor of one dimension where it has none.
  Tensor at_least_row(const Tensor& of) const;
  /// With the dimension moved to the end.
  Tensor last(const Tensor& of, int dim) const;
  /// Row-major elements of a dtype (-1: its own): the tensor itself if it is so, else a copy.
  Tensor rows(const Tensor& of, int dtype = -1) const;
  /// On the call's device: the tensor itself if it is there, else a copy.
  Tensor here(const Tensor& of) const;
  /// Copies elements, converting and broadcasting.
  void copy(const Tensor& to, const Tensor& from) const;
  Report report() const { return {trouble_, number_, 0}; }

  void launch(const Kernel& kernel, const void* body, int64_t items) const;
  template <class Body>
  void launch(const Body& body, int64_t items) const {
    if (items > 0) launch(kernel_of<Body>(), &body, items);
  }
  /// The outcome of what was put into the stream.
  void done(Status status, const std::string& what) const;
  /// Waits, and copies bytes to the host.
  void read(void* to, const Tensor& from) const;
  /// Calls another operator, from its top; the first of its results.
  Tensor other(const char* name, std::span<const taeda_value> arguments) const;

 private:
  const char* name_;
  int32_t number_;
  const taeda_call& call_;
  Trouble* trouble_;
  Recorder* recorder_ = nullptr;
};

/// Row-major output that a kernel fills: the tensor itself, or memory that is copied to it at the end.
class Target {
 public:
  Target(const Call& call, const Tensor& to)
      : call_(call), to_(to), made_(to.contiguous() ? Tensor() : call.empty(to.sizes(), to.dtype())) {}
  const Tensor& tensor() const { return made_ ? made_ : to_; }
  Array array() const { return tensor().array(); }
  void done() const {
    if (made_) call_.copy(to_, made_);
  }

 private:
  const Call& call_;
  const Tensor& to_;
  Tensor made_;
};

inline int wrapped(int64_t dim, int ndim) { return int(ndim == 0 ? 0 : dim < 0 ? dim + ndim : dim); }

// --- registration ---

using Function = void (*)(const Call& call);
/// An operator's function.
struct Operation {
  const char* name;
  Function function;
};
/// Hands all of them to taeda.
int32_t register_operations();
const char* operation_name(int32_t number);
/// Has the function of an element-wise operator or of a fold taken down; false where there is none of that name.
bool record_operation(const char* name, const taeda_call& call, Recorder& recorder);

}  // namespace taeda::cuda
