import test from 'node:test';
import assert from 'node:assert/strict';

import { Cart } from '../src/cart.js';

const shirt = { id: 7, name: 'Shirt', price: 1500 };

function fakeStorage() {
  const data = new Map();
  return {
    getItem: (k) => data.get(k) ?? null,
    setItem: (k, v) => data.set(k, v),
  };
}

test('same id and same options are merged', () => {
  const cart = new Cart();
  cart.add(shirt, 1, { size: 'M', color: 'red' });
  cart.add(shirt, 2, { color: 'red', size: 'M' });
  assert.equal(cart.lines.length, 1);
  assert.equal(cart.lines[0].quantity, 3);
});

test('same id without options is merged', () => {
  const cart = new Cart();
  cart.add(shirt);
  cart.add(shirt, 1, {});
  assert.deepEqual(cart.lines.map((l) => l.quantity), [2]);
});

test('same id with different options makes two lines', () => {
  const cart = new Cart();
  cart.add(shirt, 1, { size: 'M' });
  cart.add(shirt, 2, { size: 'L' });
  assert.deepEqual(cart.lines.map((l) => [l.options.size, l.quantity]), [['M', 1], ['L', 2]]);
  assert.equal(cart.total, 4500);
});

test('nested options are compared too', () => {
  const cart = new Cart();
  cart.add(shirt, 1, { print: { text: 'a' } });
  cart.add(shirt, 1, { print: { text: 'b' } });
  assert.equal(cart.lines.length, 2);
});

test('setQuantity and remove can mean one line', () => {
  const cart = new Cart();
  cart.add(shirt, 1, { size: 'M' });
  cart.add(shirt, 1, { size: 'L' });
  cart.setQuantity(7, 5, { size: 'L' });
  assert.deepEqual(cart.lines.map((l) => l.quantity), [1, 5]);
  assert.throws(() => cart.setQuantity(7, 2), RangeError);
  cart.remove(7, { size: 'M' });
  assert.deepEqual(cart.lines.map((l) => l.options), [{ size: 'L' }]);
  cart.setQuantity(7, 2);
  assert.equal(cart.lines[0].quantity, 2);
});

test('remove without options removes all lines of the id', () => {
  const cart = new Cart();
  cart.add(shirt, 1, { size: 'M' });
  cart.add(shirt, 1, { size: 'L' });
  cart.remove(7);
  assert.deepEqual(cart.lines, []);
});

test('setQuantity of an unknown item throws', () => {
  assert.throws(() => new Cart().setQuantity(1, 1), RangeError);
});

test('lines with different options survive the storage', () => {
  const storage = fakeStorage();
  const cart = new Cart(storage);
  cart.add(shirt, 1, { size: 'M' });
  cart.add(shirt, 1, { size: 'L' });
  const again = new Cart(storage);
  again.add(shirt, 1, { size: 'L' });
  assert.deepEqual(again.lines.map((l) => l.quantity), [1, 2]);
});
