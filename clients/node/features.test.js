// What every client has to be able to do through Backstory, with the demo
// router behind it, and with a real router in between. The names of the tests
// are the rows and columns of the table that table.js prints.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { after, before, describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import * as ai from './sdk/ai.js';
import * as langchain from './sdk/langchain.js';
import * as openai from './sdk/openai.js';
import { env, model } from './setup.js';

const keys = { routerKey: env('ROUTER_KEY'), serviceKey: env('SERVICE_KEY'), model };
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const store = openai.client({ ...keys, baseURL: env('BASE_URL') });

/** The messages of a session, once it has that many. */
async function remembered(id, count) {
  for (let tries = 0; ; tries++) {
    const messages = await store.session(id).catch(() => []);
    if (messages.length >= count || tries === 100) return messages;
    await wait(50);
  }
}

for (const { name, client } of [openai, ai, langchain]) {
  for (const [route, baseURL] of [['', env('BASE_URL')], [' via Portkey', env('PORTKEY_URL')]]) {
    describe(name + route, () => {
      const connect = (more = {}) => client({ ...keys, baseURL, ...more });
      const c = connect();

      test('chat', async () => {
        assert.match(await c.chat('Hello there'), /1 message, 0 of them earlier/);
      });

      test('stream', async () => {
        assert.equal(await c.stream('The bridge was built in 1890.'), await c.chat('The bridge was built in 1890.'));
      });

      test('session', async () => {
        const sessionId = randomUUID();
        await c.chat("My dog's name is Rex.", { sessionId });
        assert.match(await c.stream("What is my dog's name?", { sessionId }), /Earlier you said: “My dog's name is Rex\.”/);
        assert.match(await c.chat('And once more: what is the name of my dog?', { sessionId }), /5 messages, 4 of them earlier/);
      });

      test('tools', async () => {
        const sessionId = randomUUID();
        const asked = [];
        const run = ({ city }) => {
          asked.push(city);
          return 'Twelve degrees, clear sky';
        };
        const parameters = z.object({ city: z.string() });
        const text = await c.tools('Please call get_weather for Oslo.', { name: 'get_weather', parameters, run, sessionId });
        assert.match(text, /The tool get_weather returned: “Twelve degrees, clear sky”/);
        assert.equal(asked.length, 1);
        const messages = await remembered(sessionId, 4);
        assert.deepEqual(messages.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant']);
        assert.match(await c.chat('How many degrees are there?', { sessionId }), /5 messages, 4 of them earlier/);
      });

      test('schema', async () => {
        const schema = z.object({ city: z.string(), degrees: z.number() });
        const found = await c.object('How warm is it in Oslo?', schema, { sessionId: randomUUID() });
        assert.ok(schema.safeParse(found).success, JSON.stringify(found));
      });

      test('images', async () => {
        const sessionId = randomUUID();
        await c.image('What is in this picture?', png, { sessionId });
        const [said] = await remembered(sessionId, 2);
        assert.equal(said.content.find((part) => part.type === 'image_url')?.image_url.url, `data:image/png;base64,${png}`);
        assert.match(await c.chat('And now?', { sessionId }), /3 messages, 2 of them earlier/);
      });

      test('abort', async () => {
        const sessionId = randomUUID();
        const text = await c.stream("demo:slow 20ms demo:words 200 My parrot's name is Kiwi.", { sessionId, leaveAfter: 5 });
        assert.ok(text.length > 0 && text.split(' ').length < 100, text);
        const [asked, answered] = await remembered(sessionId, 2);
        assert.match(asked.content, /Kiwi/);
        assert.ok(answered.content.startsWith(text.trim().split(' ').slice(0, 3).join(' ')), answered.content);
      });

      test('files', async () => {
        const file = await store.upload(`${randomUUID()}.md`, 'The lighthouse of Zembla is 93 metres tall.');
        try {
          assert.match(await c.chat('How tall is the lighthouse of Zembla?'), /93 metres tall/);
        } finally {
          await file.remove();
        }
      });

      test('one key', async () => {
        const sessionId = randomUUID();
        const one = connect({ oneKey: true });
        await one.chat('The train leaves at noon.', { sessionId });
        assert.match(await one.chat('When does the train leave?', { sessionId }), /Earlier you said: “The train leaves at noon\.”/);
      });

      test('thread', async () => {
        const named = connect({ thread: randomUUID() });
        await named.chat('The train leaves at noon.');
        assert.match(await named.chat('When does the train leave?'), /Earlier you said: “The train leaves at noon\.”/);
      });

      test('errors', async () => {
        const says = (status, param) => (err) => {
          assert.equal(c.statusOf(err), status, String(err));
          if (param) assert.equal(c.paramOf(err), param);
          return true;
        };
        await assert.rejects(connect({ serviceKey: 'not-a-key' }).chat('Hello there'), says(401));
        await assert.rejects(connect({ routerKey: 'sk-invalid' }).chat('Hello there'), says(401));
        await assert.rejects(c.chat('Hello there', { temperature: 3 }), says(400, 'temperature'));
        await assert.rejects(c.chat('demo:error 503 Hello', { sessionId: randomUUID() }), says(503));
        await assert.rejects(c.stream('demo:error-midstream Hello'));
      });
    });
  }

  // A router that fails before it answers, behind Backstory.
  describe(name, () => {
    const failures = [];
    let attempts = 0;
    const router = http.createServer((req, res) => {
      const failure = req.url.endsWith('/chat/completions') ? failures.shift() : undefined;
      if (failure) {
        attempts++;
        req.resume();
        res.writeHead(failure, { 'content-type': 'application/json', 'retry-after': '1', 'retry-after-ms': '10' });
        res.end(JSON.stringify({ error: { message: 'not now', type: 'server_error', param: null, code: null } }));
        return;
      }
      const { host, ...headers } = req.headers;
      const onward = http.request(env('ROUTER_URL') + req.url, { method: req.method, headers }, (reply) => {
        res.writeHead(reply.statusCode, reply.headers);
        reply.pipe(res);
      });
      req.pipe(onward);
    });
    before(() => new Promise((done) => router.listen(Number(env('FLAKY_PORT')), '127.0.0.1', done)));
    after(() => new Promise((done) => router.close(done) && router.closeAllConnections()));

    test('retries', async () => {
      const c = client({ ...keys, baseURL: env('FLAKY_URL'), maxRetries: 2 });
      const sessionId = randomUUID();
      failures.push(429, 500);
      assert.match(await c.chat('Hello there', { sessionId }), /1 message, 0 of them earlier/);
      assert.equal(attempts, 2);
      assert.equal((await remembered(sessionId, 2)).length, 2);
    });
  });
}
