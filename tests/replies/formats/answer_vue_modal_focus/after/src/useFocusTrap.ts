import { nextTick, onBeforeUnmount, watch, type Ref } from 'vue'

const FOCUSABLE =
  'a[href], button:not([disabled]), input:not([disabled]), select:not([disabled]), textarea:not([disabled]), [tabindex]:not([tabindex="-1"])'

interface Options {
  onEscape?: () => void
}

export function useFocusTrap(root: Ref<HTMLElement | null>, active: () => boolean, { onEscape }: Options = {}) {
  let previous: HTMLElement | null = null

  function focusable() {
    return Array.from(root.value?.querySelectorAll<HTMLElement>(FOCUSABLE) ?? [])
  }

  function onKeydown(e: KeyboardEvent) {
    if (e.key === 'Escape') {
      e.preventDefault()
      onEscape?.()
      return
    }
    if (e.key !== 'Tab') return

    const items = focusable()
    if (items.length === 0) {
      e.preventDefault()
      root.value?.focus()
      return
    }
    const first = items[0]
    const last = items[items.length - 1]
    const current = document.activeElement

    if (!root.value?.contains(current)) {
      e.preventDefault()
      first.focus()
    } else if (e.shiftKey && (current === first || current === root.value)) {
      e.preventDefault()
      last.focus()
    } else if (!e.shiftKey && current === last) {
      e.preventDefault()
      first.focus()
    }
  }

  function activate() {
    previous = document.activeElement as HTMLElement | null
    document.addEventListener('keydown', onKeydown)
    nextTick(() => (focusable()[0] ?? root.value)?.focus())
  }

  function deactivate() {
    document.removeEventListener('keydown', onKeydown)
    previous?.focus()
    previous = null
  }

  watch(active, (on) => (on ? activate() : deactivate()))
  if (active()) activate()

  onBeforeUnmount(deactivate)
}
