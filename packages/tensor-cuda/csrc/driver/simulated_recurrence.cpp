// Recurrent layers step by step, in float64. What is kept for the gradient is lost backward, as the library's is.
#include "driver/simulated_recurrence.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base.h"

namespace taeda::cuda {
namespace {

using Numbers = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
int64_t item_size(int dtype) { return dtype == TAEDA_FLOAT64 ? 8 : dtype == TAEDA_FLOAT32 ? 4 : 2; }

Numbers read(uint64_t from, int dtype, int64_t count) {
  Numbers found(static_cast<size_t>(count));
  if (from)
    for (int64_t i = 0; i < count; ++i) found[size_t(i)] = load<double>(Array{from, dtype, 0}, i);
  return found;
}
void write(uint64_t to, int dtype, const Numbers& numbers) {
  if (to)
    for (size_t i = 0; i < numbers.size(); ++i) store<double>(Array{to, dtype, 0}, int64_t(i), numbers[i]);
}

/// A matrix of row-major weights, with a bias or without; read once.
struct Affine {
  int64_t rows = 0, columns = 0;
  Numbers matrix, bias;
  /// Adds it of `in` to `out`.
  void add(double* out, const double* in) const {
    for (int64_t i = 0; i < rows; ++i) {
      double sum = bias.empty() ? 0 : bias[size_t(i)];
      for (int64_t j = 0; j < columns; ++j) sum += matrix[size_t(i * columns + j)] * in[j];
      out[i] += sum;
    }
  }
  /// Adds what `of_out` makes of the gradient of what went in.
  void add_back(double* to_in, const double* of_out) const {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) to_in[j] += matrix[size_t(i * columns + j)] * of_out[i];
  }
  void add_gradient(const double* of_out, const double* in) {
    for (int64_t i = 0; i < rows; ++i) {
      if (!bias.empty()) bias[size_t(i)] += of_out[i];
      for (int64_t j = 0; j < columns; ++j) matrix[size_t(i * columns + j)] += of_out[i] * in[j];
    }
  }
};

class Layers {
 public:
  Layers(const RecurrencePlan& plan, const RecurrenceRun& run)
      : plan_(plan), run_(run), r_(plan.layers), width_(kept_each(r_)), rows_(r_.rows()) {}

  /// Numbers that a step of a sequence keeps: active gates, c or the gate n of h, h before its projection, h.
  static int64_t kept_each(const Recurrence& r) { return (r.gates() + 2) * r.hidden + r.features(); }

  void forward() {
    kept_.assign(size_t(r_.layers * r_.directions * rows_ * width_), 0);
    h_ = read(run_.h, r_.dtype, states() * r_.features()), c_ = read(run_.c, r_.dtype, states() * r_.hidden);
    Numbers sequence = read(run_.x, r_.dtype, rows_ * r_.inputs);
    for (int layer = 0; layer < r_.layers; ++layer) {
      Numbers out(size_t(rows_ * r_.directions * r_.features()));
      for (int direction = 0; direction < r_.directions; ++direction)
        for (int64_t n = 0; n < r_.batch; ++n) forward_through(layer, direction, n, sequence, out);
      sequence = std::move(out);
    }
    write(run_.y, r_.dtype, sequence);
    write(run_.h_out, r_.dtype, h_);
    if (r_.cell == Cell::Lstm) write(run_.c_out, r_.dtype, c_);
    if (r_.keeps) std::memcpy(at<char>(run_.kept), kept_.data(), plan_.kept);
  }
  void backward() {
    kept_.resize(plan_.kept / sizeof(double));
    std::memcpy(kept_.data(), at<char>(run_.kept), plan_.kept);
    std::memset(at<char>(run_.kept), -1, plan_.kept);
    h_ = read(run_.h, r_.dtype, states() * r_.features()), c_ = read(run_.c, r_.dtype, states() * r_.hidden);
    of_h_ = read(run_.of_h_out, r_.dtype, states() * r_.features());
    of_c_ = read(run_.of_c_out, r_.dtype, states() * r_.hidden);
    Numbers of_out = read(run_.of_y, r_.dtype, rows_ * r_.directions * r_.features());
    for (int layer = r_.layers; layer-- > 0;) {
      const Numbers in = layer == 0 ? read(run_.x, r_.dtype, rows_ * r_.inputs) : outputs_of(layer - 1);
      Numbers to_in(in.size());
      for (int direction = 0; direction < r_.directions; ++direction)
        backward_through(layer, direction, in, of_out, to_in);
      of_out = std::move(to_in);
    }
    write(run_.to_x, r_.dtype, of_out);
    write(run_.to_h, r_.dtype, of_h_);
    if (r_.cell == Cell::Lstm) write(run_.to_c, r_.dtype, of_c_);
  }

 private:
  struct Weights {
    Affine input, hidden, projection;
  };
  int64_t states() const { return r_.layers * r_.directions * r_.batch; }
  int64_t length(int64_t n) const { return r_.lengths.empty() ? r_.steps : r_.lengths[size_t(n)]; }
  /// Where a step of a sequence lies among the rows.
  int64_t row(int64_t step, int64_t n) const {
    if (r_.lengths.empty()) return r_.batch_first ? n * r_.steps + step : step * r_.batch + n;
    int64_t before = 0;
    for (const int64_t length : r_.lengths) before += std::min(length, step);
    return before + n;
  }
  double* kept(int layer, int direction, int64_t row) {
    return kept_.data() + ((layer * r_.directions + direction) * rows_ + row) * width_;
  }
  double* state(Numbers& of, int layer, int direction, int64_t n, int64_t features) {
    return of.data() + ((layer * r_.directions + direction) * r_.batch + n) * features;
  }
  Numbers outputs_of(int layer) {
    const int64_t features = r_.features();
    Numbers found;
    for (int64_t i = 0; i < rows_; ++i)
      for (int d = 0; d < r_.directions; ++d) {
        const double* const h = kept(layer, d, i) + width_ - features;
        found.insert(found.end(), h, h + features);
      }
    return found;
  }

  const RecurrencePlan::Place& place(int layer, int direction, int i) const {
    return plan_.places[size_t(layer * r_.directions + direction) * plan_.places_each() + size_t(i)];
  }
  /// Calls `each(affine, rows from its first gate on, place)` for what the layer's parameters are made of.
  template <class Each>
  void each_gate(Weights& w, int layer, int direction, const Each& each) const {
    const int gates = r_.gates();
    for (int i = 0; i < 2 * gates; ++i)
      each(i < gates ? w.input : w.hidden, i % gates * r_.hidden, r_.hidden, place(layer, direction, i));
    if (r_.projected) each(w.projection, 0, r_.projected, place(layer, direction, 2 * gates));
  }
  /// Weights of a layer, of the begin that is given.
  Weights weights(uint64_t begin, int layer, int direction) const {
    Weights w;
    const int64_t rows = r_.gates() * r_.hidden;
    w.input.rows = w.hidden.rows = rows;
    w.input.columns = r_.inputs_of(layer), w.hidden.columns = r_.features();
    w.projection.rows = r_.projected, w.projection.columns = r_.hidden;
    each_gate(w, layer, direction, [&](Affine& to, int64_t, int64_t count, const RecurrencePlan::Place& from) {
      const Numbers matrix = read(begin + uint64_t(from.matrix), r_.dtype, count * to.columns);
      to.matrix.insert(to.matrix.end(), matrix.begin(), matrix.end());
      if (from.bias < 0) return;
      const Numbers bias = read(begin + uint64_t(from.bias), r_.dtype, count);
      to.bias.insert(to.bias.end(), bias.begin(), bias.end());
    });
    return w;
  }
  void write_gradients(Weights& w, int layer, int direction) const {
    each_gate(w, layer, direction, [&](Affine& of, int64_t row, int64_t count, const RecurrencePlan::Place& to) {
      const auto part = [&](const Numbers& all, int64_t width) {
        return Numbers(all.begin() + row * width, all.begin() + (row + count) * width);
      };
      write(run_.to_weights + uint64_t(to.matrix), r_.dtype, part(of.matrix, of.columns));
      if (to.bias >= 0) write(run_.to_weights + uint64_t(to.bias), r_.dtype, part(of.bias, 1));
    });
  }

  void forward_through(int layer, int direction, int64_t n, const Numbers& in, Numbers& out) {
    const Weights w = weights(run_.weights, layer, direction);
    const int64_t hidden = r_.hidden, features = r_.features(), columns = w.input.columns;
    double* const h = state(h_, layer, direction, n, features);
    double* const c = r_.cell == Cell::Lstm ? state(c_, layer, direction, n, hidden) : nullptr;
    for (int64_t t = 0; t < length(n); ++t) {
      const int64_t at = row(direction ? length(n) - 1 - t : t, n);
      double* const gates = kept(layer, direction, at);
      double *const beside = gates + r_.gates() * hidden, *const whole = beside + hidden, *const h_now = whole + hidden;
      Numbers a(size_t(r_.gates() * hidden)), b(a.size());
      w.input.add(a.data(), in.data() + at * columns);
      w.hidden.add(b.data(), h);
      for (int64_t j = 0; j < hidden; ++j) {
        const auto sum = [&](int gate) { return a[size_t(gate * hidden + j)] + b[size_t(gate * hidden + j)]; };
        const auto gate = [&](int i) -> double& { return gates[i * hidden + j]; };
        if (r_.cell == Cell::Lstm) {
          for (const int i : {0, 1, 3}) gate(i) = sigmoid(sum(i));
          gate(2) = std::tanh(sum(2));
          beside[j] = c[j] = gate(1) * c[j] + gate(0) * gate(2);
          whole[j] = gate(3) * std::tanh(c[j]);
        } else if (r_.cell == Cell::Gru) {
          gate(0) = sigmoid(sum(0)), gate(1) = sigmoid(sum(1));
          beside[j] = b[size_t(2 * hidden + j)];
          gate(2) = std::tanh(a[size_t(2 * hidden + j)] + gate(0) * beside[j]);
          whole[j] = (1 - gate(1)) * gate(2) + gate(1) * h[j];
        } else {
          whole[j] = gate(0) = r_.cell == Cell::Tanh ? std::tanh(sum(0)) : std::max(sum(0), 0.0);
        }
      }
      if (r_.projected) w.projection.add(h_now, whole);
      else std::copy(whole, whole + hidden, h_now);
      std::copy(h_now, h_now + features, h);
      std::copy(h_now, h_now + features, out.begin() + (at * r_.directions + direction) * features);
    }
  }
  /// Of one cell: gradients of the sums of its gates, on the side of the input and of h, and of what it had before.
  void cell_back(int64_t j, const double* gates, const double* beside, double h_before, double c_before,
                 double of_whole, double& of_c, Numbers& of_a, Numbers& of_b, double& of_h_before) const {
    const int64_t hidden = r_.hidden;
    const auto gate = [&](int i) { return gates[i * hidden + j]; };
    const auto set = [&](int i, double a, double b) {
      of_a[size_t(i * hidden + j)] = a, of_b[size_t(i * hidden + j)] = b;
    };
    if (r_.cell == Cell::Lstm) {
      const double tangent = std::tanh(beside[j]), all = of_c + of_whole * gate(3) * (1 - tangent * tangent);
      const double of[] = {all * gate(2) * gate(0) * (1 - gate(0)), all * c_before * gate(1) * (1 - gate(1)),
                           all * gate(0) * (1 - gate(2) * gate(2)), of_whole * tangent * gate(3) * (1 - gate(3))};
      for (int i = 0; i < 4; ++i) set(i, of[i], of[i]);
      of_c = all * gate(1);
    } else if (r_.cell == Cell::Gru) {
      const double of_n = of_whole * (1 - gate(1)) * (1 - gate(2) * gate(2));
      const double of_z = of_whole * (h_before - gate(2)) * gate(1) * (1 - gate(1));
      const double of_r = of_n * beside[j] * gate(0) * (1 - gate(0));
      set(0, of_r, of_r), set(1, of_z, of_z), set(2, of_n, of_n * gate(0));
      of_h_before = of_whole * gate(1);
    } else {
      const double slope = r_.cell == Cell::Tanh ? 1 - gate(0) * gate(0) : gate(0) > 0;
      set(0, of_whole * slope, of_whole * slope);
    }
  }
  void backward_through(int layer, int direction, const Numbers& in, const Numbers& of_out, Numbers& to_in) {
    const Weights w = weights(run_.weights, layer, direction);
    Weights to;
    if (run_.to_weights) to = weights(run_.to_weights, layer, direction);
    const int64_t hidden = r_.hidden, features = r_.features(), columns = w.input.columns;
    for (int64_t n = 0; n < r_.batch; ++n) {
      double* const of_h = state(of_h_, layer, direction, n, features);
      double* const of_c = state(of_c_, layer, direction, n, hidden);
      for (int64_t t = length(n); t-- > 0;) {
        const auto at_step = [&](int64_t step) { return row(direction ? length(n) - 1 - step : step, n); };
        const int64_t at = at_step(t);
        const double* const gates = kept(layer, direction, at);
        const double *const beside = gates + r_.gates() * hidden, *const whole = beside + hidden;
        const double* const before = t ? kept(layer, direction, at_step(t - 1)) : nullptr;
        const double* const h = t ? before + width_ - features : state(h_, layer, direction, n, features);
        const double* const c = t ? before + r_.gates() * hidden : state(c_, layer, direction, n, hidden);
        for (int64_t j = 0; j < features; ++j)
          of_h[j] += of_out[size_t((at * r_.directions + direction) * features + j)];
        Numbers of_whole(of_h, of_h + features), of_a(size_t(r_.gates() * hidden)), of_b(of_a.size());
        if (r_.projected) {
          of_whole.assign(size_t(hidden), 0);
          w.projection.add_back(of_whole.data(), of_h);
          if (run_.to_weights) to.projection.add_gradient(of_h, whole);
        }
        Numbers of_h_before(static_cast<size_t>(features));
        for (int64_t j = 0; j < hidden; ++j) {
          double straight = 0;
          cell_back(j, gates, beside, r_.projected ? 0 : h[j], c[j], of_whole[size_t(j)], of_c[j], of_a, of_b,
                    straight);
          if (!r_.projected) of_h_before[size_t(j)] = straight;
        }
        w.input.add_back(to_in.data() + at * columns, of_a.data());
        w.hidden.add_back(of_h_before.data(), of_b.data());
        if (run_.to_weights) {
          to.input.add_gradient(of_a.data(), in.data() + at * columns);
          to.hidden.add_gradient(of_b.data(), h);
        }
        std::ranges::copy(of_h_before, of_h);
      }
    }
    if (run_.to_weights) write_gradients(to, layer, direction);
  }

  const RecurrencePlan& plan_;
  const RecurrenceRun& run_;
  const Recurrence& r_;
  int64_t width_, rows_;
  Numbers kept_, h_, c_, of_h_, of_c_;
};

}  // namespace

bool is_valid(const Recurrence& r) {
  if (r.dtype < TAEDA_FLOAT16 || r.dtype > TAEDA_FLOAT64 || r.layers < 1 || r.directions < 1 || r.directions > 2)
    return false;
  if (r.inputs < 1 || r.hidden < 1 || r.steps < 1 || r.batch < 1) return false;
  if (r.projected && (r.cell != Cell::Lstm || r.projected < 0 || r.projected >= r.hidden)) return false;
  if (r.lengths.empty()) return true;
  return int64_t(r.lengths.size()) == r.batch && !r.batch_first && r.lengths.front() == r.steps &&
         r.lengths.back() >= 1 && std::ranges::is_sorted(r.lengths, std::greater{});
}
bool is_valid(const RecurrencePlan& plan, const RecurrenceRun& run) {
  const bool backward = run.y && run.of_y && run.to_x && plan.layers.keeps;
  return run.x && run.weights && run.workspace && (run.kept != 0) == (plan.kept != 0) &&
         (run.backward ? backward : run.y != 0);
}
RecurrencePlan recurrence_plan(const Recurrence& r) {
  RecurrencePlan plan;
  plan.layers = r;
  plan.places.resize(size_t(r.layers * r.directions) * plan.places_each());
  const auto size_of = [&](size_t i, bool bias) {
    const int layer = int(i / plan.places_each()) / r.directions, gate = int(i % plan.places_each());
    const bool projection = gate == 2 * r.gates();
    if (bias) return projection || !r.biased ? 0 : r.hidden;
    return projection ? r.projected * r.hidden : r.hidden * (gate < r.gates() ? r.inputs_of(layer) : r.features());
  };
  int64_t end = 0;
  for (const bool bias : {false, true})
    for (size_t i = 0; i < plan.places.size(); ++i)
      if (const int64_t size = size_of(i, bias)) {
        (bias ? plan.places[i].bias : plan.places[i].matrix) = end;
        end += size * item_size(r.dtype);
      }
  plan.weights = size_t(end);
  if (r.keeps) plan.kept = size_t(r.layers * r.directions * r.rows() * Layers::kept_each(r)) * sizeof(double);
  return plan;
}
void recur_on_host(const RecurrencePlan& plan, const RecurrenceRun& run, uint64_t shift) {
  simulated_shift = shift;
  Layers layers(plan, run);
  if (run.backward) layers.backward();
  else layers.forward();
  simulated_shift = 0;
}

}  // namespace taeda::cuda
