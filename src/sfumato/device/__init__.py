"""The client of a bundle: records in, protected tensors out. It needs numpy and onnxruntime, and never torch."""
