"""The errors that users can catch; each is a ValueError or a TypeError, for plain handlers."""

import logging

_LOG = logging.getLogger("steadytree.federated.refusals")
# a refusal is logged and raised: where the user logs nothing, Python would show it twice
for _name in ("steadytree.data", "steadytree.privacy", _LOG.name):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class UnsuitableDataError(ValueError):
    """A learner cannot take these rows, or rows of such a schema, though another could.

    Learners raise it for limits of their own, such as more splits than an exact search can try.
    A comparison then goes on without that learner; any other error ends it.
    """


class NotATreeError(TypeError):
    """A model that holds no single tree that can be read; its predictions may still be measured."""


class TreeFileError(ValueError):
    """A file that holds no tree or scorecard, or a damaged one."""


class ExportError(ValueError):
    """Another form of a model that would decide otherwise than the model, and was not written."""


class BudgetError(ValueError):
    """A request costs more than is left, or what is left cannot be determined."""


class ChainError(ValueError):
    """A line of a ledger is not the one that was written, or is not in its place."""


class MessageError(ValueError):
    """Bytes that are not a valid message."""


class UnsignedError(MessageError):
    """A message without the signature that it needs."""


class RefusedError(ValueError):
    """A request or an answer that was not accepted; the reason reveals nothing about the data.

    It is logged when it is made, so that every refusal is recorded.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        _LOG.warning("refused: %s", message)


class TooMuchWorkError(RefusedError):
    """A request that would take longer than a holder computes for one."""


class CancelledError(Exception):
    """A computation was given up because its process ends; nothing is known of the rows by it."""


class StaleError(RefusedError):
    """A round that arrives after a later one was answered."""


class HolderError(ValueError):
    """A holder gave no usable answer; names the holder and the reason."""

    def __init__(self, holder: str, reason: str, refusal: str | None = None) -> None:
        super().__init__(f"holder {holder!r} gave no answer: {reason}.")
        self.holder, self.reason, self.refusal = holder, reason, refusal
