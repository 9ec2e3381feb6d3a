import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Cart } from '../src/cart.js';

const tea = { id: 'tea', name: 'Tea', price: 450 };

test('merges equal id and options', () => {
  const cart = new Cart();
  cart.add(tea, 1, { size: 'L', milk: true });
  cart.add(tea, 2, { milk: true, size: 'L' });
  assert.equal(cart.lines.length, 1);
  assert.equal(cart.lines[0].quantity, 3);
});

test('keeps different options apart', () => {
  const cart = new Cart();
  cart.add(tea, 1, { size: 'S' });
  cart.add(tea, 1, { size: 'L' });
  assert.equal(cart.lines.length, 2);
  assert.equal(cart.total, 900);
});

test('no options and empty options are the same', () => {
  const cart = new Cart();
  cart.add(tea);
  cart.add(tea, 1, {});
  assert.equal(cart.lines.length, 1);
});

test('setQuantity and remove address one line', () => {
  const cart = new Cart();
  cart.add(tea, 1, { size: 'S' });
  cart.add(tea, 1, { size: 'L' });
  cart.setQuantity('tea', 4, { size: 'L' });
  assert.deepEqual(cart.lines.map((l) => l.quantity), [1, 4]);
  cart.remove('tea', { size: 'S' });
  assert.deepEqual(cart.lines.map((l) => l.options.size), ['L']);
  assert.throws(() => cart.setQuantity('tea', 1, { size: 'S' }), RangeError);
});

test('restores lines from the storage', () => {
  const data = {};
  const storage = { getItem: (k) => data[k] ?? null, setItem: (k, v) => { data[k] = v; } };
  const first = new Cart(storage);
  first.add(tea, 1, { size: 'S' });
  first.add(tea, 1, { size: 'L' });
  const second = new Cart(storage);
  second.add(tea, 1, { size: 'S' });
  assert.deepEqual(second.lines.map((l) => l.quantity), [2, 1]);
});
