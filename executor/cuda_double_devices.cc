#include "executor/cuda_double_devices.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "executor/cuda_double_fault.h"
#include "executor/cuda_double_streams.h"

namespace rrfp {

namespace {

constexpr int kMostDevices = 64;

int& current() {
  thread_local int device = 0;
  return device;
}

// Negative where RRFP_DOUBLE_DEVICES is not a number that it may be.
int count_devices() {
  const char* text = std::getenv("RRFP_DOUBLE_DEVICES");
  if (text == nullptr || *text == '\0') return 1;
  const char* const end = text + std::strlen(text);
  int count = 0;
  const std::from_chars_result read = std::from_chars(text, end, count);
  return read.ec == std::errc() && read.ptr == end && count <= kMostDevices ? count : -1;
}

cudaError_t check_device(int device) {
  const int count = count_devices();
  if (count < 0) return cudaErrorInvalidConfiguration;
  if (count == 0) return cudaErrorNoDevice;
  return device >= 0 && device < count ? cudaSuccess : cudaErrorInvalidDevice;
}

std::atomic<int>& kernels_of(int device) {
  static std::array<std::atomic<int>, kMostDevices> kernels{};
  return kernels[static_cast<std::size_t>(device)];
}

}  // namespace

int current_double_device() { return current(); }

DoubleSpinningKernel::DoubleSpinningKernel(int device) : device_(device) {
  kernels_of(device_).fetch_add(1);
}

DoubleSpinningKernel::~DoubleSpinningKernel() { kernels_of(device_).fetch_sub(1); }

int spinning_kernels(int device) { return kernels_of(device).load(); }

}  // namespace rrfp

using namespace rrfp;  // NOLINT: what follows is the library that the rest of the file stands for

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = std::max(count_devices(), 0);
  return check_device(0);
}

cudaError_t cudaSetDevice(int device) {
  if (double_fault("cudaSetDevice")) return cudaErrorDevicesUnavailable;
  const cudaError_t code = check_device(device);
  if (code == cudaSuccess) current() = device;
  return code;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current();
  return check_device(*device);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t code = check_device(device); code != cudaSuccess) return code;
  *properties = cudaDeviceProp{};
  std::snprintf(properties->name, sizeof(properties->name), "double of a device on CPU threads");
  properties->major = 9;
  properties->multiProcessorCount = kDoubleSms;
  properties->totalGlobalMem = DoubleMachine::kBytes;
  properties->pciBusID = device + 1;
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  if (const cudaError_t code = check_device(device); code != cudaSuccess) return code;
  const int written = std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0",
                                    static_cast<unsigned>(device + 1));
  return written < size ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (const cudaError_t code = check_device(device); code != cudaSuccess) return code;
  if (attribute != cudaDevAttrMultiProcessorCount) return cudaErrorInvalidValue;
  *value = kDoubleSms;
  return cudaSuccess;
}

}  // extern "C"
