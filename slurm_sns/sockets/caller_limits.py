"""Limits how many callers are served at once, in total and of each user, so that no user can take all the places.

A user keeps a place until shortly after the answer, and requests of one user are answered one after the other. So a
user who asks all the time takes a bounded share of the scheduler's time. Trusted users (root and SlurmUser) always get
a place: an admin is never locked out.
"""

import threading
from collections import Counter, defaultdict
from contextlib import AbstractContextManager, nullcontext


class Places:
    """At most `most` places are taken in total and `most_of_a_user` by one user; trusted users are not counted."""

    def __init__(self, most: int, most_of_a_user: int, trusted: frozenset[int]) -> None:
        self._most, self._most_of_a_user, self._trusted = most, most_of_a_user, trusted
        self._taken: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._turns: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    def is_trusted(self, user_id: int) -> bool:
        """Whether this user is served without a limit."""
        return user_id in self._trusted

    def take(self, user_id: int) -> str:
        """Take a place for this user. The result is empty if there was one, otherwise the reason."""
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
        """A context in which no other request of this user is answered."""
        if self.is_trusted(user_id):
            return nullcontext()
        with self._lock:
            return self._turns[user_id]

    def give_back(self, user_id: int) -> None:
        """Give back a place that `take` has taken."""
        if self.is_trusted(user_id):
            return
        with self._lock:
            self._taken[user_id] -= 1
            if not self._taken[user_id]:
                del self._taken[user_id]
