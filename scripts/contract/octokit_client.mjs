// Octokit reads, opens and discusses pull requests at the stand-in, with tokens and as an App.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { App, Octokit } from 'octokit';

const begin = JSON.parse(readFileSync(0, 'utf8'));
const [owner, repo] = begin.repository.split('/');
const here = { owner, repo };
// Without retries and pauses: a refusal is to be seen at once.
const options = { baseUrl: begin.url, retry: { enabled: false }, throttle: { enabled: false } };
const reader = new Octokit({ ...options, auth: begin.reader });
const writer = new Octokit({ ...options, auth: begin.writer });

await read(reader.rest);
await write(writer);
await useApp();
console.log('contract: octokit did all its calls');

async function read({ checks, issues, pulls, repos, git, users }) {
  await users.getAuthenticated();
  await repos.get(here);
  await repos.getBranch({ ...here, branch: 'main' });
  await repos.getBranchRules({ ...here, branch: 'main' });
  await repos.getCollaboratorPermissionLevel({ ...here, username: 'ada' });
  await repos.getCombinedStatusForRef({ ...here, ref: begin.head });
  await git.getRef({ ...here, ref: 'heads/first' });
  const pull = { ...here, pull_number: begin.number };
  assert.equal((await pulls.get(pull)).data.head.sha, begin.head);
  assert.equal((await pulls.listReviews(pull)).data[0].state, 'CHANGES_REQUESTED');
  assert.equal((await pulls.listReviewComments(pull)).data[0].path, 'src/cart.txt');
  const all = await reader.paginate(pulls.list, { ...here, state: 'all', per_page: 1 });
  assert.ok(all.length >= 2, `${all.length} pull requests`);
  const { check_runs: runs } = (await checks.listForRef({ ...here, ref: begin.head })).data;
  assert.deepEqual(runs.map(({ name }) => name).sort(), ['lint', 'test']);
  await issues.listComments({ ...here, issue_number: begin.number });
  await issues.listCommentsForRepo(here);
}

async function write({ graphql, rest: { issues, pulls } }) {
  const made = await pulls.create({ ...here, base: 'main', head: 'third', title: 'Third', draft: true });
  const pull = { ...here, pull_number: made.data.number };
  const issue = { ...here, issue_number: made.data.number };
  const ready = 'mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { id isDraft } } }';
  const answer = await graphql(ready, { id: made.data.node_id });
  assert.equal(answer.markPullRequestReadyForReview.pullRequest.isDraft, false);
  await pulls.update({ ...pull, title: 'The third' });
  await pulls.requestReviewers({ ...pull, reviewers: ['ada'] });
  await issues.addLabels({ ...issue, labels: ['journeyman'] });
  const comment = await issues.createComment({ ...issue, body: 'Hello.' });
  await issues.updateComment({ ...here, comment_id: comment.data.id, body: 'Hello again.' });
  await issues.deleteComment({ ...here, comment_id: comment.data.id });
  await pulls.update({ ...pull, state: 'closed' });
  const again = { ...here, base: 'main', head: 'nowhere', title: 'None' };
  await assert.rejects(pulls.create(again), ({ status }) => status === 422);
}

async function useApp() {
  const app = new App({ appId: begin.app, privateKey: begin.key, Octokit: Octokit.defaults(options) });
  await app.octokit.rest.apps.getAuthenticated();
  await app.octokit.rest.apps.listWebhookDeliveries();
  const installation = await app.octokit.rest.apps.getRepoInstallation(here);
  const octokit = await app.getInstallationOctokit(installation.data.id);
  assert.equal((await octokit.rest.repos.get(here)).data.full_name, begin.repository);
}
