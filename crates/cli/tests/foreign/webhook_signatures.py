"""What we sign, verified by the library of the Standard Webhooks specification.

Usage: python webhook_signatures.py PATH/TO/sign_cases
"""

import json
import subprocess
import sys
import time

from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError


def is_right(case, **changes):
    """Whether the library believes the request; what is changed is not what was signed."""
    case = {**case, **changes}
    headers = {f"webhook-{name}": case[name] for name in ("id", "timestamp", "signature")}
    try:
        Webhook(case["secret"]).verify(case["body"], headers, json_parse=False)
    except WebhookVerificationError:
        return False
    return True


def other(text):
    """The same text with another last character."""
    return text[:-1] + ("A" if text[-1:] != "A" else "B")


def check(case, stranger):
    assert is_right(case), f"not believed: {case['id']}"
    wrong = {
        "id": other(case["id"]),
        "timestamp": str(int(case["timestamp"]) - 1),
        "body": case["body"] + " ",
        "secret": stranger["secret"],
        # The first character of every signature's base64: the last ones hold no whole bits.
        "signature": " ".join(
            f"v1,{'A' if one[3] != 'A' else 'B'}{one[4:]}" for one in case["signature"].split(" ")
        ),
    }
    for name, value in wrong.items():
        assert not is_right(case, **{name: value}), f"believed with another {name}: {case['id']}"
    unsigned = " ".join(one.replace("v1,", "v2,") for one in case["signature"].split(" "))
    assert not is_right(case, signature=unsigned), f"believed in another version: {case['id']}"
    return 1 + len(wrong) + 1


def main():
    made = subprocess.run([sys.argv[1], str(int(time.time()))], capture_output=True, timeout=60, check=True)
    cases = json.loads(made.stdout)
    strangers = {case["secret"]: case for case in cases}
    assert len(cases) >= 90 and len(strangers) == 8, f"{len(cases)} cases of {len(strangers)} secrets"
    checked = 0
    for case in cases:
        stranger = next(found for secret, found in strangers.items() if secret != case["secret"])
        checked += check(case, stranger)
    print(f"webhook signatures: {len(cases)} requests, {checked} verdicts as they should be")


if __name__ == "__main__":
    main()
