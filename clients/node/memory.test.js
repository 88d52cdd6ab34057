import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, client, model, newSession, user } from './setup.js';

test('a plain request is answered by the router, with nothing added', async () => {
  const { text, reply } = await ask('Hello there');
  assert.match(text, /1 message, 0 of them earlier/);
  assert.equal(reply.object, 'chat.completion');
  assert.equal(reply.choices[0].finish_reason, 'stop');
  assert.ok(reply.usage.total_tokens > 0);
  assert.equal('_metadata' in reply, false);
});

test('the second request of a session is answered from the first', async () => {
  const sessionId = newSession();
  const first = await ask("My dog's name is Rex.", { sessionId });
  assert.equal(first.metadata.memory.sessionId, sessionId);
  assert.equal(first.metadata.memory.historyMessages, 0);

  const second = await ask("What is my dog's name?", { sessionId });
  assert.ok(second.metadata.memory.historyMessages >= 2);
  assert.equal(second.metadata.context.includedMessages, 3);
  assert.match(second.text, /Earlier you said: “My dog's name is Rex\.”/);
});

test('sessions know nothing of each other', async () => {
  await ask('The password is swordfish.', { sessionId: newSession() });
  const { text, metadata } = await ask('What is the password?', { sessionId: newSession() });
  assert.equal(metadata.memory.historyMessages, 0);
  assert.doesNotMatch(text, /swordfish/);
});

test('any string names a session', async () => {
  for (const name of ['a/b?c=d#e', 'Zoë 🦊\n"quoted"', '{x}:*', ' ']) {
    const sessionId = name + newSession();
    await ask('The train leaves at noon.', { sessionId });
    const { metadata } = await ask('When does the train leave?', { sessionId });
    assert.equal(metadata.memory.sessionId, sessionId);
    assert.equal(metadata.memory.historyMessages, 2);
  }
});

test('saveToMemory: false reads the memory and leaves it as it was', async () => {
  const sessionId = newSession();
  await ask("My dog's name is Rex.", { sessionId });
  const unsaved = await ask("My cat's name is Tom.", { sessionId, saveToMemory: false });
  assert.equal(unsaved.metadata.memory.historyMessages, 2);

  const after = await ask("What is my cat's name?", { sessionId });
  assert.equal(after.metadata.memory.historyMessages, 2);
  assert.doesNotMatch(after.text, /Tom/);
});

test('a client that resends its whole history gets and stores nothing twice', async () => {
  const sessionId = newSession();
  const messages = [];
  for (let turn = 1; turn <= 30; turn++) {
    messages.push(user(`Fact ${turn}: the number of box ${turn} is ${turn * 7}.`));
    const reply = await client.chat.completions.create({ model, messages, sessionId });
    assert.equal(reply._metadata.memory.historyMessages, 0, `turn ${turn}`);
    assert.equal(reply._metadata.context.includedMessages, messages.length, `turn ${turn}`);
    const { role, content } = reply.choices[0].message;
    assert.match(content, new RegExp(`: ${messages.length} messages?, ${messages.length - 1} of them earlier`));
    messages.push({ role, content });
  }
  const stored = await client.get(`/sessions/${encodeURIComponent(sessionId)}/messages`, { query: { limit: 100 } });
  assert.equal(stored.data.length, messages.length);
});
