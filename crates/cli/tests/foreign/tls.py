"""What the TLS port offers, as sslyze finds it, held against what it may offer.

Usage: python tls.py HOST:PORT
"""

import json
import re
import subprocess
import sys
import tempfile

SUITES = {
    "tls_1_2_cipher_suites": re.compile(r"TLS_ECDHE_(ECDSA|RSA)_WITH_(AES_(128|256)_GCM_SHA(256|384)|CHACHA20_POLY1305_SHA256)"),
    "tls_1_3_cipher_suites": re.compile(r"TLS_(AES_(128|256)_GCM_SHA(256|384)|CHACHA20_POLY1305_SHA256)"),
}
REFUSED = ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1")
# What has to be found exactly so.
PROFILE = {
    "tls_compression": {"supports_compression": False},
    "openssl_ccs_injection": {"is_vulnerable_to_ccs_injection": False},
    "heartbleed": {"is_vulnerable_to_heartbleed": False},
    "tls_fallback_scsv": {"supports_fallback_scsv": True},
    "tls_extended_master_secret": {"supports_ems_extension": True},
    "session_renegotiation": {
        "supports_secure_renegotiation": True,
        "is_vulnerable_to_client_renegotiation_dos": False,
    },
}


def scan(address):
    with tempfile.NamedTemporaryFile("r", suffix=".json") as out:
        command = [sys.executable, "-m", "sslyze", "--quiet", f"--json_out={out.name}", address]
        # It ends badly because nobody trusts the certificate, which is not asked here.
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=60, check=False)
        [server] = json.load(out)["server_scan_results"]
    assert server["scan_status"] == "COMPLETED", server["connectivity_error_trace"]
    return server["scan_result"]


def result(found, name):
    assert found[name]["status"] == "COMPLETED", f"{name}: {found[name]}"
    return found[name]["result"]


def main():
    found = scan(sys.argv[1])
    for version in REFUSED:
        assert not result(found, f"{version}_cipher_suites")["is_tls_version_supported"], f"{version} is spoken"
    for name, allowed in SUITES.items():
        accepted = [suite["cipher_suite"]["name"] for suite in result(found, name)["accepted_cipher_suites"]]
        assert accepted, f"{name}: none"
        wrong = [suite for suite in accepted if not allowed.fullmatch(suite)]
        assert not wrong, f"{name}: {wrong}"
        print(f"{name}: {', '.join(sorted(accepted))}")
    for name, wanted in PROFILE.items():
        for field, value in wanted.items():
            assert result(found, name)[field] == value, f"{name}: {field} is not {value}"
    robot = result(found, "robot")["robot_result"]
    assert robot == "NOT_VULNERABLE_RSA_NOT_SUPPORTED", f"ROBOT: {robot}"
    print(f"sslyze: {len(REFUSED)} old versions refused, {len(PROFILE) + 1} checks passed")


if __name__ == "__main__":
    main()
