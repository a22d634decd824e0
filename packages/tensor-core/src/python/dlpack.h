// The DLPack exchange structures (dmlc/dlpack, version 1.1), written down from the public specification.
#pragma once
#include <cstdint>

namespace taeda::dlpack {

inline constexpr uint32_t kMajor = 1, kMinor = 1;
enum DeviceType : int32_t { kCPU = 1, kExtension = 12 };
enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3fn = 10,
  kFloat8E4M3fnuz = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2fnuz = 13,
  kFloat8E8M0fnu = 14,
};
enum Flag : uint64_t { kReadOnly = 1, kIsCopied = 2 };

struct Device {
  int32_t type;
  int32_t id;
};
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct Array {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
struct Version {
  uint32_t major;
  uint32_t minor;
};
/// Before version 1.
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  Array array;
};
static_assert(sizeof(Array) == 48 && sizeof(Managed) == 64 && sizeof(ManagedVersioned) == 80);

}  // namespace taeda::dlpack
