// Writes the text of a chain.
#include "fusion/chain.h"

#include <algorithm>
#include <string_view>

namespace taeda::cuda {
namespace {

/// The families of lines, with the header of their arithmetic and their lines, in the order in which they are included.
struct Family {
  const char *name, *header, *lines;
};
constexpr Family kFamilies[] = {{"arith", "scalar/arith.h", "scalar/arith.inc"},
                                {"compare", "scalar/compare.h", "scalar/compare.inc"},
                                {"unary", "scalar/unary.h", "scalar/unary.inc"},
                                {"activation", "scalar/activation.h", "scalar/activation.inc"},
                                {"own", "kernels/own.h", "kernels/own.inc"}};

struct Element {
  const char* name;
  int size;
};
Element element(int dtype) {
  switch (dtype) {
    case TAEDA_BOOL: return {"bool", 1};
    case TAEDA_INT8: return {"int8_t", 1};
    case TAEDA_INT16: return {"int16_t", 2};
    case TAEDA_INT32: return {"int32_t", 4};
    case TAEDA_INT64: return {"int64_t", 8};
    case TAEDA_UINT8: return {"uint8_t", 1};
    case TAEDA_UINT16: return {"uint16_t", 2};
    case TAEDA_UINT32: return {"uint32_t", 4};
    case TAEDA_UINT64: return {"uint64_t", 8};
    case TAEDA_FLOAT16: return {"Half", 2};
    case TAEDA_BFLOAT16: return {"BFloat16", 2};
    case TAEDA_FLOAT32: return {"float", 4};
    case TAEDA_FLOAT64: return {"double", 8};
    default: return {nullptr, 0};
  }
}
const char* name_of(Class c) {
  constexpr const char* kNames[] = {"bool", "int64_t", "uint64_t", "float", "double"};
  return kNames[int(c)];
}
bool is_nothing(const FusedNumber& n) {
  return n.number.re == 0 && n.number.im == 0 && n.number.whole == 0 && n.real == 0;
}
/// Calls for each number that a step hands to the kernel: first those of its line, then those among its operands.
template <class F>
void each_number(const Step& step, const F& f) {
  for (const FusedNumber& n : step.numbers)
    if (!is_nothing(n)) f(n);
  for (const Read& s : step.operands)
    if (s.place < 0) f(s.number);
}

}  // namespace

bool has_line(const char* family) {
  return std::ranges::any_of(kFamilies, [&](const Family& f) { return std::string_view(f.name) == family; });
}
bool has_dtype(int dtype) { return element(dtype).name != nullptr; }

int Chain::pack() const {
  int largest = 1;
  for (const int dtype : inputs) largest = std::max(largest, element(dtype).size);
  for (const int step : outputs) largest = std::max(largest, element(steps[size_t(step)].dtype).size);
  return largest == 8 ? 2 : largest == 4 ? 4 : 8;
}
std::vector<FusedNumber> Chain::numbers() const {
  std::vector<FusedNumber> all;
  for (const Step& step : steps) each_number(step, [&](const FusedNumber& n) { all.push_back(n); });
  return all;
}
uint32_t Chain::body_size() const {
  const size_t count = std::max<size_t>(numbers().size(), 1);
  return uint32_t(sizeof(FusedHead) + size_t(operands()) * sizeof(FusedOperand) + count * sizeof(FusedNumber) +
                  (end ? sizeof(FusedEnd) : 0));
}
std::string Chain::text() const {
  const auto number = [](auto n) { return std::to_string(n); };
  std::string text =
      std::string("#define TAEDA_FAMILY \"fused\"\n#include \"kernels/") + (end ? "fused_fold.h" : "fused.h") + "\"\n";
  for (const Family& family : kFamilies) {
    const bool wanted =
        std::ranges::any_of(steps, [&](const Step& s) { return std::string_view(s.family) == family.name; });
    if (!wanted) continue;
    text += std::string("#include \"") + family.header + "\"\n#define TAEDA_LINES \"" + family.lines +
            "\"\n#include \"kernels/functors.inc\"\n#undef TAEDA_LINES\n";
  }
  const size_t all = inputs.size() + outputs.size();
  text += "namespace taeda::cuda {\nstruct Chain {\n  static constexpr int kOperands = " + number(all) +
          ", kOutputs = " + number(outputs.size()) + ", kNumbers = " + number(numbers().size()) +
          ", kPack = " + number(pack()) + ";\n  struct Values {\n";
  for (size_t k = 0; k < all; ++k) {
    const int dtype = k < inputs.size() ? inputs[k] : steps[size_t(outputs[k - inputs.size()])].dtype;
    text += std::string("    ") + element(dtype).name + " v" + number(k) + ";\n";
  }
  if (end) text += std::string("    ") + element(steps[size_t(folded)].dtype).name + " folded;\n";
  text += "  };\n  template <class F>\n  static TAEDA_HD void each(const F& f) {\n";
  for (size_t k = 0; k < all; ++k) text += "    f(" + number(k) + ", &Values::v" + number(k) + ");\n";
  text += "  }\n  static TAEDA_HD void run(Values& v, [[maybe_unused]] const FusedNumber* n) {\n";
  int next = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    std::string whole, real;
    for (const FusedNumber& n : step.numbers) {
      const bool nothing = is_nothing(n);
      const std::string place = "n[" + number(nothing ? 0 : next++) + "]";
      whole += (whole.empty() ? "" : ", ") + (nothing ? "Number{}" : place + ".number");
      real += (real.empty() ? "" : ", ") + (nothing ? "0.0" : place + ".real");
    }
    text += "    const " + std::string(element(step.dtype).name) + " t" + number(s) + " = step<lines::" + step.line +
            "_line, " + name_of(step.computes) + ", " + element(step.dtype).name + ">({" + whole + "}, {" + real + "}";
    for (const Read& source : step.operands) {
      const size_t place = size_t(source.place);
      if (source.place < 0) text += ", n[" + number(next++) + "].number.as<" + name_of(step.computes) + ">()";
      else text += place < inputs.size() ? ", v.v" + number(place) : ", t" + number(place - inputs.size());
    }
    text += ");\n";
  }
  for (size_t k = 0; k < outputs.size(); ++k)
    text += "    v.v" + number(inputs.size() + k) + " = t" + number(outputs[k]) + ";\n";
  if (end) text += "    v.folded = t" + number(folded) + ";\n";
  return text + "  }\n};\n}  // namespace taeda::cuda\nTAEDA_FUSED(" +
         (end ? std::string("FusedFold<Chain, ") + end->text : "Fused<Chain") + ">)\n";
}

}  // namespace taeda::cuda
