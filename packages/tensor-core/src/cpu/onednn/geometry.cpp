// What oneDNN is told of the shape of a convolution.
#include "cpu/onednn/geometry.h"

#ifdef TAEDA_WITH_ONEDNN
namespace taeda::onednn {

ConvGeometry geometry(const infer::ConvPlan& s) {
  ConvGeometry g{{s.n, s.c}, {s.n, s.o}, {s.o / s.groups, s.c / s.groups}, {}, {}, {}, {}};
  if (s.groups > 1) g.weights.insert(g.weights.begin(), s.groups);
  const bool deep = s.deep();
  const auto add = [deep](dnnl::memory::dims& to, int64_t depth, int64_t height, int64_t width) {
    if (deep) to.push_back(depth);
    to.push_back(height);
    to.push_back(width);
  };
  add(g.x, s.d, s.h, s.w);
  add(g.y, s.od, s.oh, s.ow);
  add(g.weights, s.kd, s.kh, s.kw);
  add(g.strides, s.sd, s.sh, s.sw);
  add(g.dilates, s.dd - 1, s.dh - 1, s.dw - 1);
  add(g.padding_low, s.pd, s.ph, s.pw);
  // oneDNN wants the padding that is really reached on the far side.
  add(g.padding_high, (s.od - 1) * s.sd + (s.kd - 1) * s.dd + 1 - s.d - s.pd,
      (s.oh - 1) * s.sh + (s.kh - 1) * s.dh + 1 - s.h - s.ph, (s.ow - 1) * s.sw + (s.kw - 1) * s.dw + 1 - s.w - s.pw);
  return g;
}

dnnl::memory::format_tag row_major_weights(const infer::ConvPlan& s) {
  using Tag = dnnl::memory::format_tag;
  if (s.deep()) return s.groups > 1 ? Tag::goidhw : Tag::oidhw;
  return s.groups > 1 ? Tag::goihw : Tag::oihw;
}

}  // namespace taeda::onednn
#endif
