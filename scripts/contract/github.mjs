// What GitHub publishes: the description of its REST interface, the payloads of its webhooks, its GraphQL schema.
import { createRequire } from 'node:module';
import { buildSchema, execute, parse, validate } from 'graphql';
import { schema } from '@octokit/graphql-schema';
import { compiler, resolve } from './schemas.mjs';

const require = createRequire(import.meta.url);
const rest = require('@octokit/openapi/generated/api.github.com.json');
const webhooks = require('@octokit/openapi-webhooks/generated/api.github.com.json');
const restSchemas = compiler(rest);
const querySchemas = compiler(rest, { coerceTypes: true });
const webhookSchemas = compiler(webhooks);
// GitHub publishes it with a field or two twice, which a strict reading refuses.
const graphql = buildSchema(schema.idl, { assumeValidSDL: true });
const METHODS_WITH_BODY = ['POST', 'PUT', 'PATCH'];

const templates = Object.entries(rest.paths).map(([path, item]) => ({ path, item, pattern: pattern(path, item) }));

/** Git, stored objects, logs and files of comments have addresses of their own, which the description does not contain. */
export function isDescribed({ path }) {
  return !/^\/(git|lfs-store|stored-logs|user-attachments)\//.test(path);
}

/** The name of an exchange and what is wrong with it; `isOurs` is whether one of our clients asked. */
export async function checkExchange({ request, answer }, isOurs) {
  const url = new URL(request.path, 'http://github');
  if (url.pathname === '/graphql') return { name: 'POST /graphql', problems: await checkGraphql(request, answer, isOurs) };
  // A repository may be named by its number too, which redirects of moved ones do; the description does not say so.
  const path = url.pathname.replace(/^\/repositories\/\d+/, '/repos/owner/name');
  const found = template(request.method.toLowerCase(), path);
  if (!found) {
    const isRefused = answer.status >= 400 && !isOurs;
    return { name: `${request.method} ${path}`, problems: isRefused ? [] : ['GitHub describes no such call'] };
  }
  const name = `${request.method} ${found.path}`;
  const keys = ['paths', found.path, request.method.toLowerCase()];
  const operation = found.item[request.method.toLowerCase()];
  const problems = checkAnswer(keys, operation, answer);
  if (isOurs) problems.push(...checkQuery(operation, url), ...checkBody(keys, operation, request));
  return { name, problems };
}

/** The name of a webhook and what is wrong with it. */
export function checkWebhook({ webhook, body }) {
  const name = [webhook, body.action].filter(Boolean).join(' ');
  const key = name.replace(/[ _]/g, '-');
  if (!webhooks.webhooks[key]) return { name, problems: ['GitHub describes no such webhook'] };
  const keys = ['webhooks', key, 'post', 'requestBody', 'content', 'application/json', 'schema'];
  return { name, problems: webhookSchemas.problems(keys, body) };
}

/** Of several the most exact one: the fewest slashes in its parameters, then the fewest parameters. */
function template(method, path) {
  const fitting = templates.filter(({ item, pattern }) => item[method] && pattern.test(path));
  const vague = ({ path }) => [-path.split('/').length, path.split('{').length];
  return fitting.sort((a, b) => vague(a)[0] - vague(b)[0] || vague(a)[1] - vague(b)[1])[0];
}

function pattern(path, item) {
  const operations = Object.values(item).filter((operation) => operation?.parameters);
  const parameters = operations.flatMap((operation) => operation.parameters).map((one) => resolve(rest, one));
  const isLong = (name) => parameters.some((one) => one.name === name && one['x-multi-segment']);
  const source = path.replaceAll('.', '\\.').replace(/\{([^}]+)\}/g, (_, name) => (isLong(name) ? '.+' : '[^/]+'));
  return new RegExp(`^${source}$`);
}

function checkAnswer(keys, operation, { status, body }) {
  const problem = (text) => `answer ${status}: ${text}`;
  const described = operation.responses[status];
  if (!described) {
    // What any call may meet (a bad token, a moved repository, a refusal) is not repeated at each of them.
    if (status < 300) return [problem('GitHub describes no such status')];
    return checkRefusal(status, body).map(problem);
  }
  const response = resolve(rest, described);
  const base = described.$ref ? described.$ref.slice(2).split('/') : [...keys, 'responses', String(status)];
  const schema = response.content?.['application/json']?.schema;
  if (!schema) return (status < 300 && body ? ['GitHub describes no body'] : checkRefusal(status, body)).map(problem);
  return restSchemas.problems([...base, 'content', 'application/json', 'schema'], body).map(problem);
}

/** Of refusals GitHub describes nothing that must be there, but all have a message. */
function checkRefusal(status, body) {
  if (status < 400) return [];
  const message = typeof body?.message === 'string' ? [] : ['a refusal needs a message'];
  return [...message, ...restSchemas.problems(['components', 'schemas', 'basic-error'], body)];
}

function checkQuery(operation, url) {
  const parameters = (operation.parameters ?? []).map((one) => resolve(rest, one)).filter((one) => one.in === 'query');
  const problems = [];
  for (const [name, value] of url.searchParams) {
    const index = (operation.parameters ?? []).findIndex((one) => resolve(rest, one).name === name);
    if (!parameters.some((one) => one.name === name)) problems.push(`query: GitHub describes no ${name}`);
    else problems.push(...queryProblems(operation, operation.parameters[index], value).map((text) => `query: ${name} ${text}`));
  }
  const missing = parameters.filter((one) => one.required && !url.searchParams.has(one.name));
  return [...problems, ...missing.map((one) => `query: ${one.name} is missing`)];
}

function queryProblems(operation, parameter, value) {
  if (parameter.$ref) return querySchemas.problems([...parameter.$ref.slice(2).split('/'), 'schema'], value);
  const [path, item] = Object.entries(rest.paths).find(([, item]) => Object.values(item).includes(operation));
  const method = Object.keys(item).find((key) => item[key] === operation);
  const index = String(operation.parameters.indexOf(parameter));
  return querySchemas.problems(['paths', path, method, 'parameters', index, 'schema'], value);
}

function checkBody(keys, operation, { method, body }) {
  const schema = operation.requestBody?.content['application/json']?.schema;
  if (!schema) return body && METHODS_WITH_BODY.includes(method) ? ['request: GitHub describes no body'] : [];
  const required = operation.requestBody.required ? ['request: the body is missing'] : [];
  if (body === null) return required;
  const problems = restSchemas.problems([...keys, 'requestBody', 'content', 'application/json', 'schema'], body);
  const properties = resolve(rest, schema).properties;
  const unknown = Object.keys(body).filter((name) => properties && !(name in properties));
  return [...problems, ...unknown.map((name) => `GitHub describes no ${name}`)].map((text) => `request: ${text}`);
}

/** The answer is right when the query, run over it, finds everything that the schema promises. */
async function checkGraphql({ body }, answer, isOurs) {
  const document = parse(body.query);
  const problems = isOurs ? validate(graphql, document).map((error) => `request: ${error.message}`) : [];
  if (answer.status !== 200 || answer.body.errors) return problems;
  const run = await execute({
    schema: graphql, document, rootValue: answer.body.data, variableValues: body.variables,
    // An answer holds its values under the aliases of the query.
    fieldResolver: (source, _arguments, _context, info) => source[info.path.key],
    typeResolver: (source, _context, info) => source.__typename ?? firstFragmentType(info),
  });
  return [...problems, ...(run.errors ?? []).map((error) => `answer: ${error.message}`)];
}

/** The type of an abstract node that a query does not ask for: the only one whose fields it reads. */
function firstFragmentType({ fieldNodes }) {
  const selections = fieldNodes.flatMap((node) => node.selectionSet?.selections ?? []);
  return selections.find((selection) => selection.typeCondition)?.typeCondition.name.value;
}
