// From calls of element-wise operators to launches: which kernel, and how the operands lie.
#include "ops/elementwise.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "kernels/transpose.h"
#include "ops/dimensions.h"

namespace taeda::cuda {

const std::vector<Row>&arith_rows(), &compare_rows(), &unary_rows(), &activation_rows(), &special_rows(), &own_rows();

void for_each_row(const std::function<void(const Row&)>& visit) {
  for (const auto* family :
       {&arith_rows(), &compare_rows(), &unary_rows(), &activation_rows(), &special_rows(), &own_rows()})
    for (const Row& row : *family) visit(row);
}
const Row& line(const char* name) {
  static const std::map<std::string_view, const Row*> rows = [] {
    std::map<std::string_view, const Row*> all;
    for_each_row([&](const Row& row) { all[row.name] = &row; });
    return all;
  }();
  return *rows.at(name);
}
Class class_for(int dtype) {
  switch (dtype) {
    case TAEDA_BOOL: return Class::Bool;
    case TAEDA_UINT64: return Class::UInt;
    case TAEDA_FLOAT16:
    case TAEDA_BFLOAT16:
    case TAEDA_FLOAT32: return Class::Float;
    case TAEDA_FLOAT64: return Class::Double;
    case TAEDA_COMPLEX64:
    case TAEDA_COMPLEX128: return Class::Complex;
    default: return Class::Int;
  }
}
Number number_of(const Tensor& tensor) {
  Number number;
  const auto data = Address(reinterpret_cast<uintptr_t>(tensor.host_data()));  // outside of work nothing is shifted
  with_type(tensor.dtype(), [&]<class T>() {
    T value;
    std::memcpy(static_cast<void*>(&value), reinterpret_cast<const void*>(uintptr_t(data)), sizeof value);
    if constexpr (is_complex<T>) number.im = double(value.im);
    number.re = number_as<double>(value);
    number.whole = is_same<T, uint64_t> ? int64_t(number_as<uint64_t>(value)) : number_as<int64_t>(value);
  });
  return number;
}

namespace {

using Layout = Dimensions<4>;

void describe(Operand& operand, const Tensor& t, const Layout& layout, int place, int elements) {
  operand.array = t.array();
  // Types that are moved as bytes.
  if (t.dtype() > TAEDA_COMPLEX128) operand.array.dtype = TAEDA_UINT8;
  if (t.on_host()) {
    operand.lies = Lies::Number;
    operand.number = number_of(t);
    return;
  }
  bool alone = true;
  for (int d = 0; d < layout.ndim; ++d) {
    operand.strides[d] = layout.strides[place][d];
    alone = alone && operand.strides[d] == 0;
  }
  const bool straight = layout.ndim == 0 || (layout.ndim == 1 && operand.strides[0] == 1);
  operand.lies = straight ? Lies::Straight : alone ? Lies::Alone : Lies::Strided;
  operand.packed = t.address() % uint64_t(t.item_size() * elements) == 0;
  bool rows = operand.packed && layout.ndim > 0 && operand.strides[layout.ndim - 1] == 1;
  for (int d = 0; d < layout.ndim - 1; ++d) rows = rows && operand.strides[d] % elements == 0;
  if (rows) operand.packed = 2;
}
/// What kernels of class Float read and write in packs.
bool is_packed_type(int dtype) { return dtype == TAEDA_FLOAT32 || is_half_type(dtype) || dtype == TAEDA_BOOL; }
/// Whether threads can take packs: the output lies straight, and so do the operands, or they are periodic, alone or
/// numbers. Says so in them then.
bool lie_in_packs(const Layout& layout, Operand* in, int count, Operand& out, int elements) {
  const auto is_straight = [&](const Operand& o) {
    int64_t behind = 1;
    for (int d = layout.ndim - 1; d >= 0; behind *= layout.sizes[d--])
      if (o.strides[d] != behind) return false;
    return o.packed != 0;
  };
  /// The one dimension that it has; -1 where there are several.
  const auto own_dimension = [&](const Operand& o) {
    int found = -1;
    for (int d = 0; d < layout.ndim; ++d)
      if (o.strides[d] != 0) {
        if (found >= 0 || o.strides[d] != 1) return -1;
        found = d;
      }
    return found;
  };
  std::array<Lies, 3> lies{};
  std::array<int64_t, 3> times{}, period{};
  if (!is_straight(out)) return false;
  for (int k = 0; k < count; ++k) {
    const Operand& o = in[k];
    lies[size_t(k)] = o.lies;
    if (o.lies == Lies::Alone || o.lies == Lies::Number) continue;
    if (!is_packed_type(o.array.dtype)) return false;
    lies[size_t(k)] = Lies::Straight;
    if (is_straight(o)) continue;
    const int d = own_dimension(o);
    if (d < 0) return false;
    int64_t inner = 1;
    for (int i = d + 1; i < layout.ndim; ++i) inner *= layout.sizes[i];
    if (inner == 1 ? layout.sizes[d] % elements != 0 || !o.packed : inner % elements != 0) return false;
    lies[size_t(k)] = Lies::Periodic, times[size_t(k)] = inner, period[size_t(k)] = layout.sizes[d];
  }
  out.lies = Lies::Straight;
  for (int k = 0; k < count; ++k) {
    in[k].lies = lies[size_t(k)];
    if (in[k].lies == Lies::Periodic) in[k].strides[0] = times[size_t(k)], in[k].strides[1] = period[size_t(k)];
  }
  return true;
}
template <int Size>
void transpose(const Call& call, const Tensor& to, const Tensor& from, const Layout& layout) {
  constexpr int64_t tile = Transpose<Size>::kTile;
  const int last = layout.ndim - 1, row = layout.ndim - 2;
  const bool batched = layout.ndim == 3;
  const Transpose<Size> body{from.address(),
                             to.address(),
                             layout.sizes[row],
                             layout.sizes[last],
                             batched ? layout.strides[0][0] : 0,
                             batched ? layout.strides[1][0] : 0,
                             layout.strides[0][last],
                             layout.strides[1][row]};
  const int64_t tiles = (body.rows + tile - 1) / tile * ((body.columns + tile - 1) / tile);
  call.launch(body, (batched ? layout.sizes[0] : 1) * tiles);
}
/// A copy without conversion of what lies turned, by tiles; false, with nothing done, where it lies otherwise.
bool copied_by_tiles(const Call& call, const Tensor& to, const Tensor& from) {
  constexpr int64_t kLeast = 8;
  if (to.dtype() != from.dtype() || from.on_host() || to.numel() < kLeast * kLeast) return false;
  const Layout layout = merged_dimensions<4>(std::array<const Tensor*, 2>{&from, &to});
  const int last = layout.ndim - 1;
  if (layout.ndim < 2 || layout.ndim > 3 || layout.strides[1][last] != 1 || layout.strides[0][last - 1] != 1 ||
      layout.sizes[last] < kLeast || layout.sizes[last - 1] < kLeast)
    return false;
  for (int k = 0; k < 2; ++k)
    if (layout.strides[k][last] < 1 || layout.strides[k][last - 1] < 1) return false;
  switch (to.item_size()) {
    case 1: transpose<1>(call, to, from, layout); return true;
    case 2: transpose<2>(call, to, from, layout); return true;
    case 4: transpose<4>(call, to, from, layout); return true;
    case 8: transpose<8>(call, to, from, layout); return true;
    case 16: transpose<16>(call, to, from, layout); return true;
    default: return false;
  }
}
/// Of many elements that lie turned against a dense output a copy that does not: by their strides they would be fetched
/// many times over. None of others.
Tensor copy_of_turned(const Call& call, const Tensor& t, const Tensor& out) {
  if (out.numel() < kMany || t.on_host() || t.ndim() != out.ndim() || !std::ranges::equal(t.sizes(), out.sizes()))
    return {};
  const Layout layout = merged_dimensions<4>(std::array<const Tensor*, 2>{&t, &out});
  const int last = layout.ndim - 1;
  if (last < 1 || layout.strides[0][last] == 1 || layout.strides[0][last - 1] != 1) return {};
  int64_t behind = 1;
  for (int d = last; d >= 0; behind *= layout.sizes[d--])
    if (layout.strides[1][d] != behind) return {};
  const Tensor memory = call.empty({out.numel()}, t.dtype());
  Tensor made = call.view(memory, out.sizes(), out.strides());
  if (!copied_by_tiles(call, made, t)) return {};
  return made;
}
template <int N>
void run(const Call& call, const Kernel& kernel, int elements, int packs, const Tensor& out,
         std::span<const Tensor* const> operands, const Numbers& numbers, bool divides) {
  std::array<const Tensor*, N + 1> all;
  std::copy_n(operands.begin(), N, all.begin());
  all[N] = &out;
  std::array<Tensor, N> turned;
  for (size_t k = 0; N > 1 && k < N; ++k)
    if ((turned[k] = copy_of_turned(call, *all[k], out))) all[k] = &turned[k];
  const Layout layout = merged_dimensions<4>(all);
  if (layout.ndim > kDims)
    fail(TAEDA_E_NOT_IMPLEMENTED, std::string(call.name()) + ": device 'cuda' takes operands of at most " +
                                      std::to_string(kDims) + " dimensions that cannot be merged, found " +
                                      std::to_string(layout.ndim));
  Elements<N> e{};
  e.n = out.numel();
  e.ndim = layout.ndim;
  e.divides = divides;
  e.in_rows = layout.ndim > 0 && layout.sizes[layout.ndim - 1] % elements == 0;
  std::copy_n(layout.sizes, layout.ndim, e.sizes);
  for (int k = 0; k < N; ++k) describe(e.in[k], *all[size_t(k)], layout, k, elements);
  describe(e.out, out, layout, N, elements);
  e.many = packs > 1 && e.n >= kMany && lie_in_packs(layout, e.in, N, e.out, elements);
  // Where the output lies in a row, so do the operands that are not alone; else all go by their strides.
  bool straight = e.out.lies == Lies::Straight;
  for (int k = 0; k < N; ++k) straight = straight && e.in[k].lies != Lies::Strided;
  if (!straight) {
    e.out.lies = Lies::Strided;
    for (Operand& o : e.in)
      if (o.lies == Lies::Straight) o.lies = Lies::Strided;
  }
  std::copy(numbers.as.begin(), numbers.as.end(), e.numbers);
  std::copy(numbers.real.begin(), numbers.real.end(), e.real);
  e.report = call.report();
  const int64_t chunks = (e.n + elements - 1) / elements, tile = int64_t(packs) * kEachThreads;
  call.launch(kernel, &e, e.many ? (chunks + tile - 1) / tile * kEachThreads : chunks);
}

}  // namespace

void run_line(const Call& call, const Row& row, int dtype, const Tensor& out, std::span<const Tensor* const> operands,
              const Numbers& numbers, bool divides) {
  if (out.numel() == 0) return;
  Class c = class_for(dtype);
  if (!row.kernels[int(c)] && c == Class::Float) c = Class::Double;
  if (!row.kernels[int(c)] && c == Class::Bool) c = Class::Int;
  const Kernel* const kernel = row.kernels[int(c)];
  if (!kernel)
    fail(TAEDA_E_NOT_IMPLEMENTED,
         std::string(call.name()) + ": device 'cuda' has no kernel for the dtype of the operands");
  if (Recorder* const recorder = call.recorder())
    return recorder->line(row, c, out, operands, numbers, divides && c <= Class::UInt);
  const int elements = row.elements[int(c)], packs = row.packs[int(c)];
  switch (row.arity) {
    case 1: return run<1>(call, *kernel, elements, packs, out, operands, numbers, divides);
    case 2: return run<2>(call, *kernel, elements, packs, out, operands, numbers, divides);
    default: return run<3>(call, *kernel, elements, packs, out, operands, numbers, divides);
  }
}
void copy_elements(const Call& call, const Tensor& to, const Tensor& from) {
  static const Row& same = line("same");
  const bool bytes = to.dtype() > TAEDA_COMPLEX128 || from.dtype() > TAEDA_COMPLEX128;
  if (bytes && to.dtype() != from.dtype())
    fail(TAEDA_E_NOT_IMPLEMENTED, std::string(call.name()) + ": device 'cuda' does not convert types of 8 bits");
  if (call.recorder() || !copied_by_tiles(call, to, from)) run_line(call, same, from.dtype(), to, {&from});
}
void fill_elements(const Call& call, const Tensor& to, const Number& value, int dtype_of_value) {
  static const Row& select = line("select");
  if (call.recorder()) call.recorder()->refuse("it fills its result with a number");
  // The condition is the number 1, the other operand is not looked at.
  if (to.numel() == 0) return;
  Elements<3> e{};
  e.n = to.numel();
  const Layout layout = merged_dimensions<4>(std::array<const Tensor*, 1>{&to});
  e.ndim = layout.ndim;
  if (layout.ndim > kDims) fail(TAEDA_E_NOT_IMPLEMENTED, std::string(call.name()) + ": too many dimensions");
  std::copy_n(layout.sizes, layout.ndim, e.sizes);
  const Class c = class_for(dtype_of_value);
  const int64_t elements = select.elements[int(c)];
  describe(e.out, to, layout, 0, int(elements));
  e.in_rows = layout.ndim > 0 && layout.sizes[layout.ndim - 1] % elements == 0;
  for (Operand& o : e.in) o.lies = Lies::Number, o.number = value;
  e.in[0].number = {1, 0, 1};
  e.report = call.report();
  call.launch(*select.kernels[int(c)], &e, (e.n + elements - 1) / elements);
}

void run_plain_line(const Call& call, const Row& row) {
  const Tensor out = call.output(0);
  std::array<Tensor, 3> tensors;
  std::array<const Tensor*, 3> operands{};
  Numbers numbers;
  int count = 0, found = 0;
  for (int i = 0; i < call.count(); ++i) {
    const uint32_t kind = call.value(i).kind;
    if (kind == TAEDA_VALUE_TENSOR && count < 3) {
      tensors[size_t(count)] = call.tensor(i);
      operands[size_t(count)] = &tensors[size_t(count)];
      ++count;
    } else if (kind >= TAEDA_VALUE_BOOL && kind <= TAEDA_VALUE_COMPLEX && found < 3) {
      numbers.as[size_t(found)] = call.number(i);
      numbers.real[size_t(found)] = numbers.as[size_t(found)].re;
      ++found;
    }
  }
  int dtype = count == 1   ? tensors[0].dtype()
              : count == 2 ? common_dtype({operands[0], operands[1]})
                           : common_dtype({operands[0], operands[1], operands[2]});
  if (row.operands == Operands::AsBool) dtype = TAEDA_BOOL;
  if (row.operands == Operands::AsFloat && is_whole_type(dtype))
    dtype = is_whole_type(out.dtype()) ? int(TAEDA_FLOAT32) : out.dtype();
  run_line(call, row, dtype, out, std::span(operands.data(), size_t(count)), numbers);
}

}  // namespace taeda::cuda
