"""The revisions of the database, oldest first. Each stands in `versions`; alembic runs those that a database lacks.

Their names are here too, so that a database which has them all is opened without alembic, which takes long to load.
"""

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008")
NEWEST = REVISIONS[-1]
