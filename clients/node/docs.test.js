// docs/clients.md shows the code that connects the clients of these suites.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const doc = readFileSync(new URL('../../docs/clients.md', import.meta.url), 'utf8');
const blocks = [...doc.matchAll(/^```(?:js|go)\n([\s\S]*?)^```$/gm)].map(([, code]) => code.trim());

const snippets = {};
for (const file of ['sdk/openai.js', 'sdk/ai.js', 'sdk/langchain.js', '../go/connect_test.go']) {
  const source = readFileSync(new URL(file, import.meta.url), 'utf8');
  for (const [, name, code] of source.matchAll(/^\/\/ docs: (.*)\n([\s\S]*?)^\/\/ end$/gm)) snippets[name] = code.trim();
}

test('docs/clients.md shows what these suites run', () => {
  assert.ok(Object.keys(snippets).length >= 9, Object.keys(snippets).join());
  for (const [name, code] of Object.entries(snippets)) {
    assert.ok(blocks.includes(code), `docs/clients.md doesn't show the code of '${name}' as it is:\n${code}`);
  }
  assert.equal(blocks.length, Object.keys(snippets).length, 'a block of code that is not from these suites');
});
