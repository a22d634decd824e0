// From texts to kernels.
#include "fusion/kernels.h"

#include <cstring>

#include "driver/compiler.h"
#include "driver/headers.h"
#include "fusion/number.h"
#include "kernels/fused.h"

namespace taeda::cuda {
namespace {

/// What such a kernel does on the simulated driver: its body says where its code is.
void simulate(const void* body, int64_t items) {
  FusedHead head;
  std::memcpy(&head, body, sizeof head);
  const auto function = reinterpret_cast<void (*)(const void*, int64_t, uint64_t)>(uintptr_t(head.on_host));
  function(body, items, simulated_shift);
}
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + "\"";
}

}  // namespace

FusedKernels& fused_kernels() {
  static auto* const all = new FusedKernels;
  return *all;
}

std::unique_ptr<FusedKernel> FusedKernels::make(Compiler& compiler, int device, const std::string& key,
                                                const std::string& source, std::string& why) {
  auto made = std::make_unique<FusedKernel>();
  made->family = "fused " + std::to_string(kernels_.size());
  std::string image;
  const ImageFiles::Found found = files_.find(key, image);
  damaged_ += found == ImageFiles::Found::Damaged;
  others_ += found == ImageFiles::Found::Other;
  std::string ignored;  // what is found in a file and is none of the system's is made anew
  if (found == ImageFiles::Found::Yes && compiler.load(made->family, image, made->on_host, ignored))
    return ++from_files_, std::move(made);
  if (!compiler.compile(device, source, image, why)) return nullptr;
  ++compiled_;
  if (!compiler.load(made->family, image, made->on_host, why)) return nullptr;
  if (found != ImageFiles::Found::Other) unwritten_ += !files_.keep(key, image, ignored);
  return made;
}
const FusedKernel* FusedKernels::find(Driver& driver, int device, const Chain& chain, std::string& why) {
  Compiler& compiler = driver.compiler();
  const std::string identity = compiler.identity(device, why);
  if (identity.empty()) return nullptr;
  const std::string source = chain.text();
  const std::string key = identity + "\nheaders " + std::to_string(headers_number()) + "\n" + source;
  const std::lock_guard held(lock_);
  if (const auto found = kernels_.find(key); found != kernels_.end()) return found->second.get();
  if (const auto failed = failures_.find(key); failed != failures_.end()) return why = failed->second, nullptr;
  std::unique_ptr<FusedKernel> made = make(compiler, device, key, source, why);
  if (!made) return failures_[key] = why, nullptr;
  made->kernel = {"taeda_fused", made->family.c_str(), chain.body_size(), kEachThreads, chain.per_block(), 0,
                  &simulate};
  return (kernels_[key] = std::move(made)).get();
}
std::string FusedKernels::report(Driver& driver) {
  std::string why;
  const std::string compiler = driver.compiler().identity(0, why);
  const std::lock_guard held(lock_);
  std::string text = "{\"compiler\": " + quoted(compiler) + ", \"reason\": " + quoted(why) +
                     ", \"folder\": " + quoted(files_.folder());
  const auto count = [&](const char* name, uint64_t value) {
    text += std::string(", \"") + name + "\": " + std::to_string(value);
  };
  count("kernels", kernels_.size());
  count("compiled", compiled_);
  count("from_files", from_files_);
  count("damaged_files", damaged_);
  count("files_of_others", others_);
  count("unwritten_files", unwritten_);
  count("failed", failures_.size());
  return text + "}";
}

}  // namespace taeda::cuda
