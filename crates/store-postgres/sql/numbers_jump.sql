-- Numbers that a lost server may have given out are left out.
SELECT setval('redrive.version', (SELECT last_value FROM redrive.version) + 4294967296),
    setval('redrive.place', (SELECT last_value FROM redrive.place) + 4294967296)
