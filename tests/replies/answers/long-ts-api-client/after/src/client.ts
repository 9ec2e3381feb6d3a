export interface Page<T> { items: T[]; next?: string }
export class ApiError extends Error {
  constructor(readonly status: number, readonly body: string) {
    super(`HTTP ${status}: ${body.slice(0, 80)}`);
  }
}

const BASE = process.env.API_BASE ?? 'https://api.example.com/v1';

const MAX_RETRIES = 3;
const RETRY_DELAY = 200; // milliseconds, doubled with each retry
const RETRY_STATUS = [502, 503, 504];

function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const response = await fetch(`${BASE}${path}`, {
      method,
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
    if (response.ok) return (await response.json()) as T;
    const text = await response.text();
    if (method !== 'GET' || !RETRY_STATUS.includes(response.status) || attempt >= MAX_RETRIES) {
      throw new ApiError(response.status, text);
    }
    await wait(RETRY_DELAY * 2 ** attempt, signal);
  }
}

// ---- User ----

export interface User { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getUsers({ page: 2 })` */
export function getUsers(query: Record<string, string | number> = {}): Promise<Page<User>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<User>>('GET', `/Users?${search}`);
}

export function saveUser(it: Partial<User> & { id?: string }): Promise<User> {
  return it.id ? request('PUT', `/Users/${it.id}`, it) : request('POST', '/Users', it);
}

export const deleteUser = (id: string): Promise<void> => request('DELETE', `/Users/${encodeURIComponent(id)}`);

// ---- Order ----

export interface Order { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getOrders({ page: 2 })` */
export function getOrders(query: Record<string, string | number> = {}, signal?: AbortSignal): Promise<Page<Order>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Order>>('GET', `/Orders?${search}`, undefined, signal);
}

export function saveOrder(it: Partial<Order> & { id?: string }): Promise<Order> {
  return it.id ? request('PUT', `/Orders/${it.id}`, it) : request('POST', '/Orders', it);
}

export const deleteOrder = (id: string): Promise<void> => request('DELETE', `/Orders/${encodeURIComponent(id)}`);

// ---- Invoice ----

export interface Invoice { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getInvoices({ page: 2 })` */
export function getInvoices(query: Record<string, string | number> = {}): Promise<Page<Invoice>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Invoice>>('GET', `/Invoices?${search}`);
}

export function saveInvoice(it: Partial<Invoice> & { id?: string }): Promise<Invoice> {
  return it.id ? request('PUT', `/Invoices/${it.id}`, it) : request('POST', '/Invoices', it);
}

export const deleteInvoice = (id: string): Promise<void> => request('DELETE', `/Invoices/${encodeURIComponent(id)}`);

// ---- Product ----

export interface Product { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getProducts({ page: 2 })` */
export function getProducts(query: Record<string, string | number> = {}): Promise<Page<Product>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Product>>('GET', `/Products?${search}`);
}

export function saveProduct(it: Partial<Product> & { id?: string }): Promise<Product> {
  return it.id ? request('PUT', `/Products/${it.id}`, it) : request('POST', '/Products', it);
}

export const deleteProduct = (id: string): Promise<void> => request('DELETE', `/Products/${encodeURIComponent(id)}`);

// ---- Customer ----

export interface Customer { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getCustomers({ page: 2 })` */
export function getCustomers(query: Record<string, string | number> = {}): Promise<Page<Customer>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Customer>>('GET', `/Customers?${search}`);
}

export function saveCustomer(it: Partial<Customer> & { id?: string }): Promise<Customer> {
  return it.id ? request('PUT', `/Customers/${it.id}`, it) : request('POST', '/Customers', it);
}

export const deleteCustomer = (id: string): Promise<void> => request('DELETE', `/Customers/${encodeURIComponent(id)}`);

// ---- Address ----

export interface Address { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getAddresss({ page: 2 })` */
export function getAddresss(query: Record<string, string | number> = {}): Promise<Page<Address>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Address>>('GET', `/Addresss?${search}`);
}

export function saveAddress(it: Partial<Address> & { id?: string }): Promise<Address> {
  return it.id ? request('PUT', `/Addresss/${it.id}`, it) : request('POST', '/Addresss', it);
}

export const deleteAddress = (id: string): Promise<void> => request('DELETE', `/Addresss/${encodeURIComponent(id)}`);

// ---- Payment ----

export interface Payment { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getPayments({ page: 2 })` */
export function getPayments(query: Record<string, string | number> = {}): Promise<Page<Payment>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Payment>>('GET', `/Payments?${search}`);
}

export function savePayment(it: Partial<Payment> & { id?: string }): Promise<Payment> {
  return it.id ? request('PUT', `/Payments/${it.id}`, it) : request('POST', '/Payments', it);
}

export const deletePayment = (id: string): Promise<void> => request('DELETE', `/Payments/${encodeURIComponent(id)}`);

// ---- Refund ----

export interface Refund { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getRefunds({ page: 2 })` */
export function getRefunds(query: Record<string, string | number> = {}): Promise<Page<Refund>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Refund>>('GET', `/Refunds?${search}`);
}

export function saveRefund(it: Partial<Refund> & { id?: string }): Promise<Refund> {
  return it.id ? request('PUT', `/Refunds/${it.id}`, it) : request('POST', '/Refunds', it);
}

export const deleteRefund = (id: string): Promise<void> => request('DELETE', `/Refunds/${encodeURIComponent(id)}`);

// ---- Coupon ----

export interface Coupon { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getCoupons({ page: 2 })` */
export function getCoupons(query: Record<string, string | number> = {}): Promise<Page<Coupon>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Coupon>>('GET', `/Coupons?${search}`);
}

export function saveCoupon(it: Partial<Coupon> & { id?: string }): Promise<Coupon> {
  return it.id ? request('PUT', `/Coupons/${it.id}`, it) : request('POST', '/Coupons', it);
}

export const deleteCoupon = (id: string): Promise<void> => request('DELETE', `/Coupons/${encodeURIComponent(id)}`);

// ---- Shipment ----

export interface Shipment { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getShipments({ page: 2 })` */
export function getShipments(query: Record<string, string | number> = {}): Promise<Page<Shipment>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Shipment>>('GET', `/Shipments?${search}`);
}

export function saveShipment(it: Partial<Shipment> & { id?: string }): Promise<Shipment> {
  return it.id ? request('PUT', `/Shipments/${it.id}`, it) : request('POST', '/Shipments', it);
}

export const deleteShipment = (id: string): Promise<void> => request('DELETE', `/Shipments/${encodeURIComponent(id)}`);

// ---- Review ----

export interface Review { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getReviews({ page: 2 })` */
export function getReviews(query: Record<string, string | number> = {}): Promise<Page<Review>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Review>>('GET', `/Reviews?${search}`);
}

export function saveReview(it: Partial<Review> & { id?: string }): Promise<Review> {
  return it.id ? request('PUT', `/Reviews/${it.id}`, it) : request('POST', '/Reviews', it);
}

export const deleteReview = (id: string): Promise<void> => request('DELETE', `/Reviews/${encodeURIComponent(id)}`);

// ---- Tag ----

export interface Tag { id: string; createdAt: string; meta?: Record<string, unknown> }

/** Lists all: `getTags({ page: 2 })` */
export function getTags(query: Record<string, string | number> = {}): Promise<Page<Tag>> {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, `${v}`]));
  return request<Page<Tag>>('GET', `/Tags?${search}`);
}

export function saveTag(it: Partial<Tag> & { id?: string }): Promise<Tag> {
  return it.id ? request('PUT', `/Tags/${it.id}`, it) : request('POST', '/Tags', it);
}

export const deleteTag = (id: string): Promise<void> => request('DELETE', `/Tags/${encodeURIComponent(id)}`);
