import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { ask, client, model, newSession, streamed, user } from './setup.js';

test('a stream says what the whole reply says, and carries _metadata once', async () => {
  const whole = await ask('The bridge was built in 1890.', { sessionId: newSession() });
  const sessionId = newSession();
  const stream = await streamed('The bridge was built in 1890.', { sessionId });
  assert.equal(stream.text, whole.text);
  assert.equal(stream.metadata.length, 1);
  assert.equal(stream.metadata[0].memory.sessionId, sessionId);
  assert.equal(stream.metadata[0].memory.historyMessages, 0);
  assert.deepEqual(stream.chunks[0].choices[0].delta, { role: 'assistant', content: '' });
  assert.equal(stream.chunks.at(-1).choices[0].finish_reason, 'stop');
});

test('the request right after a stream sees it', async () => {
  for (let round = 0; round < 10; round++) {
    const sessionId = newSession();
    await streamed(`The code of round ${round} is ${round}${round}.`, { sessionId });
    const { text, metadata } = await ask(`What is the code of round ${round}?`, { sessionId });
    assert.equal(metadata.memory.historyMessages, 2);
    assert.ok(text.includes(`Earlier you said: “The code of round ${round} is ${round}${round}.”`), text);
  }
});

test('a stream without a session has no _metadata', async () => {
  const { metadata, text } = await streamed('Hello there');
  assert.deepEqual(metadata, []);
  assert.match(text, /1 message, 0 of them earlier/);
});

test('comments and usage come through', async () => {
  const { chunks, metadata } = await streamed('demo:comment Hello there', {
    sessionId: newSession(),
    stream_options: { include_usage: true },
  });
  assert.equal(metadata.length, 1);
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.ok(chunks.at(-1).usage.completion_tokens > 0);
});

test("the SDK's own stream helper assembles the reply", async () => {
  const stream = client.chat.completions.stream({ model, messages: [user('demo:words 20')], sessionId: newSession() });
  const content = await stream.finalContent();
  assert.equal(content.split(' ').length, 20);
});

test('a stream that was left and sent again is one exchange', async () => {
  const sessionId = newSession();
  const body = { model, messages: [user("demo:slow 20ms My parrot's name is Kiwi.")], stream: true, sessionId };
  const left = await client.chat.completions.create(body);
  let deltas = 0;
  for await (const _ of left) {
    if (++deltas === 5) left.controller.abort();
  }
  assert.ok(deltas >= 5 && deltas < 20, `${deltas} deltas before the end`);

  const again = await client.chat.completions.create(body, { headers: { 'x-stainless-retry-count': '1' } });
  let finish;
  for await (const chunk of again) finish = chunk.choices[0].finish_reason;
  assert.equal(finish, 'stop');

  const { text, metadata } = await ask("What is my parrot's name?", { sessionId });
  assert.equal(metadata.memory.historyMessages, 2);
  assert.match(text, /Kiwi/);
});

for (const failure of ['demo:break', 'demo:error-midstream']) {
  test(`a stream that the router ends with ${failure} fails, and is not saved`, async () => {
    const sessionId = newSession();
    await assert.rejects(streamed(`${failure} The moon is made of cheese.`, { sessionId }));
    const { text, metadata } = await ask('What is the moon made of?', { sessionId });
    assert.equal(metadata.memory.historyMessages, 0);
    assert.doesNotMatch(text, /cheese/);
  });
}

test("the router's error reaches the client as it came", async () => {
  await assert.rejects(ask('demo:error 503', { sessionId: newSession() }), (err) => {
    assert.ok(err instanceof OpenAI.InternalServerError);
    assert.equal(err.status, 503);
    assert.match(err.message, /The demo router was asked to answer 503/);
    return true;
  });
});
