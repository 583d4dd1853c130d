"""Errors are ValueErrors, keep what they were made of, and refusals are logged."""

import inspect
import logging
import pickle

import pytest

from steadytree._base import exceptions

ERRORS = dict(inspect.getmembers(exceptions, inspect.isclass))


def test_every_error_is_a_value_error():
    assert len(ERRORS) >= 9
    others = {name for name, error in ERRORS.items() if not issubclass(error, ValueError)}
    # a model of the wrong type; and what ends a computation, which nobody may take for a refusal
    assert others == {"NotATreeError", "CancelledError"}
    assert issubclass(exceptions.NotATreeError, TypeError)
    assert issubclass(exceptions.UnsignedError, exceptions.MessageError)
    assert issubclass(exceptions.StaleError, exceptions.RefusedError)


@pytest.mark.parametrize("name", sorted(set(ERRORS) - {"HolderError"}))
def test_errors_survive_pickling(name):
    found = pickle.loads(pickle.dumps(ERRORS[name]("what to do")))
    assert type(found) is ERRORS[name]
    assert str(found) == "what to do"


def test_an_error_of_a_holder_names_holder_and_reason():
    error = exceptions.HolderError("north", "the time is over", "BUDGET")
    assert str(error) == "holder 'north' gave no answer: the time is over."
    assert (error.holder, error.reason, error.refusal) == ("north", "the time is over", "BUDGET")


def test_refusals_are_logged_where_they_are_made(caplog):
    with caplog.at_level(logging.WARNING, logger="steadytree.federated"):
        exceptions.StaleError("round 2 comes after round 3")
    assert [record.getMessage() for record in caplog.records] == [
        "refused: round 2 comes after round 3"
    ]
