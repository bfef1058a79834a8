// What the client tests share: which server, how to name and count tests, and the tool that the built-in model can use.
import assert from 'node:assert/strict';

export const serverUrl = (process.argv[2] ?? process.env.COPPICE_URL ?? 'http://127.0.0.1:8080').replace(/\/$/, '');
export const baseURL = `${serverUrl}/v1`;

export const system = 'You are a careful agent. Use the facts and the tools.';
export const question = 'What is the weather in Tavley?';
export const weather = 'Tavley: rain, 12 degrees';
export const cityParameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

const tests = [];
export function test(name, run) {
  tests.push({ name, run });
}

// Runs all tests in order; the process fails if one does.
export async function runAll() {
  let failed = 0;
  for (const { name, run } of tests) {
    try {
      await run();
      console.log(`ok    ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${name}\n${error.stack ?? error}`);
    }
  }
  console.log(`${tests.length - failed} of ${tests.length} passed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

export async function collect(stream) {
  const out = [];
  for await (const item of stream) out.push(item);
  return out;
}

// `run` must fail with what `check` accepts.
export async function fails(run, check) {
  await assert.rejects(run, (error) => {
    check(error);
    return true;
  });
}
