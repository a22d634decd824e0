// Random numbers, and ranges.
#include "kernels/random.h"

#include <array>
#include <cmath>

#include "kernels/search.h"

#include "ops/elementwise.h"

namespace taeda::cuda {
namespace {

/// How many bits a floating-point type keeps of a number below 1; integers take all of float64's.
int digits_of(int dtype) {
  switch (dtype) {
    case TAEDA_FLOAT16: return 11;
    case TAEDA_BFLOAT16: return 8;
    case TAEDA_FLOAT32: return 24;
    default: return 53;
  }
}
/// Of a recorded call: each run of the graph takes numbers of its own.
void reserve(const Call& call, Graph& graph, uint64_t count, int generator, Philox& philox) {
  if (call.generator(generator))
    fail(TAEDA_E_RUNTIME,
         std::string(call.name()) +
             ": cuda: numbers of a generator that is named in the call cannot be recorded for a graph; "
             "those of the device's own generator can");
  std::string text;
  const Status status = graph.numbers(count, philox.state, philox.offset, text);
  if (status != Status::Ok) call.done(status, text.empty() ? "graph" : text);
}
/// Numbers of so many elements.
Philox numbers_for(const Call& call, int64_t count, int generator) {
  Philox philox{};
  if (Graph* const graph = own_machine()->graphs().of(call.device().index, call.stream()))
    reserve(call, *graph, uint64_t(count), generator, philox);
  else
    passed(api->generator_reserve(call.generator(generator), call.device(), uint64_t(count), &philox.seed,
                                  &philox.offset));
  return philox;
}
Draw draw(const Call& call, const Tensor& out, int generator) {
  Draw d{};
  d.philox = numbers_for(call, out.numel(), generator);
  d.digits = digits_of(out.dtype());
  return d;
}
/// Fills the first argument, whose parameters are the next ones.
template <class Body>
void fill(const Call& call, const Tensor& self, Draw d) {
  if (self.numel() == 0) return;
  const Target to(call, self);
  d.out = to.array();
  call.launch(Body{d}, self.numel());
  to.done();
}
/// Complex numbers are two real ones each.
template <class Body>
void fill_parts(const Call& call, const Tensor& self, int generator, double a, double b) {
  if (!is_complex_type(self.dtype())) {
    Draw d = draw(call, self, generator);
    d.a = a, d.b = b;
    return fill<Body>(call, self, d);
  }
  const Target to(call, self);
  const int real = self.dtype() == TAEDA_COMPLEX64 ? TAEDA_FLOAT32 : TAEDA_FLOAT64;
  const Tensor parts = call.empty({2 * self.numel()}, real);
  Draw d = draw(call, parts, generator);
  d.a = a, d.b = b;
  d.out = {to.array().data, real, 0};
  if (self.numel() > 0) call.launch(Body{d}, parts.numel());
  to.done();
}
Tensor first(const Call& call) { return Tensor(call.value(0).as.tensor); }

void uniform(const Call& call) { fill_parts<DrawUniform>(call, first(call), 3, call.real(1), call.real(2)); }
void normal(const Call& call) {
  const Tensor self = first(call);
  // Of complex numbers each part has half of the variance.
  const double scale = is_complex_type(self.dtype()) ? 0.70710678118654752440 : 1;
  fill_parts<DrawNormal>(call, self, 3, call.real(1), call.real(2) * scale);
}
void exponential(const Call& call) {
  const Tensor self = first(call);
  Draw d = draw(call, self, 2);
  d.a = call.real(1);
  fill<DrawExponential>(call, self, d);
}
void cauchy(const Call& call) {
  const Tensor self = first(call);
  Draw d = draw(call, self, 3);
  d.a = call.real(1), d.b = call.real(2);
  fill<DrawCauchy>(call, self, d);
}
void geometric(const Call& call) {
  const Tensor self = first(call);
  Draw d = draw(call, self, 2);
  d.a = 1 / std::log1p(-call.real(1));
  fill<DrawTrials>(call, self, d);
}
void bernoulli(const Call& call) {
  const Tensor self = first(call);
  Draw d = draw(call, self, 2);
  d.a = call.real(1);
  fill<DrawTruths>(call, self, d);
}
/// On [low, high), on [0, low), or on all that the type represents.
void random_integers(const Call& call) {
  static constexpr unsigned char bits[] = {1, 7, 15, 31, 63, 8, 16, 32, 64, 11, 8, 24, 53};
  const Tensor self = first(call);
  Draw d = draw(call, self, 3);
  const bool one = call.given(1), two = call.given(2);
  d.low = one && two ? call.integer(1) : 0;
  if (two) d.range = uint64_t(call.integer(2)) - uint64_t(d.low);
  else if (one) d.range = uint64_t(call.integer(1));
  else if (bits[self.dtype()] < 64) d.range = (uint64_t(1) << bits[self.dtype()]) + is_float_type(self.dtype());
  fill<DrawIntegers>(call, self, d);
}
void poisson(const Call& call) {
  const Tensor rates = call.rows(call.tensor(0));
  Tensor out = call.empty(rates.sizes(), rates.dtype());
  Draw d = draw(call, out, 1);
  d.rates = rates.array();
  d.report = call.report();
  fill<DrawPoisson>(call, out, d);
  call.result(0, std::move(out));
}
/// The mask, and where `in` is given what it keeps of that; all of them row by row, and of one size.
template <class C>
void drop_out(const Call& call, double kept, double scale, const Tensor& mask, const Tensor& out, const Tensor* in) {
  constexpr int64_t pack = Dropout<C>::kPack;
  Dropout<C> d{};
  d.philox = draw(call, mask, 2).philox;
  d.mask = mask.address();
  d.out = out.array();
  d.n = mask.numel();
  d.kept = uint64_t(std::llround(kept * 0x1p32));
  d.scale = C(scale);
  d.packed = d.mask % pack == 0;
  if (in) {
    d.in = in->array();
    d.packed = d.packed && (d.in.data | d.out.data) % uint64_t(pack * out.item_size()) == 0;
  }
  call.launch(d, (d.n + pack - 1) / pack);
}
void native_dropout(const Call& call) {
  static const Row& row = line("dropout_backward");
  const Tensor out = call.output(0), mask = call.output(1), self = call.tensor(0);
  const double p = call.real(1), factor = p < 1 ? 1 / (1 - p) : 0;
  if (out.numel() == 0) return;
  const bool at_once = self.contiguous() && out.contiguous() && mask.contiguous() && self.dtype() == out.dtype() &&
                       is_float_type(out.dtype()) && !self.on_host();
  if (at_once && out.dtype() == TAEDA_FLOAT64) return drop_out<double>(call, 1 - p, factor, mask, out, &self);
  if (at_once) return drop_out<float>(call, 1 - p, factor, mask, out, &self);
  const Target to_mask(call, mask);
  drop_out<float>(call, 1 - p, factor, to_mask.tensor(), out, nullptr);
  to_mask.done();
  Numbers scale;
  scale.as[0] = {factor, 0, 0};
  if (!is_complex_type(out.dtype())) return run_line(call, row, out.dtype(), out, {&self, &mask}, scale);
  run_line(call, line("mul"), out.dtype(), out, {&self, &mask});
  const Tensor none = call.empty(out.sizes(), out.dtype());
  fill_elements(call, none, {}, out.dtype());
  run_line(call, line("add_alpha"), out.dtype(), out, {&none, &out}, scale);
}
/// With replacement, more than one: by the sums up to each weight.
void draw_with_replacement(const Call& call, const Weights& of, const Tensor& rows, const Tensor& out) {
  taeda_value arguments[3]{};
  arguments[0].kind = TAEDA_VALUE_TENSOR, arguments[0].as.tensor = rows.handle();
  arguments[1].kind = TAEDA_VALUE_INT, arguments[1].as.integer = -1;
  arguments[2].kind = TAEDA_VALUE_DTYPE, arguments[2].as.integer = TAEDA_FLOAT64;
  call.launch(CheckWeights{of}, rows.numel() / of.length);
  const Tensor sums = call.other("cumsum", arguments);
  call.launch(DrawPlaces{of, numbers_for(call, out.numel(), 3), sums.array(), out.array()}, out.numel());
}
/// The first of those whose clocks ring.
Tensor first_of_race(const Call& call, Race race, const Tensor& rows) {
  const Tensor clocks = call.empty(rows.sizes(), TAEDA_FLOAT64);
  race.clocks = clocks.array();
  call.launch(race, rows.numel() / race.of.length);
  taeda_op op = nullptr;
  passed(api->op_find("topk", &op));
  std::array<taeda_value, 5> arguments{};
  std::array<taeda_value, 2> results{};
  arguments[0].kind = TAEDA_VALUE_TENSOR, arguments[0].as.tensor = clocks.handle();
  arguments[1].kind = TAEDA_VALUE_INT, arguments[1].as.integer = race.of.count;
  arguments[2].kind = TAEDA_VALUE_INT, arguments[2].as.integer = -1;
  for (const size_t k : {size_t(3), size_t(4)}) arguments[k].kind = TAEDA_VALUE_BOOL, arguments[k].as.integer = 1;
  passed(api->op_call(op, arguments.data(), uint32_t(arguments.size()), results.data(), uint32_t(results.size())));
  api->tensor_release(results[0].as.tensor);
  return Tensor(results[1].as.tensor, true);
}
void multinomial(const Call& call) {
  const Tensor rows = call.rows(call.tensor(0));
  const int64_t count = call.integer(1), length = rows.size(-1);
  std::vector<int64_t> sizes(rows.sizes().begin(), rows.sizes().end());
  sizes.back() = count;
  Tensor out = call.empty(sizes, TAEDA_INT64);
  const Weights of{rows.array(), length, count, call.report()};
  if (out.numel() == 0) {
    // Nothing is drawn.
  } else if (call.flag(2) && count > 1) {
    draw_with_replacement(call, of, rows, out);
  } else {
    const Race race{of, numbers_for(call, rows.numel(), 3), {}, out.array()};
    if (count == 1) call.launch(race, rows.numel() / length);
    else out = first_of_race(call, {race.of, race.philox, {}, {}}, rows);
  }
  call.result(0, std::move(out));
}
void arange_fill(const Call& call) {
  const Tensor self = first(call);
  if (self.numel() == 0) return;
  const Target to(call, self);
  call.launch(FillRange{to.array(), call.number(1), call.number(2)}, self.numel());
  to.done();
}

}  // namespace

const std::vector<Operation>& random_operations() {
  static const std::vector<Operation> operations{
      {"arange_fill_", arange_fill},      {"bernoulli_", bernoulli}, {"cauchy_", cauchy},
      {"exponential_", exponential},      {"geometric_", geometric}, {"multinomial", multinomial},
      {"native_dropout", native_dropout}, {"normal_", normal},       {"poisson", poisson},
      {"random_", random_integers},       {"uniform_", uniform},
  };
  return operations;
}

}  // namespace taeda::cuda
