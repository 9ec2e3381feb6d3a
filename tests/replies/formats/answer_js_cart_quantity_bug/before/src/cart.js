import { formatMoney } from './format.js';

const STORAGE_KEY = 'cart:v1';

export class Cart {
  #items = new Map();
  #listeners = new Set();

  constructor(storage = null) {
    this.storage = storage;
    if (storage) {
      const raw = storage.getItem(STORAGE_KEY);
      if (raw) JSON.parse(raw).forEach((item) => this.#items.set(item.id, item));
    }
  }

  onChange(fn) {
    this.#listeners.add(fn);
    return () => this.#listeners.delete(fn);
  }

  add(product, quantity = 1, options = {}) {
    const existing = this.#items.get(product.id);
    if (existing) {
      existing.quantity += quantity;
    } else {
      this.#items.set(product.id, { ...product, quantity, options });
    }
    this.#changed();
  }

  setQuantity(id, quantity) {
    if (quantity <= 0) return this.remove(id);
    const item = this.#items.get(id);
    if (!item) throw new RangeError(`no item ${id} in the cart`);
    item.quantity = quantity;
    this.#changed();
  }

  remove(id) {
    this.#items.delete(id);
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
