import { formatMoney } from './format.js';

const STORAGE_KEY = 'cart:v1';

// Same text for equal values, whatever the order of their keys.
function stable(value) {
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`;
  if (value && typeof value === 'object') {
    const parts = Object.keys(value)
      .sort()
      .map((k) => `${JSON.stringify(k)}:${stable(value[k])}`);
    return `{${parts.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

const lineKey = (id, options) => `${JSON.stringify(id)}|${stable(options ?? {})}`;

export class Cart {
  #items = new Map();
  #listeners = new Set();

  constructor(storage = null) {
    this.storage = storage;
    if (storage) {
      const raw = storage.getItem(STORAGE_KEY);
      if (raw) JSON.parse(raw).forEach((item) => this.#items.set(lineKey(item.id, item.options), item));
    }
  }

  onChange(fn) {
    this.#listeners.add(fn);
    return () => this.#listeners.delete(fn);
  }

  add(product, quantity = 1, options = {}) {
    const key = lineKey(product.id, options);
    const existing = this.#items.get(key);
    if (existing) {
      existing.quantity += quantity;
    } else {
      this.#items.set(key, { ...product, quantity, options: { ...options } });
    }
    this.#changed();
  }

  setQuantity(id, quantity, options) {
    if (quantity <= 0) return this.remove(id, options);
    const keys = this.#keysOf(id, options);
    if (keys.length === 0) throw new RangeError(`no item ${id} in the cart`);
    if (keys.length > 1) throw new RangeError(`item ${id} is in the cart with different options; say which`);
    this.#items.get(keys[0]).quantity = quantity;
    this.#changed();
  }

  remove(id, options) {
    for (const key of this.#keysOf(id, options)) this.#items.delete(key);
    this.#changed();
  }

  get lines() {
    return [...this.#items.values()];
  }

  get total() {
    return this.lines.reduce((sum, { price, quantity }) => sum + price * quantity, 0);
  }

  toString() {
    return this.lines.map((l) => `${l.quantity} × ${l.name}: ${formatMoney(l.price * l.quantity)}`).join('\n');
  }

  // The keys of the line with these options, or of all lines with this id if no options are given.
  #keysOf(id, options) {
    if (options !== undefined) {
      const key = lineKey(id, options);
      return this.#items.has(key) ? [key] : [];
    }
    return [...this.#items].filter(([, item]) => item.id === id).map(([key]) => key);
  }

  #changed() {
    this.storage?.setItem(STORAGE_KEY, JSON.stringify(this.lines));
    for (const fn of this.#listeners) fn(this);
  }
}
