"""Who may be served at once: so many callers in all, and so few of each user that nobody can take all the places.

A user's place is his for as long as he is served and a little longer, and his requests are answered one after the
other, so that asking again and again takes a bounded share of the scheduler's time. The trusted (root and SlurmUser)
always get a place: an admin is never locked out.
"""

import threading
from collections import Counter, defaultdict
from contextlib import AbstractContextManager, nullcontext


class Places:
    """`most` places, of them `most_of_a_user` for each user; the trusted are not counted."""

    def __init__(self, most: int, most_of_a_user: int, trusted: frozenset[int]) -> None:
        self._most, self._most_of_a_user, self._trusted = most, most_of_a_user, trusted
        self._taken: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._turns: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    def is_trusted(self, user_id: int) -> bool:
        """Whether this user is served without a limit."""
        return user_id in self._trusted

    def take(self, user_id: int) -> str:
        """Take a place for this user; empty when he has it now, else why not."""
        if self.is_trusted(user_id):
            return ""
        with self._lock:
            if self._taken[user_id] >= self._most_of_a_user:
                return f"{self._most_of_a_user} requests of yours are under way; try again in a moment"
            if self._taken.total() >= self._most:
                return f"{self._most} requests are under way; try again in a moment"
            self._taken[user_id] += 1
        return ""

    def turn(self, user_id: int) -> AbstractContextManager[object]:
        """In this context the user's request is the only one of his that is answered."""
        if self.is_trusted(user_id):
            return nullcontext()
        with self._lock:
            return self._turns[user_id]

    def give_back(self, user_id: int) -> None:
        """End what a successful `take` began."""
        if self.is_trusted(user_id):
            return
        with self._lock:
            self._taken[user_id] -= 1
            if not self._taken[user_id]:
                del self._taken[user_id]
