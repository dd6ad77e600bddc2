"""How the words of the Max-Jobs paper are read as numbers: each word has one pair of bounds on every page.

The paper calls differences "similar", "slight" or "marked" and prints few numbers. A reading gives the word its
bounds, in percent of a wait (slowdown, queue length) or in percentage points of a share, and a page states them beside
the quotation. "Worse" and "poorly" have no upper bound; every other word has both. The bounds are ours: nothing in the
paper prints them.
"""

from dataclasses import dataclass
from math import inf, isfinite

from slurm_sns.sim.pages.judge import Claim, Interval

#: "The same", "similar", "little difference", "near": no further apart than this. A printed change is met within
#: `NEAR_PRINTED`. What is slight is at most twice the same; what is more is marked.
SAME = 5.0
SLIGHT = 2 * SAME
NEAR_PRINTED = 7.0
#: Nothing can be less by more than this many percent, nor differ by more points.
WHOLE = 100.0


@dataclass(frozen=True)
class WordBounds:
    """A word and the bounds of the difference that it stands for; `unit` is "%" or "points".

    `of_difference` is false for a word on one policy alone.
    """

    word: str
    low: float
    high: float
    unit: str = "%"
    of_difference: bool = True

    def __str__(self) -> str:
        if isfinite(self.high):
            return f"{self.word}: {self.low:g} to {self.high:g} {self.unit}"
        return f"{self.word}: above {self.low:g} {self.unit}"

    def of(self, where: str, quotation: str, measure: str, found: Interval) -> Claim:
        """The claim of a sentence of the paper that uses the word."""
        return Claim(
            where, f"{quotation} ({self})", measure, found, self.low, self.high, is_difference=self.of_difference
        )


def printed(change: float) -> WordBounds:
    """A change in percent that the paper prints of its own run."""
    return WordBounds(f"{change:g} %", change - NEAR_PRINTED, change + NEAR_PRINTED)


def printed_share(share: float, unit: str = "%") -> WordBounds:
    """A share that the paper prints of its own run."""
    return WordBounds(f"{share:g} {unit}", share - NEAR_PRINTED, share + NEAR_PRINTED, unit, of_difference=False)


#: Of waits: by how many percent the one is above the other. Less is better.
THE_SAME = WordBounds("the same", -SAME, SAME)
BETTER = WordBounds("better", -WHOLE, 0)
SLIGHTLY_BETTER = WordBounds("slightly better", -SLIGHT, 0)
MARKEDLY_BETTER = WordBounds("markedly better", -WHOLE, -SLIGHT)
BEST_OR_THE_SAME = WordBounds("best, or the same as the best", -WHOLE, SAME)
WORSE = WordBounds("worse", 0, inf)
SLIGHTLY_WORSE = WordBounds("slightly worse", 0, SLIGHT)
POOR = WordBounds("poor", SAME, inf)

#: Of shares of wins: by how many points the one is above the other. More is better.
LITTLE_DIFFERENCE = WordBounds("little difference", -SAME, SAME, "points")
WINS_MORE = WordBounds("more", 0, WHOLE, "points")
WINS_SLIGHTLY_MORE = WordBounds("slightly more", 0, SLIGHT, "points")
WINS_LESS = WordBounds("less", -WHOLE, 0, "points")
WINS_SLIGHTLY_LESS = WordBounds("slightly less", -SLIGHT, 0, "points")
WINS_MARKEDLY_MORE = WordBounds("markedly more", SLIGHT, WHOLE, "points")

#: The sentence of a page that says how words are read.
TOLD = (
    "The paper's words are read as numbers, the same ones on every page, and each reading stands beside its "
    f"quotation with its bounds: *the same*, *similar*, *little difference* and *near* mean within {SAME:g} (% of a "
    f"wait, or percentage points of a share), *slightly* 0 to {SLIGHT:g}, *markedly* and *significantly* more than "
    f"{SLIGHT:g}, *poorly* worse by more than {SAME:g}; a printed change is met within {NEAR_PRINTED:g} points. "
    "*Worse* and *poorly* have no upper bound."
)
#: The sentence of a page of seeds that says what its percentages are.
PERCENT = (
    "A percentage is the mean over the seeds of each seed's own percentage, not the ratio of two mean waits; the best "
    "rival of a policy is the one with the least mean over the same seeds."
)
