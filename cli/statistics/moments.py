"""Mean and variance of numbers that come one after the other."""


class Moments:
    """Running mean and sum of squared deviations; Welford, Technometrics 4 (1962) 419."""

    __slots__ = ("deviations", "mean", "n")

    def __init__(self) -> None:
        self.n = 0
        self.mean = 0.0
        self.deviations = 0.0
        """Sum of the squared differences from the mean."""

    def add(self, value: float) -> None:
        """Count a number."""
        self.n += 1
        before = self.mean
        self.mean += (value - before) / self.n
        self.deviations += (value - before) * (value - self.mean)

    def merge(self, other: "Moments") -> None:
        """Count the numbers of another one; Chan, Golub and LeVeque, Am. Stat. 37 (1983) 242."""
        if not other.n:
            return
        both = self.n + other.n
        difference = other.mean - self.mean
        self.deviations += other.deviations + difference**2 * self.n * other.n / both
        self.mean += difference * other.n / both
        self.n = both

    @property
    def variance(self) -> float:
        """The sample's variance, 0 of fewer than two numbers."""
        return self.deviations / (self.n - 1) if self.n > 1 else 0.0
