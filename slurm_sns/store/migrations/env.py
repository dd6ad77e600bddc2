"""Runs revisions on the connection that `store.upgrade` hands over, in its transaction. Only alembic loads this."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
