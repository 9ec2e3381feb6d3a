export type Listener<T> = (payload: T) => void;
export type EventMap = Record<string, unknown>;

export interface WaitOptions {
  /** Milliseconds until the promise is rejected; without it, it waits forever. */
  readonly timeout?: number;
  /** Rejects the promise with the signal's reason when aborted. */
  readonly signal?: AbortSignal;
}

interface Entry<T> {
  readonly fn: Listener<T>;
  readonly priority: number;
  readonly once: boolean;
}

export class Emitter<Events extends EventMap> {
  private readonly listeners: { [K in keyof Events]?: Entry<Events[K]>[] } = {};

  on<K extends keyof Events>(event: K, fn: Listener<Events[K]>, priority = 0): () => void {
    this.add(event, { fn, priority, once: false });
    return () => this.off(event, fn);
  }

  once<K extends keyof Events>(event: K, fn: Listener<Events[K]>, priority = 0): () => void {
    const entry: Entry<Events[K]> = { fn, priority, once: true };
    this.add(event, entry);
    return () => this.remove(event, entry);
  }

  waitFor<K extends keyof Events>(event: K, { timeout, signal }: WaitOptions = {}): Promise<Events[K]> {
    return new Promise<Events[K]>((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      let timer: ReturnType<typeof setTimeout> | undefined;
      const cleanUp = () => {
        stop();
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      const onAbort = () => {
        cleanUp();
        reject(signal?.reason);
      };
      const stop = this.once(event, (payload) => {
        cleanUp();
        resolve(payload);
      });
      signal?.addEventListener('abort', onAbort, { once: true });
      if (timeout !== undefined) {
        timer = setTimeout(() => {
          cleanUp();
          reject(new Error(`no '${String(event)}' within ${timeout} ms`));
        }, timeout);
      }
    });
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
    // a copy: listeners may be removed while they are called
    const list = [...(this.listeners[event] ?? [])];
    for (const entry of list) {
      if (entry.once) this.remove(event, entry);
      entry.fn(payload);
    }
    return list.length;
  }

  count<K extends keyof Events>(event: K): number {
    return this.listeners[event]?.length ?? 0;
  }

  private add<K extends keyof Events>(event: K, entry: Entry<Events[K]>): void {
    const list = (this.listeners[event] ??= []);
    const at = list.findIndex((other) => other.priority < entry.priority);
    list.splice(at < 0 ? list.length : at, 0, entry);
  }

  private remove<K extends keyof Events>(event: K, entry: Entry<Events[K]>): void {
    const list = this.listeners[event];
    const at = list?.indexOf(entry) ?? -1;
    if (at >= 0) list?.splice(at, 1);
  }
}
