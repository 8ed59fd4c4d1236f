// What is published about Jira: Atlassian's schema of documents (ADF), and its description of the REST interface, which
// is not in a registry itself, as the client jira.js has it in code. Jira's webhooks are described nowhere.
import { createRequire } from 'node:module';
import { compiler } from './schemas.mjs';

// Unknown properties are refused then; jira.js looks when it is loaded.
process.env.AUDIT_SCHEMAS = 'true';
const cloud = await import('jira.js/cloud');

const require = createRequire(import.meta.url);
const documents = compiler(require('@atlaskit/adf-schema/json-schema/v1/full.json'));

const ISSUE = '/rest/api/3/issue/KEY';
/** The functions of jira.js by what they call. */
const CALLS = {
  'GET /rest/api/3/myself': cloud.getCurrentUser,
  'POST /rest/api/3/search/jql': cloud.searchAndReconsileIssuesUsingJqlPost,
  'GET /rest/api/3/user/groups': cloud.getUserGroups,
  'GET /rest/api/3/field': cloud.getFields,
  'GET /rest/api/3/groups/picker': cloud.findGroups,
  'GET /rest/api/3/group/member': cloud.getUsersFromGroup,
  'GET /rest/api/3/mypermissions': cloud.getMyPermissions,
  'GET /rest/api/3/project/search': cloud.searchProjects,
  'GET /rest/api/3/project/KEY/statuses': cloud.getAllStatuses,
  'GET /rest/api/3/project/KEY/role': cloud.getProjectRoles,
  'GET /rest/api/3/project/KEY/role/ID': cloud.getProjectRole,
  'GET /rest/api/3/issueLinkType': cloud.getIssueLinkTypes,
  'POST /rest/api/3/issueLink': cloud.linkIssues,
  [`GET ${ISSUE}`]: cloud.getIssue,
  [`PUT ${ISSUE}`]: cloud.editIssue,
  [`PUT ${ISSUE}/assignee`]: cloud.assignIssue,
  [`GET ${ISSUE}/changelog`]: cloud.getChangeLogs,
  [`GET ${ISSUE}/comment`]: cloud.getComments,
  [`POST ${ISSUE}/comment`]: cloud.addComment,
  [`GET ${ISSUE}/comment/ID`]: cloud.getComment,
  [`PUT ${ISSUE}/comment/ID`]: (client, given) => cloud.updateComment(client, { ...given, body: cloud.CommentSchema.shape }),
  [`DELETE ${ISSUE}/comment/ID`]: cloud.deleteComment,
  [`GET ${ISSUE}/transitions`]: cloud.getTransitions,
  [`POST ${ISSUE}/transitions`]: cloud.doTransition,
  'GET /rest/api/3/attachment/content/ID': cloud.getAttachmentContent,
  [`GET ${ISSUE}/remotelink`]: cloud.getRemoteIssueLinks,
  [`POST ${ISSUE}/remotelink`]: cloud.createOrUpdateRemoteIssueLink,
};

/** The name of an exchange and what is wrong with it; `isOurs` is whether one of our clients asked. */
export async function checkExchange({ request, answer }, isOurs) {
  const url = new URL(request.path, 'http://jira');
  const path = url.pathname.replace(/\/(issue|project)\/(?!search$)[^/]+/, '/$1/KEY').replace(/\/(comment|role|content)\/[^/]+$/, '/$1/ID');
  const name = `${request.method} ${path}`;
  if (!CALLS[name]) return { name, problems: answer.status >= 400 && !isOurs ? [] : ['Jira describes no such call'] };
  const call = await described(CALLS[name]);
  const problems = answer.status < 400 ? checkAnswer(call, answer) : checkRefusal(answer);
  if (isOurs) problems.push(...checkRequest(call, url, request));
  return { name, problems };
}

/** What jira.js would send and expect; given a document it does not turn to the older interface, which takes text. */
async function described(call) {
  const client = { sendRequest: async (config) => config };
  return call(client, { issueIdOrKey: 'KEY', projectIdOrKey: 'KEY', id: 'ID', body: { type: 'doc', version: 1, content: [] } });
}

function checkAnswer({ schema }, { status, body }) {
  if (status >= 300 && body === null) return [];
  if (!schema) return body === null ? [] : [`answer ${status}: Jira describes no body`];
  const { error } = schema.safeParse(body);
  return (error?.issues ?? []).flatMap(causes).map((text) => `answer ${status}: ${text}`);
}

function causes({ path, message, errors }, _index, _all, base = []) {
  const place = [...base, ...path];
  if (errors) return errors.flat().flatMap((issue) => causes(issue, 0, [], place));
  return [`/${place.map((key) => (typeof key === 'number' ? '*' : key)).join('/')} ${message}`];
}

function checkRefusal({ status, body }) {
  const isRight = Array.isArray(body?.errorMessages) && typeof body.errors === 'object';
  return isRight ? [] : [`answer ${status}: a refusal needs errorMessages and errors`];
}

function checkRequest({ searchParams = {}, body = {} }, url, request) {
  const unknown = (kind, given, known) =>
    given.filter((name) => !(name in known)).map((name) => `request: Jira describes no ${name} in the ${kind}`);
  return [
    ...unknown('query', [...url.searchParams.keys()], searchParams),
    ...unknown('body', Object.keys(request.body ?? {}), body),
  ];
}

/** Every document anywhere in what was recorded, with what it stood in. */
export function documentsOf(line) {
  const where = line.webhook ?? `${line.request.method} ${line.request.path.split('?')[0].replace(/\d+/g, 'N')}`;
  const found = [];
  const walk = (value) => {
    if (value === null || typeof value !== 'object') return;
    if (value.type === 'doc') found.push({ where, document: value });
    else Object.values(value).forEach(walk);
  };
  // A body that a test sends to be refused is not a document.
  if (!(line.answer?.status >= 400)) walk(line);
  return line.service === 'jira' ? found : [];
}

export function checkDocument({ where, document }) {
  return { name: `document of ${where}`, problems: documents.problems([], document) };
}
