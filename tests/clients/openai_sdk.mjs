// The official OpenAI SDK against a running server, over Chat Completions and Responses.
import assert from 'node:assert/strict';

import OpenAI from 'openai';

import { baseURL, cityParameters, collect, fails, question, runAll, system, test, weather } from './harness.mjs';

const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const who = 'Who are you?';
const isDemo = (text) => assert.match(text, /demo model/);

// --- Chat Completions

const chatTool = { type: 'function', function: { name: 'get_weather', parameters: cityParameters } };
const chatMessages = [
  { role: 'system', content: system },
  { role: 'user', content: question },
];

test('chat: an answer', async () => {
  const answer = await client.chat.completions.create({ model, temperature: 0, messages: [{ role: 'user', content: who }] });
  isDemo(answer.choices[0].message.content);
  assert.equal(answer.choices[0].finish_reason, 'stop');
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
});

test('chat: a stream with usage', async () => {
  const chunks = await collect(
    await client.chat.completions.create({
      model,
      temperature: 0,
      messages: [{ role: 'user', content: [{ type: 'text', text: who }] }],
      stream: true,
      stream_options: { include_usage: true },
    }),
  );
  isDemo(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join(''));
  assert.equal(chunks.at(-2).choices[0].finish_reason, 'stop');
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.ok(chunks.at(-1).usage.prompt_tokens > 0);
});

test('chat: the SDK runs a tool loop to the final answer', async () => {
  const asked = [];
  const runner = client.chat.completions.runTools({
    model,
    temperature: 0,
    stream: true,
    messages: chatMessages,
    tools: [
      {
        type: 'function',
        function: {
          name: 'get_weather',
          parameters: cityParameters,
          parse: JSON.parse,
          function: ({ city }) => {
            asked.push(city);
            return weather;
          },
        },
      },
    ],
  });
  const text = await runner.finalContent();
  assert.deepEqual(asked, ['Tavley']);
  assert.ok(text.includes('rain'), text);
});

test('chat: a forced tool', async () => {
  const answer = await client.chat.completions.create({
    model,
    temperature: 0,
    messages: [{ role: 'user', content: 'What time is it in Tavley?' }],
    tools: [chatTool],
    tool_choice: { type: 'function', function: { name: 'get_weather' } },
    parallel_tool_calls: false,
    max_completion_tokens: 200,
  });
  const call = answer.choices[0].message.tool_calls[0];
  assert.equal(call.function.name, 'get_weather');
  assert.equal(typeof JSON.parse(call.function.arguments).city, 'string');
});

test('chat: structured output', async () => {
  const schema = {
    type: 'object',
    properties: { sunny: { type: 'boolean' }, wind: { enum: ['low', 'high'] } },
    required: ['sunny', 'wind'],
    additionalProperties: false,
  };
  const answer = await client.chat.completions.parse({
    model,
    temperature: 0,
    messages: chatMessages,
    response_format: { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema } },
  });
  const { parsed } = answer.choices[0].message;
  assert.equal(typeof parsed.sunny, 'boolean');
  assert.ok(['low', 'high'].includes(parsed.wind));
});

const tooLong = 'word '.repeat(100_000);
const isOverflow = (error) => {
  assert.equal(error.status, 400);
  assert.equal(error.code, 'context_length_exceeded');
  assert.match(error.message, /maximum context length is \d+ tokens/);
  assert.match(error.message, /prompt is too long: \d+ tokens > \d+ maximum/);
};

test('chat: errors', async () => {
  await fails(
    () => client.chat.completions.create({ model, messages: [] }),
    (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, 'messages');
      assert.equal(error.type, 'invalid_request_error');
    },
  );
  await fails(
    () => client.chat.completions.create({ model, stream: true, messages: [{ role: 'user', content: tooLong }] }),
    isOverflow,
  );
});

// --- Responses

const tool = { type: 'function', name: 'get_weather', parameters: cityParameters, strict: true };

test('responses: an answer', async () => {
  const response = await client.responses.create({ model, temperature: 0, input: who });
  isDemo(response.output_text);
  assert.equal(response.status, 'completed');
  assert.equal(response.usage.total_tokens, response.usage.input_tokens + response.usage.output_tokens);
});

test('responses: a stream that the SDK accumulates', async () => {
  const stream = client.responses.stream({ model, temperature: 0, input: who });
  const events = await collect(stream);
  const response = await stream.finalResponse();
  isDemo(response.output_text);
  assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
  assert.equal(events[0].type, 'response.created');
  assert.equal(events.at(-1).type, 'response.completed');
});

test('responses: a tool loop to the final answer, streamed, all input sent again', async () => {
  const input = [{ role: 'user', content: question }];
  const ask = () =>
    client.responses.stream({ model, temperature: 0, instructions: system, input, tools: [tool], store: false }).finalResponse();
  const first = await ask();
  const call = first.output.find((item) => item.type === 'function_call');
  assert.equal(call.name, 'get_weather');
  assert.deepEqual(JSON.parse(call.arguments), { city: 'Tavley' });
  input.push(...first.output, { type: 'function_call_output', call_id: call.call_id, output: weather });
  const second = await ask();
  assert.ok(second.output_text.includes('rain'), second.output_text);
  // All of the first turn is in the cache, and of what it generated all that the template shows again.
  assert.ok(second.usage.input_tokens_details.cached_tokens >= first.usage.input_tokens, JSON.stringify(second.usage));
});

test('responses: the same by previous_response_id', async () => {
  const first = await client.responses.create({ model, temperature: 0, instructions: system, input: question, tools: [tool] });
  const call = first.output.find((item) => item.type === 'function_call');
  const second = await client.responses.create({
    model,
    temperature: 0,
    instructions: system,
    previous_response_id: first.id,
    input: [{ type: 'function_call_output', call_id: call.call_id, output: [{ type: 'input_text', text: weather }] }],
    tools: [tool],
    prompt_cache_options: { comparison_response_id: first.id },
  });
  assert.ok(second.output_text.includes('rain'), second.output_text);
  assert.equal(second.prompt_cache_diagnostics.type, 'cache_hit');
  assert.ok(second.usage.input_tokens_details.cached_tokens >= first.usage.input_tokens);
});

test('responses: stored ones can be read and deleted', async () => {
  const made = await client.responses.create({ model, input: who, max_output_tokens: 5, metadata: { kind: 'test' } });
  assert.equal(made.status, 'incomplete');
  assert.equal(made.incomplete_details.reason, 'max_output_tokens');
  const read = await client.responses.retrieve(made.id);
  assert.deepEqual(read.output, made.output);
  assert.deepEqual(read.metadata, { kind: 'test' });
  const items = await collect(await client.responses.inputItems.list(made.id));
  assert.equal(items[0].content[0].text, who);
  await client.responses.delete(made.id);
  await fails(() => client.responses.retrieve(made.id), (error) => assert.equal(error.status, 404));
});

test('responses: structured output', async () => {
  const schema = {
    type: 'object',
    properties: { sunny: { type: 'boolean' } },
    required: ['sunny'],
    additionalProperties: false,
  };
  const response = await client.responses.parse({
    model,
    temperature: 0,
    input: question,
    text: { format: { type: 'json_schema', name: 'weather', strict: true, schema } },
  });
  assert.equal(typeof response.output_parsed.sunny, 'boolean');
});

test('responses: a custom tool and one in a namespace', async () => {
  const forced = (name, extra) =>
    client.responses.create({
      model,
      temperature: 0,
      input: question,
      max_output_tokens: 60,
      tool_choice: { name, ...extra },
      tools: [
        { type: 'custom', name: 'note', description: 'Writes a note.' },
        { type: 'namespace', name: 'mcp__city', description: 'Cities.', tools: [tool] },
      ],
    });
  const custom = (await forced('note', { type: 'custom' })).output.find((item) => item.type === 'custom_tool_call');
  assert.equal(custom.name, 'note');
  assert.equal(typeof custom.input, 'string');
  const spaced = (await forced('get_weather', { type: 'function', namespace: 'mcp__city' })).output.find(
    (item) => item.type === 'function_call',
  );
  assert.equal(spaced.namespace, 'mcp__city');
  assert.equal(spaced.name, 'get_weather');
});

test('responses: errors', async () => {
  await fails(() => client.responses.create({ model, input: tooLong, stream: true }), isOverflow);
  await fails(
    () => client.responses.create({ model, input: 'x', previous_response_id: 'resp_gone' }),
    (error) => {
      assert.equal(error.status, 404);
      assert.equal(error.code, 'previous_response_not_found');
    },
  );
  await fails(
    () => client.responses.create({ model, input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'x' }] }] }),
    (error) => assert.match(error.message, /text only/),
  );
});

await runAll();
