SELECT nextval('redrive.token')
