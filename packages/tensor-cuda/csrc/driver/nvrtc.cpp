// Declarations by hand after NVIDIA's nvrtc.h, as those of the driver are; a test compiles both against each other.
#include "driver/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "driver/headers.h"
#include "driver/images.h"
#include "driver/nvrtc_functions.h"

namespace taeda::cuda {
namespace {

// What setup.py tells nvcc: the same arithmetic, to the bit.
constexpr const char* kOptions[] = {"-std=c++20",
                                    "--fmad=false",
                                    "--device-as-default-execution-space",
                                    "-DTAEDA_HD=__device__",
                                    "-DTAEDA_TABLE=static constexpr __device__",
                                    "-DTAEDA_ISA=device",
                                    "-diag-suppress=161,1046,1675"};
constexpr const char kCode[] = "sm_";

}  // namespace

struct Nvrtc::Table {
#define TAEDA_NVRTC_POINTER(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TAEDA_NVRTC_FUNCTIONS(TAEDA_NVRTC_POINTER)
#undef TAEDA_NVRTC_POINTER
};

Nvrtc::Nvrtc(std::function<int(int)> capability)
    : capability_(std::move(capability)), table_(std::make_unique<Table>()) {}
Nvrtc::~Nvrtc() = default;

const Nvrtc::Table& Nvrtc::functions() {
  library_.open({"libnvrtc.so.13", "libnvrtc.so.12"}, {"cu13", "cuda_nvrtc"}, [this](void* library) {
    std::string absent;
    TAEDA_NVRTC_FUNCTIONS(TAEDA_LIBRARY_LOOK_UP)
    return absent;
  });
  return *table_;
}
std::string Nvrtc::description() {
  functions();
  return library_.description();
}

std::string Nvrtc::architecture(int device) {
  const Table& f = functions();
  const int own = capability_(device);
  int count = 0;
  if (f.nvrtcGetNumSupportedArchs(&count) != 0 || count <= 0) return "";
  std::vector<int> known(static_cast<size_t>(count));
  if (f.nvrtcGetSupportedArchs(known.data()) != 0) return "";
  int best = 0;
  for (const int each : known)
    if (each <= own) best = std::max(best, each);
  if (best == 0) return "";
  return (best == own ? kCode : "compute_") + std::to_string(best);
}
std::string Nvrtc::identity(int device, std::string& why) {
  if (!there()) return why = library_.description(), "";
  const std::string chosen = architecture(device);
  int major = 0, minor = 0;
  functions().nvrtcVersion(&major, &minor);
  const std::string name = "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
  if (chosen.empty())
    return why = name + " compiles for no device of compute capability " + std::to_string(capability_(device)), "";
  std::string told = name + " " + chosen;
  for (const char* option : kOptions) told += std::string(" ") + option;
  return told;
}
bool Nvrtc::compile(int device, const std::string& source, std::string& image, std::string& why) {
  return compile_for(architecture(device), source, image, why);
}
bool Nvrtc::compile_for(const std::string& architecture, const std::string& source, std::string& image,
                        std::string& why) {
  const Table& f = functions();
  std::vector<const char*> texts, names;
  for (const Header& header : headers(Compiling::AtRunTime)) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  void* program = nullptr;
  int status =
      f.nvrtcCreateProgram(&program, source.c_str(), "chain.cu", int(texts.size()), texts.data(), names.data());
  if (status != 0) return why = std::string("NVRTC: ") + f.nvrtcGetErrorString(status), false;
  const std::string wanted = "--gpu-architecture=" + architecture;
  std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
  options.push_back(wanted.c_str());
  // Images are kept by fusion/cache.cpp; the library's own cache asks the driver, and came with 13.
  int major = 0, minor = 0;
  f.nvrtcVersion(&major, &minor);
  if (major >= 13) options.push_back("--no-cache");
  status = f.nvrtcCompileProgram(program, int(options.size()), options.data());
  size_t size = 0;
  if (status == 0) {
    const bool code = architecture.starts_with(kCode);
    status = code ? f.nvrtcGetCUBINSize(program, &size) : f.nvrtcGetPTXSize(program, &size);
    image.assign(size, '\0');
    if (status == 0) status = code ? f.nvrtcGetCUBIN(program, image.data()) : f.nvrtcGetPTX(program, image.data());
  }
  if (status != 0) {
    why = std::string("NVRTC: ") + f.nvrtcGetErrorString(status);
    std::string log;
    if (f.nvrtcGetProgramLogSize(program, &size) == 0 && size > 1) {
      log.assign(size, '\0');
      if (f.nvrtcGetProgramLog(program, log.data()) == 0) why += ": " + std::string(log.c_str());
    }
  }
  f.nvrtcDestroyProgram(&program);
  return status == 0;
}
bool Nvrtc::load(const std::string& name, const std::string& image, uint64_t& on_host, std::string&) {
  on_host = 0;
  keep_image(name, image);
  return true;
}

}  // namespace taeda::cuda
