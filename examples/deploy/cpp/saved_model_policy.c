// A policy exported as a SavedModel, in C by TensorFlow's C API:
//
//   saved_model_policy FOLDER SIZE < observations.txt
//
// reads observations of SIZE numbers and prints the choice for each. For a
// policy of one array and one choice, without memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api.h>

// What `saved_model_cli show --all` says of the signature serving_default.
static const char* kInput = "serving_default_observation";
static const char* kOutput = "StatefulPartitionedCall_1";

static void check(TF_Status* status) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s\n", TF_Message(status));
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: saved_model_policy FOLDER SIZE < OBSERVATIONS\n");
    return 2;
  }
  const int64_t size = atoll(argv[2]);
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session = TF_LoadSessionFromSavedModel(
      options, NULL, argv[1], tags, 1, graph, NULL, status);
  check(status);
  TF_Output input = {TF_GraphOperationByName(graph, kInput), 0};
  TF_Output output = {TF_GraphOperationByName(graph, kOutput), 0};
  if (!input.oper || !output.oper) {
    fprintf(stderr, "no %s or %s\n", kInput, kOutput);
    return 1;
  }
  const int64_t shape[] = {1, size};
  TF_Tensor* given =
      TF_AllocateTensor(TF_FLOAT, shape, 2, size * sizeof(float));
  float* observation = TF_TensorData(given);
  for (;;) {
    for (int64_t index = 0; index < size; ++index) {
      if (scanf("%f", observation + index) != 1) goto end;
    }
    TF_Tensor* found = NULL;
    TF_SessionRun(session, NULL, &input, &given, 1, &output, &found, 1, NULL,
                  0, NULL, status);
    check(status);
    printf("%d\n", *(int*)TF_TensorData(found));
    TF_DeleteTensor(found);
  }
end:
  TF_DeleteTensor(given);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
