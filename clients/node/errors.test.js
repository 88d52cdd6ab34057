import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { ask, client, connect, env, freeKey, model, user } from './setup.js';

const hello = { model, messages: [user('Hello there')] };

test('a bad service key is an AuthenticationError', async () => {
  const stranger = connect({ serviceKey: 'not-a-key' });
  await assert.rejects(stranger.chat.completions.create(hello), OpenAI.AuthenticationError);
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  await assert.rejects(stranger.files.list(), OpenAI.AuthenticationError);
});

test("a bad router key is the router's own AuthenticationError", async () => {
  await assert.rejects(connect({ routerKey: 'sk-invalid' }).chat.completions.create(hello), (err) => {
    assert.ok(err instanceof OpenAI.AuthenticationError);
    assert.equal(err.code, 'invalid_api_key');
    assert.match(err.message, /Incorrect API key provided: sk-invalid/);
    return true;
  });
});

for (const [param, more] of Object.entries({ temperature: { temperature: 3 }, messages: { messages: [] } })) {
  test(`a bad request is a BadRequestError that names ${param}`, async () => {
    await assert.rejects(client.chat.completions.create({ ...hello, ...more }), (err) => {
      assert.ok(err instanceof OpenAI.BadRequestError);
      assert.equal(err.param, param);
      assert.equal(err.type, 'invalid_request_error');
      return true;
    });
  });
}

test('an unknown file is a NotFoundError', async () => {
  await assert.rejects(client.files.retrieve('file-unknown'), OpenAI.NotFoundError);
  await assert.rejects(client.files.delete('file-unknown'), OpenAI.NotFoundError);
});

test('every reply has a request id and the limits', async () => {
  const { response } = await client.chat.completions.create(hello).withResponse();
  assert.ok(response.headers.get('x-request-id'));
  assert.equal(response.headers.get('x-ratelimit-limit-requests'), '1000');
  assert.ok(Number(response.headers.get('x-ratelimit-remaining-requests')) < 1000);
  assert.match(response.headers.get('x-ratelimit-reset-requests'), /^(\d+h)?(\d+m)?(\d+(\.\d+)?m?s)?$/);
});

// docs/errors.md says what each error looks like, and what OpenAI's SDKs make of
// it.
const documented = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => /^\| \d{3} \|/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')))
  .map(([, status, type, code, param, , raised]) => ({ status, type, code, param, raised }));

const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

for (const [name, send] of Object.entries({
  'a parameter out of range': () => client.chat.completions.create({ ...hello, temperature: 3 }),
  'a body that is no object': () => client.post('/chat/completions', { body: [] }),
  'a bad service key': () => connect({ serviceKey: 'not-a-key' }).models.list(),
  'a path that one key is not enough for': () => connect({ serviceKey: null, routerKey: env('SERVICE_KEY') }).batches.list(),
  'a file that nobody has': () => client.files.retrieve('file-unknown'),
  'a session that nobody has': () => client.get('/sessions/unknown'),
  'a path that nobody has': () => client.get('/sessions/unknown/unknown'),
  'a method that a path has not': () => client.post('/sessions', { body: {} }),
  'a body beyond the limit': () => client.chat.completions.create({ model, messages: [user('x'.repeat(2 << 20))] }),
  'a file of another type': async () => client.files.create({ file: await toFile(png, 'dot.png'), purpose: 'assistants' }),
  'a body packed in another way': () => client.post('/chat/completions', { body: hello, headers: { 'content-encoding': 'br' } }),
  'a router that is down': () => client.withOptions({ baseURL: env('FLAKY_URL') }).chat.completions.create(hello),
})) {
  test(`${name} is raised as docs/errors.md says`, async () => {
    await assert.rejects(async () => await send(), (err) => {
      const { status, type, code, param } = err;
      const row = documented.find(
        (row) => row.status === `${status}` && row.type === type && row.code === `${code}` && [`${param}`, param && 'its name'].includes(row.param),
      );
      assert.ok(row, `docs/errors.md has no row for ${status} ${type} ${code} ${param}`);
      assert.equal(err.constructor, OpenAI[row.raised]);
      assert.ok(err.requestID);
      return true;
    });
  });
}

// The one test that the free plan's key is for: it has to be unused in the
// minute before.
test('the eleventh request of a minute on the free plan is a RateLimitError', async () => {
  const free = connect({ serviceKey: freeKey });
  const results = await Promise.allSettled(Array.from({ length: 11 }, () => free.chat.completions.create(hello)));
  const refused = results.filter((r) => r.status === 'rejected').map((r) => r.reason);
  assert.equal(results.length - refused.length, 10);
  assert.ok(refused[0] instanceof OpenAI.RateLimitError, String(refused[0]));
  assert.equal(refused[0].code, 'rate_limit_exceeded');
  const seconds = Number(refused[0].headers.get('retry-after'));
  assert.ok(seconds > 0 && seconds <= 60, `retry-after: ${seconds}`);

  const { text } = await ask('Hello there');
  assert.ok(text, 'another tenant is not held up');
});
