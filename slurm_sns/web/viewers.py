"""Who looks at the page: a Unix user whom a trusted reverse proxy names in a header, otherwise nobody in particular.

The proxy has asked for the password. So its word is taken only if its address, that of the TCP connection, is
configured. A header of anybody else counts for nothing.
"""

from collections.abc import Callable, Collection, Sequence
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from slurm_sns.config.settings import WebSection
from slurm_sns.errors import BadInput
from slurm_sns.log import Log

#: A name's user id is looked up again after so many seconds; a directory service may take long for each look-up.
KNOWN_S = 60.0
#: So many names are known at most.
MOST_KNOWN = 1000
#: Slurm's and Linux' limit of a name.
LONGEST_NAME = 32


class Viewer(NamedTuple):
    """Who looks: the name of a Unix user (None: nobody in particular), and whether they see all as an admin does."""

    name: str | None
    is_admin: bool = False
    #: Whether the scheduler may be asked for explanations in this name. Not for root: it would answer an admin.
    may_ask: bool = False


ANONYMOUS = Viewer(None)


class Viewers:
    """Finds out who looks. `user_id_of` asks the system; `admin_ids` are the users whom the scheduler shows all."""

    def __init__(
        self,
        settings: WebSection,
        user_id_of: Callable[[str], int | None],
        admin_ids: Collection[int],
        log: Log,
        steady: Callable[[], float],
    ) -> None:
        self._header = settings.user_header
        self._trusted = settings.trusted_networks
        self._admins = frozenset(settings.admins)
        self._user_id_of, self._admin_ids, self._log, self._steady = user_id_of, admin_ids, log, steady
        self._known: dict[str, tuple[float, int | None]] = {}

    @property
    def header(self) -> str | None:
        """The header that names the user; None where nobody may be named."""
        return self._header if self._trusted else None

    def of(self, address: str, named: Sequence[str]) -> Viewer:
        """Who looks from this address of the connection, with these values of the header.

        Raises:
            BadInput: a trusted proxy names somebody who is no user here. That is no visitor but a mistake, and a page
                without jobs would hide it.
        """
        if self.header is None or not named:
            return ANONYMOUS
        if not self._is_trusted(address):
            self._log(f"{self._header} from {address}, which web.trusted_addresses does not name: shown as to anybody")
            return ANONYMOUS
        if len(named) > 1:
            self._log(f"{self._header} came {len(named)} times from {address}: shown as to anybody")
            return ANONYMOUS
        name = named[0].strip()
        if not name:
            return ANONYMOUS
        user_id = self._user_id(name)
        if user_id is None:
            raise BadInput(
                f"{self._header} is {name[:LONGEST_NAME]!r}: valid is one name of a user of this machine, or no header"
            )
        is_admin = name in self._admins
        return Viewer(name, is_admin, may_ask=is_admin or user_id not in self._admin_ids)

    def _is_trusted(self, address: str) -> bool:
        try:
            found = ip_address(address)
        except ValueError:
            return False
        mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None  # a socket at :: shows IPv4 so
        return any((mapped or found) in network for network in self._trusted)

    def _user_id(self, name: str) -> int | None:
        if len(name) > LONGEST_NAME or not name.isprintable() or set(name) & set(" ,:/"):
            return None
        now_s = self._steady()
        looked_up_s, found = self._known.get(name, (-KNOWN_S, None))
        if now_s - looked_up_s >= KNOWN_S:
            found = self._user_id_of(name)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[name] = now_s, found
        return found
