// The Vercel AI SDK against a running server, over Chat Completions and Responses.
import assert from 'node:assert/strict';

import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';

import { baseURL, cityParameters, collect, fails, question, runAll, serverUrl, system, test, weather } from './harness.mjs';

const id = (await (await fetch(`${serverUrl}/v1/models`)).json()).data[0].id;
const compatible = createOpenAICompatible({
  name: 'coppice',
  baseURL,
  apiKey: 'none',
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const openai = createOpenAI({ baseURL, apiKey: 'none' });

const apis = {
  'chat (openai-compatible)': { model: compatible(id) },
  'responses (openai)': { model: openai.responses(id) },
  'responses, not stored': { model: openai.responses(id), providerOptions: { openai: { store: false } } },
};

function weatherTool(asked) {
  return tool({
    description: '',
    inputSchema: jsonSchema(cityParameters),
    execute: ({ city }) => {
      asked.push(city);
      return weather;
    },
  });
}

for (const [name, api] of Object.entries(apis)) {
  const common = { ...api, temperature: 0, maxRetries: 0 };

  test(`${name}: an answer`, async () => {
    const { text, finishReason, usage } = await generateText({ ...common, prompt: 'Who are you?' });
    assert.match(text, /demo model/);
    assert.equal(finishReason, 'stop');
    assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
  });

  test(`${name}: a stream`, async () => {
    const result = streamText({ ...common, prompt: 'Who are you?' });
    const parts = await collect(result.fullStream);
    assert.deepEqual(parts.filter((part) => part.type === 'error'), []);
    assert.match(await result.text, /demo model/);
    assert.ok((await result.usage).inputTokens > 0);
  });

  test(`${name}: a tool loop to the final answer`, async () => {
    const asked = [];
    const result = streamText({
      ...common,
      system,
      prompt: question,
      tools: { get_weather: weatherTool(asked) },
      stopWhen: stepCountIs(4),
    });
    const parts = await collect(result.fullStream);
    assert.deepEqual(parts.filter((part) => part.type === 'error'), []);
    assert.deepEqual(asked, ['Tavley']);
    assert.match(await result.text, /rain/);
    const [first, second] = await result.steps;
    assert.ok(second.usage.cachedInputTokens >= first.usage.inputTokens, JSON.stringify(second.usage));
  });

  test(`${name}: structured output`, async () => {
    const schema = jsonSchema({
      type: 'object',
      properties: { sunny: { type: 'boolean' } },
      required: ['sunny'],
      additionalProperties: false,
    });
    const { output } = await generateText({ ...common, prompt: question, output: Output.object({ schema }) });
    assert.equal(typeof output.sunny, 'boolean');
  });

  test(`${name}: an error`, async () => {
    await fails(
      () => generateText({ ...common, prompt: 'word '.repeat(100_000) }),
      (error) => {
        assert.ok(APICallError.isInstance(error));
        assert.equal(error.statusCode, 400);
        assert.equal(error.data.error.code, 'context_length_exceeded');
      },
    );
  });
}

await runAll();
