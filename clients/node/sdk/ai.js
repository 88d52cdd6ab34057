// The Vercel AI SDK: https://www.npmjs.com/package/ai
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, Output, stepCountIs, streamText, tool } from 'ai';

export const name = 'Vercel AI SDK';

// docs: ai
function connect({ baseURL, routerKey, serviceKey }) {
  return createOpenAICompatible({
    name: 'backstory',
    baseURL, // http://localhost:8080/api/v1
    apiKey: routerKey,
    headers: { serviceKey },
    supportsStructuredOutputs: true,
  });
}
// end

// docs: ai session
function inSession(provider, model, sessionId, prompt) {
  return generateText({ model: provider(model), prompt, providerOptions: { backstory: { sessionId } } });
}
// end

// docs: ai one key
function connectWithOneKey({ baseURL, serviceKey }) {
  return createOpenAICompatible({ name: 'backstory', baseURL, apiKey: serviceKey, supportsStructuredOutputs: true });
}
// end

export function client({ model: id, oneKey, thread, maxRetries = 0, ...site }) {
  const provider = oneKey ? connectWithOneKey(site) : connect(site);
  const ask = ({ temperature, ...backstory } = {}) => ({
    model: provider(id),
    maxRetries,
    temperature,
    headers: thread && { 'X-Thread': thread },
    providerOptions: { backstory },
  });
  return {
    async chat(prompt, extra = {}) {
      const plain = Object.keys(extra).length === 1 && extra.sessionId && !thread && !maxRetries;
      const { text } = await (plain ? inSession(provider, id, extra.sessionId, prompt) : generateText({ prompt, ...ask(extra) }));
      return text;
    },
    async stream(prompt, { leaveAfter = Infinity, ...extra } = {}) {
      const leave = new AbortController();
      let failure;
      const { textStream } = streamText({
        prompt,
        abortSignal: leave.signal,
        onError: ({ error }) => {
          failure = error;
        },
        ...ask(extra),
      });
      let text = '';
      let deltas = 0;
      for await (const delta of textStream) {
        text += delta;
        if (++deltas === leaveAfter) leave.abort();
      }
      if (failure) throw failure;
      return text;
    },
    async tools(prompt, { name, parameters, run, ...extra }) {
      const { text } = await generateText({
        prompt,
        tools: { [name]: tool({ inputSchema: parameters, execute: run }) },
        stopWhen: stepCountIs(5),
        ...ask(extra),
      });
      return text;
    },
    async object(prompt, schema, extra = {}) {
      const { output } = await generateText({ prompt, output: Output.object({ schema }), ...ask(extra) });
      return output;
    },
    async image(text, png, extra) {
      const content = [
        { type: 'text', text },
        { type: 'image', image: Buffer.from(png, 'base64'), mediaType: 'image/png' },
      ];
      return (await generateText({ messages: [{ role: 'user', content }], ...ask(extra) })).text;
    },
    statusOf: (err) => (err.lastError ?? err).statusCode,
    paramOf: (err) => (err.lastError ?? err).data?.error.param,
  };
}
