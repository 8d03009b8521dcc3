/** A random key for a request that may be sent twice. `crypto.randomUUID` is missing on pages without https. */
export const randomKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');
