// The ABI's functions about element types of plug-ins.
#include "abi/bridge.h"
#include "taeda/backend.h"
#include "taeda/custom_dtype.h"

namespace taeda::abi {

static_assert(int(DType::Float8E4M3fn) == TAEDA_FLOAT8_E4M3FN && int(DType::Float8E8M0fnu) == TAEDA_FLOAT8_E8M0FNU &&
              kBuiltInDTypes == TAEDA_FIRST_CUSTOM_DTYPE);

int32_t dtype_define(const taeda_dtype* dtype, int32_t* code) {
  return guarded([&] {
    const taeda_dtype given = known_part(dtype, "taeda_dtype");
    check(given.decode && given.encode, ErrorKind::Value, "dtype_define: decode or encode is null");
    const DType made = define_dtype({given.name ? given.name : "", int(given.bits), owner_or(given.owner),
                                     [given](const uint8_t* codes, float* numbers, int64_t count) {
                                       given.decode(given.context, codes, numbers, size_t(count));
                                     },
                                     [given](const float* numbers, uint8_t* codes, int64_t count) {
                                       given.encode(given.context, numbers, codes, size_t(count));
                                     }});
    note_started([made] { withdraw_dtype(made); });
    if (code) *code = int32_t(made);
  });
}

int32_t dtype_find(const char* name, int32_t* code) {
  return guarded([&] {
    DType found{};
    check(name && find_dtype(name, found), ErrorKind::Value, "dtype_find: there is no element type named '",
          name ? name : "(null)", "'");
    place(code, "dtype_find") = int32_t(found);
  });
}

int32_t device_current(int32_t number) {
  return number >= 0 && number < backend_count() ? current_device_index(BackendId(number)) : 0;
}

}  // namespace taeda::abi
