// Stable order of lines.
#include "ops/order.h"

#include <bit>

namespace taeda::cuda {

int bits_of(const Keys& keys) {
  if (keys.limit > 0) return std::bit_width(uint64_t(keys.limit));
  if (keys.array.dtype == TAEDA_BOOL) return 1;
  int bits = 0;
  with_type(keys.array.dtype, [&]<class T>() { bits = 8 * int(sizeof(T)); });
  return bits;
}
uint64_t turned_of(int bits) { return bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }
namespace {

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

}  // namespace

void put_in_order(const Call& call, const Array& given, int64_t count, int64_t length, bool descending, Address order,
                  int64_t limit) {
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

}  // namespace taeda::cuda
