// A policy exported as ONNX, in C++ by ONNX Runtime:
//
//   onnx_policy policy.onnx < observations.txt
//
// reads observations, one in each line, and prints the action of each. For a
// policy of one array, without memory.
#include <onnxruntime_cxx_api.h>

#include <array>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: onnx_policy POLICY.onnx < OBSERVATIONS\n";
    return 2;
  }
  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "policy");
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);  // A policy is small: threads cost more.
  Ort::Session session(env, argv[1], options);
  Ort::AllocatorWithDefaultOptions allocator;

  // The file says what it is: keras_rl2.read_manifest in Python.
  auto metadata = session.GetModelMetadata();
  auto manifest =
      metadata.LookupCustomMetadataMapAllocated("keras_rl2.json", allocator);
  if (manifest) {
    std::cerr << manifest.get() << "\n";
  }
  auto input = session.GetInputNameAllocated(0, allocator);
  auto output = session.GetOutputNameAllocated(0, allocator);
  const char* inputs[] = {input.get()};
  const char* outputs[] = {output.get()};
  auto memory =
      Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);

  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream numbers(line);
    std::vector<float> observation;
    for (float number; numbers >> number;) observation.push_back(number);
    std::array<int64_t, 2> shape{1, static_cast<int64_t>(observation.size())};
    Ort::Value given = Ort::Value::CreateTensor<float>(
        memory, observation.data(), observation.size(), shape.data(),
        shape.size());
    auto found = session.Run(Ort::RunOptions{nullptr}, inputs, &given, 1,
                             outputs, 1);
    // Choices are int32, numbers float32: `dtype` of the manifest.
    auto info = found[0].GetTensorTypeAndShapeInfo();
    for (size_t index = 0; index < info.GetElementCount(); ++index) {
      if (index) std::cout << ' ';
      if (info.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32) {
        std::cout << found[0].GetTensorData<int32_t>()[index];
      } else {
        std::cout << found[0].GetTensorData<float>()[index];
      }
    }
    std::cout << '\n';
  }
}
