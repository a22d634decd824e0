// Bags of a table's rows: from calls to launches.
#include "kernels/bags.h"

#include <algorithm>

#include "ops/read.h"

namespace taeda::cuda {
namespace {

void embedding_bag(const Call& call) {
  const Tensor result = call.output(0), owners = call.output(1), sizes = call.output(2), places = call.output(3);
  const Tensor weight = call.rows(call.tensor(0)), indices = call.rows(call.tensor(1)),
               offsets = call.rows(call.tensor(2));
  const Read factors(call, call.tensor(6));
  Bags bags{};
  bags.bags = sizes.numel(), bags.count = indices.numel();
  bags.rows = weight.size(0), bags.width = weight.size(1);
  bags.padding = call.given(8) ? call.integer(8) : -1;
  if (call.given(8) && bags.padding < 0) bags.padding += bags.rows;
  bags.indices = indices.array(), bags.offsets = offsets.array(), bags.report = call.report();
  const Target to_result(call, result), to_owners(call, owners), to_sizes(call, sizes), to_places(call, places);
  call.launch(DescribeBags{bags, to_owners.array(), to_sizes.array()}, std::max(bags.bags, bags.count));
  const FillBags fill{
      bags, weight.array(), factors.array(), to_result.array(), to_places.array(), BagMode(call.integer(4)), 0};
  call.launch(fill, result.numel());
  for (const Target* to : {&to_result, &to_owners, &to_sizes, &to_places}) to->done();
}

}  // namespace

const std::vector<Operation>& bag_operations() {
  static const std::vector<Operation> operations{{"embedding_bag", embedding_bag}};
  return operations;
}

}  // namespace taeda::cuda
