// Parses queries such as:  title:"a \"b\"" AND (tag:x OR -tag:/re\/gex/i)
const TOKEN = /\s*(?:(\()|(\))|(AND|OR)\b|(-)?(\w+):(?:"((?:\\.|[^"\\])*)"|\/((?:\\.|[^/\\])+)\/([gimsuy]*)|([^\s()"]+)))/y;

export class QueryError extends SyntaxError {}

function toRegExp(source, flags) {
  try {
    return new RegExp(source, flags);
  } catch (error) {
    throw new QueryError(error.message, { cause: error });
  }
}

export function tokenize(text) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const start = TOKEN.lastIndex;
    const m = TOKEN.exec(text);
    if (!m) {
      const at = start + text.slice(start).search(/\S|$/);
      if (at === text.length) break;
      throw new QueryError(`unexpected ${JSON.stringify(text[at])} at ${at}`);
    }
    const [, open, close, op, not, field, string, regex, flags, word] = m;
    if (open || close) tokens.push({ type: open ?? close });
    else if (op) tokens.push({ type: op });
    else {
      const value = string !== undefined ? string.replace(/\\(.)/gs, '$1') : regex ? toRegExp(regex, flags) : word;
      tokens.push({ type: 'term', field, value, not: !!not });
    }
  }
  return tokens;
}

export function parse(text) {
  const tokens = tokenize(text);
  let i = 0;
  const or = () => {
    let left = and();
    while (tokens[i]?.type === 'OR') { i++; left = { type: 'OR', left, right: and() }; }
    return left;
  };
  const and = () => {
    let left = atom();
    while (tokens[i] && tokens[i].type !== 'OR' && tokens[i].type !== ')') {
      if (tokens[i].type === 'AND') i++;
      left = { type: 'AND', left, right: atom() };
    }
    return left;
  };
  const atom = () => {
    const t = tokens[i++];
    if (!t) throw new QueryError('unexpected end');
    if (t.type === '(') {
      const inner = or();
      if (tokens[i++]?.type !== ')') throw new QueryError('missing )');
      return inner;
    }
    if (t.type !== 'term') throw new QueryError(`unexpected ${t.type}`);
    return t;
  };
  const tree = or();
  if (i < tokens.length) throw new QueryError(`unexpected ${tokens[i].type}`);
  return tree;
}
