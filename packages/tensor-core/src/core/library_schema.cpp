// Parsing of schema texts: the small grammar of docs/design/operators.md.
#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>

#include "core/fork.h"
#include "taeda/custom_dtype.h"
#include "taeda/library.h"

namespace taeda {
namespace {

/// By `ArgumentType`.
constexpr const char* kWords[] = {"Tensor", "Operand", "Scalar", "int",    "float",
                                  "bool",   "str",     "DType",  "Device", "Generator"};

std::optional<ArgumentType> type_of(std::string_view word) {
  if (word == "SymInt") return ArgumentType::Int;  // PyTorch's words
  if (word == "ScalarType") return ArgumentType::DType;
  const auto found = std::ranges::find(kWords, word);
  if (found == std::end(kWords)) return {};
  return ArgumentType(found - std::begin(kWords));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Schema schema() {
    Schema out;
    out.text = text_;
    out.name = name("an operator name", true);
    need("(");
    bool keyword_only = false;
    while (!take(")")) {
      if (!out.arguments.empty() || keyword_only) need(",");
      if (take("*")) {
        if (keyword_only) wrong("an argument (the second '*')");
        keyword_only = true;
        continue;
      }
      out.arguments.push_back(argument(keyword_only));
      for (size_t i = 0; i + 1 < out.arguments.size(); ++i)
        if (out.arguments[i].name == out.arguments.back().name)
          wrong("an argument of another name than '" + out.arguments[i].name + "'");
    }
    need("->");
    results(out);
    if (at_ != text_.size()) wrong("the end");
    check_effects(out);
    return out;
  }

 private:
  void blank() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(std::string_view token) {
    blank();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    blank();
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) wrong("'" + std::string(token) + "'");
  }
  [[noreturn]] void wrong(const std::string& expected) const {
    fail(ErrorKind::Value, "schema '", text_, "': expected ", expected, " at column ", at_ + 1, ", found '",
         text_.substr(at_, 20), "'");
  }
  std::string name(const char* what, bool qualified = false) {
    blank();
    const size_t from = at_;
    const auto fits = [&](char c) {
      return std::isalpha(static_cast<unsigned char>(c)) || c == '_' ||
             (at_ > from && (std::isdigit(static_cast<unsigned char>(c)) || (qualified && (c == ':' || c == '.'))));
    };
    while (at_ < text_.size() && fits(text_[at_])) ++at_;
    if (at_ == from) wrong(what);
    return std::string(text_.substr(from, at_ - from));
  }
  ArgumentType type() {
    blank();
    const size_t from = at_;
    const std::string word = name("a type");
    if (const auto found = type_of(word)) return *found;
    at_ = from;
    std::string all;
    for (const char* each : kWords) all += (all.empty() ? "" : ", ") + std::string(each);
    wrong("a type (" + all + ")");
  }
  /// What stands behind "Tensor" in parentheses: (a), (a!), (a! if training).
  struct Effect {
    std::string letter, when;
    bool written = false;
    explicit operator bool() const { return !letter.empty(); }
  };
  Effect effect(ArgumentType type) {
    Effect out;
    if (type != ArgumentType::Tensor || !take("(")) return out;
    out.letter = name("a letter for the memory");
    out.written = take("!");
    if (out.written && take("if ")) out.when = name("the name of a bool argument");
    need(")");
    return out;
  }
  /// Letters stand for one argument each, and results show arguments that are only read.
  void check_effects(const Schema& schema) const {
    const auto refuse = [&](const std::string& why) { fail(ErrorKind::Value, "schema '", text_, "': ", why); };
    std::map<std::string, const SchemaArgument*> by_letter;
    for (const SchemaArgument& a : schema.arguments) {
      if (!a.alias.empty() && !by_letter.emplace(a.alias, &a).second)
        refuse("two arguments have the letter '" + a.alias + "'");
      const auto is_condition = [&](const SchemaArgument& b) {
        return b.name == a.when && b.type == ArgumentType::Bool && !b.list;
      };
      if (!a.when.empty() && std::ranges::none_of(schema.arguments, is_condition))
        refuse("'" + a.name + "' is written if '" + a.when + "', which is no bool argument");
    }
    for (const SchemaResult& r : schema.results) {
      const auto shown = by_letter.find(r.alias);
      if (!r.alias.empty() && (shown == by_letter.end() || shown->second->written))
        refuse("result '" + r.name + "' shows '" + r.alias + "', expected the letter of an argument that is only read");
    }
  }
  SchemaArgument argument(bool keyword_only) {
    SchemaArgument out;
    out.keyword_only = keyword_only;
    out.type = type();
    if (Effect found = effect(out.type)) {
      out.alias = found.letter;
      out.written = found.written;
      out.when = found.when;
    }
    out.optional = take("?");
    if (take("[]")) {
      out.list = true;
      out.optional_items = out.optional;
      out.optional = take("?");
    }
    out.name = name("an argument name");
    if (take("=")) {
      out.has_default = true;
      out.missing = literal(out);
    }
    return out;
  }
  Value literal(const SchemaArgument& argument) {
    if (take("None")) return Value();
    if (take("True")) return true;
    if (take("False")) return false;
    if (take("[")) return list(argument);
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return quoted();
    if (argument.type == ArgumentType::DType) return dtype();
    return number(argument);
  }
  Value quoted() {
    const char mark = text_[at_++];
    const size_t end = text_.find(mark, at_);
    if (end == std::string_view::npos) wrong("a closing quote");
    std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    blank();
    return out;
  }
  Value dtype() {
    const std::string word = name("a dtype");
    if (DType found; find_dtype(word, found)) return found;
    wrong("a dtype");
  }
  Value list(const SchemaArgument& argument) {
    Shape ints;
    std::vector<double> floats;
    while (!take("]")) {
      if (!floats.empty()) need(",");
      const Value item = number(argument);
      floats.push_back(std::holds_alternative<int64_t>(item) ? double(std::get<int64_t>(item))
                                                             : std::get<double>(item));
      ints.push_back(int64_t(floats.back()));
    }
    if (argument.type == ArgumentType::Float) return floats;
    if (argument.type == ArgumentType::Tensor) return std::vector<Tensor>();
    return ints;
  }
  Value number(const SchemaArgument& argument) {
    blank();
    const char* from = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    int64_t whole = 0;
    double real = 0;
    const auto as_int = std::from_chars(from, end, whole);
    const auto as_real = std::from_chars(from, end, real);
    if (as_real.ec != std::errc()) wrong("a number, True, False, None, a list or a quoted text");
    at_ += size_t(as_real.ptr - from);
    blank();
    const bool integral = as_int.ec == std::errc() && as_int.ptr == as_real.ptr;
    if (argument.type == ArgumentType::Int && !integral) wrong("an integer before this place");
    const bool exact = integral && argument.type != ArgumentType::Float;
    if (argument.type == ArgumentType::Scalar || argument.type == ArgumentType::Operand)
      return exact ? Scalar(whole) : Scalar(real);
    return exact ? Value(whole) : Value(real);
  }
  void results(Schema& out) {
    if (!take("(")) {
      out.results.push_back(result(false));
      return;
    }
    while (!take(")")) {
      if (!out.results.empty()) need(",");
      out.results.push_back(result(true));
    }
  }
  SchemaResult result(bool named) {
    SchemaResult out;
    out.type = type();
    if (Effect found = effect(out.type)) {
      if (found.written) wrong("a result that is no argument: what is written is said of the argument");
      out.alias = found.letter;
    }
    out.list = take("[]");
    out.name =
        named && at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')' ? name("a name of the result") : "result";
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const char* schema_word(ArgumentType type) noexcept { return kWords[size_t(type)]; }

Schema parse_schema(std::string_view text) { return Parser(text).schema(); }

Schema boxed_schema(const OpEntry& op) {
  Schema schema = parse_schema(op.schema);
  schema.name = op.name;
  if (op.form == Form::InPlace) {
    if (schema.arguments[0].alias.empty()) schema.arguments[0].alias = "self";
    schema.arguments[0].written = true;
    schema.results.clear();
  }
  if (op.form == Form::Out) {
    std::vector<SchemaArgument> outputs;
    for (const SchemaResult& r : schema.results)
      outputs.push_back({.name = schema.results.size() == 1 ? "out" : "out_" + r.name,
                         .type = r.type,
                         .list = r.list,
                         .missing = {},
                         .alias = "out_" + r.name,
                         .written = true});
    schema.arguments.insert(schema.arguments.begin(), outputs.begin(), outputs.end());
    schema.results.clear();
  }
  return schema;
}

namespace {

struct BoxedSchemas {
  ForkLock lock;
  std::map<const OpEntry*, Schema> by_op;
};
BoxedSchemas& boxed_schemas() {
  static auto* instance = new BoxedSchemas;
  return *instance;
}
[[maybe_unused]] const auto* const made_at_load = &boxed_schemas();

}  // namespace

const Schema& schema_of(const OpEntry& op) {
  if (const RuntimeOp* own = as_runtime(&op)) return own->parsed;
  auto& [lock, known] = boxed_schemas();
  std::lock_guard guard(lock);
  auto found = known.find(&op);
  if (found == known.end()) found = known.emplace(&op, boxed_schema(op)).first;
  return found->second;
}

bool writes_to(const Schema& schema, size_t i, const Values& arguments) {
  const SchemaArgument& a = schema.arguments[i];
  if (!a.written || a.when.empty()) return a.written;
  for (size_t c = 0; c < schema.arguments.size(); ++c)
    if (schema.arguments[c].name == a.when)
      if (auto* told = std::get_if<bool>(&arguments[c])) return *told;
  return true;
}

}  // namespace taeda
