// Functions of float32 numbers in float32, right to 1.5 units in the last place: twice as many to a vector as in
// float64.
#pragma once
#include "scalar/math.h"

namespace taeda::loops::TAEDA_ISA {

/// Beyond this the parts of pi/2 times a whole number are no longer exact, and float64 takes over.
inline constexpr float single_turn_limit = 1600.0f;
/// x less whole quarter turns, what its rounding leaves out, and the count of them in the low bits.
struct SingleQuadrant {
  float r, rest;
  uint32_t q;
};
TAEDA_HD inline SingleQuadrant quarter_turns(float x) {
  const float shifted = fma(x, 0.636619772f, Format<float>::magic), n = shifted - Format<float>::magic;
  const float a = fma(-n, 0x1.9218p+0f, x), b = n * 0x1.ed5p-14f, u = a - b, w = n * 0x1.10bp-30f, r = u - w;
  const float rest = ((u - r) - w) + fma(-n, 0x1.18469ap-44f, (a - u) - b);
  return {r, rest, bit_cast<uint32_t>(shifted)};
}
TAEDA_HD inline float sin_core(SingleQuadrant a, float z) {
  return a.r + fma(a.r * z, poly(z, -0.166666547642f, 0.00833216639913f, -0.000195156601314f), a.rest);
}
TAEDA_HD inline float cos_core(SingleQuadrant a, float z) {
  const float halved = 0.5f * z, w = 1.0f - halved;
  const float tail = fma(z * z, poly(z, 0.0416666465633f, -0.00138873520451f, 0.0000244366140453f), -a.r * a.rest);
  return w + (((1.0f - w) - halved) + tail);
}
TAEDA_HD inline float flip_sign(float v, uint32_t when) {
  return bit_cast<float>(bit_cast<uint32_t>(v) ^ (when << 31));
}
TAEDA_HD inline float vsin(float x) {
  const SingleQuadrant a = quarter_turns(x);
  const float z = a.r * a.r, s = sin_core(a, z), c = cos_core(a, z);
  const float y = flip_sign(a.q & 1 ? c : s, (a.q >> 1) & 1);
  return x == 0.0f ? x : y;
}
TAEDA_HD inline float vcos(float x) {
  const SingleQuadrant a = quarter_turns(x);
  const float z = a.r * a.r, s = sin_core(a, z), c = cos_core(a, z);
  return flip_sign(a.q & 1 ? s : c, ((a.q + 1) >> 1) & 1);
}

/// asin(a) up to a half; beyond it, half of what is missing to pi/2, as asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)): a
/// or the root, and what the angle has more.
struct SingleAngle {
  float first, more;
};
TAEDA_HD inline SingleAngle half_angle(float a, bool large) {
  const float z = large ? (1.0f - a) * 0.5f : a * a, s = large ? sqrt(z) : a;
  return {s, s * z * poly(z, 0.166667539204f, 0.0749524201474f, 0.0454770703f, 0.0241477367786f, 0.042218344327f)};
}
TAEDA_HD inline float vasin(float x) {
  const float a = magnitude(x);
  const bool large = a > 0.5f;
  const SingleAngle h = half_angle(a, large);
  const float sum = h.first + h.more, rest = (h.first - sum) + h.more;
  const float beyond = (1.57079637f - 2.0f * sum) + (-4.37113883e-8f - 2.0f * rest);
  return x != x ? x : with_sign_of(large ? beyond : sum, x);
}
TAEDA_HD inline float vacos(float x) {
  const float a = magnitude(x);
  const bool large = a > 0.5f;
  const SingleAngle h = half_angle(a, large);
  const float small = 2.0f * (h.first + h.more);
  const float opposite = 3.14159274f - 2.0f * (h.first + (h.more + 4.37113883e-8f));
  const float middle = 1.57079637f - (x + (with_sign_of(h.more, x) + 4.37113883e-8f));
  return large ? (x > 0.0f ? small : opposite) : middle;
}

}  // namespace taeda::loops::TAEDA_ISA
