import assert from 'node:assert/strict';
import { test } from 'node:test';
import { client } from './setup.js';

test("the router's models are listed and retrieved", async () => {
  const models = [];
  for await (const model of client.models.list()) models.push(model);
  const echo = models.find((m) => m.id === 'demo/echo');
  assert.equal(echo.context_length, 8192);
  assert.deepEqual(await client.models.retrieve('demo/echo'), echo);
});

test("the router's embeddings are passed on", async () => {
  // The SDK asks for base64 by itself, and decodes it.
  const { data, usage } = await client.embeddings.create({
    model: 'demo/embedding',
    input: ['the refund window', 'a window for refunds'],
    dimensions: 64,
  });
  assert.deepEqual(data.map((d) => d.index), [0, 1]);
  assert.ok(data.every((d) => d.embedding.length === 64));
  assert.ok(usage.prompt_tokens > 0);
  const floats = await client.embeddings.create({
    model: 'demo/embedding',
    input: 'the refund window',
    dimensions: 64,
    encoding_format: 'float',
  });
  assert.deepEqual(Array.from(data[0].embedding), floats.data[0].embedding.map(Math.fround));
});
