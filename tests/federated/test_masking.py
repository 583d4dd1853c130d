"""Masked sums: equal to plain sums, whoever is missing; one vector is uniform; no lie helps."""

import itertools

import numpy as np
import pytest
from scipy import stats

from steadytree._base.exceptions import RefusedError
from steadytree.federated import masking
from steadytree.federated.keys import make_study_keys
from steadytree.federated.masking import MODULUS, Member, SumKeys, join_shares, split_secret

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
NAMES = ("east", "north", "south", "west")
SIGNING = {name: ed25519.Ed25519PrivateKey.generate() for name in NAMES}
CONTEXT = b"sum 1"


def keys_of(name):
    others = {each: key.public_key() for each, key in SIGNING.items() if each != name}
    return SumKeys(SIGNING[name], others)


def members(threshold=3, context=CONTEXT):
    return {name: Member(name, keys_of(name), context, threshold) for name in NAMES}


def shared(several, absent=()):
    """Steps 1 and 2: keys, and what each party receives; some are missing after step 1."""
    keys = {name: party.advertise() for name, party in several.items()}
    sent = {name: several[name].share(keys) for name in several if name not in absent}
    received = {
        name: {sender: parts[name] for sender, parts in sent.items() if sender != name}
        for name in sent
    }
    return keys, received


def run(vectors, threshold, absent):
    """A whole sum; absent[k] are missing from step k on. Returns the sum and who sent a vector."""
    several = members(threshold)
    keys, received = shared(several, absent[2])
    gone = {*absent[2], *absent[3]}
    masked = {n: several[n].mask(vectors[n], received[n]) for n in received if n not in gone}
    told = {n: several[n].unmask(masked) for n in masked if n not in absent[4]}
    limits = (list(received), CONTEXT, threshold)
    return masking.unmasked_sum(masked, told, keys, *limits), set(masked)


@pytest.mark.parametrize("threshold", [2, 3, 4])
def test_sums_equal_plain_sums_whoever_is_missing(threshold):
    """Every way in which up to n - threshold members leave at steps 2, 3 and 4."""
    random = np.random.default_rng(threshold)
    most = len(NAMES) - threshold
    for gone in itertools.chain(*(itertools.combinations(NAMES, k) for k in range(most + 1))):
        for steps in itertools.product((2, 3, 4), repeat=len(gone)):
            vectors = {name: random.integers(-(2**34), 2**34, 7) for name in NAMES}
            absent = {k: [n for n, s in zip(gone, steps, strict=True) if s == k] for k in (2, 3, 4)}
            found, senders = run(vectors, threshold, absent)
            assert senders == set(NAMES) - set(absent[2]) - set(absent[3])
            np.testing.assert_array_equal(found, sum(vectors[name] for name in senders))


def test_secrets_of_a_member_are_its_own_and_of_one_sum():
    """All that is public is equal here: no secret follows from it, and none is met again."""
    found = []
    for _ in range(2):
        several = members()
        shared(several)
        for each in several.values():
            known = [each._secrets["seed"]]
            known += [each._secrets[which].private_bytes_raw() for which in ("shares", "masks")]
            found += known
    assert len(set(found)) == 2 * 3 * len(NAMES)
    assert all(len(secret) == masking.KEY for secret in found)


def test_messages_of_two_members_to_each_other_have_two_nonces():
    """Under one key: two texts under one nonce would tell their difference, and their tags' key."""
    several = members()
    shared(several)
    for one, other in itertools.combinations(NAMES, 2):
        there, back = masking._nonce(one, other), masking._nonce(other, one)
        assert there != back
        key = [several[a]._cipher(b) for a, b in ((one, other), (other, one))]
        sent = key[0].encrypt(there, b"shares", None)
        assert key[1].decrypt(there, sent, None) == b"shares"
        assert key[1].encrypt(back, b"shares", None) != sent


def test_a_masked_vector_is_uniform_whatever_it_hides():
    """Chi-square of high and of low bits; one false alarm in ten thousand each, by fresh keys."""
    for vector in (np.zeros(4_000, np.int64), np.full(4_000, 10**9)):
        several = members()
        _, received = shared(several)
        masked = several["north"].mask(vector, received["north"])
        assert 0 <= masked.min() <= masked.max() < MODULUS
        for digits in (masked >> 36, masked & 15, masked >> 18 & 15):
            assert stats.chisquare(np.bincount(digits, minlength=16)).pvalue > 1e-4


def test_the_seed_alone_or_the_keys_alone_uncover_nothing():
    """Without its own stream, or without those of pairs, a vector of zeros stays uniform."""
    several = members()
    _, received = shared(several)
    masked = several["north"].mask(np.zeros(4_000, np.int64), received["north"])
    north = several["north"]
    seed = masking.stream(north._secrets["seed"], 4_000)
    for rest in ((masked - seed) % MODULUS, seed):
        assert stats.chisquare(np.bincount(rest >> 36, minlength=16)).pvalue > 1e-4
    assert not np.array_equal(masked, seed)


# ---- a coordinator that lies ----
@pytest.mark.parametrize("listed", [(), ("east",), ("east", "north")])
def test_the_sum_of_fewer_than_the_threshold_is_uncovered_by_nobody(listed):
    """With one survivor told, the masks of all others would come off its vector."""
    several = members(threshold=3)
    _, received = shared(several)
    for name, member in several.items():
        member.mask(np.zeros(3, np.int64), received[name])
        with pytest.raises(RefusedError, match="fewer than 3 members"):
            member.unmask(listed)


def test_a_step_is_taken_once_and_in_order():
    several = members()
    _, received = shared(several)
    north = several["north"]
    with pytest.raises(RefusedError, match="once, in order"):
        north.unmask(NAMES)
    vector = np.zeros(3, np.int64)
    north.mask(vector, received["north"])
    with pytest.raises(RefusedError, match="once, in order"):
        north.mask(vector, received["north"])  # a second vector under the same masks
    north.unmask(NAMES)
    with pytest.raises(RefusedError, match="once, in order"):
        north.unmask(NAMES[:3])  # the other secret of who was left out


def test_keys_of_a_stranger_or_of_another_sum_are_refused():
    several = members()
    keys = {name: party.advertise() for name, party in several.items()}
    forged = Member("south", SumKeys(SIGNING["west"], {}), CONTEXT, 3).advertise()
    replayed = Member("south", keys_of("south"), b"sum 0", 3).advertise()
    for wrong in (forged, replayed, keys["west"], b"", keys["south"][:-1]):
        with pytest.raises(RefusedError, match="wrong signature"):
            Member("north", keys_of("north"), CONTEXT, 3, 1).share(
                {**keys, "south": wrong, "north": keys["north"]}
            )
    stranger = {**keys, "stranger": keys["south"]}
    with pytest.raises(RefusedError, match="not known here"):
        several["north"].share(stranger)


def test_sums_of_too_few_parties_are_refused():
    several = members(3)
    keys = {name: party.advertise() for name, party in several.items()}
    with pytest.raises(RefusedError, match="needs 3 members"):
        several["north"].share({name: keys[name] for name in ("north", "south")})
    several = members(3)
    _, received = shared(several)
    few = dict(list(received["north"].items())[:1])
    with pytest.raises(RefusedError, match="fewer than 3"):
        several["north"].mask(np.zeros(2, np.int64), few)
    several["south"].mask(np.zeros(2, np.int64), received["south"])
    for listed in (("south", "north"), (*NAMES[:2], "stranger")):
        with pytest.raises(RefusedError, match="fewer than 3 members, or of strangers"):
            Member("south", keys_of("south"), CONTEXT, 3, 3).unmask(listed)


def test_altered_shares_are_refused():
    several = members()
    _, received = shared(several)
    sender = next(iter(received["north"]))
    received["north"][sender] = bytes([received["north"][sender][0] ^ 1]) + b"x" * 147
    with pytest.raises(RefusedError, match="altered"):
        several["north"].mask(np.zeros(2, np.int64), received["north"])


def test_different_stories_about_who_is_missing_uncover_neither_sum():
    """Half are told that west is there, half that it is not: no secret has three shares."""
    several = members(3)
    _, received = shared(several)
    for name in NAMES:
        several[name].mask(np.zeros(2, np.int64), received[name])
    with_west = [several[name].unmask(NAMES) for name in ("east", "north")]
    without = [several[name].unmask(NAMES[:3]) for name in ("south", "west")]
    places = {name: place for place, name in enumerate(NAMES, 1)}
    for told in (with_west, without):
        known = dict(zip((1, 2), (found["west"] for found in told), strict=True))
        with pytest.raises(RefusedError, match="needs 3 shares"):
            join_shares(known, 3)
    assert places["west"] == 4


def test_other_lists_of_keys_give_streams_that_do_not_cancel():
    several = members(3)
    keys = {name: party.advertise() for name, party in several.items()}
    fewer = {name: keys[name] for name in NAMES if name != "west"}
    told = {"north": fewer, "south": keys, "east": keys}
    sent = {name: several[name].share(told[name]) for name in told}
    received = {sender: parts["north"] for sender, parts in sent.items() if sender != "north"}
    with pytest.raises(RefusedError, match="altered, or are for another sum"):
        several["north"].mask(np.zeros(2, np.int64), received)


# ---- shares ----
@pytest.mark.parametrize(("n", "threshold"), [(2, 2), (4, 3), (7, 4)])
def test_any_threshold_shares_give_the_secret(n, threshold):
    secret = 2**255 + 12345
    shares = dict(enumerate(split_secret(secret, n, threshold), 1))
    for chosen in itertools.combinations(shares, threshold):
        assert join_shares({place: shares[place] for place in chosen}, threshold) == secret
    with pytest.raises(RefusedError, match=f"needs {threshold} shares"):
        join_shares({1: shares[1]}, threshold)
    if n > threshold:  # one too many, and it does not fit
        with pytest.raises(RefusedError, match="do not fit"):
            join_shares({**shares, n: shares[n] + 1}, threshold)


def test_fewer_shares_say_nothing_about_the_secret():
    """The first of two shares is uniform for either secret: chi-square, one in ten thousand."""
    for secret in (0, 2**256 - 1):
        drawn = [split_secret(secret, 2, 2)[0] * 16 // masking.PRIME for _ in range(1_600)]
        assert stats.chisquare(np.bincount(drawn, minlength=16)).pvalue > 1e-4


# ---- keys in files ----
def test_keys_of_a_study_are_enough_for_sums(tmp_path):
    folders = make_study_keys(tmp_path / "keys", NAMES, ["127.0.0.1"])
    found = {folder.name: SumKeys.load(folder, folder.name) for folder in folders[1:]}
    assert set(found) == set(NAMES)
    assert set(found["north"].others) == set(NAMES) - {"north"}
    keys = {name: Member(name, found[name], CONTEXT, 3).advertise() for name in NAMES}
    north = Member("north", found["north"], CONTEXT, 3)
    keys["north"] = north.advertise()
    assert set(north.share(keys)) == set(NAMES) - {"north"}


def test_a_folder_without_keys_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must hold sign\.key"):
        SumKeys.load(tmp_path, "north")
