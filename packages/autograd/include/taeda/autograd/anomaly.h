// Anomaly mode: where nodes were made, and gradients that are not numbers.
#pragma once
#include "taeda/autograd/node.h"

namespace taeda::autograd {

extern bool anomaly_enabled;
extern bool anomaly_checks_nan;
/// Notes the program's position as the node's place of birth.
void note_location(Node* node);
/// RuntimeError naming node, gradient and place of birth when a gradient holds NaN.
void check_finite(Node* node, std::span<const Tensor> gradients);
/// Tells where the node whose formula has just failed was made.
void report_failure(Node* node) noexcept;

/// Set by the Python part: takes down the current position (an owned object) and turns it into text.
extern void* (*record_location)();
extern std::string (*describe_location)(void* location);
extern void (*warn_location)(const std::string& text) noexcept;

}  // namespace taeda::autograd
