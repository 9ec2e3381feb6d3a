export type Listener<T> = (payload: T) => void;
export type EventMap = Record<string, unknown>;

interface Entry<T> {
  readonly fn: Listener<T>;
  readonly priority: number;
}

export class Emitter<Events extends EventMap> {
  private readonly listeners: { [K in keyof Events]?: Entry<Events[K]>[] } = {};

  on<K extends keyof Events>(event: K, fn: Listener<Events[K]>, priority = 0): () => void {
    const list = (this.listeners[event] ??= []);
    const entry: Entry<Events[K]> = { fn, priority };
    const at = list.findIndex((other) => other.priority < priority);
    list.splice(at < 0 ? list.length : at, 0, entry);
    return () => this.off(event, fn);
  }

  off<K extends keyof Events>(event: K, fn: Listener<Events[K]>): boolean {
    const list = this.listeners[event];
    if (!list) return false;
    const at = list.findIndex((entry) => entry.fn === fn);
    if (at < 0) return false;
    list.splice(at, 1);
    return true;
  }

  emit<K extends keyof Events>(event: K, payload: Events[K]): number {
    const list = this.listeners[event] ?? [];
    for (const { fn } of list) fn(payload);
    return list.length;
  }

  count<K extends keyof Events>(event: K): number {
    return this.listeners[event]?.length ?? 0;
  }
}
