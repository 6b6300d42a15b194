#ifndef RRFP_EXPERIMENTS_VERSION_H_
#define RRFP_EXPERIMENTS_VERSION_H_

namespace rrfp {

// The version and, where it is known, the commit: "0.1.0 (1f2e3d4)". A commit that ends in
// "-dirty" was built with local changes. The text is fixed when the program is built.
const char* version_text();

}  // namespace rrfp

#endif  // RRFP_EXPERIMENTS_VERSION_H_
