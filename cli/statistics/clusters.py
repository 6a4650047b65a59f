"""How much less scores tell that come in clusters, as those of a question that a log holds many times."""

_TRACKED = 1 << 14
_ROUNDING = 1e-12


class Clusters:
    """Sums of scores by cluster, in bounded memory.

    Of more than 16,384 clusters a sample of at least half as many is followed, drawn by their hashes (adaptive
    sampling; Flajolet, Computing 43 (1990) 391).
    """

    def __init__(self, tracked: int = _TRACKED) -> None:
        self._most = tracked
        self._mask = 0
        self._sums: dict[int, tuple[int, float, float]] = {}
        """By hash: scores, their sum, the sum of their squares."""

    def add(self, cluster: int, score: float) -> None:
        """Count a score; `cluster` is a hash, evenly spread over 64 bits."""
        if cluster & self._mask:
            return
        n, total, squares = self._sums.get(cluster, (0, 0.0, 0.0))
        self._sums[cluster] = (n + 1, total + score, squares + score * score)
        while len(self._sums) > self._most:
            self._mask = 2 * self._mask + 1
            self._sums = {key: sums for key, sums in self._sums.items() if not key & self._mask}

    @property
    def repeated(self) -> bool:
        """Whether a cluster has more than one score."""
        return any(n > 1 for n, _, _ in self._sums.values())

    @property
    def design_effect(self) -> float:
        """The variance of the mean by that of as many independent scores, at least 1; 1 where there is nothing to tell.

        The mean is a ratio of two sums over clusters, linearised: C / (C - 1) · Σ (t - m·n)² / (Σ n)² over C clusters
        with n scores that sum up to t. Cochran, Sampling Techniques, 3rd ed. (1977), ch. 6; it is the
        cluster-robust variance of Liang and Zeger, Biometrika 73 (1986) 13, with C / (C - 1).
        """
        if not self.repeated or len(self._sums) < 2:  # noqa: PLR2004  # of one cluster nothing is known
            return 1.0
        clusters, n = len(self._sums), sum(size for size, _, _ in self._sums.values())
        mean = sum(total for _, total, _ in self._sums.values()) / n
        deviations = sum((total - mean * size) ** 2 for size, total, _ in self._sums.values())
        spread = sum(squares for _, _, squares in self._sums.values()) - n * mean * mean
        if spread <= _ROUNDING * n:  # all alike
            return 1.0
        return max(1.0, clusters / (clusters - 1) * deviations / (spread * n / (n - 1)))
