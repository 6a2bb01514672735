COPY bare.job (payload) FROM STDIN BINARY
