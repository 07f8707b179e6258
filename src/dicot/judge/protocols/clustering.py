"""Clustering: whether the classes form groups that k-means finds without labels."""

from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler

from dicot.judge.protocols.base import CLUSTERING_METRICS, Features, Protocol, check_classes


class KMeansClustering(Protocol):
    """k-means on the test embeddings with as many clusters as test labels; NMI and ARI, both 1 at best.

    A single start, as in the paper: one run is noisy, so average over seeds. The training embeddings play no part.
    """

    metrics = CLUSTERING_METRICS
    name = "clustering"
    description = "k-means on the test embeddings against the labels (NMI, ARI)"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        check_classes(test, "Clustering")
        n_clusters = len(set(test.y.tolist()))
        x = StandardScaler().fit_transform(test.x)
        model = KMeans(n_clusters, init="k-means++", n_init=1, max_iter=300, random_state=seed)
        clusters = model.fit_predict(x)
        return {
            "nmi": float(normalized_mutual_info_score(test.y, clusters, average_method="arithmetic")),
            "ari": float(adjusted_rand_score(test.y, clusters)),
        }
