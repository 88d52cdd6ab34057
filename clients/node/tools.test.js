import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, client, model, newSession, user } from './setup.js';

const tools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
];

test('a tool loop of a session sends only what is new', async () => {
  const sessionId = newSession();
  const first = await ask('Please call get_weather for Oslo.', { sessionId, tools });
  assert.equal(first.reply.choices[0].finish_reason, 'tool_calls');
  const [call] = first.reply.choices[0].message.tool_calls;
  assert.equal(call.function.name, 'get_weather');
  assert.ok(JSON.parse(call.function.arguments).city);

  // The result alone: the call that it belongs to comes from memory. The demo
  // router, like every provider, would refuse a result without its call.
  const second = await client.chat.completions.create({
    model,
    sessionId,
    tools,
    messages: [{ role: 'tool', tool_call_id: call.id, content: 'Twelve degrees, clear sky' }],
  });
  assert.match(second.choices[0].message.content, /The tool get_weather returned: “Twelve degrees, clear sky”/);
  assert.equal(second._metadata.memory.historyMessages, 2);

  const third = await ask('How many degrees are there?', { sessionId });
  assert.equal(third.metadata.memory.historyMessages, 4);
  assert.match(third.text, /Twelve degrees/);
});

test('a tool loop that resends everything gets nothing twice', async () => {
  const sessionId = newSession();
  const messages = [user('Please call get_weather for Oslo.')];
  for (let turn = 0; turn < 3; turn++) {
    const called = await client.chat.completions.create({ model, sessionId, tools, messages });
    const { role, tool_calls } = called.choices[0].message;
    messages.push({ role, content: null, tool_calls });
    messages.push({ role: 'tool', tool_call_id: tool_calls[0].id, content: `${turn} degrees` });
    const answered = await client.chat.completions.create({ model, sessionId, tools, messages });
    assert.equal(called._metadata.memory.historyMessages, 0);
    assert.equal(answered._metadata.memory.historyMessages, 0);
    assert.equal(answered._metadata.context.includedMessages, messages.length);
    messages.push({ role: 'assistant', content: answered.choices[0].message.content });
    messages.push(user(`Please call get_weather once more, now for city ${turn}.`));
  }
});
