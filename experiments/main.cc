#include <iostream>
#include <string>
#include <vector>

#include "experiments/commands.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  rrfp::Terminal terminal{std::cin, std::cout, std::cerr};
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return static_cast<int>(rrfp::run_program(arguments, terminal));
}
