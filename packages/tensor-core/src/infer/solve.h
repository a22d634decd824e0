// Checks of the solve family.
#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "infer/matrices.h"

namespace taeda::infer {

/// linalg_lstsq: systems that fit each other, and a known routine.
void linalg_lstsq(const Tensor& self, const Tensor& b, std::optional<double> rcond,
                  std::optional<std::string_view> driver);
/// Solution, squared norms of what is left, rank and singular values; the norms as where all matrices have full rank.
std::array<Spec, 4> lstsq_results(const Tensor& self, const Tensor& b, std::optional<std::string_view> driver);

}  // namespace taeda::infer
