// A reporter of node:test that writes what table.js reads: one line of JSON for
// every test of features.test.js.
export default async function* reporter(source) {
  const stack = [];
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      stack.length = data.nesting;
      stack.push(data.name);
    }
    const done = type === 'test:pass' || type === 'test:fail';
    if (done && data.nesting === 1 && data.details.type !== 'suite' && data.file.endsWith('/features.test.js')) {
      yield `${JSON.stringify({ client: stack[0], feature: data.name, ok: type === 'test:pass' })}\n`;
    }
  }
}
