// jira.js reads, moves and discusses tickets at the stand-in; it refuses answers that do not fit Jira's description.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createCloudClient } from 'jira.js/cloud';

const begin = JSON.parse(readFileSync(0, 'utf8'));
const as = ([email, apiToken]) =>
  createCloudClient({ host: begin.url, auth: { type: 'basic', email, apiToken }, onSchemaMismatch: 'throw' });
const reader = as(begin.reader);
const writer = as(begin.writer);
const issue = { issueIdOrKey: begin.key };

await read(reader);
await write(writer);
console.log('contract: jira.js did all its calls');

async function read({ issueComments, issueSearch, issues, myself, permissions, projects }) {
  await myself.getCurrentUser();
  assert.equal((await issues.getIssue({ ...issue, expand: 'changelog' })).key, begin.key);
  assert.ok((await issues.getChangeLogs(issue)).values.length >= 3);
  assert.equal((await issueComments.getComments(issue)).comments[0].author.displayName, 'Ada');
  const jql = `project = "${begin.project}" ORDER BY updated ASC`;
  const found = await issueSearch.searchAndReconsileIssuesUsingJqlPost({ jql, fields: ['*all'], maxResults: 10 });
  assert.equal(found.issues.length, 2);
  await permissions.getMyPermissions({ projectKey: begin.project, permissions: 'EDIT_ISSUES,ADD_COMMENTS' });
  await projects.getAllStatuses({ projectIdOrKey: begin.project });
  await assert.rejects(issues.getIssue({ issueIdOrKey: 'ENG-999' }), ({ status }) => status === 404);
}

async function write({ issueComments, issueRemoteLinks, issues }) {
  const paragraph = { type: 'paragraph', content: [{ type: 'text', text: 'Hello.' }] };
  const body = { type: 'doc', version: 1, content: [paragraph] };
  const { id } = await issueComments.addComment({ ...issue, body });
  await issueComments.updateComment({ ...issue, id, body: { body } });
  await issueComments.deleteComment({ ...issue, id });
  const { transitions } = await issues.getTransitions({ ...issue, expand: 'transitions.fields' });
  const review = transitions.find(({ to }) => to.name === 'In Review');
  await issues.doTransition({ ...issue, transition: { id: review.id } });
  assert.equal((await issues.getIssue(issue)).fields.status.name, 'In Review');
  await issueRemoteLinks.createOrUpdateRemoteIssueLink({
    ...issue, globalId: 'g', object: { url: 'https://example.test/2', title: 'Two' },
  });
  assert.equal((await issueRemoteLinks.getRemoteIssueLinks(issue)).length, 2);
}
