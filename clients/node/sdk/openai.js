// OpenAI's client for JavaScript: https://www.npmjs.com/package/openai
import { setTimeout as wait } from 'node:timers/promises';
import OpenAI, { toFile } from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';

export const name = 'openai (Node)';

// docs: openai
function connect({ baseURL, routerKey, serviceKey }) {
  return new OpenAI({
    baseURL, // http://localhost:8080/api/v1
    apiKey: routerKey,
    defaultHeaders: { serviceKey },
  });
}
// end

// docs: openai session
function inSession(openai, model, sessionId, content) {
  return openai.chat.completions.create({ model, sessionId, messages: [{ role: 'user', content }] });
}
// end

// docs: openai one key
function connectWithOneKey({ baseURL, serviceKey }) {
  return new OpenAI({ baseURL, apiKey: serviceKey });
}
// end

/** A client of Backstory; every method takes what Backstory adds to a request. */
export function client({ model, oneKey, thread, maxRetries = 0, ...site }) {
  const openai = (oneKey ? connectWithOneKey(site) : connect(site)).withOptions({
    maxRetries,
    ...(thread && { defaultHeaders: { ...(!oneKey && { serviceKey: site.serviceKey }), 'X-Thread': thread } }),
  });
  const complete = (body) => openai.chat.completions.create({ model, ...body });
  return {
    async chat(content, { sessionId, ...extra } = {}) {
      const more = Object.keys(extra).length > 0 || sessionId === undefined;
      const reply = await (more
        ? complete({ messages: [{ role: 'user', content }], sessionId, ...extra })
        : inSession(openai, model, sessionId, content));
      return reply.choices[0].message.content;
    },
    async stream(content, { leaveAfter = Infinity, ...extra } = {}) {
      const stream = await complete({ messages: [{ role: 'user', content }], stream: true, ...extra });
      let text = '';
      let deltas = 0;
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? '';
        if (++deltas === leaveAfter) stream.controller.abort();
      }
      return text;
    },
    async tools(content, { name, parameters, run, ...extra }) {
      const runner = openai.chat.completions.runTools({
        model,
        messages: [{ role: 'user', content }],
        tools: [{ type: 'function', function: { name, parameters: parameters.toJSONSchema(), parse: JSON.parse, function: run } }],
        ...extra,
      });
      return runner.finalContent();
    },
    async object(content, schema, extra = {}) {
      const reply = await openai.chat.completions.parse({
        model,
        messages: [{ role: 'user', content }],
        response_format: zodResponseFormat(schema, 'reply'),
        ...extra,
      });
      return reply.choices[0].message.parsed;
    },
    image: (text, png, extra) =>
      openai.chat.completions
        .create({
          model,
          messages: [{ role: 'user', content: [{ type: 'text', text }, { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }] }],
          ...extra,
        })
        .then((reply) => reply.choices[0].message.content),
    async upload(name, text) {
      let file = await openai.files.create({ file: await toFile(Buffer.from(text), name), purpose: 'assistants' });
      for (; file.status === 'uploaded'; file = await openai.files.retrieve(file.id)) await wait(50);
      return { id: file.id, remove: () => openai.files.delete(file.id) };
    },
    session: (id) => openai.get(`/sessions/${encodeURIComponent(id)}/messages`, { query: { order: 'asc' } }).then((list) => list.data),
    statusOf: (err) => err.status,
    paramOf: (err) => err.param,
  };
}
