// Compiles JSON Schemas out of a vendor's whole document, each only when it is asked for.
import Ajv from 'ajv';
import addFormats from 'ajv-formats';

/** `document` may be an OpenAPI description (3.0 or 3.1) or a JSON Schema. */
export function compiler(document, { coerceTypes = false } = {}) {
  const ajv = new Ajv({ strict: false, logger: false, allErrors: true, validateSchema: false, coerceTypes });
  addFormats(ajv);
  delete document.$schema; // Draft 4, of which the one here uses nothing that later drafts changed.
  ajv.addSchema(nullable(document), 'vendor');
  const at = (keys) => `vendor#${keys.map((key) => `/${encodeURIComponent(escape(key))}`).join('')}`;
  return {
    /** What is wrong with `value`, by the schema at these keys of the document. */
    problems(keys, value) {
      const validate = keys.length ? ajv.getSchema(at(keys)) : ajv.getSchema('vendor');
      return validate(value) ? [] : validate.errors.filter(isCause).map(describeError);
    },
  };
}

/** The object that a `$ref` inside the document means. */
export function resolve(document, object) {
  if (!object?.$ref) return object;
  const keys = object.$ref.slice(2).split('/').map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  return resolve(document, keys.reduce((inside, key) => inside[key], document));
}

function escape(key) {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** OpenAPI 3.0 says `nullable` where JSON Schema has a type of null. */
function nullable(schema) {
  if (Array.isArray(schema)) return schema.map(nullable);
  if (schema === null || typeof schema !== 'object') return schema;
  const inner = Object.entries(schema).map(([key, value]) => [key, isSample(key, value) ? null : nullable(value)]);
  const { nullable: isNullable, ...rest } = Object.fromEntries(inner);
  return isNullable === true ? { if: { type: 'null' }, else: rest } : { ...rest, ...(isNullable && { nullable: isNullable }) };
}

/** Samples are not schemas, although some have properties with such names. */
function isSample(key, value) {
  return key === 'example' || (key === 'examples' && !('type' in Object(value)));
}

/** False for the failure of a condition, whose own errors are the causes. */
function isCause(error) {
  return error.keyword !== 'if';
}

function describeError({ instancePath, message, params }) {
  const place = instancePath.replace(/\/\d+(?=\/|$)/g, '/*') || '/';
  const detail = params.additionalProperty ?? params.allowedValues?.join('|') ?? '';
  return `${place} ${message}${detail && ` (${detail})`}`;
}
