/**
 * The policy of the page allows style elements only with the nonce that the server gave it. Radix adds some, to lock scrolling behind
 * dialogs.
 */
import { setNonce } from 'get-nonce';

export const beginStyles = () => {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name=style-nonce]')?.content;
  if (nonce) setNonce(nonce);
};
