// Kernels of indexing.
#include "kernels/index.h"

#define TAEDA_FAMILY "index"

namespace taeda::cuda {

TAEDA_KERNEL(gather, Gather)
TAEDA_KERNEL(index_select, Select)
TAEDA_KERNEL(scatter_lines, ScatterLines<Assign>)
TAEDA_KERNEL(scatter_runs, ScatterRuns<Assign>)
TAEDA_KERNEL(scatter_add_lines_i, ScatterLines<Accumulate<int64_t>>)
TAEDA_KERNEL(scatter_add_runs_i, ScatterRuns<Accumulate<int64_t>>)
TAEDA_KERNEL(scatter_add_lines_b, ScatterLines<Accumulate<bool>>)
TAEDA_KERNEL(scatter_add_runs_b, ScatterRuns<Accumulate<bool>>)
TAEDA_KERNEL(scatter_add_lines_f, ScatterLines<Accumulate<float>>)
TAEDA_KERNEL(scatter_add_runs_f, ScatterRuns<Accumulate<float>>)
TAEDA_KERNEL(scatter_add_lines_d, ScatterLines<Accumulate<double>>)
TAEDA_KERNEL(scatter_add_runs_d, ScatterRuns<Accumulate<double>>)
TAEDA_KERNEL(scatter_add_lines_c, ScatterLines<Accumulate<Complex128>>)
TAEDA_KERNEL(scatter_add_runs_c, ScatterRuns<Accumulate<Complex128>>)
TAEDA_KERNEL(scatter_reduce_b, ScatterReduce<bool>)
TAEDA_KERNEL(scatter_reduce_i, ScatterReduce<int64_t>)
TAEDA_KERNEL(scatter_reduce_u, ScatterReduce<uint64_t>)
TAEDA_KERNEL(scatter_reduce_d, ScatterReduce<double>)
TAEDA_KERNEL(scatter_reduce_c, ScatterReduce<Complex128>)
TAEDA_KERNEL(embedding_backward_d, EmbeddingBackward<double>)
TAEDA_KERNEL(embedding_backward_c, EmbeddingBackward<Complex128>)
TAEDA_KERNEL(triangle, Triangle)
TAEDA_KERNEL(nonzero_count, CountNonzero)
TAEDA_KERNEL(nonzero_write, WriteNonzero)

}  // namespace taeda::cuda
