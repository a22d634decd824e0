/* taeda/abi.h: the door through which compiled plug-ins extend taeda. C11, header only.
 *
 * A plug-in is a shared library that includes this header and links nothing of taeda. Through the table `taeda_api` it
 * adds devices, kernels, layers and operators, reads and makes tensors, and calls operators. taeda calls back through
 * the function pointers that the plug-in hands over.
 *
 * What may change and what may not
 * --------------------------------
 *  1. Within major version 1 this header only grows. Members are appended at the end of structs that begin with `size`;
 *     constants get new numbers. Nothing is removed, reordered, renamed, retyped or given another meaning.
 *  2. A struct without `size` (taeda_device, taeda_value, taeda_spec, taeda_lack, taeda_graph_node) is frozen.
 *  3. Whoever fills a struct writes its own sizeof into `size`. Whoever reads it uses no member beyond that size, and
 *     takes what lies beyond as zero. So old plug-ins load into new taedas, and new ones that ask for less into old.
 *  4. A plug-in states the version it was built for. Another major version, or a minor version newer than the running
 *     one, is refused by name, with the command that helps. Members say since which minor version they are there; a
 *     plug-in that does without the newer ones may state an older version than that of the header.
 *  5. A null function pointer in a struct that a plug-in fills means "I do not have this". taeda then does without, or
 *     the call that needs it raises NotImplementedError naming the device and the function.
 *
 * Calling conventions
 * -------------------
 *  - Functions give a status: TAEDA_OK or one of TAEDA_E_*. The text of an error travels beside it, one per thread: set
 *    with `set_error`, read with `last_error`. Nothing is ever thrown across the border.
 *  - Handles (taeda_tensor, taeda_generator) are counted. One in an argument is borrowed for the call; one in a result
 *    belongs to the receiver, who gives it back with `tensor_release`. Lists and texts in results do so too:
 *    `value_release` gives back a result of any kind, with all it holds.
 *  - Texts are UTF-8 and end in zero unless a length stands beside them. Those that a plug-in hands over at
 *    registration are copied; structs too. `context` pointers are handed back as they are.
 *  - Any thread may call any function of the table. Callbacks may do so too: taeda holds no lock of its own while one
 *    runs, and a plug-in should hold none of its own while it calls into the table. Callbacks run on the thread of the
 *    caller, several at once, with or without Python's lock; one that waits for long gives that lock up with
 *    `host_release` and `host_acquire`. Only `start` runs alone.
 *  - Arrays, texts and structs in arguments are not looked at after the call, unless it is said that they are kept.
 *  - After an error the places of results are unspecified, and there is nothing in them to be given back.
 */
#ifndef TAEDA_ABI_H
#define TAEDA_ABI_H

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TAEDA_ABI_MAJOR 1u
#define TAEDA_ABI_MINOR 7u

/* Names of capsules of Python: of a `const taeda_api*`, and of the `const taeda_plugin*` that a module hands over. */
#define TAEDA_API_CAPSULE "taeda.abi"
#define TAEDA_PLUGIN_CAPSULE "taeda.plugin"

#define TAEDA_MAX_DIMS 64

#if defined(_WIN32)
#define TAEDA_PLUGIN_EXPORT __declspec(dllexport)
#else
#define TAEDA_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* --- Constants -------------------------------------------------------------------------------------------------- */

/* Statuses. Each becomes the Python exception in its name. */
enum {
  TAEDA_OK = 0,
  TAEDA_E_TYPE = 1,
  TAEDA_E_VALUE = 2,
  TAEDA_E_INDEX = 3,
  TAEDA_E_RUNTIME = 4,
  TAEDA_E_NOT_IMPLEMENTED = 5,
  TAEDA_E_MEMORY = 6,
  TAEDA_E_ZERO_DIVISION = 7,
  TAEDA_E_OVERFLOW = 8,
  TAEDA_E_BUFFER = 9,
  TAEDA_E_VERSION = 10,
  /* Since 1.4. No failure: what was to be registered has no place in this taeda. */
  TAEDA_ABSENT = 100,
  /* Since 1.5. Given by a callback that may say so: it has no way for what it was given, and taeda takes another. */
  TAEDA_DECLINED = 101
};

/* Element types. Complex numbers are two reals in a row; bool is one byte, 0 or 1. */
enum {
  TAEDA_BOOL = 0,
  TAEDA_INT8 = 1,
  TAEDA_INT16 = 2,
  TAEDA_INT32 = 3,
  TAEDA_INT64 = 4,
  TAEDA_UINT8 = 5,
  TAEDA_UINT16 = 6,
  TAEDA_UINT32 = 7,
  TAEDA_UINT64 = 8,
  TAEDA_FLOAT16 = 9,
  TAEDA_BFLOAT16 = 10,
  TAEDA_FLOAT32 = 11,
  TAEDA_FLOAT64 = 12,
  TAEDA_COMPLEX64 = 13,
  TAEDA_COMPLEX128 = 14,
  /* Since 1.5. Of 8 bits. */
  TAEDA_FLOAT8_E4M3FN = 15,
  TAEDA_FLOAT8_E5M2 = 16,
  TAEDA_FLOAT8_E4M3FNUZ = 17,
  TAEDA_FLOAT8_E5M2FNUZ = 18,
  TAEDA_FLOAT8_E8M0FNU = 19,
  /* From here on those of `dtype_define`; their numbers are those of one process. */
  TAEDA_FIRST_CUSTOM_DTYPE = 20
};

/* What a taeda_value holds, and in which member. */
enum {
  TAEDA_VALUE_NONE = 0,      /* nothing: Python's None, an absent optional argument */
  TAEDA_VALUE_TENSOR = 1,    /* tensor */
  TAEDA_VALUE_BOOL = 2,      /* integer, 0 or 1 */
  TAEDA_VALUE_INT = 3,       /* integer */
  TAEDA_VALUE_UINT = 4,      /* natural: a number beyond int64 */
  TAEDA_VALUE_FLOAT = 5,     /* real */
  TAEDA_VALUE_COMPLEX = 6,   /* parts[0] + i parts[1] */
  TAEDA_VALUE_TEXT = 7,      /* text, `count` bytes, not ended by zero */
  TAEDA_VALUE_DTYPE = 8,     /* integer: one of the element types */
  TAEDA_VALUE_DEVICE = 9,    /* device */
  TAEDA_VALUE_INTS = 10,     /* integers, `count` of them */
  TAEDA_VALUE_FLOATS = 11,   /* reals, `count` of them */
  TAEDA_VALUE_TENSORS = 12,  /* tensors, `count` of them; null where an item is None */
  TAEDA_VALUE_GENERATOR = 13 /* generator */
};

/* Facts of a tensor, in taeda_tensor_info.flags. */
enum {
  TAEDA_TENSOR_CONTIGUOUS = 1,    /* row-major without gaps */
  TAEDA_TENSOR_CHANNELS_LAST = 2, /* four dimensions, channels innermost, without gaps */
  TAEDA_TENSOR_DENSE = 4,         /* without gaps in some order of the dimensions */
  TAEDA_TENSOR_NUMBER = 8,        /* stands for a Python number: no dimensions, in host memory */
  TAEDA_TENSOR_REQUIRES_GRAD = 16,
  TAEDA_TENSOR_READONLY = 32,
  TAEDA_TENSOR_VIEW = 64 /* shows (part of) another tensor */
};

/* What is known of an operator, in taeda_op_info.kind. */
enum {
  TAEDA_KIND_STRUCTURED = 0, /* taeda makes the outputs, kernels fill them */
  TAEDA_KIND_DIRECT = 1,     /* kernels do everything: they make and give results, or write to their arguments */
  TAEDA_KIND_VIEW = 2,       /* no kernels: shows its argument */
  TAEDA_KIND_COMPOSITE = 3   /* no kernels: written in terms of other operators */
};

/* Positions of layers; a call meets the highest first. Other numbers from 0 to 15 are free to use. */
enum {
  TAEDA_LAYER_AUTOGRAD = 0,
  TAEDA_LAYER_TRANSFORM = 4,
  TAEDA_LAYER_AUTOCAST = 8,
  TAEDA_LAYER_TRACING = 10,
  TAEDA_LAYER_PROFILER = 14
};

/* What a backend can do, in taeda_backend.capabilities. */
enum {
  TAEDA_CAN_HOST_READ = 1,    /* the host may read and write device memory through its address */
  TAEDA_CAN_STREAMS = 2,      /* work of one stream is in order, streams run beside each other */
  TAEDA_CAN_EVENT_TIMING = 4, /* event_elapsed measures time */
  TAEDA_CAN_SHARE_MEMORY = 8, /* memory_export and memory_import work between processes */
  TAEDA_CAN_GROUP_HEADS = 16  /* since 1.7: fused_attention and its gradient take keys of fewer heads than queries */
};

/* Flags of taeda_kernel. Since 1.4. */
enum {
  TAEDA_KERNEL_REPLACE = 1, /* also where there is a kernel, which comes back when the registration is removed */
  /* Since 1.5. Of a composite or view: the kernel computes by `op_call` of operators that have derivatives, its own
   * among them, so it is taken while gradients are recorded too. */
  TAEDA_KERNEL_RECORDED = 2
};

enum { TAEDA_EVENT_TIMING = 1 }; /* flags of event_create */

/* How the elements of images (N, C, H, W) lie in memory. Since 1.1. */
enum {
  TAEDA_IMAGE_ROW_MAJOR = 0,
  TAEDA_IMAGE_CHANNELS_LAST = 1,
  TAEDA_IMAGE_OTHER = 2 /* with gaps, or in another order */
};

/* --- Handles and values ------------------------------------------------------------------------------------------ */

typedef struct taeda_tensor_object* taeda_tensor;       /* opaque, counted */
typedef struct taeda_generator_object* taeda_generator; /* opaque, counted */
typedef struct taeda_op_object* taeda_op;               /* opaque, lives as long as the process */
typedef void* taeda_stream;                             /* a backend's own; null is the device's default stream */
typedef void* taeda_event;                              /* a backend's own */

/* A device: a backend's number, given at registration, and an index. The cpu is {0, 0}. Frozen. */
typedef struct taeda_device {
  int32_t backend;
  int32_t index;
} taeda_device;

/* One argument or result. Frozen. */
typedef struct taeda_value {
  uint32_t kind;     /* TAEDA_VALUE_* */
  uint32_t reserved; /* 0; taeda's own mark in lists that it made */
  int64_t count;     /* of lists and texts */
  union {
    taeda_tensor tensor;
    taeda_generator generator;
    int64_t integer;
    uint64_t natural;
    double real;
    double parts[2];
    const char* text;
    const int64_t* integers;
    const double* reals;
    const taeda_tensor* tensors;
    taeda_device device;
  } as;
} taeda_value;

/* Shape and element type that inference gives a result. Frozen. */
typedef struct taeda_spec {
  int32_t ndim;
  int32_t dtype;
  int64_t sizes[TAEDA_MAX_DIMS];
} taeda_spec;

/* Something that a backend lacks, and why: the conformance kit ties its skips to these. Frozen. */
typedef struct taeda_lack {
  const char* capability;
  const char* reason;
} taeda_lack;

/* What `tensor_read` tells. Pointers are valid while the tensor lives and is not given another shape. */
typedef struct taeda_tensor_info {
  size_t size;
  void* data;             /* first element; on a device without TAEDA_CAN_HOST_READ no address of the host */
  const int64_t* sizes;   /* ndim of them */
  const int64_t* strides; /* ndim of them, in elements; zero and negative ones occur */
  int64_t numel;
  int32_t ndim;
  int32_t dtype;
  taeda_device device;
  uint32_t flags;
  uint32_t item_size;
  void* storage; /* first byte of the memory that the tensor shows a part of */
  size_t storage_size;
} taeda_tensor_info;

/* What `op_read` tells. Texts live as long as the process. */
typedef struct taeda_op_info {
  size_t size;
  const char* name;   /* "add", "max.dim", "add_", "add.out" */
  const char* schema; /* "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" */
  int32_t kind;       /* TAEDA_KIND_* */
  int32_t core;       /* 1: a backend must have a kernel of it */
} taeda_op_info;

/* One call on its way to a kernel, a layer or a function of an operator. */
typedef struct taeda_call {
  size_t size;
  taeda_op op;
  /* Kernels of structured operators: outputs first, then the arguments of the schema. Others: the arguments. Inputs may
   * have any strides and element types, be expanded or empty; one without dimensions may lie in host memory (device
   * {0, 0}) while the call is on another device: a number, or a tensor that stands for one. */
  const taeda_value* arguments;
  uint32_t argument_count;
  uint32_t output_count; /* how many of them are outputs, to be filled, of final shape and element type */
  /* Where the callee stores what it gives; structured kernels give nothing. `value_tensors` makes lists. */
  taeda_value* results;
  uint32_t result_count;
  uint32_t reserved;
  taeda_device device; /* where it is to compute */
  taeda_stream stream; /* the calling thread's current stream there */
  uint64_t layers;     /* for call_below: the layers that are still to come */
} taeda_call;

/* A kernel, layer, or composite form. `context` is what was registered with it. `call` and all that it points to is
 * valid until the function returns; tensors are kept longer by `tensor_retain`. Work that a kernel leaves in
 * `call->stream` needs no such reference: memory that is given back stays as it is until the stream has come to that
 * point. After an error the elements of outputs are unspecified, and results that were stored are given back. */
typedef int32_t (*taeda_call_fn)(void* context, const taeda_call* call);

/* A kernel, and the operator as its author knew it. Since 1.4. */
typedef struct taeda_kernel {
  size_t size;
  const char* op; /* the name of its function form */
  /* "gelu(Tensor self, str approximate='none') -> Tensor", as op_read gave it when the kernel was written. Null: the
   * schema is whatever the operator has. taeda compares and calls the kernel with the arguments that it knows. One that
   * the operator has been given since then reaches it at its default alone: for other values the operator is computed
   * in terms of others or on the cpu, or the call is TAEDA_E_NOT_IMPLEMENTED. One that the operator does not have yet
   * comes at the default that is said here. */
  const char* schema;
  /* TAEDA_KIND_STRUCTURED: it fills outputs, which come first. TAEDA_KIND_DIRECT: it stores results. It is called in
   * this way whatever the operator has become, a composite or a view included. Since 1.5: a kernel of a composite or
   * view that has no way for its arguments gives TAEDA_DECLINED, and the operator is computed by what it calls. */
  int32_t kind;
  int32_t backend;
  uint32_t flags; /* TAEDA_KERNEL_* */
  uint32_t reserved;
  taeda_call_fn function;
  void* context;
  const char* owner; /* for messages */
} taeda_kernel;

/* A format of numbers, of at most 8 bits, kept in a byte each. Tensors of it are made, moved, shown, saved and
 * converted; operators that compute refuse it by name. Since 1.5. */
typedef struct taeda_dtype {
  size_t size;
  const char* name;  /* letters, digits and underscores: programs find it as taeda.<name> */
  const char* owner; /* for messages */
  void* context;
  uint32_t bits; /* from 1 to 8 */
  uint32_t reserved;
  /* The numbers of `count` codes, and the codes of the nearest numbers. Called on several threads at once. */
  void (*decode)(void* context, const uint8_t* codes, float* numbers, size_t count);
  void (*encode)(void* context, const float* numbers, uint8_t* codes, size_t count);
} taeda_dtype;

/* How numbers of several devices become one. Since 1.5. */
enum { TAEDA_REDUCE_SUM = 0, TAEDA_REDUCE_PRODUCT = 1, TAEDA_REDUCE_MIN = 2, TAEDA_REDUCE_MAX = 3 };

/* A convolution or pooling whose result is about to be allocated. Since 1.1. */
typedef struct taeda_image_result {
  size_t size;
  const char* op; /* "conv2d" */
  int32_t dtype;
  int32_t input_layout; /* TAEDA_IMAGE_* */
  int64_t input[4];     /* (N, C, H, W) of the input */
  int64_t sizes[4];     /* and of the result */
  int64_t kernel[2];    /* height and width of the window; 0 where windows differ */
  int64_t groups;       /* of convolutions */
} taeda_image_result;

/* A call that an observer sees. Since 1.1. */
typedef struct taeda_observed {
  size_t size;
  taeda_op op;
  int32_t failed; /* 1: it ended with an error. 0 while it begins */
  uint32_t reserved;
  /* Since 1.2. At the end: the number under which the call itself was recorded for its backward, else 0. */
  uint64_t sequence;
} taeda_observed;

/* Kinds of spans. Since 1.2. */
enum {
  TAEDA_SPAN_USER = 0,     /* a block of a program */
  TAEDA_SPAN_BACKWARD = 1, /* the backward of one recorded call */
  TAEDA_SPAN_MODULE = 2,   /* the forward of a module */
  TAEDA_SPAN_STEP = 3,     /* a step of an optimizer */
  TAEDA_SPAN_WAIT = 4,     /* for data */
  TAEDA_SPAN_FUNCTION = 5, /* a function of Python */
  /* Since 1.3. The host waits for a device, or copies bytes and waits for them; taeda marks these itself. */
  TAEDA_SPAN_SYNCHRONIZE = 6
};

/* A stretch of time on one thread; spans and calls nest. Since 1.2. */
typedef struct taeda_span {
  size_t size;
  const char* name; /* looked at within the call alone */
  int32_t kind;     /* TAEDA_SPAN_* */
  uint32_t reserved;
  uint64_t sequence; /* of a backward: the number that its call was recorded under; else 0 */
} taeda_span;

/* Memory of a tensor that was taken, or is about to be given back. Since 1.2. */
typedef struct taeda_memory_use {
  size_t size;
  const void* data;
  int64_t bytes; /* negative: given back */
  taeda_device device;
} taeda_memory_use;

/* What a device did, in taeda_activity.kind. Since 1.3. */
enum {
  TAEDA_ACTIVITY_KERNEL = 0, /* computed */
  TAEDA_ACTIVITY_COPY = 1,   /* moved bytes, within the device or across its border */
  TAEDA_ACTIVITY_FILL = 2,   /* gave all bytes one value */
  TAEDA_ACTIVITY_WAIT = 3    /* a stream stood still for another one */
};

/* A stretch of time in which a stream of a device worked. Since 1.3. */
typedef struct taeda_activity {
  size_t size;
  const char* name; /* for people: "add", "copy to host"; looked at within the call alone */
  int32_t kind;     /* TAEDA_ACTIVITY_* */
  uint32_t reserved;
  taeda_device device;
  uint64_t stream; /* the backend's own number of it; 0 is the device's default stream */
  int64_t begin;   /* nanoseconds of the host's steady clock, CLOCK_MONOTONIC, as well as the backend can tell */
  int64_t end;
  uint64_t origin; /* what `activity_origin` gave where the work was handed over; 0: unknown */
  int64_t bytes;   /* that were copied or filled, else 0 */
} taeda_activity;

/* --- What plug-ins fill ------------------------------------------------------------------------------------------ */

/* Facts about one device. */
typedef struct taeda_device_properties {
  size_t size;
  char name[128];        /* for people */
  uint64_t total_memory; /* bytes; 0 when unknown */
  uint64_t free_memory;
  uint32_t alignment; /* of what allocate gives */
  uint32_t processors;
  const char* more; /* further facts as one JSON object, or null; lives as long as the process */
} taeda_device_properties;

typedef void* taeda_group; /* a backend's own: one device's membership in a group */
typedef void* taeda_work;  /* a backend's own: a collective that was begun */

/* Collectives: each of the `count` devices of a group, in whichever process it is, makes the same calls in the same
 * order. A call begins work on `stream`, behind what is there, and gives a `work` at once, never null. Tensors are
 * contiguous, of the device, and of one shape and element type on all; taeda keeps them until the work is waited for
 * or destroyed. What the backend does not have is null. Since 1.5. */
typedef struct taeda_collectives {
  size_t size;
  /* The device's place in the group of a name. VALUE: a rank that is taken, another count than the others'. */
  int32_t (*group_create)(void* context, int32_t index, const char* name, int32_t rank, int32_t count,
                          taeda_group* group);
  /* Work that was begun is done all the same. */
  void (*group_destroy)(void* context, taeda_group group);
  /* Every device gets the numbers of all, reduced (TAEDA_REDUCE_*), in `to`, which may be `from`. */
  int32_t (*all_reduce)(void* context, taeda_group group, taeda_tensor from, taeda_tensor to, int32_t reduction,
                        taeda_stream stream, taeda_work* work);
  /* Every device gets what `tensor` holds on the device of rank `root`. */
  int32_t (*broadcast)(void* context, taeda_group group, taeda_tensor tensor, int32_t root, taeda_stream stream,
                       taeda_work* work);
  /* `to` has one place more in front, of `count`: what each device gave. */
  int32_t (*all_gather)(void* context, taeda_group group, taeda_tensor from, taeda_tensor to, taeda_stream stream,
                        taeda_work* work);
  /* `from` has one place more in front; the device of rank r gets the reduced numbers of place r. */
  int32_t (*reduce_scatter)(void* context, taeda_group group, taeda_tensor from, taeda_tensor to, int32_t reduction,
                            taeda_stream stream, taeda_work* work);
  /* Between two devices of the group: each `send` meets one `recv`, in order. */
  int32_t (*send)(void* context, taeda_group group, taeda_tensor tensor, int32_t to, taeda_stream stream,
                  taeda_work* work);
  int32_t (*recv)(void* context, taeda_group group, taeda_tensor tensor, int32_t from, taeda_stream stream,
                  taeda_work* work);
  /* Waits until the work is done; its error comes out here. Python's lock is given up around it. */
  int32_t (*work_wait)(void* context, taeda_work work);
  /* Stores 1 when it is done, else 0, and does not wait. */
  int32_t (*work_query)(void* context, taeda_work work, int32_t* done);
  /* Nobody will ask any more; it may not be done yet. */
  void (*work_destroy)(void* context, taeda_work work);
} taeda_collectives;

typedef void* taeda_executable; /* a backend's own: a graph made ready to run */

/* One call of a graph. Its inputs and results of calls are tensors without elements (backend "meta"), whose shapes and
 * element types `tensor_read` tells; which value an argument is says its handle. Other tensors are constants, to be
 * retained where they are needed later. Frozen. Since 1.5. */
typedef struct taeda_graph_node {
  taeda_op op;
  const taeda_value* arguments; /* in the order of the schema */
  const taeda_tensor* results;  /* null where nobody wants one */
  uint32_t argument_count;
  uint32_t result_count;
} taeda_graph_node;

/* Calls that a program makes on one device, in their order: none writes to its arguments. Since 1.5. */
typedef struct taeda_graph {
  size_t size;
  const taeda_graph_node* nodes;
  const taeda_tensor* inputs;
  const taeda_tensor* outputs; /* inputs, constants or results */
  uint32_t node_count;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t reserved;
} taeda_graph;

/* A backend: a family of devices. All functions get `context` first and a device's index where one is concerned. Work
 * is in order within a stream: what is freed or copied on a stream comes after the work that was put there before.
 * `name`, `device_count`, `allocate`, `release`, `copy_from_host`, `copy_to_host` and `synchronize` are required.
 *
 * For all of its functions: they may be called from any thread once the backend is registered, several at once. Indices
 * are from 0 to the count less one. `stream` is null (the device's default stream) or a handle of `stream_create` that
 * was not destroyed, of the device at `index`. Those that give back (`release`, `stream_destroy`, `event_destroy`,
 * `pinned_release`, `memory_close`) must not fail and do not wait: they come on the thread that lets go of the last
 * reference, perhaps in the middle of another callback that called `tensor_release`, and also while a thread or the
 * process ends; tables that they need stay in place until then. Each is called exactly once for what was given, or
 * never where the process ends first. taeda counts references to streams and events and uses none that it has
 * destroyed.
 *
 * Errors of work that runs later come out, once, where somebody waits for it: `synchronize`, `stream_synchronize`, a
 * copy with `blocking`; of several, the first. */
typedef struct taeda_backend {
  size_t size;
  const char* name;         /* as in device("name:0"): letters, digits and underscores */
  const char* distribution; /* what pip installs, for messages */
  void* context;
  uint64_t capabilities;   /* TAEDA_CAN_* */
  const taeda_lack* lacks; /* what is missing, for tools */
  uint32_t lack_count;
  uint32_t reserved;

  /* How many devices there are, from 0 to 127. Asked once, within `backend_register`. */
  int32_t (*device_count)(void* context, int32_t* count);

  /* Gives the address (or number, never null) of `nbytes` bytes, never 0, for work on `stream`, the calling thread's
   * current one. taeda adds byte offsets to it and never reads through it. Nothing is said of the bytes' values.
   * TAEDA_E_MEMORY when there is no room, also after waiting for work that is about to give memory back. */
  int32_t (*allocate)(void* context, int32_t index, size_t nbytes, taeda_stream stream, void** data);
  /* Takes back what `allocate` gave, with the same size. Work that uses the memory may still be waiting in the stream
   * that it was allocated for, or in one of `stream_uses`: the bytes stay as they are until these streams have come to
   * this point. The stream that it was allocated for may have been destroyed by now. */
  void (*release)(void* context, int32_t index, void* data, size_t nbytes);

  /* Copies `nbytes` bytes in a row from host memory; `to` may lie within an allocation. With `blocking` the copy, and
   * with it all that was in the stream before, is done on return; without, when the stream comes to it, and host memory
   * stays valid and pinned until then. Only copies with memory that this backend pinned may be without, and only where
   * it has event_create, event_record, event_wait, event_synchronize and event_query: an event tells when that memory
   * may go to `pinned_release`. Python's lock is given up around a blocking copy. */
  int32_t (*copy_from_host)(void* context, int32_t index, void* to, const void* from, size_t nbytes,
                            taeda_stream stream, int32_t blocking);
  /* As `copy_from_host`, to host memory, which is not looked at before the copy is done. */
  int32_t (*copy_to_host)(void* context, int32_t index, void* to, const void* from, size_t nbytes, taeda_stream stream,
                          int32_t blocking);
  /* Waits until all work of the device is done, in all streams and from all threads. Errors of work that failed since
   * the last call come out here. Python's lock is given up around it. */
  int32_t (*synchronize)(void* context, int32_t index);

  /* Optional: copies between two devices of this backend, on the stream of the receiving one, without waiting. The
   * backend sees to it that the copy comes after what is now in the calling thread's current stream of the other device
   * (see `stream_current`), and that what is put there later comes after the copy. Without it they go by the host. */
  int32_t (*copy_peer)(void* context, int32_t to_index, void* to, int32_t from_index, const void* from, size_t nbytes,
                       taeda_stream stream);

  /* Optional, with TAEDA_CAN_STREAMS: makes a stream; its handle is never null. One of higher priority (a lower number)
   * may go first; any number is let through. */
  int32_t (*stream_create)(void* context, int32_t index, int32_t priority, taeda_stream* stream);
  /* Nobody will put work there any more. Work that is waiting is still done, in order; events recorded in the stream
   * and memory that was allocated for it, or is used by it, stay good. */
  void (*stream_destroy)(void* context, int32_t index, taeda_stream stream);
  /* Waits until the work that is now in the stream is done; errors of that work come out here. Without it taeda calls
   * `synchronize`. Python's lock is given up around it. */
  int32_t (*stream_synchronize)(void* context, int32_t index, taeda_stream stream);
  /* Stores 1 when nothing is waiting or running in the stream, else 0, and does not wait. */
  int32_t (*stream_query)(void* context, int32_t index, taeda_stream stream, int32_t* done);
  /* Memory that was allocated on one stream is used on `stream` too: its release waits for that. `data` is what
   * `allocate` gave. What counts is the work that is in `stream`, destroyed or not, at the release. */
  int32_t (*stream_uses)(void* context, int32_t index, void* data, taeda_stream stream);

  /* Optional: makes an event, a mark in a stream that others wait for; its handle is never null. TAEDA_EVENT_TIMING is
   * asked for only with TAEDA_CAN_EVENT_TIMING and `event_elapsed`. A new event is not recorded: it stands for no work
   * and counts as done. taeda keeps account of that, and calls none of the functions below but `event_record` and
   * `event_destroy` for it. */
  int32_t (*event_create)(void* context, int32_t index, uint32_t flags, taeda_event* event);
  /* Nobody will ask for the event any more. It may be recorded and not reached: streams that wait go on doing so. */
  void (*event_destroy)(void* context, int32_t index, taeda_event event);
  /* Puts the mark behind what is now in a stream of the event's device, without waiting. An event that was recorded
   * before moves: who waits for it already keeps waiting for the former place, all that follows is of the new one. */
  int32_t (*event_record)(void* context, int32_t index, taeda_event event, taeda_stream stream);
  /* Work that is put into `stream` from now on begins after the event was reached. Does not wait. `index` is the
   * stream's device; the event may be one of another device of the backend. */
  int32_t (*event_wait)(void* context, int32_t index, taeda_event event, taeda_stream stream);
  /* Waits until the event is reached. `index` is the event's device, here and below. Python's lock is given up around
   * it. Errors of the work before it may come out here; if so, they are not kept for `synchronize`. */
  int32_t (*event_synchronize)(void* context, int32_t index, taeda_event event);
  /* Stores 1 when the event is reached, else 0, and does not wait. */
  int32_t (*event_query)(void* context, int32_t index, taeda_event event, int32_t* done);
  /* The time between two events of one device, negative when `to` came first. Both were made with TAEDA_EVENT_TIMING
   * and have been reached; taeda checks that. */
  int32_t (*event_elapsed)(void* context, int32_t index, taeda_event from, taeda_event to, double* milliseconds);

  /* Optional, both or none: `nbytes` bytes, never 0, of host memory from which all devices of the backend copy without
   * blocking. The host reads and writes it as its own; it is aligned at least as malloc's. Never null. */
  int32_t (*pinned_allocate)(void* context, size_t nbytes, void** data);
  /* Takes back what `pinned_allocate` gave, with the same size, once no copy that taeda asked for waits to use it. */
  void (*pinned_release)(void* context, void* data, size_t nbytes);

  /* Optional: told when the user sets the device's random generator. A backend whose kernels take their numbers by
   * `generator_reserve` needs neither this nor `random_get`. An error of `random_set` means that nothing was set. A
   * seed that the user chose earlier is handed over within `backend_register`, after the number is stored. */
  int32_t (*random_set)(void* context, int32_t index, uint64_t seed, uint64_t offset);
  /* Optional: asked before the generator's state is saved. The places hold what taeda knows, for a backend to
   * overwrite. */
  int32_t (*random_get)(void* context, int32_t index, uint64_t* seed, uint64_t* offset);

  /* Optional, with TAEDA_CAN_SHARE_MEMORY; all three or none. Writes a description of the memory `data`, which is what
   * `allocate` gave, of at most *description_size bytes, and stores its size. A larger one is an error; there is room
   * for 1024 bytes or more. taeda has synchronized the device, and the process keeps the memory for as long as others
   * use it. */
  int32_t (*memory_export)(void* context, int32_t index, void* data, size_t nbytes, void* description,
                           size_t* description_size);
  /* Opens such a description in another process, as often as asked; never null. The bytes are those of the other
   * process: both see what either writes, and order their work themselves. Others are a TAEDA_E_VALUE. */
  int32_t (*memory_import)(void* context, int32_t index, const void* description, size_t description_size, void** data);
  /* Ends one `memory_import`; work that uses the memory may still be waiting in a stream, as with `release`. */
  void (*memory_close)(void* context, int32_t index, void* data, size_t nbytes);

  /* Optional: facts about a device, as of now. `properties->size` says what there is room for; the struct comes filled
   * with zeros, and what is unknown stays so. */
  int32_t (*properties)(void* context, int32_t index, taeda_device_properties* properties);
  /* Optional: gives memory that is kept but not in use back to the system; may wait for work that uses it. */
  int32_t (*empty_cache)(void* context, int32_t index);

  /* Since 1.1. Optional: stores in which layout the result of a convolution or pooling is to be allocated,
   * TAEDA_IMAGE_ROW_MAJOR or TAEDA_IMAGE_CHANNELS_LAST. Asked before each such call, so it answers at once, from what
   * it is told alone. Kernels still fill both: `out=` may give them either. Without it results lie as their input. */
  int32_t (*image_layout)(void* context, int32_t index, const taeda_image_result* result, int32_t* layout);

  /* Since 1.3. Optional, both or none, for profilers: from now on the backend notes what its devices do with work that
   * is handed over, `most` activities at most. It asks `activity_origin` on the thread that hands the work over. A
   * second start without a stop (in a child of a fork) begins anew. */
  int32_t (*activities_start)(void* context, uint64_t most);
  /* Ends that. Waits until the work that was handed over meanwhile is done, without taking its errors from those who
   * will wait for it; tells all that was noted, in any order, and stores how many activities there was no room for.
   * Calls nothing of the table meanwhile. Python's lock is given up around it. */
  int32_t (*activities_stop)(void* context, void (*tell)(void* to, const taeda_activity* activity), void* to,
                             uint64_t* dropped);

  /* Since 1.5. Optional: work of several devices together. The struct is copied. */
  const taeda_collectives* collectives;

  /* Since 1.5. Optional, all three or none: makes a graph ready to run on the device, never null, or gives
   * TAEDA_DECLINED, and the program goes on call by call. */
  int32_t (*graph_compile)(void* context, int32_t index, const taeda_graph* graph, taeda_executable* executable);
  /* Runs it on tensors of the shapes and element types that it was compiled for, on `stream`; stores one tensor for
   * each output, owned by the caller. Called on several threads at once. */
  int32_t (*graph_run)(void* context, taeda_executable executable, const taeda_tensor* inputs, taeda_tensor* outputs,
                       taeda_stream stream);
  /* Nobody will run it any more; work that it began may not be done yet. */
  void (*graph_release)(void* context, taeda_executable executable);
} taeda_backend;

/* A new operator. `schema` is required; either kernels (with or without `infer`) or `composite` make it work. Its
 * functions follow the rules of taeda_call_fn, and may call the operator itself on other arguments. */
typedef struct taeda_operator {
  size_t size;
  const char* schema; /* "mypkg::scale(Tensor self, float k=1.0) -> Tensor"; results are tensors */
  const char* owner;  /* who defines it, for messages */
  void* context;
  /* Shapes and element types of the results: fills one taeda_spec for each, from the arguments' facts alone; their
   * elements may not be there (device "meta"). With it the operator is structured; without, kernels make results. */
  int32_t (*infer)(void* context, const taeda_call* call, taeda_spec* results);
  /* The operator in terms of others, for devices without a kernel; differentiated by what it calls. */
  int32_t (*composite)(void* context, const taeda_call* call);
  /* Gradients of the arguments. `call` has the arguments of the forward call, `outputs` its results, `gradients` their
   * gradients (none where a result had none); stores one value, or none, for each argument in call->results. */
  int32_t (*derivative)(void* context, const taeda_call* call, const taeda_value* outputs,
                        const taeda_value* gradients);
} taeda_operator;

/* Watches every operator call of a thread without being part of it. Since 1.1. Both functions are optional; they give
 * no status, and nothing that they call is observed. A call that a layer passes on is seen once, the operators of a
 * composite and those of a backward are calls of their own. Calls end in the reverse order of their beginning. */
typedef struct taeda_observer {
  size_t size;
  void* context;
  void (*begin)(void* context, const taeda_observed* call);
  void (*end)(void* context, const taeda_observed* call);
  /* Since 1.2, optional. Spans of the thread; one that began before the observer was there may end under its eyes, and
   * one that it saw begin may end unseen. */
  void (*span_begin)(void* context, const taeda_span* span);
  void (*span_end)(void* context, const taeda_span* span);
  /* Memory that the thread takes and gives back, foreign memory apart. */
  void (*memory)(void* context, const taeda_memory_use* use);
  /* Since 1.3, optional. The thread hands work to a device: activities that come of it bear this number. */
  void (*work)(void* context, uint64_t origin);
} taeda_observer;

/* --- What taeda offers ------------------------------------------------------------------------------------------- */

typedef struct taeda_api {
  size_t size;
  uint32_t major;
  uint32_t minor;
  const char* version; /* of the tensor core, for messages */

  /* Errors. Sets this thread's error text (copied; null is an empty one) and gives `status` back:
   * `return api->set_error(TAEDA_E_VALUE, ..)`. A status that is none of TAEDA_E_* becomes a RuntimeError. */
  int32_t (*set_error)(int32_t status, const char* message);
  /* Text of the last error on this thread, never null; valid until the next error there. */
  const char* (*last_error)(void);

  /* Tensors. Fills `info`, whose `size` the caller has set, as far as that goes. It reads facts that the tensor keeps,
   * and does not wait for its elements. TAEDA_E_VALUE: a null handle, or no size. */
  int32_t (*tensor_read)(taeda_tensor tensor, taeda_tensor_info* info);
  /* One more owner of a handle; null is let through. */
  void (*tensor_retain)(taeda_tensor tensor);
  /* One owner less; null is let through. The last one gives the memory back, which may call the `release` of its
   * backend or of `tensor_wrap` on this thread. */
  void (*tensor_release)(taeda_tensor tensor);
  /* A tensor with uninitialised elements, owned by the caller. `strides` null: row-major; else a permutation of that.
   * Errors: VALUE (a negative size, too many dimensions, no such device or element type), OVERFLOW, MEMORY, and
   * `allocate`'s. */
  int32_t (*tensor_empty)(int32_t ndim, const int64_t* sizes, const int64_t* strides, int32_t dtype,
                          taeda_device device, taeda_tensor* result);
  /* A view, owned by the caller; `offset` and `strides` in elements, from the tensor's first. It keeps the memory alive
   * and is differentiated. TAEDA_E_VALUE: it would leave the tensor's memory. */
  int32_t (*tensor_view)(taeda_tensor tensor, int32_t ndim, const int64_t* sizes, const int64_t* strides,
                         int64_t offset, taeda_tensor* result);
  /* A tensor over memory of the plug-in's, owned by the caller; `data` is its lowest byte, also with negative strides,
   * and an address of `device`. `release`, if any, is called once, when nobody uses the memory any more, on whichever
   * thread that is; work of the device that uses it may still be waiting then. After an error it is never called: the
   * memory stays the caller's. */
  int32_t (*tensor_wrap)(void* data, size_t nbytes, taeda_device device, int32_t ndim, const int64_t* sizes,
                         const int64_t* strides, int32_t dtype, int32_t readonly,
                         void (*release)(void* data, size_t nbytes, void* context), void* context,
                         taeda_tensor* result);
  /* Copies a tensor's elements, in row-major order whatever its strides are, to host memory and waits until they are
   * there. TAEDA_E_VALUE: `nbytes` is not the size of all elements. */
  int32_t (*tensor_to_host)(taeda_tensor tensor, void* to, size_t nbytes);
  /* Overwrites a tensor's elements from host memory, likewise; `from` is not needed after the call. It is an operation
   * in place as any other: an error for a read-only tensor, or for a leaf that requires grad while gradients are
   * recorded. */
  int32_t (*tensor_from_host)(taeda_tensor tensor, const void* from, size_t nbytes);

  /* Operators. How many there are; the number grows when plug-ins define more. */
  uint32_t (*op_count)(void);
  /* The operator at a place from 0 to the count less one, for going through all. Places are those of this process and
   * stand for nothing; names do. TAEDA_E_INDEX: no such place. */
  int32_t (*op_at)(uint32_t place, taeda_op* result);
  /* The operator of a unique name ("add", "add_", "max.dim", "mypkg::scale"); TAEDA_E_VALUE when there is none. */
  int32_t (*op_find)(const char* name, taeda_op* result);
  /* Fills `info`, whose `size` the caller has set, as far as that goes. VALUE: a null handle, or no size. */
  int32_t (*op_read)(taeda_op op, taeda_op_info* info);
  /* Calls an operator from its top, as a program would: with layers, gradients and fallbacks. Arguments are in schema
   * order (an out form: outputs first) and borrowed. A missing argument at the end takes its default; a number may
   * stand for a tensor, an int for a list of one. Stores at most `result_count` results, which belong to the caller,
   * and none in the places beyond. Errors are those of the operator; TYPE for arguments that do not fit. */
  int32_t (*op_call)(taeda_op op, const taeda_value* arguments, uint32_t argument_count, taeda_value* results,
                     uint32_t result_count);
  /* Defines an operator; the struct is copied, `result` may be null. It stays for the life of the process, unless the
   * plug-in's start fails. Errors: VALUE for a schema that cannot be read, RUNTIME for a name that is taken. */
  int32_t (*op_define)(const taeda_operator* definition, taeda_op* result);

  /* Backends. Registers one for the life of the process (unless the plug-in's start fails), copies the struct, and
   * gives its number, which other processes may see differently. `number` may be null. Calls `device_count`. Refused: a
   * name that is taken or is none, required functions that are missing. */
  int32_t (*backend_register)(const taeda_backend* backend, int32_t* number);
  /* Number of a backend by name, without looking for plug-ins that are not loaded; TAEDA_E_VALUE when there is none. */
  int32_t (*backend_find)(const char* name, int32_t* number);

  /* Kernels. For an operator (the name of its function form) on a backend; `owner` stands in messages. `registration`
   * may be null; with it `registration_remove` takes the kernel away again. Calls meet it at once, on all threads.
   * Errors: VALUE for an unknown operator or backend, RUNTIME where there is a kernel already, with both owners. */
  int32_t (*kernel_register)(const char* op, int32_t backend, taeda_call_fn kernel, void* context, const char* owner,
                             uint64_t* registration);
  /* Layers. `layer` sees the calls of `op` (null: of every operator there is now) on threads that have switched the
   * position on. It stores the results itself, or lets `call_below` do so; while it runs the position is off on its
   * thread, so that its own calls pass it by. Since 1.5 a position takes several, the last is met first, and those
   * before it see what it calls; position 0 takes one. Otherwise as `kernel_register`. */
  int32_t (*layer_register)(const char* op, int32_t position, taeda_call_fn layer, void* context, const char* owner,
                            uint64_t* registration);
  /* Goes on below the layer with the same arguments and stores the results. Only within the layer's function, on its
   * thread, with the call that it was given. */
  int32_t (*call_below)(const taeda_call* call);
  /* Switches a position on or off for this thread; `before`, if any, gets what it was, to be put back later. */
  int32_t (*layer_switch)(int32_t position, int32_t on, int32_t* before);
  /* Takes away what a registration stands for; calls that run end as they began, so that the function and its context
   * must stay in place. A number that stands for nothing (any more) is let through. */
  int32_t (*registration_remove)(uint64_t registration);

  /* Randomness. Reserves `blocks` counter values of four 32-bit words in a generator (null: the default one of
   * `device`, which is not looked at otherwise) and gives the Philox 4x32-10 key and the first counter. No two calls
   * get the same ones, until the generator is seeded anew. */
  int32_t (*generator_reserve)(taeda_generator generator, taeda_device device, uint64_t blocks, uint64_t* seed,
                               uint64_t* offset);

  /* Streams. This thread's current stream of a device, borrowed while it is the current one; null is the default one,
   * and stands for devices that do not exist. */
  taeda_stream (*stream_current)(taeda_device device);

  /* The host's lock (Python's): gives it up around a long wait. The result is for `host_acquire`, null on a thread that
   * does not hold the lock. In between, nothing of Python may be touched. */
  void* (*host_release)(void);
  /* Takes the lock again, on the same thread, with what `host_release` gave; null is let through. It waits until the
   * lock is free, so a lock of the plug-in's must not be held. */
  void (*host_acquire)(void* token);

  /* As kernel_register, also where there is a kernel: that one comes back when the registration is removed. */
  int32_t (*kernel_replace)(const char* op, int32_t backend, taeda_call_fn kernel, void* context, const char* owner,
                            uint64_t* registration);

  /* A list of tensors as a result. It takes the handles over, not the array; null handles stand for none. After an
   * error the handles are still the caller's. */
  int32_t (*value_tensors)(const taeda_tensor* tensors, int64_t count, taeda_value* result);
  /* Gives back what a result holds and leaves none in its place. Not for arguments: those are borrowed. */
  void (*value_release)(taeda_value* result);

  /* Since 1.1. For kernels whose sums come in an order that differs from run to run, before they compute: TAEDA_OK, or
   * TAEDA_E_RUNTIME when the user asked for deterministic algorithms, to be passed on. Where the user wants a warning
   * only, it is given, which may itself be an error. `op` stands in the text. */
  int32_t (*alert_not_deterministic)(const char* op);
  /* Since 1.1. 1 when the user asked for deterministic algorithms, by error or by warning, else 0: kernels that have a
   * choice take the way whose results are the same bits in every run. */
  int32_t (*deterministic)(void);

  /* Since 1.1. Puts an observer on the calling thread; the struct is copied. `registration` is for `observer_remove`.
   * It sees calls that begin from now on, until it is taken away or the thread ends. VALUE: null, or no size. */
  int32_t (*observer_add)(const taeda_observer* observer, uint64_t* registration);
  /* Takes an observer off the calling thread; calls that it saw begin end unseen. Other numbers are let through. */
  int32_t (*observer_remove)(uint64_t registration);
  /* Hands the tensors among the arguments to `visit`, lists item by item, in the order of the schema, borrowed and none
   * null. Only within `begin` and `end`, with the call that these were given. A status of `visit` other than TAEDA_OK
   * ends it and is given back. */
  int32_t (*observed_tensors)(const taeda_observed* call, int32_t (*visit)(void* context, taeda_tensor tensor),
                              void* context);

  /* Since 1.2. Hands all arguments, in the order of the schema, to `visit`: borrowed, packed now, and only for the time
   * of that call. Rules and errors are those of `observed_tensors`. */
  int32_t (*observed_arguments)(const taeda_observed* call,
                                int32_t (*visit)(void* context, const taeda_value* arguments, uint32_t count),
                                void* context);
  /* Since 1.2. Tells the observers of the calling thread that a span begins. VALUE: null, no size or no name. */
  int32_t (*span_begin)(const taeda_span* span);
  /* Tells them that it ends: with the name and the kind that it began with. */
  int32_t (*span_end)(const taeda_span* span);

  /* Since 1.3. For backends that note activities: a number for what the calling thread hands over now, which its
   * observers are told. Each call gives another one; 0 where nobody watches the thread. */
  uint64_t (*activity_origin)(void);
  /* Since 1.3. For profilers: every backend that can notes what its devices do, `most` activities each; those that are
   * registered meanwhile, too. RUNTIME: somebody has started that already. After an error nobody notes anything. */
  int32_t (*activities_start)(uint64_t most);
  /* Ends that, and tells all activities, one backend after the other, on the calling thread. `dropped` (may be null)
   * gets how many there was no room for. RUNTIME: nobody has started it. After the error of a backend the others have
   * been told. */
  int32_t (*activities_stop)(void (*tell)(void* to, const taeda_activity* activity), void* to, uint64_t* dropped);
  /* Since 1.3. Name of a backend, valid as long as the process; null for a number that stands for none. */
  const char* (*backend_name)(int32_t number);

  /* Since 1.4. As `kernel_register`, with the schema that the kernel was written for. The struct is copied.
   * TAEDA_ABSENT: there is no operator of this name, because this taeda is older than the plug-in; nothing was
   * registered, and that is no failure. VALUE: the schemas differ by more than arguments with defaults. */
  int32_t (*kernel_add)(const taeda_kernel* kernel, uint64_t* registration);

  /* Since 1.4, with Python's lock held. The tensor in a PyObject*, owned by the caller. TYPE: it is none. RUNTIME:
   * Python has not loaded taeda. */
  int32_t (*object_tensor)(void* object, taeda_tensor* result);
  /* A new reference to the object of a tensor; None for a null handle. */
  int32_t (*tensor_object)(taeda_tensor tensor, void** result);
  /* Sets the exception of Python that a status of this thread's last call stands for, with its text. */
  void (*error_object)(int32_t status);

  /* Since 1.5. Gives a format of numbers a place among the element types, for the life of the process (unless the
   * plug-in's start fails). VALUE: a name or bits that cannot be. RUNTIME: the name is taken, or there is no room. */
  int32_t (*dtype_define)(const taeda_dtype* dtype, int32_t* code);
  /* The element type of a name ("float32", "posit8"); TAEDA_E_VALUE when there is none. */
  int32_t (*dtype_find)(const char* name, int32_t* code);
  /* Since 1.5. Index of the device that a backend's bare name stands for on the calling thread; 0 for no backend. */
  int32_t (*device_current)(int32_t backend);

  /* Since 1.6. For work that may fail later: a number for the place in the program, kept by whoever queues the work. It
   * stands for the operator (null: none) and the line of the user's Python that called it; 0 where neither is known. */
  uint64_t (*call_site)(taeda_op op);
  /* As `set_error`, with the place behind the text: "(queued by gather at train.py:31, in step)". */
  int32_t (*set_error_at)(int32_t status, const char* message, uint64_t site);
} taeda_api;

/* Whether the table of the running taeda has a member: a plug-in that does without the newer ones states the version
 * that it needs, and asks before it uses more. */
#define TAEDA_API_HAS(api, member) ((api)->size >= offsetof(taeda_api, member) + sizeof((api)->member))

/* --- Getting in touch -------------------------------------------------------------------------------------------- */

/* What a plug-in says of itself. */
typedef struct taeda_plugin {
  size_t size;
  uint32_t abi_major;       /* TAEDA_ABI_MAJOR it was compiled with */
  uint32_t abi_minor;       /* TAEDA_ABI_MINOR it was compiled with */
  const char* name;         /* for messages */
  const char* distribution; /* what pip installs */
  /* Registers everything. Called after the versions were found to agree, on the thread that loads the plug-in, until it
   * has succeeded once. An error takes away all that it registered; another attempt may follow. */
  int32_t (*start)(const taeda_api* api);
} taeda_plugin;

/* The one symbol that a library exports: TAEDA_PLUGIN_EXPORT const taeda_plugin* taeda_plugin_describe(void); */
typedef const taeda_plugin* (*taeda_plugin_describe_fn)(void);

/* Exported by libtaeda as `taeda_abi_get`, for programs that load it themselves: the table for a plug-in of
 * `distribution` (may be null) that was built for major.minor. TAEDA_E_VERSION when that is refused; *message (if not
 * null) then says why and what helps, until the next error on this thread. */
typedef int32_t (*taeda_abi_get_fn)(uint32_t major, uint32_t minor, const char* distribution, const taeda_api** api,
                                    const char** message);

/* --- Frozen layouts ---------------------------------------------------------------------------------------------- */

#if UINTPTR_MAX == UINT64_MAX && ((defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L) || defined(__cplusplus))
#ifdef __cplusplus
#define TAEDA_ABI_ASSERT(condition) static_assert(condition, "taeda ABI layout")
#else
#define TAEDA_ABI_ASSERT(condition) _Static_assert(condition, "taeda ABI layout")
#endif
TAEDA_ABI_ASSERT(sizeof(taeda_device) == 8 && sizeof(taeda_value) == 32 && offsetof(taeda_value, as) == 16 &&
                 sizeof(taeda_spec) == 520 && offsetof(taeda_spec, sizes) == 8 && sizeof(taeda_lack) == 16 &&
                 sizeof(taeda_graph_node) == 32);
/* Of growing structs the place of the last member. tools/checks/abi.py holds every member to the record. */
TAEDA_ABI_ASSERT(offsetof(taeda_tensor_info, storage_size) == 72 && offsetof(taeda_op_info, core) == 28 &&
                 offsetof(taeda_call, layers) == 64 && offsetof(taeda_device_properties, more) == 160 &&
                 offsetof(taeda_backend, graph_release) == 328 && offsetof(taeda_operator, derivative) == 48 &&
                 offsetof(taeda_api, set_error_at) == 424 && offsetof(taeda_plugin, start) == 32 &&
                 offsetof(taeda_image_result, groups) == 104 && offsetof(taeda_observed, sequence) == 24 &&
                 offsetof(taeda_observer, work) == 56 && offsetof(taeda_span, sequence) == 24 &&
                 offsetof(taeda_memory_use, device) == 24 && offsetof(taeda_activity, bytes) == 64 &&
                 offsetof(taeda_kernel, owner) == 56 && offsetof(taeda_dtype, encode) == 48 &&
                 offsetof(taeda_collectives, work_destroy) == 88 && offsetof(taeda_graph, output_count) == 40);
#undef TAEDA_ABI_ASSERT
#endif
#ifdef __cplusplus
}
#endif
#endif /* TAEDA_ABI_H */
