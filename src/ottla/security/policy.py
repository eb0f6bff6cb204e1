"""How long something that was allowed once may be taken for allowed.

Requests that repeat are recognised by their bytes, and neither the authorizer nor the quotas are asked about them
again. So each memo bears the number of the policy that it was made under, and is void as soon as that is not the
present one: authorizer and quotas call `change` before any of their answers differs from the one before. One that
cannot promise that is asked each time, and nothing is remembered.
"""

from __future__ import annotations

from ottla.security.authorizer import Authorizer
from ottla.security.principal import Principal
from ottla.security.quotas import Quotas


class Policy:
    __slots__ = ("_authorizer", "_quotas", "number", "remembers")

    def __init__(self, authorizer: Authorizer, quotas: Quotas) -> None:
        self._authorizer = authorizer
        self._quotas = quotas
        #: Rises with each change, and never comes again.
        self.number = 0
        #: Whether requests may be recognised at all.
        self.remembers = authorizer.announces and quotas.announces
        authorizer.listen(self.change)
        quotas.listen(self.change)

    def change(self) -> None:
        self.number += 1

    def is_free(self, principal: Principal, client_id: str | None) -> bool:
        """Whether no use of this client is counted under the present policy."""
        return self._quotas.unlimited or not self._quotas.counts(principal, client_id)
