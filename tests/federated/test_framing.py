"""Messages as bytes, and frames on a socket."""

import socket

import pytest

from steadytree._base.exceptions import MessageError
from steadytree.federated.framing import read, receive_frame
from tests._base.clocks import ToldClock
from tests.federated.hospitals import unix_only


def test_messages_name_everything_once():
    with pytest.raises(MessageError, match="not in canonical form"):
        read(b'{"type":"hello","type":"status","version":2}')


@unix_only
def test_a_message_has_one_time_limit_however_it_drips():
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"\x00\x00\x00\x09abc")
        one_byte = type("Drip", (), {"recv": lambda _, n: other.recv(1), "settimeout": min})()
        one_byte.settimeout = lambda _: None
        with pytest.raises(TimeoutError):
            receive_frame(one_byte, 100, 30.0, ToldClock(tick=20.0))
