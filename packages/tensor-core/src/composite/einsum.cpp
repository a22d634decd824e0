// einsum: operands are aligned by label and contracted pairwise, each contraction one bmm.
#include <algorithm>
#include <string>

#include "taeda/half.h"
#include "taeda/ops.h"

namespace taeda::impl {
namespace {

// Note [Labels]
// Letters are numbered 0..51 (A-Z, a-z); the dimensions of `...` get the numbers from kEllipsis up, aligned to the
// right.
constexpr int kEllipsis = 52;
constexpr int kLabels = kEllipsis + kMaxDims;

int label_of(char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 26 : c >= 'A' && c <= 'Z' ? c - 'A' : -1; }
std::string label_text(int label) {
  return label >= kEllipsis ? "..." : std::string(1, label < 26 ? char('A' + label) : char('a' + label - 26));
}

Tensor of_dtype(const Tensor& t, DType dtype) { return t.dtype() == dtype ? t : ops::to_dtype(t, dtype); }

struct Term {
  Tensor tensor;
  std::vector<int> labels;
  bool has(int label) const { return std::ranges::find(labels, label) != labels.end(); }
};

[[noreturn]] void bad(std::string_view equation, const std::string& why) {
  fail(ErrorKind::Runtime, "einsum: argument 'equation' \"", equation, "\": ", why);
}

/// Labels of one term; -2 stands for the ellipsis.
std::vector<int> parse_term(std::string_view equation, std::string_view text) {
  std::vector<int> labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      if (text.substr(i, 3) != "..." || std::ranges::find(labels, -2) != labels.end())
        bad(equation, "'.' is only allowed once, as '...'");
      labels.push_back(-2);
      i += 2;
      continue;
    }
    const int label = label_of(text[i]);
    if (label < 0) bad(equation, std::string("unexpected character '") + text[i] + "'");
    labels.push_back(label);
  }
  return labels;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t from = 0;;) {
    const size_t to = text.find(at, from);
    parts.push_back(text.substr(from, to == std::string_view::npos ? to : to - from));
    if (to == std::string_view::npos) return parts;
    from = to + 1;
  }
}

/// Replaces the ellipsis by numbered labels; repeated labels become diagonals.
Term make_term(std::string_view equation, const Tensor& tensor, const std::vector<int>& parsed, size_t position,
               int64_t ellipsis_dims) {
  Term term{tensor, {}};
  const bool has_ellipsis = std::ranges::find(parsed, -2) != parsed.end();
  const int64_t rest = tensor.dim() - int64_t(parsed.size()) + (has_ellipsis ? 1 : 0);
  if (rest < 0 || (rest > 0 && !has_ellipsis))
    bad(equation, detail::concat("operand ", position, " has shape ", shape_text(tensor.sizes()), " but ",
                                 parsed.size() - size_t(has_ellipsis), " labels"));
  for (int label : parsed) {
    if (label != -2) term.labels.push_back(label);
    for (int64_t d = 0; label == -2 && d < rest; ++d) term.labels.push_back(int(kEllipsis + ellipsis_dims - rest + d));
  }
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t j = term.labels.size() - 1; j > i; --j) {
      if (term.labels[i] != term.labels[j]) continue;
      if (term.tensor.size(int64_t(i)) != term.tensor.size(int64_t(j)))
        bad(equation, detail::concat("label ", label_text(term.labels[i]), " names dimensions of sizes ",
                                     term.tensor.size(int64_t(i)), " and ", term.tensor.size(int64_t(j)),
                                     " of operand ", position));
      // The diagonal comes last; it goes back to the place of the first occurrence.
      term.tensor = ops::movedim(ops::diagonal(term.tensor, 0, int64_t(i), int64_t(j)), Shape{-1}, Shape{int64_t(i)});
      term.labels.erase(term.labels.begin() + int64_t(j));
    }
  return term;
}

/// Sums out labels that nobody else needs, in the dtype of sums.
void reduce(Term& term, const std::vector<char>& needed) {
  Shape dims;
  std::vector<int> kept;
  for (size_t d = 0; d < term.labels.size(); ++d) {
    if (needed[size_t(term.labels[d])]) kept.push_back(term.labels[d]);
    else dims.push_back(int64_t(d));
  }
  if (dims.empty()) return;
  term.tensor = ops::sum(term.tensor, IntSpan(dims), false);
  term.labels = kept;
}

// Each view costs as much as a small product: those that change nothing are not made.
Tensor permuted(const Tensor& t, const Shape& order) {
  return std::ranges::is_sorted(order) ? t : ops::permute(t, order);
}
Tensor expanded(const Tensor& t, const Shape& sizes) {
  return std::ranges::equal(t.sizes(), sizes) ? t : ops::expand(t, sizes);
}

/// Permutes and folds a term to (batch, first, second) given the labels of each group.
Tensor folded(const Term& term, const std::vector<int>& batch, const std::vector<int>& first,
              const std::vector<int>& second, const int64_t* sizes) {
  Shape order, folded_sizes;
  Tensor t = term.tensor;
  const auto add = [&](const std::vector<int>& group, bool broadcast) {
    int64_t count = 1;
    for (int label : group) {
      const auto at = std::ranges::find(term.labels, label) - term.labels.begin();
      order.push_back(at);
      count *= broadcast ? sizes[label] : t.size(at);
    }
    folded_sizes.push_back(count);
  };
  add(batch, true);
  add(first, true);
  add(second, true);
  t = permuted(t, order);
  Shape wide;
  for (const auto* group : {&batch, &first, &second})
    for (int label : *group) wide.push_back(sizes[label]);
  return ops::reshape(expanded(t, wide), folded_sizes);
}

/// The term with its labels in this order, of size 1 where it lacks one.
Tensor aligned(const Term& term, const std::vector<int>& labels) {
  Shape order;
  for (int label : labels)
    if (term.has(label)) order.push_back(std::ranges::find(term.labels, label) - term.labels.begin());
  Tensor t = permuted(term.tensor, order);
  for (size_t d = 0; d < labels.size(); ++d)
    if (!term.has(labels[d])) t = ops::unsqueeze(t, int64_t(d));
  return t;
}

/// Product of two terms, summed over labels that are in both and not needed afterwards. Labels are laid out by rank.
Term contract(const Term& a, const Term& b, const std::vector<char>& needed, const int* ranks, const int64_t* sizes,
              DType dtype) {
  const auto rank = [ranks](int label) { return ranks[label]; };
  std::vector<int> batch, sum, only_a, only_b;
  for (int label : a.labels) (b.has(label) ? (needed[size_t(label)] ? batch : sum) : only_a).push_back(label);
  for (int label : b.labels)
    if (!a.has(label)) only_b.push_back(label);
  for (auto* group : {&batch, &sum, &only_a, &only_b}) std::ranges::sort(*group, {}, rank);
  if (!sum.empty() && !only_a.empty() && !only_b.empty() && rank(only_b.back()) < rank(only_a.front()))
    return contract(b, a, needed, ranks, sizes, dtype);
  Term out;
  for (const auto* group : {&batch, &only_a, &only_b})
    out.labels.insert(out.labels.end(), group->begin(), group->end());
  if (sum.empty()) {  // an outer or element-wise product needs no bmm
    std::ranges::sort(out.labels, {}, rank);
    out.tensor = ops::mul(aligned(a, out.labels), aligned(b, out.labels));
    return out;
  }
  const Tensor left = folded(a, batch, only_a, sum, sizes), right = folded(b, batch, sum, only_b, sizes);
  Shape shape;
  for (int label : out.labels) shape.push_back(sizes[label]);
  const Tensor result = ops::bmm(of_dtype(left, dtype), of_dtype(right, dtype));
  out.tensor = std::ranges::equal(result.sizes(), shape) ? result : ops::reshape(result, shape);
  return out;
}

// Note [Order of contractions]
// A contraction costs as many multiplications as the sizes of all its labels multiply to. Of few operands all orders
// are tried; of many the cheapest pair is taken each time. Left to right it is unless another order costs less by far,
// so that results of most programs do not change by a rounding.

__extension__ using LabelSet = unsigned __int128;
static_assert(kLabels <= 128);
struct Pair {
  size_t first, second;  // the result stands in place of the first
};
class Planner {
 public:
  Planner(const std::vector<Term>& terms, const std::vector<int>& output, const int64_t* sizes)
      : output_(set_of(output)), sizes_(sizes) {
    for (const Term& term : terms) terms_.push_back(set_of(term.labels));
  }
  std::vector<Pair> pairs() const {
    constexpr size_t few = 4;
    constexpr double by_far = 2;
    std::vector<Pair> in_turn(terms_.size() - 1, Pair{0, 1}), best;
    if (terms_.size() <= 2) return in_turn;
    double cost = 0;
    std::vector<LabelSet> left = terms_;
    for (const Pair pair : in_turn) cost += join(left, pair);
    double least = cost / by_far;
    if (terms_.size() <= few) {
      std::vector<Pair> so_far;
      search(terms_, 0, so_far, least, best);
    } else {
      const double sum = cheapest_first(best);
      if (sum >= least) best.clear();
    }
    return best.empty() ? in_turn : best;
  }

 private:
  static LabelSet set_of(const std::vector<int>& labels) {
    LabelSet set = 0;
    for (const int label : labels) set |= LabelSet(1) << label;
    return set;
  }
  double product(LabelSet set) const {
    double cost = 1;
    for (int label = 0; set; ++label, set >>= 1)
      if (set & 1) cost *= double(sizes_[label]);
    return cost;
  }
  double cost(const std::vector<LabelSet>& terms, Pair pair) const {
    return product(terms[pair.first] | terms[pair.second]);
  }
  /// What the contraction costs; its result is in the place of both then.
  double join(std::vector<LabelSet>& terms, Pair pair) const {
    const double sum = cost(terms, pair);
    LabelSet needed = output_;
    for (size_t i = 0; i < terms.size(); ++i)
      if (i != pair.first && i != pair.second) needed |= terms[i];
    terms[pair.first] = (terms[pair.first] | terms[pair.second]) & needed;
    terms.erase(terms.begin() + int64_t(pair.second));
    return sum;
  }
  /// `best` and what it costs, `least`, where there is something cheaper.
  void search(const std::vector<LabelSet>& terms, double spent, std::vector<Pair>& so_far, double& least,
              std::vector<Pair>& best) const {
    if (spent >= least) return;
    if (terms.size() == 1) {
      least = spent;
      best = so_far;
      return;
    }
    for (size_t i = 0; i < terms.size(); ++i)
      for (size_t j = i + 1; j < terms.size(); ++j) {
        std::vector<LabelSet> left = terms;
        so_far.push_back({i, j});
        const double cost = join(left, {i, j});
        search(left, spent + cost, so_far, least, best);
        so_far.pop_back();
      }
  }
  double cheapest_first(std::vector<Pair>& found) const {
    std::vector<LabelSet> left = terms_;
    double sum = 0;
    while (left.size() > 1) {
      Pair best{0, 1};
      for (size_t i = 0; i < left.size(); ++i)
        for (size_t j = i + 1; j < left.size(); ++j)
          if (cost(left, {i, j}) < cost(left, best)) best = {i, j};
      sum += join(left, best);
      found.push_back(best);
    }
    return sum;
  }

  std::vector<LabelSet> terms_;
  LabelSet output_;
  const int64_t* sizes_;
};

/// Whether there is one sum or one product: others have steps, whose results halves would round each by itself.
bool rounds_once(const std::vector<std::vector<int>>& terms, const std::vector<int>& output) {
  if (terms.size() != 2) return terms.size() < 2;
  const auto has = [](const std::vector<int>& labels, int label) {
    return std::ranges::find(labels, label) != labels.end();
  };
  const auto summed_alone = [&](const std::vector<int>& own, const std::vector<int>& other) {
    return std::ranges::any_of(own, [&](int label) {  // the dimensions of `...` are there if the output has any
      const bool kept =
          label == -2 ? std::ranges::any_of(output, [](int one) { return one >= kEllipsis; }) : has(output, label);
      return !kept && !has(other, label);
    });
  };
  return !summed_alone(terms[0], terms[1]) && !summed_alone(terms[1], terms[0]);
}

/// Whether an element stands for several, whose gradients are added up.
bool repeats(const std::vector<Term>& terms, const int64_t* sizes) {
  return std::ranges::any_of(terms, [sizes](const Term& term) {
    for (size_t d = 0; d < term.labels.size(); ++d)
      if (term.tensor.size(int64_t(d)) != sizes[term.labels[d]]) return true;
    return false;
  });
}

}  // namespace

Tensor einsum(std::string_view equation, TensorList tensors) {
  check(!tensors.empty(), ErrorKind::Value, "einsum: argument 'tensors' is empty, expected at least one operand");
  const size_t arrow = equation.find("->");
  const auto texts = split(equation.substr(0, arrow), ',');
  if (texts.size() != tensors.size())
    bad(equation, detail::concat("names ", texts.size(), " operands, ", tensors.size(), " were given"));

  std::vector<std::vector<int>> parsed;
  int64_t ellipsis_dims = 0;
  int counts[kLabels] = {};
  for (size_t i = 0; i < texts.size(); ++i) {
    parsed.push_back(parse_term(equation, texts[i]));
    for (int label : parsed[i]) {
      if (label == -2) ellipsis_dims = std::max(ellipsis_dims, tensors[i].dim() - int64_t(parsed[i].size()) + 1);
      else ++counts[label];
    }
  }

  std::vector<int> output;
  const auto add_ellipsis = [&] {
    for (int64_t d = 0; d < ellipsis_dims; ++d) output.push_back(int(kEllipsis + d));
  };
  if (arrow == std::string_view::npos) {  // implicit: `...`, then letters that occur once, in order
    add_ellipsis();
    for (int label = 0; label < kEllipsis; ++label)
      if (counts[label] == 1) output.push_back(label);
  } else {
    for (int label : parse_term(equation, equation.substr(arrow + 2))) {
      if (label == -2) {
        add_ellipsis();
        continue;
      }
      if (counts[label] == 0) bad(equation, "output label '" + label_text(label) + "' is in no operand");
      if (std::ranges::find(output, label) != output.end())
        bad(equation, "output label '" + label_text(label) + "' is given twice");
      output.push_back(label);
    }
  }

  const DType dtype = result_type(tensors);
  std::vector<Term> terms;
  int64_t sizes[kLabels];
  std::fill_n(sizes, kLabels, int64_t(1));
  for (size_t i = 0; i < tensors.size(); ++i) {
    Term term = make_term(equation, of_dtype(tensors[i], dtype), parsed[i], i, ellipsis_dims);
    for (size_t d = 0; d < term.labels.size(); ++d) {
      int64_t& size = sizes[term.labels[d]];
      const int64_t found = term.tensor.size(int64_t(d));
      if (size != 1 && found != 1 && size != found)
        bad(equation, detail::concat("label ", label_text(term.labels[d]), " is ", size, " before and ", found,
                                     " in operand ", i, " of shape ", shape_text(tensors[i].sizes())));
      if (size == 1) size = found;
    }
    terms.push_back(std::move(term));
  }

  if (is_half(tensors) && (!rounds_once(parsed, output) || repeats(terms, sizes))) [[unlikely]]
    return from_float32(einsum(equation, in_float32(tensors)), dtype);

  // Dimensions of results lie in memory in the order of the output, then of the alphabet.
  int ranks[kLabels];
  for (int label = 0; label < kLabels; ++label) ranks[label] = kLabels + label;
  for (size_t i = 0; i < output.size(); ++i) ranks[output[i]] = int(i);

  // A label is needed while the output or another operand has it.
  const auto needed_beside = [&](size_t first, size_t second) {
    std::vector<char> needed(kLabels, 0);
    for (int label : output) needed[size_t(label)] = 1;
    for (size_t k = 0; k < terms.size(); ++k)
      if (k != first && k != second)
        for (int label : terms[k].labels) needed[size_t(label)] = 1;
    return needed;
  };
  if (terms.size() == 1) reduce(terms[0], needed_beside(0, 0));
  for (const auto [first, second] : Planner(terms, output, sizes).pairs()) {
    Term &a = terms[first], &b = terms[second];
    reduce(a, needed_beside(first, first));
    reduce(b, needed_beside(second, second));
    a = contract(a, b, needed_beside(first, second), ranks, sizes, dtype);
    terms.erase(terms.begin() + int64_t(second));
  }
  const Term& result = terms[0];

  Shape order, shape;
  for (int label : output) {
    order.push_back(std::ranges::find(result.labels, label) - result.labels.begin());
    shape.push_back(sizes[label]);
  }
  Tensor out = expanded(permuted(result.tensor, order), shape);
  for (const Tensor& t : tensors)
    if (out.same(t)) return ops::clone(out);
  return out;
}

}  // namespace taeda::impl
