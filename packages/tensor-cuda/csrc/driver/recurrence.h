// Recurrent layers as libraries of networks have them.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace taeda::cuda {

/// What a layer does at each step, by cuDNN's numbers.
enum class Cell : int32_t { Relu, Tanh, Lstm, Gru };

/// Layers over sequences, each in one direction or two. Gates lie in the order i, f, g, o or r, z, n. With `lengths`
/// (the longest first) sequences are packed: the rows of a step are those of the sequences that are still running.
struct Recurrence {
  Cell cell = Cell::Lstm;
  int32_t dtype = 0;   // of the ABI: of all but what is kept, floating
  bool tf32 = false;   // products of float32 may round their factors to 10 bits
  bool keeps = false;  // what the gradient needs
  bool biased = true;  // two vectors for each layer and direction
  bool batch_first = false;
  int32_t layers = 1, directions = 1;
  int64_t inputs = 0, hidden = 0, projected = 0;  // the last: features that h is projected to, or 0
  int64_t steps = 0, batch = 0;
  std::vector<int64_t> lengths;
  auto operator<=>(const Recurrence&) const = default;

  int gates() const { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }
  /// Features of h.
  int64_t features() const { return projected ? projected : hidden; }
  int64_t inputs_of(int layer) const { return layer == 0 ? inputs : directions * features(); }
  int64_t rows() const {
    if (lengths.empty()) return steps * batch;
    int64_t sum = 0;
    for (const int64_t length : lengths) sum += length;
    return sum;
  }
};

/// What a driver knows of such layers.
struct RecurrencePlan {
  virtual ~RecurrencePlan() = default;
  /// Of a matrix and a bias, in bytes from the begin of the weights; below 0 where there is none.
  struct Place {
    int64_t matrix = -1, bias = -1;
  };
  Recurrence layers;
  size_t workspace = 0, kept = 0, weights = 0;  // bytes
  /// For each layer and direction: gates of the input, gates of h, the projection if there is one.
  std::vector<Place> places;
  size_t places_each() const { return size_t(2 * layers.gates() + (layers.projected ? 1 : 0)); }
};
using SharedRecurrencePlan = std::shared_ptr<const RecurrencePlan>;

/// Addresses; 0 where there is none. Of a run backward the gradients too; `to_weights` are added to what is there.
struct RecurrenceRun {
  uint64_t x = 0, h = 0, c = 0, weights = 0, y = 0, h_out = 0, c_out = 0, workspace = 0, kept = 0;
  bool backward = false;
  uint64_t of_y = 0, of_h_out = 0, of_c_out = 0, to_x = 0, to_h = 0, to_c = 0, to_weights = 0;
};

}  // namespace taeda::cuda
