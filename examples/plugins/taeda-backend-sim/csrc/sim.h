/* What the files of the simulated device share. */
#ifndef SIM_H
#define SIM_H

#include <complex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taeda/abi.h"

enum { kDevices = 2, kMaxArguments = 20, kMaxResults = 5, kErrorText = 200 };

extern const taeda_api* api;
extern int32_t sim_number; /* the backend's, given at registration */

/* --- memory.c: one file in memory, mapped twice. The host gets addresses that it cannot read; workers add `sim_shift`. */
extern ptrdiff_t sim_shift;
static inline char* worker_view(const void* data) { return (char*)data + sim_shift; }
int sim_map_memory(void);
int32_t sim_allocate(void*, int32_t, size_t, taeda_stream, void**);
void sim_release(void*, int32_t, void*, size_t);
int32_t sim_stream_uses(void*, int32_t, void*, taeda_stream);
void sim_forget_stream(taeda_stream stream, taeda_stream heir);
int32_t sim_pinned_allocate(void*, size_t, void**);
void sim_pinned_release(void*, void*, size_t);
int32_t sim_properties(void*, int32_t, taeda_device_properties*);

/* --- stream.c: queues with a thread each. */
typedef struct Job Job;
struct Job {
  Job* next;
  int32_t (*run)(Job*); /* on the stream's thread; gives a status, with `error` set where that is not TAEDA_OK */
  void (*end)(Job*);    /* frees the job */
  char error[kErrorText];
};
typedef struct Stream Stream;
typedef struct Event Event;
Stream* sim_stream(int32_t index, taeda_stream handle); /* null: the device's default stream */
void sim_submit(Stream* stream, Job* job);
/* Waits; the first error since the last wait comes out. */
int32_t sim_wait(Stream* stream);
/* Work on `waiting` goes on when what is now in `stream` is done. */
int32_t sim_order(Stream* stream, Stream* waiting);
/* A function that cannot fail, as a job. */
void sim_submit_call(Stream* stream, void (*run)(void*), void* context);
int32_t fail(Job* job, int32_t status, const char* format, ...);
int32_t sim_synchronize(void*, int32_t);
int32_t sim_stream_create(void*, int32_t, int32_t, taeda_stream*);
void sim_stream_destroy(void*, int32_t, taeda_stream);
int32_t sim_stream_synchronize(void*, int32_t, taeda_stream);
int32_t sim_stream_query(void*, int32_t, taeda_stream, int32_t*);
int32_t sim_event_create(void*, int32_t, uint32_t, taeda_event*);
void sim_event_destroy(void*, int32_t, taeda_event);
int32_t sim_event_record(void*, int32_t, taeda_event, taeda_stream);
int32_t sim_event_wait(void*, int32_t, taeda_event, taeda_stream);
int32_t sim_event_synchronize(void*, int32_t, taeda_event);
int32_t sim_event_query(void*, int32_t, taeda_event, int32_t*);
int32_t sim_event_elapsed(void*, int32_t, taeda_event, taeda_event, double*);

/* --- inject.c: failures on request. */
enum { FAIL_ALLOCATE, FAIL_COPY, FAIL_LAUNCH, FAIL_KERNEL, FAIL_SYNCHRONIZE, FAIL_KINDS };
bool sim_must_fail(int what); /* counts; true for the one that was asked to fail */
void sim_read_failures(void);

/* --- array.c: what kernels compute with. */
/* A tensor as a worker sees it. */
typedef struct View {
  char* data;
  int64_t n;
  int dtype, ndim; /* ndim -1: there is no tensor */
  bool number;     /* stands for a Python number */
  int64_t sizes[TAEDA_MAX_DIMS], strides[TAEDA_MAX_DIMS];
} View;
/* Elements in a row, in one of four types to compute in: int64, uint64, double or double complex. */
typedef enum { CLASS_INT, CLASS_UINT, CLASS_REAL, CLASS_COMPLEX } Class;
typedef double complex Complex;
typedef struct Array {
  Class kind;
  int64_t n;
  union {
    int64_t* i;
    uint64_t* u;
    double* f;
    Complex* c;
    char* p;
  };
} Array;

typedef struct Argument {
  uint32_t kind; /* TAEDA_VALUE_* */
  int64_t count; /* of ints and views */
  View* views;   /* a tensor is a list of one */
  const int64_t* ints;
  int64_t i;
  double f;
  Complex c;
} Argument;

/* One call of a kernel, copied so that it may wait. */
typedef struct Call {
  Job job;
  int32_t (*kernel)(struct Call*);
  void* blocks; /* memory that lives as long as the call */
  const char* name;
  const void* table; /* what a family of kernels needs to know */
  int64_t shift;
  taeda_device device;
  uint64_t seed, offset; /* of random kernels */
  uint32_t outputs, count;
  Argument a[kMaxArguments]; /* outputs first */
  /* Results whose shape only the computation knows; views of memory of the call. */
  View results[kMaxResults];
  uint32_t result_count;
} Call;

void* take(Call* call, size_t nbytes); /* zeroed; freed with the call */
void give_up(Call* call); /* frees what was taken */
Class class_of(int dtype);
size_t size_of(int dtype);
bool is_real(int dtype);
Array array(Call* call, Class kind, int64_t n);
/* Elements of a view in row-major order, converted as if to `dtype` first. */
Array load(Call* call, const View* view, int dtype);
Array load_as(Call* call, const View* view, Class kind); /* without rounding */
void load_into(Array to, const View* view); /* of the view's class */
void store(const View* view, Array from);
double real_at(const View* view, int64_t n); /* one element of a small tensor */
static inline Array part(Array a, int64_t begin, int64_t n) {
  a.p += begin * (a.kind == CLASS_COMPLEX ? 16 : 8), a.n = n;
  return a;
}
View permuted(const View* view, int64_t to_end); /* with that dimension last */
View broadcast(const View* view, const View* to);
View sliced(const View* view, int dim, int64_t begin, int64_t n);
View reshaped(Call* call, const View* view, int ndim, const int64_t* sizes); /* of memory in a row: copies if not so */
View made(Call* call, int dtype, int ndim, const int64_t* sizes); /* a result of memory of the call */
void load_element(Class kind, int dtype, const void* from, void* to);
void store_element(Class kind, int dtype, const void* from, void* to);

/* One operator. */
typedef struct Kernel {
  const char* name;
  int32_t (*run)(Call*);
  const void* table;
  /* Shapes of results that taeda does not make, one letter for each: a digit for that of an argument, 's' for the numbers
   * of argument 2, 'g' and 'n' for a row as long as the last and the second dimension of argument 0. With "*" an output
   * mask comes last. Null: only the computation knows. */
  const char* like;
  bool draws; /* random numbers */
} Kernel;
int32_t sim_call(void* kernel, const taeda_call* call);
int32_t sim_register(const Kernel* kernels, size_t count);

int32_t sim_register_kernels(void);
int32_t sim_register_elementwise(void);
int32_t sim_register_lines(void);
int32_t sim_register_index(void);
int32_t sim_register_linalg(void);
int32_t sim_register_window(void);
int32_t sim_register_norm(void);
int32_t sim_register_random(void);
int32_t sim_register_loss(void);
int32_t sim_register_step(void);

/* --- lines.c: order among elements of a row; NaN is larger than everything, and an extreme of either kind. */
bool less(Array a, int64_t j, int64_t k);
int64_t extreme(Array a, bool largest);
void sort_places(Array a, bool descending, int64_t* places); /* stable */

static inline int wrap_dim(int64_t dim, int ndim) { return ndim == 0 ? 0 : (int)(dim < 0 ? dim + ndim : dim); }

#endif
