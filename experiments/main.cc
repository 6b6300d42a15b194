#include <cstdio>
#include <string_view>

#include "experiments/version.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::printf("rrfp %s\n", rrfp::version_text());
    return 0;
  }
  std::fprintf(stderr, "rrfp: usage: rrfp --version\n");
  return 2;
}
