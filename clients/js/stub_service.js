// A service that answers as it is told and remembers what it was asked; for tests.

import { createServer } from "node:http";

/** `answers` maps "POST /v1/decide" to [status, body, headers], to a list of these, or to a function. */
export async function stubService(t, answers = {}) {
  const asked = [];
  const server = createServer((request, answer) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", async () => {
      const { method, url: path, headers } = request;
      asked.push({ method, path, headers, body: body && JSON.parse(body) });
      let told = answers[`${method} ${path}`] ?? [404, {}];
      if (typeof told === "function") told = await told();
      if (Array.isArray(told[0])) told = told.shift();
      if (told[0] === null) return request.socket.destroy(); // at once: the request is over
      answer.writeHead(told[0], told[2]);
      answer.end(typeof told[1] === "string" ? told[1] : JSON.stringify(told[1]));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const sent = (name) => asked.filter(({ path }) => path.endsWith(name));
  return { url: `http://127.0.0.1:${server.address().port}`, answers, asked, sent };
}
