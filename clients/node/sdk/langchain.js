// LangChain.js: https://www.npmjs.com/package/@langchain/openai
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';

export const name = 'LangChain.js';

// docs: langchain
function connect({ baseURL, routerKey, serviceKey, model, ...more }) {
  return new ChatOpenAI({
    model,
    apiKey: routerKey,
    configuration: { baseURL, defaultHeaders: { serviceKey } }, // http://localhost:8080/api/v1
    ...more, // of a session: modelKwargs: { sessionId: 'ada' }
  });
}
// end

// docs: langchain one key
function connectWithOneKey({ baseURL, serviceKey, model, ...more }) {
  return new ChatOpenAI({ model, apiKey: serviceKey, configuration: { baseURL }, ...more });
}
// end

export function client({ oneKey, thread, maxRetries = 0, ...site }) {
  const chat = ({ temperature, ...backstory } = {}) =>
    (oneKey ? connectWithOneKey : connect)({ ...site, maxRetries, temperature, modelKwargs: backstory });
  const options = { options: thread && { headers: { 'X-Thread': thread } } };
  return {
    chat: async (content, extra) => (await chat(extra).invoke(content, options)).text,
    async stream(content, { leaveAfter = Infinity, ...extra } = {}) {
      const leave = new AbortController();
      let text = '';
      let deltas = 0;
      try {
        for await (const chunk of await chat(extra).stream(content, { signal: leave.signal })) {
          text += chunk.text;
          if (++deltas === leaveAfter) leave.abort();
        }
      } catch (err) {
        if (!leave.signal.aborted) throw err;
      }
      return text;
    },
    async tools(content, { name, parameters, run, ...extra }) {
      const called = tool(run, { name, schema: parameters });
      const llm = chat(extra).bindTools([called]);
      const messages = [new HumanMessage(content)];
      for (;;) {
        const reply = await llm.invoke(messages);
        messages.push(reply);
        if (!reply.tool_calls?.length) return reply.text;
        for (const call of reply.tool_calls) messages.push(await called.invoke(call));
      }
    },
    object: (content, schema, extra) => chat(extra).withStructuredOutput(schema, { method: 'jsonSchema' }).invoke(content),
    image: async (text, png, extra) =>
      (
        await chat(extra).invoke([
          new HumanMessage({
            content: [
              { type: 'text', text },
              { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
            ],
          }),
        ])
      ).text,
    statusOf: (err) => err.status,
    paramOf: (err) => err.param,
  };
}
