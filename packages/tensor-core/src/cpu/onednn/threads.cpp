// oneDNN's parallel regions on the library's own threads: what it imports of GCC's OpenMP is written here anew.
#include "cpu/onednn/threads.h"

#ifdef TAEDA_WITH_ONEDNN
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/pool.h"
#include "taeda/error.h"
#include "taeda/parallel.h"

// Note [oneDNN's threads]
// oneDNN is built for GCC's OpenMP, whose pool would stand beside ours, each waiting on the cores that the other wants;
// and a process may hold several copies of it (PyTorch brings one, which the linker would prefer when it was loaded
// first). So the entries of oneDNN's import table that name OpenMP's functions are set to those below. They keep what
// OpenMP promises: a region of n threads has parts 0 to n - 1, the caller computes part 0, and parts may wait for each
// other. Regions within regions have one thread.

namespace taeda::onednn {
namespace {

/// One region, from its start to its end; a nested one hides the outer one.
struct Started {
  void (*body)(void*);
  void* data;
  Place before;
  Started* outer;
  Team team;
};
thread_local Started* started = nullptr;
thread_local bool may_wait = false;

int max_threads() { return alone() > 0 || place().team ? 1 : threads_together(num_threads()); }
int part_number() { return place().part; }
int part_count() { return place().parts; }
int in_parallel() { return place().parts > 1; }

void begin_region(void (*body)(void*), void* data, unsigned wanted) {
  const int parts = alone() > 0 || place().team ? 1 : wanted == 0 ? max_threads() : int(wanted);
  if (threads_together(parts) < parts) {  // oneDNN has divided its work already; GCC's OpenMP ends the process, too
    std::fprintf(stderr, "taeda: the system refuses to start the %d threads of a kernel of oneDNN\n", parts - 1);
    std::abort();
  }
  const auto run = [](void* region, int) {
    const auto* const own = static_cast<Started*>(region);
    own->body(own->data);
  };
  started = new Started{body, data, place(), started, {run, nullptr, parts, may_wait}};
  started->team.context = started;
  if (parts > 1) offer(started->team);
  place() = {&started->team, 0, parts};
}

void end_region() {
  Started* const region = started;
  if (region->team.parts > 1) {
    for (int part; (part = take_part(region->team)) >= 0;) {
      place().part = part;
      region->body(region->data);
    }
    wait_for(region->team);
  }
  place() = region->before;
  started = region->outer;
  delete region;
}

void run_region(void (*body)(void*), void* data, unsigned wanted, unsigned) {
  begin_region(body, data, wanted);
  body(data);
  end_region();
}

void barrier() {
  if (place().parts > 1) meet(*place().team);
}

/// What the calling thread has still to do of a loop that is dealt out in rounds.
struct Loop {
  long next = 0, end = 0, step = 1, chunk = 0, round = 0;
};
thread_local Loop loop;

bool loop_next(long* from, long* to) {
  const bool over = loop.step > 0 ? loop.next >= loop.end : loop.next <= loop.end;
  if (loop.chunk == 0 || over) return false;
  const long last = loop.next + loop.chunk * loop.step;
  *from = loop.next;
  *to = loop.step > 0 ? std::min(last, loop.end) : std::max(last, loop.end);
  loop.next += loop.round;
  return true;
}

/// Chunks of a loop in turn, or one run of it for each part when `chunk` is 0.
bool loop_start(long begin, long end, long step, long chunk, long* from, long* to) {
  const long parts = place().parts, part = place().part;
  const long count = std::max(0L, (end - begin + step - (step > 0 ? 1 : -1)) / step);
  if (chunk > 0) {
    loop = {begin + part * chunk * step, end, step, chunk, parts * chunk * step};
    return loop_next(from, to);
  }
  loop = {};
  const long least = count / parts, more = count % parts, mine = least + (part < more);
  *from = begin + (part * least + std::min(part, more)) * step;
  *to = *from + mine * step;
  return mine > 0;
}

void loop_end() {}

struct Function {
  std::string_view name;
  void* own;
};
template <class F>
Function function(std::string_view name, F* own) {
  return {name, reinterpret_cast<void*>(own)};
}
const Function kFunctions[] = {
    function("GOMP_parallel", run_region),          function("GOMP_parallel_start", begin_region),
    function("GOMP_parallel_end", end_region),      function("GOMP_barrier", barrier),
    function("GOMP_loop_static_start", loop_start), function("GOMP_loop_static_next", loop_next),
    function("GOMP_loop_end_nowait", loop_end),     function("omp_get_max_threads", max_threads),
    function("omp_get_num_threads", part_count),    function("omp_get_thread_num", part_number),
    function("omp_in_parallel", in_parallel),
};

#if defined(__x86_64__)
bool is_import(uint64_t kind) { return kind == R_X86_64_JUMP_SLOT || kind == R_X86_64_GLOB_DAT; }
#elif defined(__aarch64__)
bool is_import(uint64_t kind) { return kind == R_AARCH64_JUMP_SLOT || kind == R_AARCH64_GLOB_DAT; }
#endif

/// A loaded library's table of imports.
class Imports {
 public:
  explicit Imports(const link_map& library) : base_(library.l_addr) {
    for (const ElfW(Dyn)* item = library.l_ld; item->d_tag != DT_NULL; ++item) {
      const uintptr_t address = item->d_un.d_ptr < base_ ? base_ + item->d_un.d_ptr : item->d_un.d_ptr;
      switch (item->d_tag) {
        case DT_SYMTAB: symbols_ = reinterpret_cast<const ElfW(Sym)*>(address); break;
        case DT_STRTAB: names_ = reinterpret_cast<const char*>(address); break;
        case DT_RELA: tables_[0].first = reinterpret_cast<const ElfW(Rela)*>(address); break;
        case DT_RELASZ: tables_[0].count = item->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_JMPREL: tables_[1].first = reinterpret_cast<const ElfW(Rela)*>(address); break;
        case DT_PLTRELSZ: tables_[1].count = item->d_un.d_val / sizeof(ElfW(Rela)); break;
        default: break;
      }
    }
    dl_iterate_phdr(find_sealed, this);
  }

  /// Calls `body(name, entry)` for every imported symbol.
  template <class Body>
  void each(const Body& body) const {
    for (const Table& table : tables_)
      for (size_t i = 0; i < table.count; ++i) {
        const ElfW(Rela) & item = table.first[i];
        if (!is_import(ELF64_R_TYPE(item.r_info))) continue;
        body(std::string_view(names_ + symbols_[ELF64_R_SYM(item.r_info)].st_name),
             reinterpret_cast<void**>(base_ + item.r_offset));
      }
  }

  /// Changes an entry, which the linker may have sealed.
  void set(void** entry, void* function) const {
    const uintptr_t size = uintptr_t(sysconf(_SC_PAGESIZE)), page = reinterpret_cast<uintptr_t>(entry) & ~(size - 1);
    const bool sealed = page >= sealed_from_ && page < sealed_to_;
    const auto protect = [&](int how) {
      check(!sealed || mprotect(reinterpret_cast<void*>(page), size, how) == 0, ErrorKind::Runtime,
            "oneDNN's table of imports cannot be changed: mprotect was refused by the system");
    };
    protect(PROT_READ | PROT_WRITE);
    *entry = function;
    protect(PROT_READ);
  }

 private:
  struct Table {
    const ElfW(Rela) * first = nullptr;
    size_t count = 0;
  };

  static int find_sealed(dl_phdr_info* info, size_t, void* self) {
    auto& imports = *static_cast<Imports*>(self);
    if (info->dlpi_addr != imports.base_) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (const auto& part = info->dlpi_phdr[i]; part.p_type == PT_GNU_RELRO) {
        const uintptr_t size = uintptr_t(sysconf(_SC_PAGESIZE)), from = imports.base_ + part.p_vaddr;
        imports.sealed_from_ = from & ~(size - 1);
        imports.sealed_to_ = (from + part.p_memsz) & ~(size - 1);
      }
    return 1;
  }

  uintptr_t base_, sealed_from_ = 0, sealed_to_ = 0;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  Table tables_[2];
};

}  // namespace

WaitingParts::WaitingParts() : before_(may_wait) { may_wait = true; }
WaitingParts::~WaitingParts() { may_wait = before_; }

void join_threads(const link_map& library) {
  const Imports imports(library);
  const auto own = [](std::string_view name) {
    return std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const auto& f) { return f.name == name; });
  };
  int found = 0;
  imports.each([&](std::string_view name, void**) {
    if (!name.starts_with("GOMP_") && !name.starts_with("omp_") && !name.starts_with("__kmpc_")) return;
    check(own(name) != std::end(kFunctions), ErrorKind::Runtime, "oneDNN at ", library.l_name,
          " calls OpenMP's function ", name, ", which taeda does not have: use onednn-devel-cpu-gomp 2023.2.0");
    ++found;
  });
  check(found > 0, ErrorKind::Runtime, "oneDNN at ", library.l_name,
        " is not built for GCC's OpenMP: use onednn-devel-cpu-gomp 2023.2.0");
  imports.each([&](std::string_view name, void** entry) {
    if (const auto* f = own(name); f != std::end(kFunctions)) imports.set(entry, f->own);
  });
}

}  // namespace taeda::onednn
#endif
