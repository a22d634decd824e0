// The functions of cuSOLVER that are looked up in its library, as they are declared in NVIDIA's cusolverDn.h (11.7 and
// 12).
#pragma once
#include <cstddef>
#include <cstdint>

// Handles, parameters and streams are pointers; statuses, types and modes are ints. Of four types of elements there is
// a function each.
#define TAEDA_CUSOLVER_TYPES(X, S, D, C, Z, PARAMETERS) \
  X(int, S, PARAMETERS) X(int, D, PARAMETERS) X(int, C, PARAMETERS) X(int, Z, PARAMETERS)
#define TAEDA_CUSOLVER_FUNCTIONS(X)                                                                                    \
  X(int, cusolverGetVersion, (int*))                                                                                   \
  X(int, cusolverDnCreate, (void**))                                                                                   \
  X(int, cusolverDnDestroy, (void*))                                                                                   \
  X(int, cusolverDnSetStream, (void*, void*))                                                                          \
  X(int, cusolverDnCreateParams, (void**))                                                                             \
  X(int, cusolverDnXpotrf_bufferSize, (void*, void*, int, int64_t, int, const void*, int64_t, int, size_t*, size_t*))  \
  X(int, cusolverDnXpotrf, (void*, void*, int, int64_t, int, void*, int64_t, int, void*, size_t, void*, size_t, int*)) \
  X(int, cusolverDnXgetrf_bufferSize,                                                                                  \
    (void*, void*, int64_t, int64_t, int, const void*, int64_t, int, size_t*, size_t*))                                \
  X(int, cusolverDnXgetrf,                                                                                             \
    (void*, void*, int64_t, int64_t, int, void*, int64_t, int64_t*, int, void*, size_t, void*, size_t, int*))          \
  X(int, cusolverDnXgetrs,                                                                                             \
    (void*, void*, int, int64_t, int64_t, int, const void*, int64_t, const int64_t*, int, void*, int64_t, int*))       \
  X(int, cusolverDnXgeqrf_bufferSize,                                                                                  \
    (void*, void*, int64_t, int64_t, int, const void*, int64_t, int, const void*, int, size_t*, size_t*))              \
  X(int, cusolverDnXgeqrf,                                                                                             \
    (void*, void*, int64_t, int64_t, int, void*, int64_t, int, void*, int, void*, size_t, void*, size_t, int*))        \
  X(int, cusolverDnXsyevBatched_bufferSize,                                                                            \
    (void*, void*, int, int, int64_t, int, const void*, int64_t, int, const void*, int, size_t*, size_t*, int64_t))    \
  X(int, cusolverDnXsyevBatched,                                                                                       \
    (void*, void*, int, int, int64_t, int, void*, int64_t, int, void*, int, void*, size_t, void*, size_t, int*,        \
     int64_t))                                                                                                         \
  X(int, cusolverDnXsyevd_bufferSize,                                                                                  \
    (void*, void*, int, int, int64_t, int, const void*, int64_t, int, const void*, int, size_t*, size_t*))             \
  X(int, cusolverDnXsyevd,                                                                                             \
    (void*, void*, int, int, int64_t, int, void*, int64_t, int, void*, int, void*, size_t, void*, size_t, int*))       \
  X(int, cusolverDnXgesvd_bufferSize,                                                                                  \
    (void*, void*, signed char, signed char, int64_t, int64_t, int, const void*, int64_t, int, const void*, int,       \
     const void*, int64_t, int, const void*, int64_t, int, size_t*, size_t*))                                          \
  X(int, cusolverDnXgesvd,                                                                                             \
    (void*, void*, signed char, signed char, int64_t, int64_t, int, void*, int64_t, int, void*, int, void*, int64_t,   \
     int, void*, int64_t, int, void*, size_t, void*, size_t, int*))                                                    \
  TAEDA_CUSOLVER_TYPES(X, cusolverDnSorgqr_bufferSize, cusolverDnDorgqr_bufferSize, cusolverDnCungqr_bufferSize,       \
                       cusolverDnZungqr_bufferSize, (void*, int, int, int, const void*, int, const void*, int*))       \
  TAEDA_CUSOLVER_TYPES(X, cusolverDnSorgqr, cusolverDnDorgqr, cusolverDnCungqr, cusolverDnZungqr,                      \
                       (void*, int, int, int, void*, int, const void*, void*, int, int*))                              \
  TAEDA_CUSOLVER_TYPES(X, cusolverDnSpotrfBatched, cusolverDnDpotrfBatched, cusolverDnCpotrfBatched,                   \
                       cusolverDnZpotrfBatched, (void*, int, int, void*, int, int*, int))

// What cusolver_common.h calls its statuses.
#define TAEDA_CUSOLVER_STATUSES(X) \
  X(1, NOT_INITIALIZED)            \
  X(2, ALLOC_FAILED)               \
  X(3, INVALID_VALUE)              \
  X(4, ARCH_MISMATCH)              \
  X(5, MAPPING_ERROR)              \
  X(6, EXECUTION_FAILED)           \
  X(7, INTERNAL_ERROR)             \
  X(8, MATRIX_TYPE_NOT_SUPPORTED)  \
  X(9, NOT_SUPPORTED)              \
  X(31, INVALID_WORKSPACE)

namespace taeda::cuda {

// Constants of library_types.h, cublas_api.h and cusolver_common.h. The types of elements in the order in which
// functions of a type each stand above; their real parts.
inline constexpr int kCusolverTypes[] = {0, 1, 4, 5}, kCusolverReals[] = {0, 1, 0, 1};
inline constexpr int kCusolverLower = 0, kCusolverUpper = 1;
inline constexpr int kCusolverValues = 0, kCusolverVectors = 1;

}  // namespace taeda::cuda
