// Reductions and running values: over which dimensions, and by how many threads.
#include "kernels/reduce.h"

#include <cmath>

#include "ops/elementwise.h"
#include "ops/fold.h"
#include "ops/walk.h"

namespace taeda::cuda {
namespace {

/// Bit d stands for dimension d.
uint64_t dimensions(const Call& call, int argument, int ndim) {
  const uint64_t all = ndim == 64 ? ~uint64_t(0) : (uint64_t(1) << ndim) - 1;
  if (!call.given(argument)) return all;
  uint64_t mask = 0;
  for (const int64_t d : call.integers(argument)) mask |= uint64_t(1) << wrapped(d, ndim);
  return mask ? mask : all;
}

// --- by which chains may end ---

template <class Op> constexpr const char* kText = nullptr;
#define TAEDA_ENDS(...) template <> constexpr const char* kText<__VA_ARGS__> = #__VA_ARGS__;
TAEDA_ENDS(Sum<int64_t>)
TAEDA_ENDS(Sum<double>)
TAEDA_ENDS(Product<int64_t>)
TAEDA_ENDS(Product<double>)
TAEDA_ENDS(Truth<true>)
TAEDA_ENDS(Truth<false>)
TAEDA_ENDS(Extreme<double, true>)
TAEDA_ENDS(Extreme<double, false>)
TAEDA_ENDS(Moments)
TAEDA_ENDS(NormSum<OfSizes>)
TAEDA_ENDS(NormSum<OfSquares>)
TAEDA_ENDS(NormSum<OfPowers>)
TAEDA_ENDS(NormSum<OfTruths>)
TAEDA_ENDS(NormExtreme<true>)
TAEDA_ENDS(NormExtreme<false>)
#undef TAEDA_ENDS

template <class Op>
void join_parts(const Call& call, const Fold& f, int64_t outputs) {
  constexpr int rows = FoldParts<Op>::kRows;
  call.launch(FoldParts<Op>{f, outputs}, (outputs + rows - 1) / rows);
}
template <class Op>
void take_down(Recorder& recorder, const Tensor& self, uint64_t mask, const Tensor* out, const Tensor* places,
               double divisor) {
  if constexpr (kText<Op> != nullptr) {
    static constexpr FoldEnd end{kText<Op>, sizeof(decltype(Op::start())), &join_parts<Op>};
    if (out && !places) return recorder.fold(end, *out, self, mask, divisor);
  }
  recorder.refuse("its fold is none by which chains end");
}

template <class Op>
void fold(const Call& call, const Tensor& self, uint64_t mask, const Tensor* out, const Tensor* places,
          double divisor = 1) {
  if (call.recorder()) return take_down<Op>(*call.recorder(), self, mask, out, places, divisor);
  const Tensor& shape = out ? *out : *places;
  std::optional<Target> to, to_places;
  if (out) to.emplace(call, *out);
  if (places) to_places.emplace(call, *places);
  Fold f{};
  f.kept = walk_of(self, ~mask);
  f.across = walk_of(self, mask);
  f.length = 1;
  for (int d = 0; d < self.ndim(); ++d)
    if (mask >> d & 1) f.length *= self.size(d);
  f.in = self.array();
  if (out) f.out = to->array();
  if (places) f.places = to_places->array();
  f.divisor = divisor;
  const int64_t outputs = shape.numel();
  // Neighbouring threads read neighbouring elements in one of two ways.
  const bool columns = f.kept.ndim > 0 && f.kept.strides[f.kept.ndim - 1] == 1 && outputs >= 16 &&
                       !(f.across.ndim == 1 && f.across.strides[0] == 1);
  const bool alone = f.length < kAlone;
  const int64_t together = columns ? 32 : outputs_of_block(f.length, outputs);
  const int64_t blocks = (outputs + together - 1) / together;
  f.parts = 1, f.part = f.length;
  if (!alone && outputs > 0) divide(f, blocks, columns ? kTilePart : kPart);
  using State = decltype(Op::start());
  Tensor partial;
  if (f.parts > 1) {
    partial = call.empty({outputs * f.parts * int64_t(sizeof(State))}, TAEDA_UINT8);
    f.partial = partial.address();
  }
  if (alone) call.launch(FoldEach<Op>{f}, outputs);
  else if (columns) call.launch(FoldTile<Op>{f, outputs}, blocks * f.parts);
  else if (together == 8) call.launch(FoldBlock<Op, 8>{f, outputs}, blocks * f.parts);
  else call.launch(FoldBlock<Op, 1>{f, outputs}, blocks * f.parts);
  if (f.parts > 1) join_parts<Op>(call, f, outputs);
  if (out) to->done();
  if (places) to_places->done();
}
/// By what the output's numbers are.
template <template <class> class Op>
void arithmetic(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  const uint64_t mask = dimensions(call, 1, self.ndim());
  const int dtype = out.dtype();
  // What is added up is what the output's type makes of the elements.
  const Tensor in = is_complex_type(self.dtype()) && !is_complex_type(dtype) ? call.rows(self, dtype)
                    : is_whole_type(dtype) && !is_whole_type(self.dtype())   ? call.rows(self, dtype)
                                                                             : Tensor(self.handle());
  // Products overflow where those of their type do.
  if (dtype == TAEDA_COMPLEX64 && is_same<Op<double>, Product<double>>)
    fold<Product<Complex64>>(call, in, mask, &out, nullptr);
  else if (is_complex_type(dtype)) fold<Op<Complex128>>(call, in, mask, &out, nullptr);
  else if (is_float_type(dtype)) fold<Op<double>>(call, in, mask, &out, nullptr);
  else fold<Op<int64_t>>(call, in, mask, &out, nullptr);
}
void mean(const Call& call) {
  mean_into(call, call.output(0), call.tensor(0), dimensions(call, 1, call.tensor(0).ndim()));
}
template <bool All>
void truth(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  fold<Truth<All>>(call, self, dimensions(call, 1, self.ndim()), &out, nullptr);
}
template <bool Largest>
void extreme(const Call& call, uint64_t mask, const Tensor* out, const Tensor* places) {
  const Tensor self = call.tensor(0);
  if (self.dtype() == TAEDA_UINT64) fold<Extreme<uint64_t, Largest>>(call, self, mask, out, places);
  else if (is_whole_type(self.dtype())) fold<Extreme<int64_t, Largest>>(call, self, mask, out, places);
  else fold<Extreme<double, Largest>>(call, self, mask, out, places);
}
template <bool Largest>
void extremum(const Call& call) {
  const Tensor out = call.output(0);
  extreme<Largest>(call, dimensions(call, 1, call.tensor(0).ndim()), &out, nullptr);
}
template <bool Largest>
void place_of_extremum(const Call& call) {
  const Tensor out = call.output(0);
  extreme<Largest>(call, dimensions(call, 1, call.tensor(0).ndim()), nullptr, &out);
}
template <bool Largest>
void extremum_with_place(const Call& call) {
  const Tensor values = call.output(0), places = call.output(1);
  extreme<Largest>(call, dimensions(call, 1, call.tensor(0).ndim()), &values, &places);
}

// --- variances and norms ---

void var(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  const uint64_t mask = dimensions(call, 1, self.ndim());
  const double correction = call.given(4) ? call.real(4) : call.flag(2) ? 1 : 0;
  if (!is_complex_type(self.dtype())) return fold<Moments>(call, self, mask, &out, nullptr, correction);
  // Those of the real and of the imaginary parts, together.
  taeda_value argument{};
  argument.kind = TAEDA_VALUE_TENSOR, argument.as.tensor = self.handle();
  const Tensor parts = call.other("view_as_real", std::span(&argument, 1));
  std::vector<int64_t> sizes(out.sizes().begin(), out.sizes().end());
  sizes.push_back(2);
  const Tensor both = call.empty(sizes, TAEDA_FLOAT64);
  const uint64_t last = uint64_t(1) << self.ndim(), all = last - 1;
  fold<Moments>(call, parts, self.ndim() ? mask & all : uint64_t(0), &both, nullptr, correction);
  fold<Sum<double>>(call, both, uint64_t(1) << out.ndim(), &out, nullptr);
}
void norm_of(const Call& call, const Tensor& out, const Tensor& self, uint64_t mask, double order) {
  if (order == 2) return fold<NormSum<OfSquares>>(call, self, mask, &out, nullptr, order);
  if (order == 1) return fold<NormSum<OfSizes>>(call, self, mask, &out, nullptr, order);
  if (order == 0) return fold<NormSum<OfTruths>>(call, self, mask, &out, nullptr, order);
  if (!std::isinf(order)) return fold<NormSum<OfPowers>>(call, self, mask, &out, nullptr, order);
  if (order > 0) return fold<NormExtreme<true>>(call, self, mask, &out, nullptr, order);
  fold<NormExtreme<false>>(call, self, mask, &out, nullptr, order);
}
void vector_norm(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  const uint64_t mask = dimensions(call, 2, self.ndim());
  const int dtype = call.given(4) ? int(call.integer(4)) : self.dtype();
  // What is rounded to fewer bits is so before it is added up.
  Tensor in = is_float_type(dtype) && dtype < self.dtype() ? call.rows(self, dtype) : Tensor(self.handle());
  if (is_complex_type(self.dtype())) {
    Tensor sizes = call.empty(self.sizes(), out.dtype());
    run_line(call, line("abs"), self.dtype(), sizes, {&self});
    in = std::move(sizes);
  }
  norm_of(call, out, in, mask, call.real(1));
}

// --- running values ---

/// By as many threads as lines and their length allow.
template <class Op>
void scan_lines(const Call& call, Scan s, int64_t lines) {
  if (s.length <= kAlone) return call.launch(ScanEach<Op>{s}, lines);
  constexpr int64_t kPart = 2048;
  const int64_t wanted = lines < kBusy ? kBusy / lines : 1;
  s.part = std::max((s.length + wanted - 1) / wanted, kPart);
  s.parts = (s.length + s.part - 1) / s.part;
  Tensor partial;
  if (s.parts > 1) {
    partial = call.empty({lines * s.parts * int64_t(sizeof(decltype(Op::start())))}, TAEDA_UINT8);
    s.partial = partial.address();
    call.launch(ScanBlock<Op, true>{s}, lines * s.parts);
    call.launch(StartsOfParts<Op>{s.partial, 0, s.parts}, lines);
  }
  call.launch(ScanBlock<Op, false>{s}, lines * s.parts);
}
template <class Op>
void scan(const Call& call, const Tensor& self, const Tensor& out, const Tensor* places) {
  const int dim = wrapped(call.integer(1), self.ndim());
  Target to(call, out);
  std::optional<Target> to_places;
  if (places) to_places.emplace(call, *places);
  const uint64_t mask = uint64_t(1) << dim;
  Scan s{};
  s.from = walk_of(self, ~mask);
  s.to = walk_of(to.tensor(), ~mask);
  s.length = self.ndim() ? self.size(dim) : 1;
  s.step_from = self.ndim() ? self.stride(dim) : 1;
  s.step_to = self.ndim() ? to.tensor().stride(dim) : 1;
  s.in = self.array();
  s.out = to.array();
  if (places) s.places = to_places->array();
  if (out.numel() > 0) scan_lines<Op>(call, s, out.numel() / s.length);
  to.done();
  if (places) to_places->done();
}
template <template <class> class Op>
void running(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  const bool cut = is_whole_type(out.dtype()) && !is_whole_type(self.dtype());
  const Tensor in = cut ? call.rows(self, out.dtype()) : Tensor(self.handle());
  if (is_complex_type(out.dtype())) scan<Op<Complex128>>(call, in, out, nullptr);
  else if (is_float_type(out.dtype())) scan<Op<double>>(call, in, out, nullptr);
  else scan<Op<int64_t>>(call, in, out, nullptr);
}
void logcumsumexp(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  if (is_complex_type(out.dtype())) scan<LogSum<Complex128>>(call, self, out, nullptr);
  else scan<LogSum<double>>(call, self, out, nullptr);
}
template <bool Largest>
void running_extremum(const Call& call) {
  const Tensor out = call.output(0), places = call.output(1), self = call.tensor(0);
  if (self.dtype() == TAEDA_UINT64) scan<Extreme<uint64_t, Largest, true>>(call, self, out, &places);
  else if (is_whole_type(self.dtype())) scan<Extreme<int64_t, Largest, true>>(call, self, out, &places);
  else scan<Extreme<double, Largest, true>>(call, self, out, &places);
}

}  // namespace

void sum_into(const Call& call, const Tensor& out, const Tensor& self, uint64_t dimensions) {
  if (is_complex_type(out.dtype())) fold<Sum<Complex128>>(call, self, dimensions, &out, nullptr);
  else if (is_float_type(out.dtype())) fold<Sum<double>>(call, self, dimensions, &out, nullptr);
  else fold<Sum<int64_t>>(call, self, dimensions, &out, nullptr);
}

void running_sums(const Call& call, const Tensor& out, const Tensor& self) {
  Scan s{};
  s.length = self.numel();
  s.step_from = s.step_to = 1;
  s.in = self.array();
  s.out = out.array();
  scan_lines<Sum<int64_t>>(call, s, 1);
}

void mean_into(const Call& call, const Tensor& out, const Tensor& self, uint64_t dimensions) {
  int64_t length = 1;
  for (int d = 0; d < self.ndim(); ++d)
    if (dimensions >> d & 1) length *= self.size(d);
  if (is_complex_type(out.dtype())) fold<Sum<Complex128>>(call, self, dimensions, &out, nullptr, double(length));
  else fold<Sum<double>>(call, self, dimensions, &out, nullptr, double(length));
}

const std::vector<Operation>& reduce_operations() {
  static const std::vector<Operation> operations{
      {"all", truth<true>},
      {"amax", extremum<true>},
      {"amin", extremum<false>},
      {"any", truth<false>},
      {"argmax", place_of_extremum<true>},
      {"argmin", place_of_extremum<false>},
      {"cummax", running_extremum<true>},
      {"cummin", running_extremum<false>},
      {"cumprod", running<Product>},
      {"cumsum", running<Sum>},
      {"logcumsumexp", logcumsumexp},
      {"max.dim", extremum_with_place<true>},
      {"mean", mean},
      {"min.dim", extremum_with_place<false>},
      {"prod", arithmetic<Product>},
      {"sum", arithmetic<Sum>},
      {"var", var},
      {"vector_norm", vector_norm},
  };
  return operations;
}

}  // namespace taeda::cuda
