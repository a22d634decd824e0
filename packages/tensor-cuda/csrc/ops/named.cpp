// Advanced indexing, and slices along one dimension, read and written where index tensors say.
#include "kernels/named.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "ops/elementwise.h"
#include "ops/named.h"
#include "ops/order.h"
#include "ops/walk.h"

namespace taeda::cuda {
namespace {

using Sizes = std::vector<int64_t>;

std::string text_of(std::span<const int64_t> sizes) {
  std::string text = "(";
  for (size_t d = 0; d < sizes.size(); ++d) text += (d ? ", " : "") + std::to_string(sizes[d]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}
int64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

/// Which dimensions of a tensor are named by which index tensors.
struct Indices {
  std::vector<Tensor> tensors;
  std::vector<int> dims;
  Sizes common;
  int masks = 0;
  bool masks_alone = false, wraps = true;

  bool contains(int dim) const { return std::ranges::find(dims, dim) != dims.end(); }
  uint64_t mask() const {
    uint64_t made = 0;
    for (const int d : dims) made |= uint64_t(1) << d;
    return made;
  }
  /// How many kept dimensions stand before the common ones: those that are side by side keep their place.
  int front() const {
    for (size_t i = 1; i < dims.size(); ++i)
      if (dims[i] != dims[i - 1] + 1) return 0;
    return dims.empty() ? 0 : dims[0];
  }
  /// A mask names no place twice, as long as nothing is broadcast with it.
  bool distinct() const { return product(common) == 1 || (masks == 1 && masks_alone); }
};
bool is_mask(const Tensor& index) { return index.dtype() == TAEDA_BOOL || index.dtype() == TAEDA_UINT8; }
void broadcast(Sizes& common, std::span<const int64_t> sizes) {
  if (common.size() < sizes.size()) common.insert(common.begin(), sizes.size() - common.size(), 1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t& size = common[common.size() - sizes.size() + i];
    if (size == 1) size = sizes[i];
  }
}
/// Masks become the places of what is true in them. The core has looked at dtypes and shapes.
Indices indices_of(const Call& call, int argument) {
  Indices found;
  int dim = 0;
  size_t by_masks = 0;
  for (const Tensor& given : call.tensors(argument)) {
    if (!given) {
      ++dim;
      continue;
    }
    Tensor index = call.here(given);
    if (!is_mask(index)) {
      broadcast(found.common, index.sizes());
      found.tensors.push_back(std::move(index));
      found.dims.push_back(dim++);
      continue;
    }
    taeda_value argument_of{};
    argument_of.kind = TAEDA_VALUE_TENSOR, argument_of.as.tensor = index.handle();
    const Tensor places = call.other("nonzero", std::span(&argument_of, 1));
    ++found.masks;
    for (int d = 0; d < index.ndim(); ++d, ++dim, ++by_masks) {
      found.tensors.push_back(
          call.view(places, std::array{places.size(0)}, std::array{int64_t(index.ndim())}, int64_t(d)));
      found.dims.push_back(dim);
    }
    if (index.ndim() > 0) broadcast(found.common, std::array{places.size(0)});
  }
  found.masks_alone = by_masks == found.tensors.size();
  return found;
}
Indices along(const Call& call, int dim, const Tensor& index, bool wraps) {
  Indices one;
  one.common = {index.numel()};
  one.tensors.push_back(call.at_least_row(index));
  one.dims = {dim};
  one.wraps = wraps;
  return one;
}

/// Describes some of the index tensors, whose common dimensions are merged where they can be.
Named named_by(const Call& call, const Indices& indices, size_t first, size_t count) {
  Named named{};
  named.count = int32_t(count);
  named.wraps = indices.wraps;
  named.report = call.report();
  const int ndim = int(indices.common.size());
  for (size_t k = 0; k < count; ++k) named.ones[k].index = indices.tensors[first + k].array();
  for (int d = 0; d < ndim; ++d) {
    const int64_t size = indices.common[size_t(d)];
    if (size == 1) continue;
    const auto stride = [&](size_t k) {
      const Tensor& t = indices.tensors[first + k];
      const int own = d - (ndim - t.ndim());
      return own < 0 || t.size(own) == 1 ? 0 : t.stride(own);
    };
    bool merges = named.ndim > 0;
    for (size_t k = 0; k < count && merges; ++k) merges = named.ones[k].strides[named.ndim - 1] == stride(k) * size;
    if (!merges && named.ndim == kDims)
      fail(TAEDA_E_NOT_IMPLEMENTED,
           std::string(call.name()) + ": device 'cuda' takes index tensors of at most 25 dimensions");
    const int to = merges ? named.ndim - 1 : named.ndim++;
    named.sizes[to] = merges ? named.sizes[to] * size : size;
    for (size_t k = 0; k < count; ++k) named.ones[k].strides[to] = stride(k);
  }
  return named;
}
/// Places in a tensor by all of the indices. What goes beyond one kernel's is written down before.
class Places {
 public:
  /// Steps are in elements over `divisor`.
  Places(const Call& call, const Indices& indices, const Tensor& of, int64_t divisor, int64_t start) {
    size_t first = 0;
    for (;;) {
      const size_t count = std::min(indices.tensors.size() - first, size_t(Named::kMost));
      named = named_by(call, indices, first, count);
      named.start = start;
      if (!kept_.empty()) named.before = kept_.back().address();
      for (size_t k = 0; k < count; ++k) {
        const int dim = indices.dims[first + k];
        named.ones[k].limit = of.size(dim), named.ones[k].step = of.stride(dim) / divisor;
      }
      first += count;
      if (first == indices.tensors.size()) return;
      kept_.push_back(call.empty({product(indices.common)}, TAEDA_INT64));
      call.launch(NamePlaces{named, kept_.back().address()}, kept_.back().numel());
    }
  }
  Named named{};

 private:
  std::vector<Tensor> kept_;
};
Around around_of(const Tensor& t, const Indices& indices) {
  const int front = indices.front();
  const uint64_t before = (uint64_t(1) << front) - 1, named = indices.mask();
  Around around{walk_of(t, before & ~named), walk_of(t, ~before & ~named), product(indices.common), 1};
  for (int d = front; d < t.ndim(); ++d)
    if (!indices.contains(d)) around.inner *= t.size(d);
  return around;
}
Sizes result_of(const Tensor& self, const Indices& indices) {
  Sizes kept, made;
  for (int d = 0; d < self.ndim(); ++d)
    if (!indices.contains(d)) kept.push_back(self.size(d));
  const auto border = kept.begin() + indices.front();
  made.assign(kept.begin(), border);
  made.insert(made.end(), indices.common.begin(), indices.common.end());
  made.insert(made.end(), border, kept.end());
  return made;
}
/// The largest unit of bytes in which what lies behind a place can be moved, by all that has to be a multiple of it.
int unit_of(const Around& around, int item, uint64_t multiples) {
  if (around.back.ndim > 1 || (around.back.ndim == 1 && around.back.strides[0] != 1)) return item;
  for (int d = 0; d < around.front.ndim; ++d) multiples |= uint64_t(around.front.strides[d] * item);
  multiples |= uint64_t(around.inner * item);
  int unit = 16;
  while (unit > item && multiples % uint64_t(unit) != 0) unit /= 2;
  return unit;
}
/// The same, with units in the place of elements.
void in_units(Around& around, int64_t per_unit) {
  for (int d = 0; d < around.front.ndim; ++d) around.front.strides[d] /= per_unit;
  if (around.back.ndim == 1 && per_unit > 1) around.back.sizes[0] /= per_unit;
  around.inner /= per_unit;
}

void index(const Call& call) {
  const Tensor self = call.here(call.tensor(0));
  const Indices indices = indices_of(call, 1);
  Tensor out = call.empty(result_of(self, indices), self.dtype());
  if (out.numel() > 0) {
    Around around = around_of(self, indices);
    uint64_t multiples = self.address() | out.address();
    for (const int d : indices.dims) multiples |= uint64_t(self.stride(d) * self.item_size());
    const int unit = unit_of(around, self.item_size(), multiples);
    const int64_t per_unit = unit / self.item_size();
    in_units(around, per_unit);
    const Places places(call, indices, self, per_unit, 0);
    call.launch(PickNamed{places.named, around, self.address(), out.address(), unit, 0}, out.numel() / per_unit);
  }
  call.result(0, std::move(out));
}

// --- writing ---

/// What is written: rows of the result's shape, or one number for all.
struct Values {
  Tensor tensor;
  int64_t step;
};
/// Steps along the named dimensions have a common divisor, so keys of places are small; the least of them is 0.
struct KeysOf {
  int64_t divisor = 0, least = 0, limit = 1;
  KeysOf(const Tensor& to, const Indices& indices) {
    for (const int d : indices.dims)
      if (to.size(d) > 1) divisor = std::gcd(divisor, std::abs(to.stride(d)));
    if (divisor == 0) divisor = 1;
    for (const int d : indices.dims) {
      const int64_t reach = to.stride(d) * std::max<int64_t>(to.size(d) - 1, 0);
      least += std::min<int64_t>(reach, 0);
      limit += std::abs(reach) / divisor;
    }
  }
};
/// Up to so many places are compared with each other.
constexpr int64_t kFew = PutFew<PutValue>::kThreads;

template <class Do>
void put_each_or_few(const Call& call, const Named& named, const Putting& p, int64_t total, bool distinct) {
  constexpr int64_t portion = PutFew<Do>::kPortion;
  if (distinct) call.launch(PutEach<Do>{named, p}, total);
  else call.launch(PutFew<Do>{named, p, total}, (total + portion - 1) / portion);
}
template <class C>
void sum_runs(const Call& call, const InOrder& in, const Putting& p, int64_t front) {
  const int64_t tiles = (p.around.count + Tiles::kTile - 1) / Tiles::kTile, items = front * tiles * p.around.inner;
  const Tensor kept = call.empty({2, items * int64_t(sizeof(C))}, TAEDA_UINT8);
  const Tiles t{in, p, tiles, kept.address(), kept.address() + uint64_t(items) * sizeof(C)};
  call.launch(SumTiles<C>{t}, items);
  call.launch(JoinTiles<C>{t}, items);
}
/// Writes or adds values where the indices say, as of Note [Runs].
void put(const Call& call, const Tensor& to, Indices& indices, const Values& values, bool adds,
         const Number* factor = nullptr) {
  const int64_t total = product(result_of(to, indices));
  if (total == 0) return;
  for (Tensor& index : indices.tensors)
    if (index.shares_with(to)) {
      Tensor copy = call.empty(index.sizes(), index.dtype());
      call.copy(copy, index);
      index = std::move(copy);
    }
  const KeysOf keys(to, indices);
  Putting p{};
  p.around = around_of(to, indices);
  p.scale = keys.divisor, p.shift = keys.least;
  p.source = values.tensor.array(), p.out = to.array();
  p.step_source = values.step;
  if (factor) p.factor = *factor, p.factored = 1;
  p.unit = to.item_size();
  const int64_t front = total / (p.around.count * p.around.inner);
  if (!adds && values.step == 1) {
    const int item = to.item_size();
    p.unit = unit_of(p.around, item, p.source.data | p.out.data | uint64_t(p.scale * item) | uint64_t(p.shift * item));
    const int64_t per_unit = p.unit / item;
    in_units(p.around, per_unit);
    p.scale /= per_unit, p.shift /= per_unit;
  }
  const Places places(call, indices, to, keys.divisor, -keys.least / keys.divisor);
  const int64_t count = p.around.count, items = front * count * p.around.inner;
  if (indices.distinct() || count <= kFew) {
    const bool distinct = indices.distinct();
    if (!adds) return put_each_or_few<PutValue>(call, places.named, p, items, distinct);
    switch (class_for(to.dtype())) {
      case Class::Bool: return put_each_or_few<AddValue<bool>>(call, places.named, p, items, distinct);
      case Class::Float:
      case Class::Double: return put_each_or_few<AddValue<double>>(call, places.named, p, items, distinct);
      case Class::Complex: return put_each_or_few<AddValue<Complex128>>(call, places.named, p, items, distinct);
      default: return put_each_or_few<AddValue<int64_t>>(call, places.named, p, items, distinct);
    }
  }
  const Tensor written = call.empty({count}, TAEDA_INT64);
  call.launch(NamePlaces{places.named, written.address()}, count);
  const Tensor order = order_of(call, written, count, keys.limit);
  const InOrder in{written.address(), order.address()};
  if (!adds) return call.launch(PutLast{in, p}, items);
  switch (class_for(to.dtype())) {
    case Class::Bool: return sum_runs<bool>(call, in, p, front);
    case Class::Float:
    case Class::Double: return sum_runs<double>(call, in, p, front);
    case Class::Complex: return sum_runs<Complex128>(call, in, p, front);
    default: return sum_runs<int64_t>(call, in, p, front);
  }
}
/// Values in the dtype and, unless there is one, the shape of what they are written to.
Values values_for(const Call& call, const Tensor& given, const Tensor& to, std::span<const int64_t> sizes) {
  const bool one = given.numel() == 1;
  const Tensor lies = given.ndim() == 0 ? Tensor(given.handle()) : call.here(given);
  if (!lies.on_host() && lies.dtype() == to.dtype() && !lies.shares_with(to) &&
      (one || (lies.contiguous() && lies.numel() == product(sizes))))
    return {call.rows(lies), one ? 0 : 1};
  Tensor made = one ? call.empty({}, to.dtype()) : call.empty(sizes, to.dtype());
  if (one && lies.ndim() > 0) call.copy(made, call.view(lies, {}, {}));
  else call.copy(made, lies);
  return {std::move(made), one ? 0 : 1};
}
void index_put(const Call& call) {
  const Tensor self(call.value(0).as.tensor), given = call.tensor(2);
  Indices indices = indices_of(call, 1);
  const Sizes place = result_of(self, indices);
  Sizes fitted = place;
  bool fits = given.ndim() <= int(place.size());
  for (int d = 0; d < given.ndim() && fits; ++d) {
    const int64_t size = given.size(-1 - d);
    fits = size == 1 || size == place[place.size() - 1 - size_t(d)];
  }
  if (!fits)
    fail(TAEDA_E_RUNTIME, std::string(call.name()) + ": argument 'values' has shape " + text_of(given.sizes()) +
                              ", which cannot be broadcast to the indexed shape " + text_of(place));
  if (product(place) > 0) put(call, self, indices, values_for(call, given, self, place), call.flag(3));
}

// --- along one dimension ---

void put_along(const Call& call, bool adds, bool wraps, const Number* factor) {
  const Tensor out = call.output(0), self = call.tensor(0), index = call.tensor(2), given = call.tensor(3);
  copy_elements(call, out, self);
  if (index.numel() == 0 || out.numel() == 0) return;
  const Tensor to = call.at_least_row(out);
  Indices indices = along(call, wrapped(call.integer(1), to.ndim()), index, wraps);
  put(call, to, indices, values_for(call, given, to, result_of(to, indices)), adds, factor);
}
}  // namespace

bool put_rows(const Call& call, const Tensor& to, int dim, const Tensor& index, const Tensor& source, bool adds) {
  for (int d = 0; d < index.ndim(); ++d)
    if (d != dim && index.size(d) > 1 && index.stride(d) != 0) return false;
  Sizes sizes(index.sizes().begin(), index.sizes().end());
  sizes[size_t(dim)] = to.size(dim);
  const Tensor part = call.view(to, sizes, to.strides()), values = call.view(source, index.sizes(), source.strides()),
               names = call.view(index, std::array{index.size(dim)}, std::array{index.stride(dim)});
  Indices one = along(call, dim, names, false);
  put(call, part, one, values_for(call, values, part, index.sizes()), adds);
  return true;
}

namespace {

void index_add(const Call& call) {
  const Number alpha = call.number(4);
  const bool plain = alpha.re == 1 && alpha.im == 0;
  put_along(call, true, false, plain ? nullptr : &alpha);
}
void index_copy(const Call& call) { put_along(call, false, false, nullptr); }
void index_fill(const Call& call) { put_along(call, false, true, nullptr); }

}  // namespace

const std::vector<Operation>& named_operations() {
  static const std::vector<Operation> operations{
      {"index", index},           {"index_add", index_add},  {"index_copy", index_copy},
      {"index_fill", index_fill}, {"index_put_", index_put},
  };
  return operations;
}

}  // namespace taeda::cuda
