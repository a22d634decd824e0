/* What the files of the simulated device share. */
#pragma once

#include <stdbool.h>

#include "taeda/abi.h"

enum { kDevices = 2, kMaxArguments = 16, kMaxResults = 4, kErrorText = 200 };

/* Statements under the file's lock. */
#define LOCKED(...)              \
  do {                           \
    pthread_mutex_lock(&lock);   \
    __VA_ARGS__;                 \
    pthread_mutex_unlock(&lock); \
  } while (0)

extern const taeda_api* api;
extern int32_t sim_number; /* the backend's, given at registration */

/* --- memory.c: one file in memory, mapped twice. The host's addresses are unreadable; workers add `sim_shift`. */
extern ptrdiff_t sim_shift;
static inline char* worker_view(const void* data) { return (char*)data + sim_shift; }
int32_t sim_offer_memory(taeda_backend* backend); /* maps it, and fills in the functions on memory */

/* --- stream.c: queues with a thread each. */
typedef struct Stream Stream;
typedef struct Job Job;
struct Job {
  Job* next;
  int32_t (*run)(Job*); /* on the stream's thread; gives a status, with `error` set where that is not TAEDA_OK */
  void (*end)(Job*);    /* frees it */
  char error[kErrorText];
  const char* name; /* of what profilers are told, with the bytes that are copied; null: nothing */
  uint64_t nbytes, origin, session, site;
};
void sim_free_job(Job* job), sim_offer_streams(taeda_backend* backend);
int32_t fail(Job* job, int32_t status, const char* format, ...), sim_synchronize(void* context, int32_t index);
Stream* sim_stream(int32_t index, taeda_stream handle); /* null: the device's default stream */
void sim_submit(Stream* stream, Job* job), sim_submit_call(Stream* stream, void (*run)(void*), void* context); /* cannot fail */
int32_t sim_wait(Stream* stream);                             /* the first error since the last wait comes out */
void sim_order(Stream* stream, Stream* waiting);              /* work on `waiting` goes on when what is now in `stream` is done */
void sim_announce(Job* job);                                  /* more/activities.c, for profilers: a job is submitted, ... */
int32_t sim_run(Job* job, int32_t index, const void* stream); /* ... and runs; null: in the default stream */
void sim_offer_more(taeda_backend* backend);                  /* more/more.c: what the running taeda knows of */
int32_t sim_complain(int32_t status, const char* text, uint64_t site); /* more/places.c: of a job of that place, ... */
uint64_t sim_site(taeda_op op);                                        /* ... which is the operator's, and the program's line */
int64_t sim_now(void);                                                 /* nanoseconds */

/* --- backend.c: failures on request. */
enum { FAIL_ALLOCATE, FAIL_COPY, FAIL_LAUNCH, FAIL_KERNEL, FAIL_SYNCHRONIZE, FAIL_KINDS };
bool sim_must_fail(int what); /* counts; true for the one that was asked to fail */
bool sim_races(void);         /* whether sums are to come in any order, as where many processors add to one place */

/* --- call.c: kernels, and calls of them that wait in a stream. */
/* A tensor as a worker sees it. */
typedef struct View {
  char* data;
  int64_t n;
  int dtype, ndim;
  bool number; /* stands for a Python number */
  int64_t sizes[TAEDA_MAX_DIMS], strides[TAEDA_MAX_DIMS];
} View;
typedef struct Argument {
  uint32_t kind; /* TAEDA_VALUE_* */
  View* view;    /* of a tensor */
  int64_t* ints; /* `count` of them */
  int64_t count;
  int64_t i;
  double f;
} Argument;
typedef struct Call Call;
typedef struct Kernel {
  const char* name;
  int32_t (*run)(Call*); /* on a worker */
  const void* table;     /* what a family of kernels needs to know */
} Kernel;
struct Call {
  Job job;
  const Kernel* kernel;
  const void* table;
  void* blocks;          /* memory that lives as long as the call */
  uint64_t seed, offset; /* of random numbers */
  uint32_t outputs, count;
  Argument a[kMaxArguments]; /* outputs first */
  View results[kMaxResults]; /* whose shape only the computation knows: memory of the call */
};
int32_t sim_register(const Kernel* kernels); /* up to one without a name */
void* take(Call* call, size_t nbytes);       /* zeroed; freed with the call */
void give_up(Call* call);                    /* frees what was taken */

/* --- array.c: what kernels compute with: elements in a row, as int64 or double. */
typedef struct Array {
  bool real;
  int64_t n;
  union {
    int64_t* i;
    double* f;
  };
} Array;
bool is_real(int dtype), is_offered(int dtype);
size_t size_of(int dtype);
double sim_from_float8(uint8_t code, int dtype); /* more/small.c */
uint8_t sim_to_float8(double value, int dtype);
Array array(Call* call, bool real, int64_t n);
Array load(Call* call, const View* view, int dtype); /* in row-major order, converted as if to `dtype` */
void load_into(Array to, const View* view);          /* of the view's class */
void store(const View* view, Array from);
static inline Array part(Array a, int64_t begin, int64_t n) { return a.i += begin, a.n = n, a; }
View with_last(const View* view, uint64_t dims); /* the dimensions of the mask come last */
View broadcast(const View* view, const View* to), sliced(const View* view, int dim, int64_t begin, int64_t n);
View made(Call* call, int dtype, int ndim, const int64_t* sizes); /* of memory of the call */
static inline int wrap_dim(int64_t dim, int ndim) { return ndim == 0 ? 0 : (int)(dim < 0 ? dim + ndim : dim); }

/* --- lines.c: order in a row; NaN is larger than everything, and an extreme of either kind. */
bool less(Array a, int64_t j, int64_t k);
int64_t extreme(Array a, bool largest);
void sort_places(Array a, bool descending, int64_t* places); /* stable */

/* --- index.c: the table of kernels that add to places, in whatever order where the device races. */
extern const char kAdds[];
extern const Kernel kLineKernels[], kIndexKernels[], kProductKernels[], kPoolKernels[], kRandomKernels[];
int32_t sim_register_elementwise(void), sim_register_more(void);
