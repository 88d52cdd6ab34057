import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { ask, client, newSession, streamed } from './setup.js';

const text = `# Returns

## Jackets

A jacket can be returned within 45 days of delivery, if it is unworn.

## Shoes

Shoes can be exchanged in every shop. They are never refunded.
`;

async function upload(name, content) {
  const file = await client.files.create({ file: await toFile(Buffer.from(content), name), purpose: 'assistants' });
  return client.files.waitForProcessing(file.id, { pollInterval: 100, maxWait: 30_000 });
}

describe('a file', () => {
  let file;
  before(async () => {
    file = await upload('returns.md', text);
  });
  after(async () => {
    await client.files.delete(file.id);
  });

  test('is described as it was uploaded', () => {
    assert.equal(file.object, 'file');
    assert.equal(file.filename, 'returns.md');
    assert.equal(file.bytes, Buffer.byteLength(text));
    assert.equal(file.purpose, 'assistants');
    assert.equal(file.status, 'processed');
    assert.ok(file.created_at > 0);
  });

  test('is listed', async () => {
    const ids = [];
    for await (const f of client.files.list()) ids.push(f.id);
    assert.ok(ids.includes(file.id));
  });

  test('can be read back', async () => {
    const content = await client.files.content(file.id);
    assert.equal(await content.text(), text);
  });

  test('uploaded again is the same file', async () => {
    assert.equal((await upload('returns.md', text)).id, file.id);
  });

  test('answers a question, with its source', async () => {
    const { text: answer, metadata } = await ask('Within how many days can a jacket be returned?');
    assert.match(answer, /From returns\.md: “A jacket can be returned within 45 days/);
    assert.equal(metadata.memory, undefined);
    assert.equal(metadata.rag.enabled, true);
    assert.ok(metadata.rag.resultsFound >= 1);
    assert.equal(metadata.rag.query, 'Within how many days can a jacket be returned?');
    assert.equal(metadata.rag.sources[0].fileId, file.id);
    assert.equal(metadata.rag.sources[0].filename, 'returns.md');
    assert.equal(metadata.context.includedChunks, metadata.rag.sources.length);
  });

  test('answers a streamed question, with its source', async () => {
    const { text: answer, metadata } = await streamed('Within how many days can a jacket be returned?');
    assert.match(answer, /From returns\.md: “A jacket can be returned within 45 days/);
    assert.equal(metadata.length, 1);
    assert.equal(metadata[0].rag.sources[0].fileId, file.id);
  });

  test('is not searched with useRAG: false', async () => {
    const plain = await ask('Within how many days can a jacket be returned?', { useRAG: false });
    assert.doesNotMatch(plain.text, /passage|45 days/);
    assert.equal(plain.metadata, undefined);
    const inSession = await ask('Within how many days can a jacket be returned?', { useRAG: false, sessionId: newSession() });
    assert.deepEqual(inSession.metadata.rag, { enabled: false });
  });

  test('is searched for the ragQuery, and the message stays what it was', async () => {
    const { text: answer, metadata } = await ask('Please help.', { ragQuery: 'exchange of shoes' });
    assert.equal(metadata.rag.query, 'exchange of shoes');
    assert.equal(metadata.rag.sources[0].fileId, file.id);
    assert.match(answer, /1 message, 0 of them earlier, and \d+ passages?\./);
  });

  test('is quoted to the model and not kept in memory', async () => {
    const sessionId = newSession();
    await ask('Within how many days can a jacket be returned?', { sessionId });
    const { data } = await client.get(`/sessions/${encodeURIComponent(sessionId)}/messages`, { query: { order: 'asc' } });
    assert.equal(data[0].content, 'Within how many days can a jacket be returned?');
  });
});

test('a deleted file is gone, from answers too', async () => {
  const file = await upload('tower.md', 'The tower is 93 metres tall.');
  assert.match((await ask('How tall is the tower?')).text, /93 metres/);
  const deleted = await client.files.delete(file.id);
  assert.deepEqual(deleted, { id: file.id, object: 'file', deleted: true });
  await assert.rejects(client.files.retrieve(file.id), OpenAI.NotFoundError);
  const { text: answer, metadata } = await ask('How tall is the tower?');
  assert.doesNotMatch(answer, /93 metres/);
  assert.equal(metadata, undefined);
});

test('a file without readable text is refused, and the message says why', async () => {
  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
  const file = await toFile(png, 'dot.png', { type: 'image/png' });
  await assert.rejects(client.files.create({ file, purpose: 'assistants' }), (err) => {
    assert.ok(err instanceof OpenAI.APIError);
    assert.equal(err.status, 415);
    assert.match(err.message, /text|type|image|PNG/i);
    return true;
  });
});
