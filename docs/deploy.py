"""python docs/deploy.py MODEL.onnx WINDOWS.npy: embed raw windows (N, C, T) with numpy and onnxruntime alone."""

import json
import sys

import numpy as np
import onnxruntime


def main(model: str, file: str) -> None:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    about = json.loads(session.get_modelmeta().custom_metadata_map["dicot"])
    windows = np.load(file).astype(np.float32)  # raw values: the file scales them
    n_channels = about["n_channels"]  # 0: any number
    if windows.ndim != 3 or windows.shape[1] != (n_channels or windows.shape[1]):
        sys.exit(f"{model} takes (windows, {n_channels or 'any'} channels, time); got {windows.shape}.")
    print(f"{model}: {about['vector']} Channels {about['channels']}, {about['rate']} time steps per second.")
    outputs = session.run(None, {"window": windows})
    for output, values in zip(session.get_outputs(), outputs, strict=True):
        refused = np.flatnonzero(np.isnan(values).any(axis=1))  # NaN without a policy for it, or inf
        print(f"{output.name}: {values.shape}, {len(refused)} window(s) refused")
        np.save(f"{output.name}.npy", values)


if __name__ == "__main__":
    main(*sys.argv[1:])
