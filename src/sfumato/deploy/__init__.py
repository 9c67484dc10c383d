"""A run as a bundle: device half and cloud half as ONNX programs, with a manifest that says how to use them."""
