"""UnsuitableDataError: the data are sound, but not for this learner."""


class UnsuitableDataError(ValueError):
    """A learner cannot take these rows, or rows of such a schema, though another could.

    Learners raise it for limits of their own, such as more questions than an exact search can try.
    A comparison then goes on without that learner; any other error ends it.
    """
