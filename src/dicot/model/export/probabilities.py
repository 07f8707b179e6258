"""Class probabilities of embeddings, as a graph: what `Head.predict_proba` computes, in float64 as there."""

import numpy as np

from dicot.model.export.graph import Graph, double
from dicot.model.fewlabels import SMALLEST, SPREADINGS
from dicot.model.heads import Head


def probabilities(graph: Graph, vectors: str, head: Head) -> str:
    """Return (B, K) in float32 of embeddings (B, F)."""
    exact = graph.cast(vectors, "DOUBLE")
    scaled = graph.add("Mul", graph.add("Sub", exact, head.mean), head.factor)
    scores = graph.add("Add", graph.add("MatMul", scaled, head.coef.T), head.intercept)
    if (neighbours := head.neighbours) is not None:
        own = graph.add("MatMul", scaled, neighbours.directions)
        products = graph.add("MatMul", own, -2 * neighbours.places.T)
        distances = graph.add("Add", products, (neighbours.places**2).sum(axis=1))
        count = np.array([neighbours.count], np.int64)
        _, near = graph.split("TopK", distances, count, outputs=2, largest=0)
        found = graph.over("ReduceMean", graph.add("Gather", neighbours.settled, near), 1)  # of (B, k, K)
        reach, weight = SPREADINGS[neighbours.spreading]
        guesses = graph.add("Mul", graph.add("Softmax", scores, axis=1), double((1 - reach) * weight))
        together = graph.add("Add", guesses, graph.add("Mul", found, double(reach)))
        scores = graph.add("Log", graph.add("Max", together, double(SMALLEST)))
    tempered = graph.add("Div", scores, double(head.temperature))
    return graph.cast(graph.add("Softmax", tempered, axis=1), "FLOAT")
