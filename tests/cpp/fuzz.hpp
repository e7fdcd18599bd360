// Fuzzing without a fuzzer. A target is a function of bytes in libFuzzer's form that ends the
// process when something is wrong; drive() feeds it mutations of seeds, the same ones on every
// machine. Each is made from the seeds and its number alone, so that a failing one can be had again
// without those before it.
//
//   target                             as many runs as the test suite has time for
//   target --runs 1000000 --from 5000  other runs
//   target PATH...                     files, and the files of folders, as they are
#pragma once

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// null without a sanitizer
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace fuzz {

inline constexpr std::size_t kMaxSize = 4096;

struct Seeds {
  std::vector<std::string> inputs;
  std::vector<std::string> words;    // put in here and there
  std::vector<std::string> numbers;  // put in place of others
};

// Values out of the bytes of an input; its end reads as zeros.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}
  bool empty() const { return next_ == end_; }
  std::int64_t between(std::int64_t low, std::int64_t high) {  // at most 256 values
    if (empty()) return low;
    return low + *next_++ % (high - low + 1);
  }
  std::int64_t below(std::size_t bound) { return between(0, static_cast<std::int64_t>(bound) - 1); }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

inline void mutate_once(std::string& text, const Seeds& seeds, Draws& draws) {
  const std::size_t at = draws(text.size() + 1),
                    length = draws(draws(4) == 0 ? text.size() + 1 : 9);
  const auto random_byte = [&] { return static_cast<char>(draws(256)); };
  switch (draws(seeds.numbers.empty() ? 7 : 14)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << draws(8)));
      break;
    case 1:
      if (at < text.size()) text[at] = random_byte();
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(draws(text.size() + 1), text.substr(at, length));
      break;
    case 4:
      for (std::size_t k = 0; k < length % 16; ++k)
        text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), random_byte());
      break;
    case 5: {
      const std::string& other = seeds.inputs[draws(seeds.inputs.size())];
      text.replace(at, length, other.substr(draws(other.size() + 1), draws(other.size() + 1)));
      break;
    }
    case 6:
      if (!seeds.words.empty()) text.insert(at, seeds.words[draws(seeds.words.size())]);
      break;
    default: {
      const std::size_t begin = text.find_first_of("0123456789", at);
      if (seeds.numbers.empty() || begin == std::string::npos) break;
      const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
      text.replace(begin, end - begin, seeds.numbers[draws(seeds.numbers.size())]);
    }
  }
  if (text.size() > kMaxSize) text.resize(kMaxSize);
}

inline std::string input_of_run(std::uint64_t run, const Seeds& seeds) {
  Draws draws((run + 1) * 0x9e3779b97f4a7c15ull);
  std::string text = seeds.inputs[draws(seeds.inputs.size())];
  for (std::uint64_t count = draws(8); count > 0; --count) mutate_once(text, seeds, draws);
  return text;
}

inline std::string running;  // what the target is at; empty when it is at nothing

inline void say_what_was_running() {
  if (running.empty()) return;
  std::fprintf(stderr, "while at %s\n", running.c_str());
  running.clear();
}

// A copy of exact size on the heap, so that reading beyond its end is seen.
inline void run_target(const std::string& text, std::string name) {
  running = std::move(name);
  const std::vector<std::uint8_t> exact(text.begin(), text.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  running.clear();
}

inline int run_files(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path))
      files.push_back(entry.path());
  }
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), std::strerror(errno));
      return EXIT_FAILURE;
    }
    run_target(std::string(std::istreambuf_iterator<char>(file), {}), path.string());
  }
  return EXIT_SUCCESS;
}

inline int drive(int argc, char** argv, const Seeds& seeds, std::uint64_t runs) {
  std::atexit(say_what_was_running);
  std::signal(SIGABRT, [](int) { say_what_was_running(); });
  if (__sanitizer_set_death_callback != nullptr)
    __sanitizer_set_death_callback(say_what_was_running);
  std::uint64_t from = 0;
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if ((argument == "--runs" || argument == "--from") && i + 1 < argc) {
      (argument == "--runs" ? runs : from) = std::strtoull(argv[++i], nullptr, 10);
    } else {
      paths.emplace_back(argument);
    }
  }
  if (!paths.empty()) return run_files(paths);
  for (std::uint64_t run = from; run < from + runs; ++run) {
    run_target(input_of_run(run, seeds), "--from " + std::to_string(run) + " --runs 1");
  }
  return EXIT_SUCCESS;
}

}  // namespace fuzz
