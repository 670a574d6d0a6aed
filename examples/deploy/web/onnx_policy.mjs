// A policy exported as ONNX, by ONNX Runtime Web: in a browser (index.html)
// and in Node:
//
//   node onnx_policy.mjs policy.onnx observations.json
//
// prints the actions for a JSON array of observations.

/** Loads a policy, and returns a function from observations to actions. */
export async function loadPolicy(ort, model) {
  const session = await ort.InferenceSession.create(model);
  const [input] = session.inputNames;
  const [output] = session.outputNames;
  return async (observations) => {
    const shape = [observations.length, observations[0].length];
    const given = new ort.Tensor(
      "float32", Float32Array.from(observations.flat()), shape);
    const found = await session.run({ [input]: given });
    return Array.from(found[output].data);
  };
}

if (typeof process !== "undefined" && process.argv[2]) {
  const { readFile } = await import("node:fs/promises");
  const ort = await import("onnxruntime-web");
  ort.env.wasm.numThreads = 1; // A policy is small: threads cost more.
  const act = await loadPolicy(ort, await readFile(process.argv[2]));
  const observations = JSON.parse(await readFile(process.argv[3], "utf8"));
  console.log(JSON.stringify(await act(observations)));
}
