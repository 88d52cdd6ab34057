// What every test here needs: OpenAI's own client, unchanged but for the base
// URL and the header serviceKey, and short ways to ask. The tests run against
// the Backstory at BASE_URL with the demo router behind it; run.sh starts one.
import { randomUUID } from 'node:crypto';
import OpenAI from 'openai';

export function env(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run these tests through clients/run.sh`);
  return value;
}

export const freeKey = env('FREE_KEY');
export const model = 'demo/large';

/** A client of the service; keys as given, else the good ones. No retries, so that every request counts once. */
export function connect({ serviceKey = env('SERVICE_KEY'), routerKey = env('ROUTER_KEY') } = {}) {
  return new OpenAI({
    baseURL: env('BASE_URL'),
    apiKey: routerKey,
    defaultHeaders: { serviceKey },
    maxRetries: 0,
    timeout: 30_000,
  });
}

export const client = connect();

export const newSession = () => `node ${randomUUID()}`;

export const user = (content) => ({ role: 'user', content });

/** Asks one user message; more are further fields of the request's body. */
export async function ask(content, more = {}) {
  const reply = await client.chat.completions.create({ model, messages: [user(content)], ...more });
  return { text: reply.choices[0].message.content, metadata: reply._metadata, reply };
}

/** Streams one user message to its end, and returns all that came. */
export async function streamed(content, more = {}) {
  const stream = await client.chat.completions.create({ model, messages: [user(content)], stream: true, ...more });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return {
    chunks,
    text: chunks.map((c) => c.choices[0]?.delta.content ?? '').join(''),
    metadata: chunks.filter((c) => '_metadata' in c).map((c) => c._metadata),
  };
}
