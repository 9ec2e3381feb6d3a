import assert from 'node:assert/strict';
import { test } from 'node:test';

import { QueryError, parse, tokenize } from '../src/query.js';

const term = (field, value, not = false) => ({ type: 'term', field, value, not });
const AND = (left, right) => ({ type: 'AND', left, right });
const OR = (left, right) => ({ type: 'OR', left, right });
const fails = (text, message) => assert.throws(() => parse(text), (error) => {
  assert.ok(error instanceof QueryError, `${error}`);
  assert.match(error.message, message);
  return true;
});

test('a word', () => {
  assert.deepEqual(parse('tag:x'), term('tag', 'x'));
});

test('a negated term', () => {
  assert.deepEqual(parse('-tag:x'), term('tag', 'x', true));
});

test('a string with blanks and brackets', () => {
  assert.deepEqual(parse('title:"a (b) c"'), term('title', 'a (b) c'));
});

test('an empty string', () => {
  assert.deepEqual(parse('title:""'), term('title', ''));
});

test('one escaped quote', () => {
  assert.deepEqual(parse(String.raw`title:"a \" b"`), term('title', 'a " b'));
});

test('several escapes in one string', () => {
  assert.deepEqual(parse(String.raw`title:"a \"b\" \\ c"`), term('title', String.raw`a "b" \ c`));
});

test('an escaped backslash at the end of a string', () => {
  assert.deepEqual(parse(String.raw`title:"a\\" tag:x`), AND(term('title', 'a\\'), term('tag', 'x')));
});

test('an escaped line break', () => {
  assert.deepEqual(parse('title:"a\\\nb"'), term('title', 'a\nb'));
});

test('a regex with an escaped slash and a flag', () => {
  const { value } = parse(String.raw`tag:/re\/gex/i`);
  assert.ok(value instanceof RegExp);
  assert.equal(value.flags, 'i');
  assert.ok(value.test('RE/GEX'));
});

test('a regex keeps its escapes', () => {
  assert.equal(parse(String.raw`tag:/\d+\.\d/`).value.source, String.raw`\d+\.\d`);
});

test('AND binds tighter than OR', () => {
  assert.deepEqual(parse('a:1 OR b:2 AND c:3'), OR(term('a', '1'), AND(term('b', '2'), term('c', '3'))));
});

test('AND may be left out', () => {
  assert.deepEqual(parse('a:1 b:2'), parse('a:1 AND b:2'));
});

test('operators bind to the left', () => {
  assert.deepEqual(parse('a:1 OR b:2 OR c:3'), OR(OR(term('a', '1'), term('b', '2')), term('c', '3')));
});

test('brackets', () => {
  assert.deepEqual(parse('(a:1 OR b:2) c:3'), AND(OR(term('a', '1'), term('b', '2')), term('c', '3')));
});

test('a field that begins like an operator', () => {
  assert.deepEqual(parse('ORDER:1 ANDROID:2'), AND(term('ORDER', '1'), term('ANDROID', '2')));
});

test('the query of the comment', () => {
  const tree = parse(String.raw`title:"a \"b\"" AND (tag:x OR -tag:/re\/gex/i)`);
  assert.deepEqual(tree, AND(term('title', 'a "b"'), OR(term('tag', 'x'), term('tag', /re\/gex/i, true))));
});

test('blanks around', () => {
  assert.deepEqual(tokenize('  a:1 \n'), [term('a', '1')]);
  assert.deepEqual(tokenize('  '), []);
});

test('tokenize starts anew after an error', () => {
  assert.throws(() => tokenize('a:1 !'), QueryError);
  assert.deepEqual(tokenize('a:1'), [term('a', '1')]);
});

test('error: nothing at all', () => {
  fails('', /unexpected end/);
  fails('  ', /unexpected end/);
});

test('error: an operator without its right side', () => {
  fails('a:1 OR', /unexpected end/);
  fails('a:1 AND', /unexpected end/);
});

test('error: an operator in place of a term', () => {
  fails('AND a:1', /unexpected AND/);
  fails('a:1 OR OR b:2', /unexpected OR/);
});

test('error: brackets', () => {
  fails('(a:1', /missing \)/);
  fails('()', /unexpected \)/);
  fails('a:1) b:2', /unexpected \)/);
});

test('error: an unexpected character and its place', () => {
  fails('a:1  !b', /unexpected "!" at 5/);
  fails('hello', /unexpected "h" at 0/);
});

test('error: an open string', () => {
  fails('title:"abc', /unexpected "t" at 0/);
  fails(String.raw`title:"abc\"`, /unexpected "t" at 0/);
});

test('error: a bad regex', () => {
  fails('a:/(/', /Invalid regular expression/);
  fails('a:/x/gg', /[Ii]nvalid.*flags/);
});
