"""Groups of processes whose devices work together by NCCL: a library made for the test is in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import stand_ins
import test_real_driver as real

pytest.importorskip("taeda", reason="groups of processes are the whole package's")

PROGRAM = Path(__file__).with_name("nccl_program.py")
# Of three processes that begin on a machine that does other things.
LIMIT = 300
NCCL = r"""
// In NCCL's place: members meet in a file, whose name is the identity, and exchange bytes in it. Work is in progress
// until all have come; a thread does it, which gives up when the communicator is aborted.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { MEMBERS = 4, ROOM = 1 << 16, LETTERS = 8 };
struct letter { atomic_int full; uint64_t size; char bytes[ROOM]; };
struct board {
  atomic_int joined, arrived, left;
  char bytes[MEMBERS][ROOM];
  struct letter letters[MEMBERS][MEMBERS];
};
struct id { char bytes[128]; };
struct config { size_t size; unsigned magic, version; int blocking; };
enum { REDUCE_ALL, REDUCE, BROADCAST, GATHER, SCATTER, SEND, RECEIVE };
struct work { int what, type, op, peer; const char* from; char* to; size_t count; struct comm* comm; };
struct comm {
  struct board* board;
  int rank, size;
  atomic_int stopped, pending, status;
  struct work queue[64];
  int queued;
};
static __thread struct comm* grouped[16];
static __thread int depth, groups;
static const int sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
int ncclGetVersion(int* v) { return *v = 22803, 0; }
const char* ncclGetErrorString(int s) {
  return s == 6 ? "remote process exited or there was a network error" : s == 3 ? "internal error" : "invalid usage";
}
const char* ncclGetLastError(void* c) { return getenv("FAKE_NCCL_SAYS") ? getenv("FAKE_NCCL_SAYS") : ""; }
int ncclGetUniqueId(struct id* id) {
  memset(id, 0, sizeof *id);
  const char* folder = getenv("FAKE_NCCL_FOLDER");
  snprintf(id->bytes, sizeof id->bytes, "%s/nccl-XXXXXX", folder ? folder : "/tmp");
  const int file = mkstemp(id->bytes);
  return file < 0 || ftruncate(file, sizeof(struct board)) || close(file) ? 2 : 0;
}
static int wait_for(struct comm* c, atomic_int* what, int least) {
  while (atomic_load(what) < least) {
    if (atomic_load(&c->stopped)) return 0;
    usleep(50);
  }
  return 1;
}
static void* join(void* given) {
  struct comm* c = given;
  atomic_fetch_add(&c->board->joined, 1);
  if (wait_for(c, &c->board->joined, c->size)) atomic_store(&c->pending, 0);
  return 0;
}
static void start(void* (*work)(void*), struct comm* c) {
  pthread_t thread;
  pthread_create(&thread, 0, work, c);
  pthread_detach(thread);
}
int ncclCommInitRankConfig(struct comm** made, int n, struct id id, int rank, struct config* config) {
  if (config->magic != 0xcafebeef || config->version != 21400 || config->blocking || config->size != 24) return 4;
  struct comm* c = calloc(1, sizeof *c);
  const int file = open(id.bytes, O_RDWR);
  if (file < 0 || n > MEMBERS) return 2;
  c->board = mmap(0, sizeof *c->board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  c->rank = rank, c->size = n, c->pending = 1;
  start(join, c);
  return *made = c, 7;
}
int ncclCommGetAsyncError(struct comm* c, int* status) {
  const char* fails = getenv("FAKE_NCCL_FAILS");
  if (fails && atoi(fails) == c->rank && access(getenv("FAKE_NCCL_WHEN"), F_OK) == 0) return *status = 6, 0;
  return *status = c->status ? c->status : c->pending ? 7 : 0, 0;
}
int ncclCommFinalize(struct comm* c) { return 0; }
int ncclCommDestroy(struct comm* c) { return 0; }
int ncclCommAbort(struct comm* c) { return atomic_store(&c->stopped, 1), 0; }
static double one(double a, double b, int op) {
  return op == 1 ? a * b : op == 2 ? (a > b ? a : b) : op == 3 ? (a < b ? a : b) : a + b;
}
static float of_bits(uint32_t bits) { float f; return memcpy(&f, &bits, 4), f; }
static uint32_t bits_of(float f) { uint32_t bits; return memcpy(&bits, &f, 4), bits; }
#define EACH(T) for (size_t i = 0; i < n; ++i) ((T*)mine)[i] = one(((T*)mine)[i], ((const T*)theirs)[i], op); break;
static void combine(void* mine, const void* theirs, size_t n, int type, int op) {
  uint16_t* a = mine;
  const uint16_t* b = theirs;
  switch (type) {
    case 1: EACH(uint8_t)
    case 2: EACH(int)
    case 4: EACH(int64_t)
    case 6: EACH(_Float16)
    case 7: EACH(float)
    case 8: EACH(double)
    case 9:  // bfloat16, of numbers that it has
      for (size_t i = 0; i < n; ++i) a[i] = bits_of(one(of_bits(a[i] << 16), of_bits(b[i] << 16), op)) >> 16;
  }
}
// All members have come to the same place.
static int meet(struct comm* c) {
  const int turn = atomic_fetch_add(&c->board->arrived, 1) / c->size;
  return wait_for(c, &c->board->arrived, (turn + 1) * c->size);
}
static int all_together(struct work* w) {
  struct comm* c = w->comm;
  const size_t bytes = w->count * sizes[w->type];
  char sum[ROOM];
  const size_t given = w->what == SCATTER ? bytes * c->size : bytes;
  if (w->from && given <= ROOM) memcpy(c->board->bytes[c->rank], w->from, given);
  if (!meet(c)) return 0;
  const size_t skip = w->what == SCATTER ? bytes * c->rank : 0;
  memcpy(sum, c->board->bytes[0] + skip, bytes);
  for (int r = 1; r < c->size; ++r) combine(sum, c->board->bytes[r] + skip, w->count, w->type, w->op);
  if (w->op == 4)
    for (size_t i = 0; i < w->count; ++i) w->type == 7 ? (((float*)sum)[i] /= c->size) : (((double*)sum)[i] /= c->size);
  if (w->what == GATHER)
    for (int r = 0; r < c->size; ++r) memcpy(w->to + r * bytes, c->board->bytes[r], bytes);
  else if (w->what == BROADCAST) memcpy(w->to, c->board->bytes[w->peer], bytes);
  else if (w->what != REDUCE || w->peer == c->rank) memcpy(w->to, sum, bytes);
  return meet(c);
}
static int pass(struct work* w, int sends) {
  struct comm* c = w->comm;
  struct letter* l = sends ? &c->board->letters[c->rank][w->peer] : &c->board->letters[w->peer][c->rank];
  const size_t bytes = w->count * sizes[w->type];
  if (sends) {
    while (atomic_load(&l->full)) { if (c->stopped) return 0; usleep(50); }
    memcpy(l->bytes, w->from, bytes), l->size = bytes, atomic_store(&l->full, 1);
    return 1;
  }
  if (!wait_for(c, &l->full, 1)) return 0;
  if (l->size != bytes) return c->status = 3, 0;
  return memcpy(w->to, l->bytes, bytes), atomic_store(&l->full, 0), 1;
}
static void* run(void* given) {
  struct comm* c = given;
  int good = 1;
  for (int kind = SEND; kind <= RECEIVE; ++kind)  // what is sent is taken meanwhile
    for (int i = 0; i < c->queued && good; ++i)
      if (c->queue[i].what == kind) good = pass(&c->queue[i], kind == SEND);
  for (int i = 0; i < c->queued && good; ++i)
    if (c->queue[i].what < SEND) good = all_together(&c->queue[i]);
  c->queued = 0;
  if (good) atomic_store(&c->pending, 0);
  return 0;
}
int ncclGroupStart(void) { return ++depth, 0; }
int ncclGroupEnd(void) {
  if (--depth) return 0;
  for (int i = 0; i < groups; ++i)
    if (!getenv("FAKE_NCCL_STALLS")) grouped[i]->pending = 1, start(run, grouped[i]);
  return groups = 0, 7;
}
static int put(struct work w) {
  struct comm* c = w.comm;
  if (!depth || c->queued == 64 || c->pending) return 5;
  int known = 0;
  for (int i = 0; i < groups; ++i) known |= grouped[i] == c;
  if (!known) grouped[groups++] = c;
  return c->queue[c->queued++] = w, 0;
}
int ncclAllReduce(const void* f, void* t, size_t n, int type, int op, struct comm* c, void* s) {
  return put((struct work){REDUCE_ALL, type, op, 0, f, t, n, c});
}
int ncclReduce(const void* f, void* t, size_t n, int type, int op, int root, struct comm* c, void* s) {
  return put((struct work){REDUCE, type, op, root, f, t, n, c});
}
int ncclBroadcast(const void* f, void* t, size_t n, int type, int root, struct comm* c, void* s) {
  return put((struct work){BROADCAST, type, 0, root, f, t, n, c});
}
int ncclAllGather(const void* f, void* t, size_t n, int type, struct comm* c, void* s) {
  return put((struct work){GATHER, type, 0, 0, f, t, n, c});
}
int ncclReduceScatter(const void* f, void* t, size_t n, int type, int op, struct comm* c, void* s) {
  return put((struct work){SCATTER, type, op, 0, f, t, n, c});
}
int ncclSend(const void* f, size_t n, int type, int peer, struct comm* c, void* s) {
  return put((struct work){SEND, type, 0, peer, f, 0, n, c});
}
int ncclRecv(void* t, size_t n, int type, int peer, struct comm* c, void* s) {
  return put((struct work){RECEIVE, type, 0, peer, 0, t, n, c});
}
"""
# Events are done at once, unless work is to stay on its way.
CUDA = real.WHOLE.replace(
    "cuEventQuery(void* e) { return 600; }", 'cuEventQuery(void* e) { return getenv("FAKE_BUSY") ? 600 : 0; }'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = {"libcuda.so.1": CUDA, "libnccl.so.2": NCCL}
    return stand_ins.build(tmp_path_factory.mktemp("nccl"), texts, "-pthread")


def environment_of(folder: Path, **more: str) -> dict[str, str]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "FAKE_NCCL_FOLDER": str(folder), **more}
    environment.pop("TAEDA_CUDA_DRIVER", None)
    return environment


def start(folder: Path, part: str, processes: int = 3, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "taeda.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return subprocess.run(
        [*command, str(PROGRAM), part],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        env=environment_of(folder, **more),
    )


@pytest.mark.parametrize(
    "part",
    ["facts", "reductions", "movements", "pairs", "misuse", "late", "stalled", "limited", "aborted"],
)
def test_three_processes(folder: Path, part: str) -> None:
    done = start(folder, part)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


def test_one_process(folder: Path) -> None:
    done = start(folder, "movements", processes=1)
    assert done.returncode == 0, done.stderr[-6000:]


def test_what_the_library_says_of_another_member_is_told(folder: Path) -> None:
    done = start(folder, "remote", FAKE_NCCL_SAYS="its socket is closed")
    assert done.returncode == 0, done.stderr[-6000:]


def test_without_the_library_the_host_s_memory_is_the_way(folder: Path) -> None:
    done = start(folder, "absent", processes=2, TAEDA_CUDA_LIBRARIES="none")
    assert done.returncode == 0, done.stderr[-6000:]


def test_the_step_of_the_check_on_hardware_can_be_rehearsed(folder: Path) -> None:
    tool = Path(__file__).resolve().parents[3] / "tools" / "gpu_check" / "together.py"
    if not tool.is_file():
        pytest.skip("needs the repository, where the command is")
    command = [sys.executable, str(tool), "--processes", "3", "--small"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment_of(folder))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    assert "NCCL (2, 28, 3): every collective is right" in done.stdout
