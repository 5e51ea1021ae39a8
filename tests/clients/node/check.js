// How does each client's script say what held and what did not?

import assert from "node:assert/strict";

const checks = [];

// Has a function be run by `main`; its name says what should hold.
export const check = (name, run) => checks.push([name, run]);

export const same = (found, expected) => assert.deepEqual(found, expected);

// A call has to fail, and to say what is wrong.
export async function fails(call, told) {
  const said = await call().then(() => "no error", error => String(error.message));
  assert.ok(said.includes(told), `${told} is not in ${said}`);
}

// All that a stream gives.
export async function all(stream) {
  const found = [];
  for await (const item of stream) found.push(item);
  return found;
}

// Runs all checks, one line each; ends with 1 where one failed.
export async function main() {
  let failed = 0;
  for (const [name, run] of checks) {
    try {
      await run();
      console.log(`ok ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAILED ${name}\n${error.stack}`);
    }
  }
  process.exit(failed ? 1 : 0);
}
