"""A study of two small data holders by files, with noise and keys that are the same each time."""

import json
import pathlib

import numpy as np
import pandas as pd

import steadytree as st

NAMES = ("north", "south")
SCHEMA = st.Schema({"age": (0, 100), "dose": (0, 8)}, {"ward": ["A", "B"]}, ["ill", "well"])


def rows(name, n=120):
    rng = np.random.default_rng(NAMES.index(name))
    X = pd.DataFrame(
        {
            "age": rng.integers(0, 100, n).astype(float),
            "dose": rng.integers(0, 80, n) / 10,
            "ward": np.array(["A", "B"])[rng.integers(0, 2, n)],
        }
    )
    return X, np.where((X["age"] > 50) ^ (X["ward"] == "A"), "ill", "well")


def write_study(method="delegate"):
    """Rows, schema and plan of two holders in the current folder."""
    SCHEMA.save("schema.toml")
    for name in NAMES:
        X, y = rows(name)
        X.assign(outcome=y).to_csv(f"{name}.csv", index=False)
    plan = {"study": f"golden-{method}", "schema": "schema.toml", "holders": list(NAMES)}
    plan |= {"epsilon": 4.0, "method": method, "n_bins": 4, "out": "tree.json", "testing_seed": 3}
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in plan.items())
    pathlib.Path("plan.toml").write_text(text + "\n", "utf-8")


def fix_keys():
    """Keys that sign are drawn at random; the same ones give the same signatures."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    keys = pathlib.Path("keys")
    for number, name in enumerate(("coordinator", *NAMES), start=1):
        key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
        pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
        (keys / name / "sign.key").write_bytes(pem)
        for path in keys.glob(f"*/{name}.sign.pub"):
            path.write_bytes(public)
        own = keys / name / "sign.pub"
        if own.exists():
            own.write_bytes(public)


def answer(command, question, holder):
    new = () if pathlib.Path(f"{holder}.ledger").exists() else ("--new-ledger",)
    return command(
        *("private", "answer", question, "--keys", f"keys/{holder}", "--data", f"{holder}.csv"),
        *("--schema", "schema.toml", "--ledger", f"{holder}.ledger", "--budget", 9, *new),
        *("--testing-seed", NAMES.index(holder)),
    )
