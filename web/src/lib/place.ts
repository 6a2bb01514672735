// Where the page lives. The server may serve it below a path; everything that is fetched or linked starts there.

/** The path that the page is served below, with a slash at both ends. */
export const base: string = new URL(document.baseURI).pathname.replace(/[^/]*$/, '');

/** The address of something of the server, such as `v1/queues`. */
export function address(path: string): URL {
  return new URL(base + path.replace(/^\/+/, ''), location.origin);
}
