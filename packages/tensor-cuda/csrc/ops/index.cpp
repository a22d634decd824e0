// Indexing, order, and joining.
#include "kernels/index.h"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/order.h"
#include "kernels/rank.h"
#include "ops/elementwise.h"
#include "ops/walk.h"

namespace taeda::cuda {
namespace {

/// As a tensor of one dimension where it has none.
Tensor at_least_row(const Call& call, const Tensor& t) {
  if (t.ndim() > 0) return Tensor(t.handle());
  return call.view(t, std::array<int64_t, 1>{1}, std::array<int64_t, 1>{1});
}

/// How many bits tell the keys of a dtype apart.
int bits_of(const Keys& keys) {
  if (keys.limit > 0) return std::bit_width(uint64_t(keys.limit));
  if (keys.array.dtype == TAEDA_BOOL) return 1;
  int bits = 0;
  with_type(keys.array.dtype, [&]<class T>() { bits = 8 * int(sizeof(T)); });
  return bits;
}
/// What is turned of keys of so many bits for the largest to come first.
uint64_t turned_of(int bits) { return bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }
/// Writes the places along lines of `length` in the order of their keys. See Note [Dealing out].
template <class K>
void order_lines(const Call& call, const Keys& keys, int bits, int64_t count, int64_t length, Address order) {
  constexpr int64_t kShort = 32, kTile = OrderTile<K>::kElements;
  const int64_t lines = count / length, tiles = (length + kTile - 1) / kTile;
  if (length <= kShort) return call.launch(OrderShort<K>{keys, length, order}, count);
  if (tiles == 1) return call.launch(OrderLines<K>{keys, length, order, bits, 0}, lines);
  const Tensor counts = call.empty({lines * kDigitValues * tiles}, TAEDA_UINT32),
               totals = call.empty({lines * kDigitValues}, TAEDA_UINT32);
  Deal deal{};
  deal.source = keys;
  deal.counts = counts.address(), deal.totals = totals.address();
  deal.length = length, deal.tiles = tiles;
  const bool several = bits > kDigitBits;
  const auto memory = [&](int dtype) { return several ? call.empty({count}, dtype) : Tensor(); };
  constexpr int kind = sizeof(K) == 4 ? TAEDA_UINT32 : TAEDA_UINT64;
  const Tensor kept[2][2] = {{memory(kind), memory(TAEDA_UINT32)}, {memory(kind), memory(TAEDA_UINT32)}};
  for (int turn = 0; turn * kDigitBits < bits; ++turn) {
    const auto &from = kept[turn % 2], &to = kept[1 - turn % 2];
    deal.shift = turn * kDigitBits;
    deal.keys = turn ? from[0].address() : 0, deal.places = turn ? from[1].address() : 0;
    deal.order = deal.shift + kDigitBits >= bits ? order : 0;
    deal.to_keys = deal.order ? 0 : to[0].address(), deal.to_places = deal.order ? 0 : to[1].address();
    call.launch(OrderCounts<K>{deal}, lines * tiles);
    call.launch(StartsOfParts<Occurrences>{deal.counts, deal.totals, tiles}, lines * kDigitValues);
    call.launch(OrderDeal<K>{deal}, lines * tiles);
  }
}
/// The same, of row-major keys; those that are places below a limit take fewer steps.
void put_in_order(const Call& call, const Array& given, int64_t count, int64_t length, bool descending, Address order,
                  int64_t limit = 0) {
  if (length >= int64_t(1) << 32)
    fail(TAEDA_E_NOT_IMPLEMENTED, std::string(call.name()) +
                                      ": device 'cuda' puts at most 2^32 elements of a dimension in order, found " +
                                      std::to_string(length));
  Keys keys{given, limit, 0};
  const int bits = bits_of(keys);
  if (descending) keys.turned = turned_of(bits);
  if (bits <= 32) order_lines<uint32_t>(call, keys, bits, count, length, order);
  else order_lines<uint64_t>(call, keys, bits, count, length, order);
}
Tensor order_of(const Call& call, const Tensor& keys, int64_t length, int64_t limit) {
  Tensor places = call.empty({keys.numel()}, TAEDA_INT64);
  put_in_order(call, keys.array(), keys.numel(), length, false, places.address(), limit);
  return places;
}
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

void embedding_backward(const Call& call) {
  if (is_complex_type(call.output(0).dtype())) embedding_backward_in<Complex128>(call);
  else embedding_backward_in<double>(call);
}

/// Up to so many places along a line one thread goes through them.
constexpr int64_t kAlone = 64;

template <class Do>
void scatter_by(const Call& call, const Tensor& out, int dim, const Tensor& index, const Tensor& source) {
  const uint64_t along = uint64_t(1) << dim;
  const Tensor places = call.rows(index, TAEDA_INT64);
  Scatter s{};
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
  const int64_t lines = places.numel() / s.length;
  if (s.length <= kAlone) return call.launch(ScatterLines<Do>{s}, lines);
  const Tensor keys = call.rows(call.last(places, dim));
  const Tensor order = order_of(call, keys, s.length, s.limit);
  s.order = order.address();
  call.launch(ScatterRuns<Do>{s}, places.numel());
}
template <bool Adds>
void scatter(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  copy_elements(call, out, self);
  const Tensor given = call.tensor(2);
  if (given.numel() == 0) return;
  const Tensor to = at_least_row(call, out), index = at_least_row(call, given);
  const Tensor src = call.tensor(3);
  // Of another dtype, or a number, it is brought to the output's.
  Tensor source;
  if (src.on_host() || src.dtype() != out.dtype()) {
    source = call.empty(src.ndim() ? src.sizes() : index.sizes(), out.dtype());
    copy_elements(call, source, src);
  } else {
    source = at_least_row(call, src);
  }
  const int dim = wrapped(call.integer(1), to.ndim());
  if (!Adds) return scatter_by<Assign>(call, to, dim, index, source);
  switch (class_for(out.dtype())) {
    case Class::Bool: return scatter_by<Accumulate<bool>>(call, to, dim, index, source);
    case Class::Float: return scatter_by<Accumulate<float>>(call, to, dim, index, source);
    case Class::Double: return scatter_by<Accumulate<double>>(call, to, dim, index, source);
    case Class::Complex: return scatter_by<Accumulate<Complex128>>(call, to, dim, index, source);
    default: return scatter_by<Accumulate<int64_t>>(call, to, dim, index, source);
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
      {"sort", sort},
      {"topk", topk},
  };
  return operations;
}

}  // namespace taeda::cuda
