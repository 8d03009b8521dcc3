/**
 * The policy of the page lets only this room make addresses of scripts, for the workers that the console brings itself. Nothing from a
 * document or the server becomes one.
 */
interface TrustedTypes {
  createPolicy: (name: string, rules: { createScriptURL: (url: string) => string }) => { createScriptURL: (url: string) => string };
}

const trustedTypes = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;

const ours = (url: string): string => {
  const { origin, pathname } = new URL(url, location.href);
  if (origin !== location.origin || !pathname.startsWith('/assets/')) throw new TypeError(`${url} is not a script of the console`);
  return url;
};

const policy = trustedTypes?.createPolicy('landfall-workers', { createScriptURL: ours });

export const scriptUrl = (url: string): string => (policy ? policy.createScriptURL(url) : ours(url));
