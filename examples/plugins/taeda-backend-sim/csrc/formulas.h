/* The element-wise operators: a formula for real numbers, one for integers, or both. Read with different macros. */
/* clang-format off */
#define BOTH(op, formula) REAL(op, formula) INT(op, formula)
#define SAME(op) REAL(op, op(a)) /* as in C */
#define UNARY(op, formula) REAL(op, formula) INT(op, a)

BOTH(cast, a) BOTH(clone, a) BOTH(conj, a) BOTH(where, a != 0 ? b : c)
BOTH(add, a + k * b) BOTH(sub, a - k * b) BOTH(mul, a * b) BOTH(neg, -a) REAL(div, a / b)
REAL(pow, pow(a, b)) INT(pow, power(a, b))
REAL(floor_divide, floor_div(a, b)) INT(floor_divide, floor_div_int(a, b))
REAL(trunc_divide, trunc(a / b)) INT(trunc_divide, b == -1 ? -a : a / b)
REAL(fmod, fmod(a, b)) INT(fmod, b == -1 ? 0 : a % b)
REAL(remainder, python_mod(a, b)) INT(remainder, a - b * floor_div_int(a, b))
REAL(maximum, isnan(a) || a > b ? a : b) INT(maximum, a > b ? a : b)
REAL(minimum, isnan(a) || a < b ? a : b) INT(minimum, a < b ? a : b)
REAL(copysign, copysign(a, b)) REAL(hypot, hypot(a, b)) REAL(atan2, atan2(a, b)) INT(gcd, gcd(a, b))
REAL(nextafter, bits == 64 ? nextafter(a, b) : nextafterf((float)a, (float)b))
REAL(abs, fabs(a)) INT(abs, a < 0 ? -a : a) REAL(angle, isnan(a) ? a : a < 0 ? kPi : 0)
REAL(sign, isnan(a) ? a : (a > 0) - (a < 0)) INT(sign, (a > 0) - (a < 0))
REAL(signbit, signbit(a) != 0) INT(signbit, a < 0)

BOTH(eq, a == b) BOTH(lt, a < b) BOTH(le, a <= b)
INT(bitwise_and, a & b) INT(bitwise_or, a | b) INT(bitwise_xor, a ^ b) INT(bitwise_not, bits == 1 ? !a : ~a)
INT(bitwise_left_shift, b < 0 || b >= bits ? 0 : (int64_t)((uint64_t)a << b))
INT(bitwise_right_shift, b < 0 || b >= bits ? -(a < 0) : a >> b)

UNARY(ceil, ceil(a)) UNARY(floor, floor(a)) UNARY(trunc, trunc(a)) REAL(round, rounded(a, k))
INT(round, k >= 0 ? a : (int64_t)rounded((double)a, (double)k))
SAME(sqrt) SAME(exp) SAME(exp2) SAME(expm1) SAME(log) SAME(log10) SAME(log1p) SAME(log2) SAME(sin) SAME(cos) SAME(tan)
SAME(sinh) SAME(cosh) SAME(tanh) SAME(asin) SAME(acos) SAME(atan) SAME(asinh) SAME(acosh) SAME(atanh) SAME(erf) SAME(erfc)
SAME(erfinv) SAME(lgamma) SAME(digamma)
REAL(i0, bessel_scaled(0, a) * exp(fabs(a))) REAL(i0e, bessel_scaled(0, a))
REAL(i1, bessel_scaled(1, a) * exp(fabs(a))) REAL(i1e, bessel_scaled(1, a))
