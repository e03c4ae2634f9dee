"""Write the ONNX graph of a model without its weights, which are put next to it later."""

import json
from itertools import chain
from pathlib import Path

import onnx

from evaluation.training.low_rank import Weights
from evaluation.training.shipped import EXTERNAL_FILE, GRAPH_FILE, LAYOUT_FILE


def write_graph(exports: Path, weights: Weights, folder: Path) -> None:
    """Write GRAPH_FILE and LAYOUT_FILE from the model server's exports of a model.

    The layout lists the weights in the order of the file next to the graph, and says which ones are
    transposed. It also contains the export's `tokens.json`. Constants stay in the graph.
    """
    model = onnx.load(exports / "model.onnx")
    # The exporter renames and transposes tensors, so they are recognised by their bytes.
    weight_by_bytes = {values.T.tobytes(): (name, True) for name, values in weights.items()}
    weight_by_bytes |= {values.tobytes(): (name, False) for name, values in weights.items()}
    order, offset = [], 0
    for tensor in model.graph.initializer:
        weight = weight_by_bytes.get(tensor.raw_data)
        if weight is None:  # a constant
            continue
        order.append(weight)
        size = len(tensor.raw_data)
        # The tensor now refers to the bytes in the file of weights.
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", EXTERNAL_FILE), ("offset", offset), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        offset += size
    # Shapes of intermediate values, which the runtime infers by itself.
    del model.graph.value_info[:]
    for element in chain([model], model.graph.node, model.graph.initializer):
        del element.metadata_props[:]  # the exporter's notes, with paths of this machine
    (folder / GRAPH_FILE).write_bytes(model.SerializeToString(deterministic=True))
    tokens = json.loads((exports / "tokens.json").read_bytes())
    (folder / LAYOUT_FILE).write_text(json.dumps({"weights": order, "tokens": tokens}) + "\n")
