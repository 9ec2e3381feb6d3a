import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { parse, tokenize, QueryError } from '../src/query.js';

describe('terms', () => {
  it('reads a word', () => {
    assert.deepEqual(parse('tag:x'), { type: 'term', field: 'tag', value: 'x', not: false });
  });

  it('reads a negated term', () => {
    assert.equal(parse('-tag:x').not, true);
  });

  it('reads a quoted string', () => {
    assert.equal(parse('title:"a b"').value, 'a b');
  });

  it('reads an empty string', () => {
    assert.equal(parse('title:""').value, '');
  });
});

describe('escapes', () => {
  it('unescapes one quote', () => {
    assert.equal(parse('title:"a\\"b"').value, 'a"b');
  });

  it('unescapes all quotes', () => {
    assert.equal(parse('title:"a \\"b\\""').value, 'a "b"');
  });

  it('unescapes backslashes', () => {
    assert.equal(parse('title:"c:\\\\dir\\\\"').value, 'c:\\dir\\');
  });

  it('handles an escaped slash in a regex', () => {
    const { value } = parse('tag:/re\\/gex/i');
    assert.ok(value.test('RE/GEX'));
  });
});

describe('operators', () => {
  it('binds AND tighter than OR', () => {
    const tree = parse('a:1 OR b:2 AND c:3');
    assert.equal(tree.type, 'OR');
    assert.equal(tree.right.type, 'AND');
  });

  it('treats a missing operator as AND', () => {
    assert.deepEqual(parse('a:1 b:2'), parse('a:1 AND b:2'));
  });

  it('respects parentheses', () => {
    const tree = parse('(a:1 OR b:2) AND c:3');
    assert.equal(tree.type, 'AND');
    assert.equal(tree.left.type, 'OR');
  });

  it('ignores white space at the ends', () => {
    assert.equal(tokenize('  a:1  ').length, 1);
  });
});

describe('errors', () => {
  for (const [name, text, message] of [
    ['empty query', '', /unexpected end/],
    ['missing right side', 'a:1 OR', /unexpected end/],
    ['missing )', '(a:1', /missing \)/],
    ['extra )', 'a:1)', /unexpected \)/],
    ['empty parentheses', '()', /unexpected \)/],
    ['leading operator', 'AND a:1', /unexpected AND/],
    ['no field', 'hello', /unexpected "h" at 0/],
    ['unterminated string', 'a:"b', /unexpected "a" at 0/],
    ['invalid regex', 'a:/[/', /regular expression/],
  ]) {
    it(name, () => {
      assert.throws(() => parse(text), (e) => e instanceof QueryError && message.test(e.message));
    });
  }
});
