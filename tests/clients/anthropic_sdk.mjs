// The official Anthropic SDK against a running server with the built-in model:
//
//   npm install && node anthropic_sdk.mjs http://127.0.0.1:PORT
//
// Exits with 1 and the reason when anything is not as the SDK's users expect it.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';

const baseURL = process.argv[2] ?? process.env.COPPICE_URL;
assert(baseURL, 'usage: node anthropic_sdk.mjs http://HOST:PORT');
const client = new Anthropic({ baseURL, apiKey: process.env.COPPICE_API_KEY ?? 'none', maxRetries: 0 });

const model = (await client.models.list()).data[0];
const common = { model: model.id, max_tokens: 200, temperature: 0 };
const system = 'You are a careful agent. Use the facts and the tools.';
const tools = [{
  name: 'get_weather',
  description: 'The weather in a city.',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}];
const question = { role: 'user', content: 'What is the weather in Tavley?' };
const textOf = (message) => message.content.filter((block) => block.type === 'text').map((block) => block.text).join('');
const promptTokens = ({ usage }) =>
  usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;

const checks = {
  async models() {
    assert.equal(model.type, 'model');
    assert.ok(model.display_name);
    assert.ok(!Number.isNaN(Date.parse(model.created_at)));
    assert.equal((await client.models.retrieve(model.id)).id, model.id);
    await assert.rejects(client.models.retrieve('no-such-model'), Anthropic.NotFoundError);
  },

  async chat() {
    const message = await client.messages.create({ ...common, messages: [{ role: 'user', content: 'Who are you?' }] });
    assert.equal(message.type, 'message');
    assert.equal(message.role, 'assistant');
    assert.equal(message.stop_reason, 'end_turn');
    assert.match(textOf(message), /Coppice demo model/);
    assert.ok(message.usage.output_tokens > 0);
    assert.ok(message.coppice.computed > 0);
  },

  async stream() {
    const order = [];
    const stream = client.messages.stream({ ...common, messages: [{ role: 'user', content: 'Who are you?' }] });
    stream.on('streamEvent', (event) => order.push(event.type));
    let text = '';
    stream.on('text', (delta) => { text += delta; });
    const message = await stream.finalMessage();
    assert.equal(textOf(message), text);
    assert.match(text, /Coppice demo model/);
    assert.equal(message.stop_reason, 'end_turn');
    assert.equal(order[0], 'message_start');
    assert.deepEqual(order.slice(-3), ['content_block_stop', 'message_delta', 'message_stop']);
    assert.ok(message.usage.cache_read_input_tokens > 0, 'the same prompt as before');
  },

  async limitsAndStops() {
    const ask = (fields) =>
      client.messages.create({ ...common, messages: [{ role: 'user', content: 'Who are you?' }], ...fields });
    const short = await ask({ max_tokens: 3 });
    assert.equal(short.stop_reason, 'max_tokens');
    assert.equal(short.usage.output_tokens, 3);
    const stopped = await ask({ stop_sequences: ['demo'] });
    assert.equal(stopped.stop_reason, 'stop_sequence');
    assert.equal(stopped.stop_sequence, 'demo');
  },

  // Calls tools until the model answers in words. Each turn computes only what is new.
  async toolLoop() {
    for (const streamed of [false, true]) {
      const messages = [question];
      let calls = 0, before = 0;
      for (;;) {
        const request = { ...common, system, tools, messages };
        const message = streamed ? await client.messages.stream(request).finalMessage()
                                 : await client.messages.create(request);
        if (before > 0) assert.ok(message.usage.cache_read_input_tokens >= before, 'the last turn is still known');
        before = promptTokens(message);
        messages.push({ role: 'assistant', content: message.content });
        const used = message.content.filter((block) => block.type === 'tool_use');
        if (used.length === 0) {
          assert.equal(message.stop_reason, 'end_turn');
          assert.match(textOf(message), /Tavley: foggy, 9 degrees/);
          break;
        }
        assert.equal(message.stop_reason, 'tool_use');
        assert.deepEqual(used[0].input, { city: 'Tavley' });
        assert.equal(used[0].name, 'get_weather');
        assert.ok(++calls < 3, 'the model keeps calling');
        messages.push({
          role: 'user',
          content: used.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'Tavley: foggy, 9 degrees' })),
        });
      }
      assert.equal(calls, 1);
    }
  },

  async parallelCalls() {
    const request = { ...common, system, tools,
                      messages: [{ role: 'user', content: 'What is the weather in Tavley and Oslo?' }] };
    const message = await client.messages.stream(request).finalMessage();
    const used = message.content.filter((block) => block.type === 'tool_use');
    assert.deepEqual(used.map((call) => call.input.city), ['Tavley', 'Oslo']);
    assert.notEqual(used[0].id, used[1].id);
  },

  async toolChoice() {
    const ask = (tool_choice) => client.messages.create({ ...common, system, tools, messages: [question], tool_choice });
    assert.equal((await ask({ type: 'none' })).content.some((block) => block.type === 'tool_use'), false);
    assert.equal((await ask({ type: 'tool', name: 'get_weather' })).stop_reason, 'tool_use');
  },

  async structuredOutput() {
    const schema = { type: 'object', properties: { color: { enum: ['red', 'blue'] } }, required: ['color'],
                     additionalProperties: false };
    const message = await client.messages.create({
      ...common, max_tokens: 300, messages: [{ role: 'user', content: 'Who are you?' }],
      output_config: { format: { type: 'json_schema', schema } },
    });
    assert.ok(['red', 'blue'].includes(JSON.parse(textOf(message)).color));
  },

  async countTokens() {
    const request = { model: model.id, system, tools, messages: [question] };
    const { input_tokens } = await client.messages.countTokens(request);
    const message = await client.messages.create({ ...common, ...request });
    assert.equal(input_tokens, promptTokens(message));
  },

  async diagnostics() {
    const ask = (text, previous_message_id) => client.beta.messages.create({
      ...common, system: text, messages: [{ role: 'user', content: 'Hello.' }], diagnostics: { previous_message_id } });
    const first = await ask('Be brief.', null);
    assert.equal(first.diagnostics, null);
    assert.equal((await ask('Be brief.', first.id)).diagnostics, null);
    const changed = await ask('Be kind.', first.id);
    assert.equal(changed.diagnostics.cache_miss_reason.type, 'system_changed');
    assert.ok(changed.diagnostics.cache_miss_reason.cache_missed_input_tokens > 0);
    const unknown = await ask('Be brief.', 'msg_unknown');
    assert.equal(unknown.diagnostics.cache_miss_reason.type, 'previous_message_not_found');
  },

  async errors() {
    const bad = { ...common, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'x' } }] }] };
    await assert.rejects(client.messages.create(bad), (error) => {
      assert.ok(error instanceof Anthropic.BadRequestError);
      assert.equal(error.error.type, 'error');
      assert.equal(error.error.error.type, 'invalid_request_error');
      assert.match(error.error.error.message, /text only/);
      return true;
    });
    const long = { ...common, messages: [{ role: 'user', content: 'One two three. '.repeat(20000) }] };
    for (const attempt of [() => client.messages.create(long), () => client.messages.stream(long).finalMessage()]) {
      await assert.rejects(attempt, /prompt is too long: \d+ tokens > \d+ maximum.*maximum context length is \d+ tokens/);
    }
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack ?? error}`);
  }
}
process.exit(failed === 0 ? 0 : 1);
