"""What part of a fit do threads share, and how much faster can two cores be at most?

    python benchmarks/threads.py        # 1,000,000 rows of 20 columns; a minute

CPU seconds of one thread, in all and within the loops that threads share where they are asked for,
at any depth; the least of five fits. By Amdahl's law the rest is what a second core cannot take:
`at most` is the gain of two idle cores if they shared these loops evenly. It is a bound and not a
measured gain, which needs a machine that does nothing else.
"""

import time

from fit_speed import DEPTHS, rows_of

from steadytree._base import parallel

REPEATS = 5


class Shared:
    """CPU seconds within `in_threads`, where two threads would share its work."""

    def __init__(self, in_threads):
        self.in_threads, self.depth, self.seconds = in_threads, 0, 0.0

    def __call__(self, work, n, n_values, n_ranges=1):
        shared = min(n, n_values // parallel.LEAST_WORK) > 1
        start = time.process_time()
        self.depth += shared
        found = self.in_threads(work, n, n_values, n_ranges)
        self.depth -= shared
        if shared and not self.depth:  # not within another one
            self.seconds += time.process_time() - start
        return found


def main():
    shared = parallel.in_threads = Shared(parallel.in_threads)  # before others import it
    from steadytree import StableTreeClassifier

    X, y = rows_of(1_000_000)
    for depth in DEPTHS:
        model = StableTreeClassifier(max_depth=depth, random_state=0).fit(X[:300], y[:300])
        taken = []
        for _ in range(REPEATS):
            shared.seconds, start = 0.0, time.process_time()
            model.fit(X, y)
            taken.append((time.process_time() - start, shared.seconds))
        total, part = min(taken)
        most = total / (total - part / 2)
        print(
            f"depth {depth:2}: fit {1e3 * total:.0f} ms of CPU, {part / total:.1%} of it in loops "
            f"that threads share: two cores at most {most:.2f} x"
        )


if __name__ == "__main__":
    main()
