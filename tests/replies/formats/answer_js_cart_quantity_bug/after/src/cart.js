import { formatMoney } from './format.js';

const STORAGE_KEY = 'cart:v1';

/** JSON with sorted keys, so that the order of the options doesn't matter. */
const canonical = (value) =>
  JSON.stringify(value, (_, v) =>
    v && typeof v === 'object' && !Array.isArray(v)
      ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)))
      : v,
  );

const keyOf = (id, options = {}) => canonical([id, options]);

export class Cart {
  #items = new Map();
  #listeners = new Set();

  constructor(storage = null) {
    this.storage = storage;
    if (storage) {
      const raw = storage.getItem(STORAGE_KEY);
      if (raw) JSON.parse(raw).forEach((item) => this.#items.set(keyOf(item.id, item.options), item));
    }
  }

  onChange(fn) {
    this.#listeners.add(fn);
    return () => this.#listeners.delete(fn);
  }

  add(product, quantity = 1, options = {}) {
    const key = keyOf(product.id, options);
    const existing = this.#items.get(key);
    if (existing) {
      existing.quantity += quantity;
    } else {
      this.#items.set(key, { ...product, quantity, options });
    }
    this.#changed();
  }

  setQuantity(id, quantity, options = {}) {
    if (quantity <= 0) return this.remove(id, options);
    const item = this.#items.get(keyOf(id, options));
    if (!item) throw new RangeError(`no item ${id} in the cart`);
    item.quantity = quantity;
    this.#changed();
  }

  remove(id, options = {}) {
    this.#items.delete(keyOf(id, options));
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

  #changed() {
    this.storage?.setItem(STORAGE_KEY, JSON.stringify(this.lines));
    for (const fn of this.#listeners) fn(this);
  }
}
