// A worker in TypeScript, typed by the service's own OpenAPI: it claims answers under a lease, reads their bytes, writes
// one more field and custom meta, and acks.
//
//   node build/worker.js URL PARTITION FOLDER
//
// FOLDER is the storage: the bytes of a cell lie in the file {global_index}@{field}. The worker reads the field `text` and
// writes `letters`, the number of its letters. It ends when its task is done; killed, its rows go to another after LEASE_S.

import { randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const TASK = "count_letters";
const LEASE_S = 60;
const ATTEMPTS = 8;
const FIRST_PAUSE_MS = 100;

class Refused extends Error {}

interface Place {
  client: ReturnType<typeof createClient<paths>>;
  partition: string;
  folder: string;
}

/** What openapi-fetch gives back of a call. */
interface Answer<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

/** Sends a call until it is answered. One key for all of its sendings: the service does it once. */
async function sent<Data>(call: (headers: Record<string, string>) => Promise<Answer<Data>>): Promise<Data> {
  const headers = { "Idempotency-Key": randomUUID() };
  for (let attempt = 0; ; attempt++) {
    const answer = await call(headers).catch((failed: unknown) => {
      if (attempt + 1 === ATTEMPTS) throw failed; // nobody answers
      return undefined;
    });
    if (answer?.data !== undefined) return answer.data;
    const isFinal = answer && answer.response.status < 500 && answer.response.status !== 429;
    if (answer && (isFinal || attempt + 1 === ATTEMPTS)) {
      throw new Refused(`${answer.response.status}: ${JSON.stringify(answer.error)}`);
    }
    await new Promise((resume) => setTimeout(resume, FIRST_PAUSE_MS * 2 ** attempt));
  }
}

function claim({ client, partition }: Place, worker: string) {
  const path = { partition_id: partition, task: TASK };
  const body = { fields: ["text"], batch_size: 4, min_batch_size: 1, wait_s: 20, lease_s: LEASE_S, worker };
  return sent((headers) =>
    client.POST("/v1/partitions/{partition_id}/tasks/{task}/claims", {
      params: { path },
      body: { ...body, ack: "explicit", include: ["keys"] },
      headers,
    }),
  );
}

/** Bytes first, then the service: once it says that a field is ready, anyone may read it. */
async function work({ client, partition, folder }: Place, rows: number[]): Promise<void> {
  const letters: number[] = [];
  for (const row of rows) {
    const text = await readFile(`${folder}/${row}@text`, "utf8");
    letters.push([...text].filter((character) => /\p{L}/u.test(character)).length);
    await writeFile(`${folder}/${row}@letters`, String(letters.at(-1)));
  }
  await sent((headers) =>
    client.POST("/v1/partitions/{partition_id}/production", {
      params: { path: { partition_id: partition } },
      body: {
        global_indexes: rows,
        field_schema: { letters: { kind: "object" } },
        backend_meta: { letters: { const: "2" } },
        custom_meta: letters.map((count) => ({ letters: count })),
      },
      headers,
    }),
  );
}

async function main([url, partition, folder]: string[]): Promise<number> {
  if (!url || !partition || !folder) {
    console.error("usage: worker.js URL PARTITION FOLDER");
    return 2;
  }
  const place = { client: createClient<paths>({ baseUrl: url }), partition, folder };
  const worker = `typescript-${process.pid}-${Date.now()}`;
  for (;;) {
    const found = await claim(place, worker);
    // The types of openapi-fetch 0.17 lose a member that is always null, as `claim` is where nothing was handed out.
    const lease = "claim" in found ? found.claim : null;
    if (!lease) {
      if ("done" in found && found.done) return 0;
      continue;
    }
    const { claim_id, token } = lease;
    await work(place, found.batch.global_indexes);
    await sent((headers) =>
      place.client.POST("/v1/claims/{claim_id}/ack", {
        params: { path: { claim_id } },
        body: { token: String(token) },
        headers,
      }),
    );
    console.log(`${worker}: counted the letters of ${found.batch.global_indexes.join(",")}`);
  }
}

process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
  console.error(`worker: ${error.message}`);
  return 1;
});
