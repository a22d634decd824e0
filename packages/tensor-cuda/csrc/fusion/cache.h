// Images of kernels that were written at run time, in files.
//
// Note [Files of images]
// A file is found by a number of what it was made of: the compiler's identity, the number of the headers, and the text.
// All of that stands in it too, so another text with the same number is no match; it is compiled each time, and the
// first one keeps its file. A sum over the file tells whether it is whole: one that is not is made anew. Writers put it
// down beside its place and rename it, so readers find the old one or the new one, and of several writers one wins.
#pragma once
#include <cstdint>
#include <string>

namespace taeda::cuda {

class ImageFiles {
 public:
  enum class Found { Yes, No, Other, Damaged };
  /// Without a folder nothing is found and nothing kept.
  explicit ImageFiles(std::string folder) : folder_(std::move(folder)) {}
  /// TAEDA_CUDA_FUSION_CACHE ("none": none), else taeda/cuda in XDG_CACHE_HOME or ~/.cache.
  static std::string usual_folder();

  const std::string& folder() const { return folder_; }
  /// The image of a key.
  Found find(const std::string& key, std::string& image) const;
  /// False where it could not be written, and `why`; programs go on without.
  bool keep(const std::string& key, const std::string& image, std::string& why) const;
  std::string path_of(const std::string& key) const;

 private:
  std::string folder_;
};

}  // namespace taeda::cuda
