// Prints the table of clients and features from the results of the suites:
// node table.js <lines of reporter.js> <output of go test -json>
import { readFileSync } from 'node:fs';

const features = ['chat', 'stream', 'session', 'tools', 'schema', 'images', 'abort', 'retries', 'files', 'one key', 'thread', 'errors'];

// The features that the tests of OpenAI's Go client show.
const go = {
  chat: ['TestPlainRequestIsTheRoutersReply'],
  stream: ['TestStreamSaysWhatTheWholeReplySays'],
  session: ['TestSecondRequestOfASessionIsAnsweredFromTheFirst'],
  tools: ['TestStreamedToolLoopOfASession'],
  schema: ['TestStructuredOutput'],
  images: ['TestImagesAreRemembered'],
  abort: ['TestStreamThatWasLeftAndSentAgainIsOneExchange'],
  retries: ['TestFailuresOfTheRouterAreRetried'],
  files: ['TestFileFromUploadToDeletion', 'TestAnswersFromAFile'],
  'one key': ['TestOneKeyIsEnough'],
  thread: ['TestAHeaderNamesTheSession'],
  errors: ['TestBadKeys', 'TestBadRequestsNameTheParameter', 'TestUnknownFileIsNotFound', 'TestFreePlanAllowsTenRequestsAMinute'],
};

const lines = (path) => readFileSync(path, 'utf8').split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));

const rows = new Map();
for (const { client, feature, ok } of lines(process.argv[2])) {
  if (!rows.has(client)) rows.set(client, {});
  rows.get(client)[feature] = ok;
}
const outcome = new Map(lines(process.argv[3]).filter((e) => e.Test && /pass|fail/.test(e.Action)).map((e) => [e.Test, e.Action === 'pass']));
const row = {};
for (const [feature, tests] of Object.entries(go)) {
  const ran = tests.map((name) => outcome.get(name));
  if (ran.some((ok) => ok !== undefined)) row[feature] = ran.every((ok) => ok === true);
}
rows.set('openai-go', row);

const show = (ok) => (ok === undefined ? '–' : ok ? 'pass' : 'FAIL');
const width = Math.max(...[...rows.keys()].map((name) => name.length));
console.log(['client'.padEnd(width), ...features].join('  '));
for (const [name, results] of rows) {
  console.log([name.padEnd(width), ...features.map((f) => show(results[f]).padEnd(f.length))].join('  ').trimEnd());
}
