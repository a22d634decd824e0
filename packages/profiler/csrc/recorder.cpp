// Recording on one thread: what observers tell becomes events.
#include "recorder.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace profiler {
namespace {

thread_local std::shared_ptr<Thread> mine;

/// A recorder that runs out of memory records less, and says so; nothing is thrown through the library.
template <class Body>
void quietly(Thread& thread, const Body& body) noexcept {
  try {
    body();
  } catch (...) {
    thread.dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

Thread& thread_of(void* context) noexcept { return *static_cast<Thread*>(context); }

/// False once the session is over: then this thread has left it, and nothing of it may be used.
bool on(Thread& thread) noexcept {
  if (!thread.over()) [[likely]]
    return true;
  leave();
  return false;
}

void call_begins(void* context, const taeda_observed* call) {
  if (Thread& thread = thread_of(context); on(thread)) thread.call_begins(call);
}
void call_ends(void* context, const taeda_observed* call) {
  if (Thread& thread = thread_of(context); on(thread)) thread.call_ends(call);
}
void span_begins(void* context, const taeda_span* span) {
  if (Thread& thread = thread_of(context); on(thread)) thread.span_begins(span);
}
void span_ends(void* context, const taeda_span* span) {
  if (Thread& thread = thread_of(context); on(thread)) thread.span_ends(span);
}
void handed_over(void* context, uint64_t origin) {
  if (Thread& thread = thread_of(context); on(thread)) thread.hands_over(origin);
}
void memory_used(void* context, const taeda_memory_use* use) {
  if (Thread& thread = thread_of(context); on(thread)) thread.use(use);
}

/// Name of an operator without its overload: "add" of "add.out".
std::string plain_name(const char* name) {
  std::string text = name;
  const size_t space = text.find("::");
  if (const size_t dot = text.find('.', space == std::string::npos ? 0 : space); dot != std::string::npos)
    text.resize(dot);
  return space == std::string::npos ? "aten::" + text : text;
}

}  // namespace

const taeda_api* api = nullptr;

int64_t now() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

namespace {

bool kernel_trusts_counter() noexcept {
  char name[16] = {};
  if (FILE* file = std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r")) {
    if (!std::fgets(name, sizeof name, file)) name[0] = 0;
    std::fclose(file);
  }
  return std::strcmp(name, "tsc\n") == 0;
}

}  // namespace

#ifdef __x86_64__
const bool counts_ticks = kernel_trusts_counter();
#else
const bool counts_ticks = false;
#endif

namespace {
const int64_t loaded = now(), loaded_ticks = ticks();
}

double tick_length() noexcept {
  const int64_t passed = ticks() - loaded_ticks;
  return counts_ticks && passed > 0 ? double(now() - loaded) / double(passed) : 1.0;
}

void join(const std::shared_ptr<Session>& session) {
  if (mine && mine->session == session) return;
  leave();
  std::shared_ptr<Thread> thread = session->new_thread(session);
  const bool memory = session->options.memory;
  const taeda_observer observer{sizeof(taeda_observer),
                                thread.get(),
                                call_begins,
                                call_ends,
                                span_begins,
                                span_ends,
                                memory ? memory_used : nullptr,
                                session->options.devices ? handed_over : nullptr};
  if (api->observer_add(&observer, &thread->registration) == TAEDA_OK) mine = std::move(thread);
}

void leave() noexcept {
  const std::shared_ptr<Thread> thread = std::move(mine);
  mine.reset();
  if (thread) api->observer_remove(thread->registration);
}

Thread::Thread(std::shared_ptr<Session> of, uint32_t numbered)
    : session(std::move(of)), number(numbered), system_id(uint64_t(syscall(SYS_gettid))) {}

bool Thread::over() const noexcept { return !session->recording.load(std::memory_order_relaxed); }

Thread::Operator Thread::look_up(taeda_op op) {
  if (const auto found = operators_.find(op); found != operators_.end()) return found->second;
  taeda_op_info info{};
  info.size = sizeof info;
  if (api->op_read(op, &info) != TAEDA_OK) return {0, false};
  const std::string name = plain_name(info.name);
  // Overloads that are written in terms of the operator itself would count twice.
  const bool whole =
      info.kind != TAEDA_KIND_COMPOSITE && !std::strchr(info.name, '.') && session->options.whole.contains(name);
  return operators_[op] = {session->name(name, info.schema), whole};
}

Thread::NearOperator& Thread::operator_of(taeda_op op) {
  NearOperator& last = near_operators_[near(op)];
  if (last.op != op) last = {op, look_up(op)};
  return last;
}

uint32_t Thread::look_up(const std::string& name) {
  // A loop may name its steps: names that nobody uses again are kept by the session alone.
  if (const auto found = spans_.find(name); found != spans_.end()) return found->second;
  const uint32_t made = session->name(name, "");
  if (spans_.size() < 4096) spans_.emplace(name, made);
  return made;
}

Thread::NearSpan& Thread::span_of(const char* name) {
  NearSpan& last = near_spans_[near(name)];
  // An address may get another text.
  if (last.address != name || last.text != name) {
    last.text = name;
    last.name = look_up(last.text);
    last.address = name;
  }
  return last;
}

void Thread::begins(const Open& open, uint32_t detail) noexcept {
  quietly(*this, [&] {
    open_.push_back(open);
    Event* event = events.extend(*session);
    if (!event) {
      dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    open_.back().event = event;
    open_.back().index = uint32_t(events.size());
    last_ = ticks() - session->started_ticks;
    event->begin(last_, open.name, open.kind, detail);
    events.publish();
  });
}

void Thread::close(int64_t at, uint32_t sequence, bool failed) noexcept {
  last_ = at - session->started_ticks;
  if (Event* event = open_.back().event) event->end(last_, sequence, failed);
  open_.pop_back();
}

bool Thread::in_python() noexcept {
  // The state of whoever holds the lock. Another thread's may lie where this one's was, but says so.
  const PyThreadState* const holder = _PyThreadState_UncheckedGet();
  if (holder && holder == python_ && holder->thread_id == ident_) [[likely]]
    return true;
  if (!PyGILState_Check()) return false;
  python_ = holder;
  return true;
}

uint32_t Thread::stack_here() {
  if (!session->options.stacks) return 0;
  // What an operator consists of stands where the operator does.
  if (!open_.empty() && open_.back().kind == kOperator) return open_.back().stack;
  return in_python() ? session->stacks.here(path_) : 0;
}

namespace {

int64_t head(uint32_t kind, int64_t count) { return int64_t(kind) << 32 | count; }

int32_t note_tensor(void* context, taeda_tensor tensor) {
  auto& words = *static_cast<Words*>(context);
  taeda_tensor_info info;
  info.size = offsetof(taeda_tensor_info, device);  // no more than is looked at
  if (const int32_t status = api->tensor_read(tensor, &info); status != TAEDA_OK) return status;
  int64_t* word = words.extend(1 + size_t(info.ndim));
  *word = head(TAEDA_VALUE_TENSOR, int64_t(info.dtype) << 16 | info.ndim);
  for (int32_t d = 0; d < info.ndim; ++d) *++word = info.sizes[d];
  return TAEDA_OK;
}

void note_head(Words& words, uint32_t kind, int64_t count) { *words.extend(1) = head(kind, count); }

void note_value(Words& words, const taeda_value& value) {
  switch (value.kind) {
    case TAEDA_VALUE_TENSOR: note_tensor(&words, value.as.tensor); return;
    case TAEDA_VALUE_TENSORS:
      note_head(words, value.kind, value.count);
      for (int64_t i = 0; i < value.count; ++i)
        if (value.as.tensors[i]) note_tensor(&words, value.as.tensors[i]);
        else note_head(words, TAEDA_VALUE_NONE, 0);
      return;
    case TAEDA_VALUE_BOOL:
    case TAEDA_VALUE_INT:
      note_head(words, value.kind, 1);
      *words.extend(1) = value.as.integer;
      return;
    case TAEDA_VALUE_INTS:
      note_head(words, value.kind, value.count);
      std::copy_n(value.as.integers, value.count, words.extend(size_t(value.count)));
      return;
    default: note_head(words, value.kind, 0);
  }
}

int32_t note_arguments(void* context, const taeda_value* arguments, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) note_value(*static_cast<Words*>(context), arguments[i]);
  return TAEDA_OK;
}

}  // namespace

void Thread::start_detail(uint32_t stack, bool whole) {
  detail_.clear();
  int64_t* first = detail_.extend(2);
  first[0] = stack;
  first[1] = whole;
}

uint32_t Thread::keep_detail(NearDetails& near) {
  // Most calls are as one of the last two of their operator at their place were.
  for (const uint32_t known : near)
    if (details.is(known, detail_.data(), detail_.size())) return known;
  // The table of details takes its part of the room; when that is used up, events have none.
  if (details_full_) return 0;
  const size_t before = details.size();
  const uint32_t made = details.number(detail_.data(), detail_.size());
  if (details.size() != before) details_full_ = !session->take(int64_t(8 * detail_.size() + 32));
  near[1] = near[0];
  return near[0] = made;
}

uint32_t Thread::detail_of(const taeda_observed* call, NearOperator& op, uint32_t stack) {
  const bool shapes = session->options.shapes, whole = op.found.whole;
  if (!shapes && !whole && stack == 0) return 0;
  start_detail(stack, whole);
  if (whole) api->observed_arguments(call, note_arguments, &detail_);
  else if (shapes) api->observed_tensors(call, note_tensor, &detail_);
  return keep_detail(near_details_[near(call->op, stack)]);
}

void Thread::call_begins(const taeda_observed* call) noexcept {
  Open open{nullptr, kNone, 0, kOperator, 0, 0};
  uint32_t detail = 0;
  quietly(*this, [&] {
    NearOperator& op = operator_of(call->op);
    open.name = op.found.name;
    open.stack = stack_here();
    detail = detail_of(call, op, open.stack);
  });
  begins(open, detail);
}

void Thread::call_ends(const taeda_observed* call) noexcept {
  const int64_t at = ticks();
  if (!open_.empty()) close(at, uint32_t(call->sequence), call->failed);
}

void Thread::span_begins(const taeda_span* span) noexcept {
  Open open{nullptr, kNone, 0, uint32_t(span->kind) + 1, 0, uint32_t(span->sequence)};
  uint32_t detail = 0;
  quietly(*this, [&] {
    NearSpan& known = span_of(span->name);
    open.name = known.name;
    if (span->kind == TAEDA_SPAN_BACKWARD || (open.stack = stack_here()) == 0) return;
    start_detail(open.stack, false);
    detail = keep_detail(near_details_[near(span->name, open.stack)]);
  });
  begins(open, detail);
}

void Thread::span_ends(const taeda_span* span) noexcept {
  const int64_t at = ticks();
  quietly(*this, [&] {
    const uint32_t name = span_of(span->name).name, kind = uint32_t(span->kind) + 1;
    // Spans of generators and of blocks that an error has left may end in another order; one that nobody saw begin is
    // not here. Calls always end in order, so that none is passed by.
    size_t from = open_.size();
    while (from > 0 && open_[from - 1].kind != kOperator) {
      const Open& open = open_[--from];
      if (open.name != name || open.kind != kind) continue;
      while (open_.size() > from) close(at, open_.back().sequence, false);
      return;
    }
  });
}

void Thread::use(const taeda_memory_use* use) noexcept {
  MemoryEvent* event = memory.extend(*session);
  if (!event) {
    dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  // Within an operator the time at which it, or a part of it, began or ended: reading the clock costs more than the
  // rest.
  const bool inside =
      !open_.empty() && (open_.back().kind == kOperator || open_.back().kind == TAEDA_SPAN_BACKWARD + 1);
  *event = {inside ? last_ : ticks() - session->started_ticks, reinterpret_cast<uint64_t>(use->data), use->bytes,
            open_.empty() ? kNone : open_.back().index,
            uint32_t(use->device.backend) << 16 | uint32_t(use->device.index)};
  memory.publish();
}

void Thread::hands_over(uint64_t origin) noexcept {
  Work* work = works.extend(*session);
  if (!work) return;  // the activity is there, what it came from is not
  *work = {origin, ticks() - session->started_ticks, open_.empty() ? kNone : open_.back().index};
  works.publish();
}

// --- the session ---

Session::Session(const Options& given) : options(given), started(now()), started_ticks(ticks()), left(given.max_bytes) {
  names_.push_back({"(unnamed)", ""});
}

uint32_t Session::name(const std::string& text, const char* schema) {
  const std::lock_guard guard(lock_);
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  const auto number = uint32_t(names_.size());
  // Programs that name millions of spans lose the names of the last ones, not their times.
  if (number >= Event::kMaxName || !take(int64_t(2 * text.size() + 128))) return 0;
  names_.push_back({text, schema});
  numbers_.emplace(text, number);
  return number;
}
std::shared_ptr<Thread> Session::new_thread(const std::shared_ptr<Session>& self) {
  const std::lock_guard guard(lock_);
  threads_.push_back(std::make_shared<Thread>(self, uint32_t(threads_.size())));
  return threads_.back();
}
std::vector<std::shared_ptr<Thread>> Session::threads() const {
  const std::lock_guard guard(lock_);
  return threads_;
}
void Session::forget_threads() {
  std::vector<std::shared_ptr<Thread>> gone;
  const std::lock_guard guard(lock_);
  gone.swap(threads_);
}
namespace {
void note_activity(void* to, const taeda_activity* told) { static_cast<Session*>(to)->note(told); }
}  // namespace

int32_t Session::start_devices() {
  return options.devices ? api->activities_start(uint64_t(left.load()) / sizeof(Activity)) : TAEDA_OK;
}
void Session::stop_devices() {
  if (!options.devices) return;
  uint64_t dropped = 0;
  if (api->activities_stop(note_activity, this, &dropped) != TAEDA_OK) devices_failed = api->last_error();
  activities_dropped += dropped;
}
void Session::note(const taeda_activity* told) noexcept {
  try {
    if (told->size < sizeof *told || !take(sizeof(Activity))) return void(++activities_dropped);
    const int64_t begin = told->begin - started, length = std::max(told->end - told->begin, int64_t(0));
    activities.push_back({begin, length, told->stream, told->origin, told->bytes,
                          name(told->name ? told->name : "", ""),
                          uint32_t(told->device.backend) << 16 | uint32_t(told->device.index), uint8_t(told->kind)});
  } catch (...) {
    ++activities_dropped;
  }
}
std::vector<Session::Name> Session::names() const {
  const std::lock_guard guard(lock_);
  return names_;
}

// --- lists of words ---

WordLists::WordLists() : table_(64) { number(nullptr, 0); }

uint32_t WordLists::number(const int64_t* words, size_t count) {
  uint64_t hash = 0x9e3779b97f4a7c15u + count;
  for (size_t i = 0; i < count; ++i) {
    hash = (hash ^ uint64_t(words[i])) * 0xd6e8feb86659fd93u;
    hash ^= hash >> 32;
  }
  size_t at = hash % table_.size();
  for (; table_[at]; at = at + 1 == table_.size() ? 0 : at + 1) {
    const uint32_t found = table_[at] - 1;
    if (hashes_[found] == hash && count_of(found) == count && std::equal(words, words + count, begin_of(found)))
      return found;
  }
  const auto made = uint32_t(places_.size());
  places_.emplace_back(words_.size(), uint32_t(count));
  hashes_.push_back(hash);
  words_.insert(words_.end(), words, words + count);
  table_[at] = made + 1;
  if (places_.size() * 2 > table_.size()) grow();
  return made;
}

void WordLists::grow() {
  std::vector<uint32_t> larger(table_.size() * 2);
  for (uint32_t n = 0; n < places_.size(); ++n) {
    size_t at = hashes_[n] % larger.size();
    while (larger[at]) at = at + 1 == larger.size() ? 0 : at + 1;
    larger[at] = n + 1;
  }
  table_.swap(larger);
}

}  // namespace profiler
