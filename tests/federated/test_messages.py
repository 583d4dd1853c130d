"""Messages: canonical bytes in both directions, and a refusal in one line for all others."""

import hashlib
import json
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadytree._base.exceptions import RefusedError
from steadytree.federated.framing import STATUS, VERSION, MessageError, read, refusal_in, write
from steadytree.federated.messages import (
    BLOCKS,
    KINDS,
    SUM,
    Answer,
    Request,
    answer_message,
    current_answer,
    read_answer,
    read_hello,
    read_request,
    request_message,
)
from tests.federated.hospitals import ask, gateway_of

integers = st.lists(st.lists(st.integers(-1, 2**40), max_size=6).map(tuple), max_size=4).map(tuple)
requests = st.builds(
    Request,
    st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True),
    st.integers(0, 10**9),
    st.sampled_from([kind for kind in KINDS if kind != SUM]),
    st.floats(1e-6, 1e6),
    st.text(max_size=20),
    st.integers(2, 1_000),
    integers.filter(len),
    st.integers(0, 3),
    integers,
)


def plain_digest(request):
    """The digest as version 1 took it, from the fields themselves."""
    names = [
        "session",
        "round",
        "kind",
        "epsilon",
        "schema",
        "n_bins",
        "trees",
        "depth",
        "questions",
    ]
    content = {name: getattr(request, name) for name in names}
    whole = {"version": 1, "type": "question", "request": content}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@given(requests)
def test_requests_come_back_and_keep_their_digest(request):
    message = request_message(request)
    assert read_request(read(message)) == request
    assert write(read(message)) == message
    assert request.digest == plain_digest(request)


@given(requests, st.lists(st.integers(-(2**40), 2**40), max_size=9), st.booleans())
def test_answers_come_back(request, numbers, private):
    names = (request.session, request.round, request.kind)
    answer = Answer("north", *names, np.array(numbers, dtype=np.int64), private)
    message = answer_message(answer, request.digest)
    back = read_answer(read(message), request)
    assert back.check(request, len(numbers)).tolist() == numbers
    assert (back.holder, back.private) == ("north", private)
    older = json.dumps({**json.loads(message), "version": 1}, sort_keys=True, separators=(",", ":"))
    assert current_answer(older.encode()) == message  # as a store of version 1 kept it
    assert current_answer(message) == message


def test_an_answer_to_another_request_is_refused():
    message = answer_message(Answer("north", "study", 0, "rows", np.array([3])), ask().digest)
    with pytest.raises(MessageError, match="answered another question"):
        read_answer(read(message), ask(round=1))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [math.nan], {"a": math.inf}])
def test_numbers_that_are_not_finite_are_never_written(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write({"version": VERSION, "value": value})


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b'{"type":"status","version":1}', "of version 1, .* update steadytree on the side that"),
        (b'{"type":"status","version":3}', "must be an object of version 2"),
        (b'{"type":"status","version":true}', "must be an object of version 2"),
        (b'{"type":"status","version":2.0}', "must be an object of version 2"),
        (b'["version",2]', "must be an object of version 2"),
        (STATUS + b"\n", "not in canonical form"),
        (b'{"version":2,"type":"status"}', "not in canonical form"),
        (b'{"a":1e-07,"version":2}', "not in canonical form"),
        (b'{"a":1e999,"version":2}', "not JSON"),
        (b'{"a":Infinity,"version":2}', "not JSON"),
        (b'{"a":1,"a":1,"version":2}', "not in canonical form"),
        (b'{"a":"\\u0061","version":2}', "not in canonical form"),
        (b'{"a":' * 100_000, "not JSON"),
        (b"", "not JSON"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bytes_that_are_no_message_are_refused_in_one_line(message, reason):
    with pytest.raises(MessageError, match=reason) as caught:
        read(message)
    assert "\n" not in str(caught.value)


def test_a_refusal_of_version_1_says_what_to_do():
    """What a gateway of an older steadytree replies to a question of this one."""
    with pytest.raises(MessageError, match="update steadytree"):
        refusal_in(read(b'{"code":"MALFORMED","ok":false,"version":1}'))


def test_faults_name_their_place():
    content = read(request_message(ask(trees=((0, -1, -1),))))
    content["request"]["trees"][0][1] = "x"
    with pytest.raises(MessageError, match=r"request.trees\[0\]\[1\]: expected an integer, got te"):
        read_request(content)
    with pytest.raises(MessageError, match="unknown field 'more'"):
        read_hello({**read(write(hello())), "more": 1})
    assert read_hello(read(write(hello()))).round is msgspec.UNSET


def hello():
    return {"version": VERSION, "type": "hello", "study": "s", "epsilon": 1.0}


def test_mutated_messages_are_refused_or_mean_what_they_say(tmp_path):
    """2,000 mutations: a gateway never fails by itself, and answers canonical bytes alone."""
    messages = [
        request_message(ask(kind, depth=int(kind in BLOCKS))) for kind in KINDS if kind != SUM
    ]
    messages += [write(hello()), STATUS]
    rng, accepted = np.random.default_rng(3), 0
    alphabet = list(b'0123456789eE+-.,:[]{}" aA\n\xff')
    with gateway_of(tmp_path, budget=50.0) as gateway:
        for count in range(2_000):
            message = bytearray(messages[count % len(messages)])
            for _ in range(rng.integers(1, 4)):
                at, size = rng.integers(len(message)), rng.integers(0, 3)
                message[at : at + size] = rng.choice(alphabet, 1).tolist()
            reply = read(gateway.reply(bytes(message)))
            assert reply.get("code") != "INTERNAL"
            if reply["ok"]:
                accepted += 1
                assert write(msgspec.json.decode(bytes(message))) == bytes(message)
    assert 0 < accepted < 400


# ---- weights of classes ----
def test_weights_are_in_the_digest_and_their_absence_is_not():
    plain, weighted = ask(kind="block", depth=1), ask(kind="block", depth=1, weights=(1_000, 5))
    assert b"weights" not in request_message(plain)
    assert read_request(read(request_message(weighted))) == weighted
    assert weighted.digest != plain.digest == plain_digest(plain)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "rows", "weights": (1_000, 1_000)},
        {"kind": "block", "weights": (1_001, 1)},
        {"kind": "block", "weights": (-1, 1)},
        {"kind": "block", "weights": (True, 1)},
        {"kind": "block", "weights": (0, 0)},
        {"kind": "block", "weights": ()},
    ],
)
def test_weights_that_would_cost_more_are_refused(wrong):
    with pytest.raises(RefusedError, match="weights are of blocks"):
        ask(depth=1, **wrong)
