// Indexing, order, and joining.
#include "kernels/index.h"

#include <algorithm>
#include <array>

#include "kernels/rank.h"
#include "kernels/search.h"
#include "ops/elementwise.h"
#include "ops/named.h"
#include "ops/order.h"
#include "ops/walk.h"

namespace taeda::cuda {
namespace {

void sort(const Call& call) {
  const Tensor values = call.output(0), indices = call.output(1), self = call.tensor(0);
  const int dim = wrapped(call.integer(1), self.ndim());
  if (self.numel() == 0) return;
  const Tensor keys = call.rows(call.last(self, dim)), to_values = call.last(values, dim),
               to_indices = call.last(indices, dim);
  const Target sorted(call, to_values), order(call, to_indices);
  const int64_t length = keys.size(-1);
  put_in_order(call, keys.array(), keys.numel(), length, call.flag(2), order.tensor().address());
  call.launch(Arrange{length, keys.array(), sorted.array(), order.tensor().address(), keys.item_size(), 0},
              keys.numel());
  sorted.done(), order.done();
}
/// Whether a block for each line finds a rank sooner than many blocks put all elements in order.
bool is_counted(int64_t lines, int64_t length) {
  constexpr int64_t kLong = int64_t(1) << 17, kMany = 64;
  return length <= kLong || (lines >= kMany && length < int64_t(1) << 32);
}
template <class K>
void find_ranks(const Call& call, const Sought& sought, int64_t lines) {
  constexpr int64_t kShort = 32;
  if (sought.length <= kShort) return call.launch(RankShort<K>{sought}, lines);
  if (is_counted(lines, sought.length))
    return call.launch(RankLines<K, Sought>{sought, bits_of(sought.keys), 0}, lines);
  const Tensor order = call.empty({lines * sought.length}, TAEDA_INT64);
  put_in_order(call, sought.keys.array, lines * sought.length, sought.length, false, order.address());
  call.launch(RankInOrder{sought, order.address()}, lines);
}
void rank_indices(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0), rank = call.tensor(1);
  if (out.numel() == 0) return;
  const int dim = wrapped(call.integer(2), self.ndim());
  const Tensor keys = call.rows(call.last(self, dim)), ranks = call.rows(rank);
  const Target to(call, out);
  const Sought sought{{keys.array(), 0, 0}, keys.size(-1), ranks.address(), to.tensor().address(), call.report()};
  if (bits_of(sought.keys) <= 32) find_ranks<uint32_t>(call, sought, out.numel());
  else find_ranks<uint64_t>(call, sought, out.numel());
  to.done();
}
/// The first of long lines are found among all, and put in order alone; of short lines all elements are.
void topk(const Call& call) {
  const Tensor values = call.output(0), indices = call.output(1), self = call.tensor(0);
  const int dim = wrapped(call.integer(2), self.ndim());
  const bool largest = call.flag(3);
  if (values.numel() == 0) return;
  const Tensor rows = call.rows(call.last(self, dim)), to_values = call.last(values, dim),
               to_indices = call.last(indices, dim);
  const Target sorted(call, to_values), found(call, to_indices);
  const int64_t length = rows.size(-1), count = to_values.size(-1), lines = rows.numel() / length;
  ArrangeFirst first{length,           count, length, rows.array(), sorted.array(), 0, 0, found.tensor().address(),
                     rows.item_size(), 0};
  constexpr int64_t kTile = OrderTile<uint64_t>::kElements;
  Tensor items, places;
  if (length > kTile && count <= kTile && is_counted(lines, length)) {
    items = call.empty({lines, count}, rows.dtype()), places = call.empty({lines, count}, TAEDA_INT64);
    FirstOfLines wanted{{rows.array(), 0, 0}, length, count, items.address(), places.address(), rows.item_size(), 0};
    const int bits = bits_of(wanted.keys);
    if (largest) wanted.keys.turned = turned_of(bits);
    if (bits <= 32) call.launch(RankLines<uint32_t, FirstOfLines>{wanted, bits, 0}, lines);
    else call.launch(RankLines<uint64_t, FirstOfLines>{wanted, bits, 0}, lines);
    first.ordered = count, first.places = places.address();
  }
  const Tensor& keys = items ? items : rows;
  const Tensor order = call.empty({keys.numel()}, TAEDA_INT64);
  put_in_order(call, keys.array(), keys.numel(), first.ordered, largest, order.address());
  first.order = order.address();
  call.launch(first, lines * count);
  sorted.done(), found.done();
}

template <class C>
void search(const Call& call, const Tensor& edges, const Tensor& values, const Tensor& out) {
  const int64_t per_row = edges.ndim() == 1 ? 0 : values.size(-1);
  call.launch(Search<C>{edges.array(), values.array(), out.array(), edges.size(-1), per_row, call.flag(2), 0},
              out.numel());
}
/// Both are compared in the dtype in which they meet.
void searchsorted(const Call& call) {
  const Tensor sequence = call.tensor(0), given = call.tensor(1);
  Tensor out = call.empty(given.sizes(), TAEDA_INT64);
  if (out.numel() > 0) {
    // A tensor without dimensions counts as one with some, unless it is a number.
    const Tensor own = given.number() ? Tensor(given.handle()) : call.rows(given),
                 row = own.number() ? Tensor(own.handle()) : call.at_least_row(own);
    const int dtype = common_dtype({&sequence, &row});
    const Tensor edges = call.rows(sequence, dtype), values = call.rows(own, dtype);
    if (dtype == TAEDA_UINT64) search<uint64_t>(call, edges, values, out);
    else if (is_whole_type(dtype)) search<int64_t>(call, edges, values, out);
    else search<double>(call, edges, values, out);
  }
  call.result(0, std::move(out));
}

void gather(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0), index = call.tensor(2);
  const int dim = wrapped(call.integer(1), self.ndim());
  if (index.numel() == 0) return;
  const Target to(call, out);
  const Tensor places = call.rows(index, TAEDA_INT64);
  Gather g{};
  for (int d = 0; d < self.ndim(); ++d) {
    if (g.others.ndim == kDims) fail(TAEDA_E_NOT_IMPLEMENTED, "gather: device 'cuda' takes at most 25 dimensions");
    g.others.sizes[g.others.ndim] = index.size(d);
    g.others.strides[g.others.ndim++] = d == dim ? 0 : self.stride(d);
  }
  g.step = self.ndim() ? self.stride(dim) : 0;
  g.limit = self.ndim() ? self.size(dim) : 1;
  g.self = self.array();
  g.index = places.array();
  g.out = to.array();
  g.item = self.item_size();
  g.report = call.report();
  call.launch(g, index.numel());
  to.done();
}
void select_rows(const Call& call, const Tensor& out, const Tensor& self, const Tensor& index, int dim, bool wraps) {
  if (out.numel() == 0) return;
  const Target to(call, out);
  const Tensor from = call.rows(self), places = call.rows(index, TAEDA_INT64);
  Select s{};
  int64_t row = self.item_size();
  for (int d = dim + 1; d < self.ndim(); ++d) row *= self.size(d);
  s.unit = 16;
  while ((uint64_t(row) | from.address() | to.tensor().address()) % uint64_t(s.unit) != 0) s.unit /= 2;
  s.inner = row / s.unit;
  s.count = index.numel();
  s.limit = self.ndim() ? self.size(dim) : 1;
  s.self = from.array();
  s.index = places.array();
  s.out = to.array();
  s.wraps = wraps;
  s.report = call.report();
  call.launch(s, out.numel() * out.item_size() / s.unit);
  to.done();
}
void index_select(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0), index = call.tensor(2);
  select_rows(call, out, self, index, wrapped(call.integer(1), self.ndim()), false);
}
void embedding(const Call& call) {
  const Tensor out = call.output(0), weight = call.tensor(0), indices = call.tensor(1);
  select_rows(call, out, weight, indices, 0, false);
}
template <class C>
void embedding_backward_in(const Call& call) {
  const Tensor out = call.output(0), grad = call.tensor(0), indices = call.tensor(1);
  const Target to(call, out);
  fill_elements(call, to.tensor(), {}, TAEDA_FLOAT64);
  if (indices.numel() > 0 && out.numel() > 0) {
    const Tensor rows = call.rows(grad), places = call.rows(indices, TAEDA_INT64);
    const Tensor order = order_of(call, places, places.numel(), call.integer(2));
    EmbeddingBackward<C> e{};
    e.n = indices.numel();
    e.inner = out.size(-1);
    e.limit = call.integer(2);
    e.padding = call.integer(3);
    e.grad = rows.array();
    e.index = places.array();
    e.out = to.array();
    e.order = order.address();
    e.by_count = call.flag(4);
    e.report = call.report();
    call.launch(e, e.n * e.inner);
  }
  to.done();
}

/// As slices that are added at the indices; what stands where the padding is then is taken away.
void embedding_backward_by_slices(const Call& call) {
  const Tensor out = call.output(0), grad = call.tensor(0);
  const int64_t inner = out.size(-1), padding = call.integer(3);
  const Target to(call, out);
  fill_elements(call, to.tensor(), {}, TAEDA_FLOAT64);
  if (grad.numel() > 0) {
    const Tensor rows = call.rows(grad), indices = call.rows(call.tensor(1));
    const std::array<int64_t, 2> sizes{indices.numel(), inner};
    put_rows(call, to.tensor(), 0, call.view(indices, sizes, std::array<int64_t, 2>{1, 0}),
             call.view(rows, sizes, std::array<int64_t, 2>{inner, 1}), true);
    if (padding >= 0)
      fill_elements(call, call.view(to.tensor(), std::array{inner}, std::array<int64_t, 1>{1}, padding * inner), {},
                    TAEDA_FLOAT64);
  }
  to.done();
}
void embedding_backward(const Call& call) {
  if (!call.flag(4)) return embedding_backward_by_slices(call);
  if (is_complex_type(call.output(0).dtype())) embedding_backward_in<Complex128>(call);
  else embedding_backward_in<double>(call);
}

/// Up to so many places along a line one thread goes through them.
constexpr int64_t kAlone = 64;

/// Lines of the index along a dimension, with their order where they are long.
struct Lines {
  Tensor places, order;
  Scatter s{};
  int64_t count = 0;
  Lines(const Call& call, const Tensor& out, int dim, const Tensor& index, const Tensor& source)
      : places(call.rows(index, TAEDA_INT64)) {
    const uint64_t along = uint64_t(1) << dim;
    s.lines_index = walk_of(places, ~along);
    s.lines_source = walk_of(source, ~along, &places);
    s.lines_out = walk_of(out, ~along, &places);
    s.length = places.size(dim);
    s.step_index = places.stride(dim);
    s.step_source = source.stride(dim);
    s.step_out = out.stride(dim);
    s.limit = out.size(dim);
    s.index = places.array();
    s.source = source.array();
    s.out = out.array();
    s.item = out.item_size();
    s.report = call.report();
    count = places.numel() / s.length;
    if (s.length <= kAlone) return;
    const Tensor keys = call.rows(call.last(places, dim));
    order = order_of(call, keys, s.length, s.limit);
    s.order = order.address();
  }
};
template <class Do>
void scatter_by(const Call& call, const Lines& lines) {
  if (lines.order) call.launch(ScatterRuns<Do>{lines.s}, lines.places.numel());
  else call.launch(ScatterLines<Do>{lines.s}, lines.count);
}
/// The operands of a scattering, in dimensions and of the output's dtype; `out` is `self` to begin with.
struct Scattered {
  Tensor to, index, source;
  int dim = 0;
  Scattered(const Call& call, const Tensor& out)
      : to(call.at_least_row(out)), index(call.at_least_row(call.tensor(2))) {
    const Tensor src = call.tensor(3);
    dim = wrapped(call.integer(1), to.ndim());
    if (src.on_host() || src.dtype() != out.dtype()) {
      source = call.empty(src.ndim() ? src.sizes() : index.sizes(), out.dtype());
      copy_elements(call, source, src);
    } else {
      source = call.at_least_row(src);
    }
  }
};
template <bool Adds>
void scatter(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  copy_elements(call, out, self);
  if (call.tensor(2).numel() == 0) return;
  const Scattered given(call, out);
  if (put_rows(call, given.to, given.dim, given.index, given.source, Adds)) return;
  const Lines lines(call, given.to, given.dim, given.index, given.source);
  if (!Adds) return scatter_by<Assign>(call, lines);
  switch (class_for(out.dtype())) {
    case Class::Bool: return scatter_by<Accumulate<bool>>(call, lines);
    case Class::Float: return scatter_by<Accumulate<float>>(call, lines);
    case Class::Double: return scatter_by<Accumulate<double>>(call, lines);
    case Class::Complex: return scatter_by<Accumulate<Complex128>>(call, lines);
    default: return scatter_by<Accumulate<int64_t>>(call, lines);
  }
}
Reduce reduce_of(std::string_view name) {
  if (name == "prod") return Reduce::Product;
  if (name == "mean") return Reduce::Mean;
  if (name.ends_with("max")) return Reduce::Largest;
  return name.ends_with("min") ? Reduce::Smallest : Reduce::Sum;
}
void scatter_reduce(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  copy_elements(call, out, self);
  if (call.tensor(2).numel() == 0) return;
  const Scattered given(call, out);
  const Lines lines(call, given.to, given.dim, given.index, given.source);
  const Reduce reduce = reduce_of(call.text(4));
  const int32_t with_self = call.flag(5);
  const int64_t items = lines.places.numel();
  switch (class_for(out.dtype())) {
    case Class::Bool: return call.launch(ScatterReduce<bool>{lines.s, reduce, with_self}, items);
    case Class::UInt: return call.launch(ScatterReduce<uint64_t>{lines.s, reduce, with_self}, items);
    case Class::Float:
    case Class::Double: return call.launch(ScatterReduce<double>{lines.s, reduce, with_self}, items);
    case Class::Complex: return call.launch(ScatterReduce<Complex128>{lines.s, reduce, with_self}, items);
    default: return call.launch(ScatterReduce<int64_t>{lines.s, reduce, with_self}, items);
  }
}

void nonzero(const Call& call) {
  const Tensor self = call.tensor(0);
  if (self.ndim() > kDims) fail(TAEDA_E_NOT_IMPLEMENTED, "nonzero: device 'cuda' takes at most 25 dimensions");
  const Tensor in = call.rows(self);
  Nonzero z{};
  z.n = in.numel();
  z.ndim = in.ndim();
  for (int d = 0; d < in.ndim(); ++d) z.sizes[d] = in.size(d);
  z.in = in.array();
  const int64_t chunks = (z.n + z.kChunk - 1) / z.kChunk;
  int64_t count = 0;
  Tensor counts;
  if (chunks > 0) {
    const Tensor each = call.empty({chunks}, TAEDA_INT64);
    counts = call.empty({chunks}, TAEDA_INT64);
    z.counts = each.array();
    call.launch(CountNonzero{z}, chunks);
    running_sums(call, counts, each);
    call.read(&count, call.view(counts, std::array<int64_t, 1>{1}, std::array<int64_t, 1>{1}, chunks - 1));
  }
  Tensor found = call.empty({count, in.ndim()}, TAEDA_INT64);
  z.counts = counts.array();
  z.out = found.array();
  if (count > 0) call.launch(WriteNonzero{z}, chunks);
  call.result(0, std::move(found));
}

template <bool Upper>
void triangle(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  if (out.numel() == 0) return;
  const Target to(call, out);
  const Triangle t{walk_of(self, ~uint64_t(0)),
                   self.size(-2),
                   self.size(-1),
                   call.integer(1),
                   self.array(),
                   to.array(),
                   self.item_size(),
                   Upper};
  call.launch(t, out.numel());
  to.done();
}

void cat(const Call& call) {
  const Tensor out = call.output(0);
  const int dim = wrapped(call.integer(1), out.ndim());
  int64_t place = 0;
  for (const Tensor& t : call.tensors(0)) {
    if (t.ndim() == 1 && t.numel() == 0) continue;  // may join tensors of any shape
    if (t.numel() > 0) {
      const Tensor part = call.view(out, t.sizes(), out.strides(), place * out.stride(dim));
      copy_elements(call, part, t);
    }
    place += t.size(dim);
  }
}

}  // namespace

const std::vector<Operation>& index_operations() {
  static const std::vector<Operation> operations{
      {"cat", cat},
      {"embedding", embedding},
      {"embedding_backward", embedding_backward},
      {"gather", gather},
      {"index_select", index_select},
      {"nonzero", nonzero},
      {"rank_indices", rank_indices},
      {"scatter", scatter<false>},
      {"scatter_add", scatter<true>},
      {"scatter_reduce", scatter_reduce},
      {"searchsorted", searchsorted},
      {"sort", sort},
      {"topk", topk},
      {"tril", triangle<false>},
      {"triu", triangle<true>},
  };
  return operations;
}

}  // namespace taeda::cuda
