// Compares what was recorded (JSON lines, see crates/testkit/src/exchanges.rs) with what GitHub and Atlassian publish.
// Fails with everything that differs and is not excused, and with every excuse that nothing needs any more.
import { readFileSync } from 'node:fs';
import * as github from './github.mjs';
import * as jira from './jira.mjs';

/** The name under which our own clients call. */
const OURS = 'journeyman';
const vendors = { github, jira };

const excused = JSON.parse(readFileSync(new URL('excused.json', import.meta.url), 'utf8'));
const lines = readFileSync(process.argv[2], 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const counts = new Map();
const found = new Map();

for (const line of lines) {
  const vendor = vendors[line.service];
  if (line.webhook) {
    if (vendor.checkWebhook) note(line.service, 'webhooks', vendor.checkWebhook(line));
  } else if (vendor.isDescribed?.(line.request) ?? true) {
    const isOurs = line.request.agent === OURS;
    note(line.service, 'answers', await vendor.checkExchange(line, isOurs));
    if (isOurs) count(`${line.service} requests of ours`);
  }
}
for (const document of lines.flatMap(jira.documentsOf)) note('jira', 'documents', jira.checkDocument(document));

function note(service, kind, { name, problems }) {
  count(`${service} ${kind}`);
  for (const problem of new Set(problems)) {
    const finding = `${service} ${name}: ${problem}`;
    found.set(finding, (found.get(finding) ?? 0) + 1);
  }
}

function count(what) {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

for (const [what, number] of counts) console.log(`contract: ${number} ${what} checked`);
const unexcused = [...found].filter(([finding]) => !(finding in excused));
const needless = Object.keys(excused).filter((finding) => !found.has(finding));
for (const [finding, number] of unexcused) console.error(`contract: ${finding} (${number} times)`);
for (const finding of needless) console.error(`contract: nothing needs this excuse: ${finding}`);
console.log(`contract: ${found.size - unexcused.length} findings are excused`);
for (const what of ['github answers', 'github webhooks', 'github requests of ours', 'jira answers', 'jira documents']) {
  if (!counts.has(what)) unexcused.push(console.error(`contract: no ${what} were recorded`));
}
process.exit(unexcused.length || needless.length ? 1 : 0);
