const formats = new Map();

export function formatMoney(cents, currency = 'EUR', locale = 'de-DE') {
  const key = `${locale}|${currency}`;
  if (!formats.has(key)) {
    formats.set(key, new Intl.NumberFormat(locale, { style: 'currency', currency }));
  }
  return formats.get(key).format(cents / 100);
}

export const escapeHtml = (s) =>
  s.replace(/[&<>"']/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[c]);
