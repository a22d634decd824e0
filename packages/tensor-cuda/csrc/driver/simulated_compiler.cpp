// Texts of kernels as libraries of the host's.
#include "driver/simulated_compiler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "driver/headers.h"

namespace taeda::cuda {
namespace {

namespace fs = std::filesystem;

// What setup.py tells the compiler of kernels for the simulated driver.
constexpr const char* kOptions[] = {"-std=c++20",
                                    "-O1",
                                    "-fPIC",
                                    "-shared",
                                    "-fvisibility=hidden",
                                    "-fno-strict-aliasing",
                                    "-fwrapv",
                                    "-ffp-contract=off",
                                    "-w",
                                    "-DTAEDA_ISA=device"};

const char* compiler() {
  const char* const told = std::getenv("TAEDA_CUDA_SIMULATED_COMPILER");
  return told && *told ? told : nullptr;
}
/// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "taeda-fused-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::system_error(errno, std::generic_category(), pattern);
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;  // what cannot be removed lies in the system's temporary folder
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};
void write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(text.data(), std::streamsize(text.size()));
}
std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
/// Runs a program; what it says goes to a file.
int run(const std::vector<std::string>& words, const fs::path& said) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  int status = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) return status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::string SimulatedCompiler::identity(int, std::string& why) {
  if (!compiler())
    return why = "the simulated driver compiles only where TAEDA_CUDA_SIMULATED_COMPILER names a compiler", "";
  std::string told = std::string(compiler()) + " host";
  for (const char* option : kOptions) told += std::string(" ") + option;
  return told;
}
bool SimulatedCompiler::compile(int, const std::string& source, std::string& image, std::string& why) {
  const Folder folder;
  for (const Header& header : headers(Compiling::ForHost)) write(folder / header.name, header.text);
  write(folder / "chain.cu", source);
  std::vector<std::string> words{compiler()};
  words.insert(words.end(), std::begin(kOptions), std::end(kOptions));
  for (const std::string& word : {std::string("-I") + (folder / "").string(), std::string("-xc++"),
                                  (folder / "chain.cu").string(), std::string("-o"), (folder / "chain.so").string()})
    words.push_back(word);
  if (const int status = run(words, folder / "said"); status != 0)
    return why = words[0] + " ended with " + std::to_string(status) + ": " + read(folder / "said"), false;
  image = read(folder / "chain.so");
  return true;
}
bool SimulatedCompiler::load(const std::string&, const std::string& image, uint64_t& on_host, std::string& why) {
  const Folder folder;
  write(folder / "chain.so", image);
  void* const library = dlopen((folder / "chain.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const function = library ? dlsym(library, "taeda_fused") : nullptr;
  if (!function) return why = dlerror(), false;
  on_host = uint64_t(reinterpret_cast<uintptr_t>(function));
  return true;
}

}  // namespace taeda::cuda
