// Errors from inside a composite, in the words of the operator that was called.
#include "taeda/in_terms.h"

#include <algorithm>
#include <cctype>
#include <typeinfo>

namespace taeda::stub {
namespace {

std::string_view base_of(std::string_view name) { return name.substr(0, name.find('.')); }
/// "op" of "op: text", empty where the text begins with no operator's name.
std::string_view subject_of(std::string_view text) {
  const size_t end = text.find(": ");
  if (end == text.npos) return {};
  const std::string_view name = text.substr(0, end);
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  return std::ranges::all_of(name, in_name) ? name : std::string_view();
}
bool has_argument(const OpEntry& op, std::string_view name) {
  const std::string_view schema(op.schema), given = schema.substr(0, schema.find(" -> "));
  for (size_t at = given.find(name); at != given.npos; at = given.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (given[at - 1] == ' ' && end < given.size() && (given[end] == ',' || given[end] == '=' || given[end] == ')'))
      return true;
  }
  return false;
}
std::string with_own_names(std::string text, std::string_view names) {
  while (!names.empty()) {
    const std::string_view pair = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(pair.size() + 1, names.size()));
    const size_t equals = pair.find('=');
    const std::string inner = detail::concat("'", pair.substr(0, equals), "'"),
                      own = detail::concat("'", pair.substr(equals + 1), "'");
    for (size_t at = text.find(inner); at != text.npos; at = text.find(inner, at + own.size()))
      text.replace(at, inner.size(), own);
  }
  return text;
}

}  // namespace

void in_terms_of(const OpEntry& op, const Error& error, std::string_view names) {
  const std::string_view given(error.what()), subject = subject_of(given), own = base_of(op.name);
  const bool inner = !subject.empty() && base_of(subject) != own;
  if (typeid(error) != typeid(Error) || (!inner && names.empty())) throw;
  const std::string rest = with_own_names(std::string(given.substr(inner ? subject.size() + 2 : 0)), names);
  if (!inner) throw Error(error.kind(), rest);
  constexpr std::string_view kMark = "argument '";
  const size_t at = rest.find(kMark);
  const std::string_view behind = at == rest.npos ? "" : std::string_view(rest).substr(at + kMark.size());
  const bool known = at == rest.npos || has_argument(op, behind.substr(0, behind.find('\'')));
  // What a plug-in did wrong is told with the operator or device in which it did so.
  const bool of_plugin = !find_op(subject) || rest.find(" of layer '") != rest.npos;
  const bool tells = known && !of_plugin && error.kind() != ErrorKind::NotImplemented;
  throw Error(error.kind(), detail::concat(own, ": ", tells ? "" : detail::concat(subject, ": "), rest));
}

}  // namespace taeda::stub
