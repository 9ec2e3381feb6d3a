import { nextTick, onBeforeUnmount, watch, type Ref } from 'vue'

const FOCUSABLE = [
  'a[href]',
  'area[href]',
  'button:not([disabled])',
  'input:not([disabled]):not([type="hidden"])',
  'select:not([disabled])',
  'textarea:not([disabled])',
  'iframe',
  '[contenteditable]:not([contenteditable="false"])',
  '[tabindex]:not([tabindex="-1"])',
].join(',')

export interface FocusTrapOptions {
  /** Called when Escape is pressed while the trap is active. */
  onEscape?: () => void
}

/** Keeps the focus inside of root for as long as active() is true. */
export function useFocusTrap(
  root: Ref<HTMLElement | null>,
  active: () => boolean,
  options: FocusTrapOptions = {},
): void {
  let before: HTMLElement | null = null
  let trapped = false

  function focusable(): HTMLElement[] {
    if (!root.value) return []
    return [...root.value.querySelectorAll<HTMLElement>(FOCUSABLE)].filter(
      (element) => element.getClientRects().length > 0,
    )
  }

  function onKeydown(event: KeyboardEvent) {
    if (event.key === 'Escape' && !event.isComposing) {
      event.stopPropagation()
      options.onEscape?.()
      return
    }
    if (event.key !== 'Tab' || !root.value) return
    const elements = focusable()
    const first = elements[0]
    const last = elements[elements.length - 1]
    if (!first || !last) {
      event.preventDefault()
      root.value.focus()
      return
    }
    const current = document.activeElement
    const inside = root.value.contains(current) && current !== root.value
    if (event.shiftKey && (!inside || current === first)) {
      event.preventDefault()
      last.focus()
    } else if (!event.shiftKey && (!inside || current === last)) {
      event.preventDefault()
      first.focus()
    }
  }

  async function trap() {
    if (trapped) return
    trapped = true
    before = document.activeElement instanceof HTMLElement ? document.activeElement : null
    document.addEventListener('keydown', onKeydown)
    await nextTick()
    if (!trapped) return
    const target = focusable()[0] ?? root.value
    target?.focus()
  }

  function release() {
    if (!trapped) return
    trapped = false
    document.removeEventListener('keydown', onKeydown)
    before?.focus()
    before = null
  }

  watch(active, (on) => (on ? void trap() : release()), { immediate: true })
  onBeforeUnmount(release)
}
