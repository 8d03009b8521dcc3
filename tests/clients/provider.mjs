// A certified OpenID provider (npm's oidc-provider) with its real sign-in form, for the tests.
//
//     node provider.mjs PORT            (LANDFALL_TEST_NODE, ACCESS_AUDIENCE)
//
// Prints its issuer when it listens. It knows two clients: `landfall` with a secret and `landfall-page` without one. Any name
// signs in, with any password; `NAME@TENANT+ROLE` also says the tenant and the role. `POST /rotate` replaces its keys.
import { createRequire } from 'node:module';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.env.LANDFALL_TEST_NODE}/`);
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));
const AUDIENCE = process.env.ACCESS_AUDIENCE ?? 'landfall-api';
const port = Number(process.argv[2] ?? 0);

const newKey = () => ({
  ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
  kid: randomUUID(), use: 'sig', alg: 'RS256',
});

const person = id => {
  const [, name, tenant, role] = /^([^@]+)@?([^+]*)\+?(.*)$/.exec(id);
  return { sub: id, preferred_username: name, ...(tenant ? { tenant } : {}), ...(role ? { groups: { landfall: [role] } } : {}) };
};

const configuration = keys => ({
  jwks: { keys },
  cookies: { keys: ['a key that only this test uses'] },
  clients: [
    { client_id: 'landfall', client_secret: 'the secret of the client+/ &', application_type: 'native', redirect_uris: ['http://127.0.0.1/auth/callback'],
      post_logout_redirect_uris: ['http://127.0.0.1/'], grant_types: ['authorization_code', 'client_credentials'], response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic' },
    { client_id: 'landfall-page', token_endpoint_auth_method: 'none', application_type: 'native', redirect_uris: ['http://127.0.0.1/auth/callback'],
      post_logout_redirect_uris: ['http://127.0.0.1/'], grant_types: ['authorization_code'], response_types: ['code'] },
  ],
  claims: { openid: ['sub'], landfall: ['preferred_username', 'tenant', 'groups'] },
  scopes: ['openid', 'landfall'],
  pkce: { required: () => true },
  findAccount: (_, id) => ({ accountId: id, claims: () => person(id) }),
  // The claims in the token itself, as for an API.
  extraTokenClaims: (_, token) => (token.accountId ? person(token.accountId) : { preferred_username: 'robot', tenant: 'robots', groups: { landfall: ['nothing'] } }),
  features: {
    devInteractions: { enabled: true },
    rpInitiatedLogout: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({ scope: '', audience: resource.endsWith('/other') ? 'another-api' : AUDIENCE, accessTokenFormat: 'jwt' }),
    },
  },
});

let handler;
let keys = [newKey()];
const server = (await import('node:http')).createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/rotate') {
    keys = [newKey()];
    start();
    response.end(JSON.stringify({ kid: keys[0].kid }));
    return;
  }
  handler(request, response);
});
let issuer;
const start = () => { handler = new Provider(issuer, configuration(keys)).callback(); };
server.listen(port, '127.0.0.1', () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  start();
  process.stdout.write(`${JSON.stringify({ issuer })}\n`);
});
