COPY redrive.content (no, body, content_type, headers) FROM STDIN BINARY
