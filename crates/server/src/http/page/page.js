(() => {
  'use strict';
  const NOTIFICATIONS = '/api/v2/notifications';
  const API = '/api/v2/uploads';
  const PAGE = 50, MAX_SHOWN = 1000, PARALLEL_UPLOADS = 3, MAX_FILES_PER_BATCH = 10000, MAX_FILES_PER_REQUEST = 1000, URL_RESERVE_MS = 10000;
  const RUNNING = ['scanning', 'extracting', 'chunking', 'embedding'];
  const TERMINAL = ['ready', 'failed', 'cancelled', 'deleted'];

  const $ = id => document.getElementById(id);
  // Creates every element of the page. Text is always set as text, so nothing from a file or the server becomes markup.
  const el = (tag, props = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
      if (name === 'on') for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
      else if (name in node) node[name] = value;
      else node.setAttribute(name, value);
    }
    node.append(...children.filter(child => child != null));
    return node;
  };
  const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  const sleep = ms => new Promise(done => setTimeout(done, ms));
  const setGauge = (node, share) => {
    const percent = Math.max(0, Math.min(100, share * 100));
    node.firstElementChild.style.width = percent + '%';
    node.setAttribute('aria-valuenow', Math.round(percent));
  };

  const size = bytes => {
    const units = ['B', 'KB', 'MB', 'GB', 'TB'];
    let unit = 0;
    while (bytes >= 1023.95 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
    return (unit ? bytes.toFixed(1).replace(/\.0$/, '') : bytes) + ' ' + units[unit];
  };
  const count = (number, what) => number.toLocaleString('en') + ' ' + what + (number === 1 ? '' : 's');
  const ago = iso => {
    const seconds = (Date.now() - Date.parse(iso)) / 1000;
    if (seconds < 10) return 'just now';
    for (const [limit, unit, name] of [[60, 1, 's'], [3600, 60, 'min'], [86400, 3600, 'h']])
      if (seconds < limit) return Math.floor(seconds / unit) + ' ' + name + ' ago';
    return new Date(iso).toLocaleDateString();
  };
  const fullTime = iso => iso ? new Date(iso).toLocaleString() : '';

  /* ---- who is signed in ---- */

  // The session itself is in a cookie that no script can read. This is what the server says about it; `key` says whose it is.
  let session = null, ways = { provider: false, link: false, token: false };
  const SECTIONS = ['upload', 'search', 'file-list', 'quota', 'account', 'results', 'notifications', 'keys'];
  const RENEW_MS = 60000;
  const FAILURES = {
    SIGN_IN_EXPIRED: 'The sign-in took too long, or was begun in another browser. Sign in again.',
    SIGN_IN_REFUSED: 'The identity provider did not sign you in.',
    ANOTHER_SESSION: 'Another person is signed in in this browser. Sign out first.',
    AUTH_UNAVAILABLE: 'The identity provider does not answer. Try again in a moment.',
  };
  const keyOf = details => details && JSON.stringify([details.tenantId, details.userId]);
  const channel = new BroadcastChannel('landfall-session');

  const askSession = async () => {
    const response = await fetch('/auth/session');
    if (!response.ok) throw refusalFrom(response.status, await response.text());
    const view = await response.json();
    ways = view.ways;
    return view.session;
  };
  // What a person should read about a sign-in while they are signed in. A refresh does not take it away.
  const notice = text => { setText($('sign-in-notice'), text); $('sign-in-notice').hidden = !text; };
  const forgetKey = () => { $('new-key-text').value = ''; $('new-key').hidden = true; setText($('copy-key'), 'Copy'); };
  const showSignIn = why => {
    session = null;
    notice('');
    goOn();
    closeStream();
    if ($('again').open) $('again').close();
    for (const id of SECTIONS) $(id).hidden = true;
    rows.clear();
    for (const id of ['files', 'hits', 'notification-list', 'key-list']) $(id).replaceChildren();
    forgetKey();
    $('query').value = '';
    $('offline').hidden = true;
    $('sign-in').hidden = false;
    setText($('sign-in-reason'), why);
    $('way-link').hidden = true;
    $('way-provider').hidden = !ways.provider;
    $('way-token').hidden = !ways.token || ways.provider;
    $('link-hint').hidden = !ways.link;
    $('token').value = '';
    $(ways.provider ? 'provider-sign-in' : ways.token ? 'token' : 'sign-in-title').focus();
  };
  const start = details => {
    session = details;
    $('sign-in').hidden = true;
    for (const id of ['upload', 'search', 'file-list', 'account']) $(id).hidden = false;
    setText($('user'), details.userId === details.tenantId ? details.userId : details.userId + ' · ' + details.tenantId);
    shown = PAGE;
    refresh();
    openStream();
  };
  const signInWithToken = async token => {
    let response;
    try { response = await fetch('/auth/session', { method: 'POST', headers: { Authorization: 'Bearer ' + token } }); } catch { throw new Unreachable(); }
    if (!response.ok) throw refusalFrom(response.status, await response.text());
    return (await response.json()).session;
  };
  $('way-token').addEventListener('submit', async event => {
    event.preventDefault();
    const token = $('token').value.trim();
    if (!token) return;
    try { start(await signInWithToken(token)); } catch (error) { setText($('sign-in-reason'), error.message + '.'); }
  });
  $('provider-sign-in').addEventListener('click', () => location.assign('/auth/login'));
  $('sign-out').addEventListener('click', async () => {
    let providerUrl = null;
    // Without an answer it is not certain that the session has ended, so the page stays.
    try { ({ providerUrl } = await json('POST', '/auth/logout', {})); } catch (error) { if (error.status !== 401) return notice(error.message + '.'); }
    channel.postMessage('signed-out');
    showSignIn('You are signed out.');
    if (providerUrl) location.assign(providerUrl);
  });

  // A session that has ended is renewed in another tab or with a token: this page keeps what was typed, and its uploads go on.
  let endedSession = null, waiting = [];
  const goOn = () => { endedSession = null; for (const done of waiting.splice(0)) done(); };
  const sessionEnded = () => {
    if (!session) return;
    endedSession = session;
    session = null;
    closeStream();
    $('again-provider').hidden = !ways.provider;
    $('again-token-form').hidden = !ways.token || ways.provider;
    $('again-hint').hidden = !ways.link;
    $('again-token').value = '';
    setText($('again-error'), '');
    if (!$('again').open) $('again').showModal();
  };
  const signedInAgain = details => {
    if (!endedSession) return;
    // What is on this page belongs to the person who was here before.
    if (keyOf(details) !== keyOf(endedSession)) return location.reload();
    $('again').close();
    session = details;
    goOn();
    refresh();
    openStream();
  };
  const signedInElsewhere = async () => {
    if (!endedSession) return;
    const details = await askSession().catch(() => null);
    if (details) signedInAgain(details);
  };
  channel.onmessage = event => {
    if (event.data === 'signed-in') signedInElsewhere();
    else if (session) showSignIn('You are signed out.');
  };
  addEventListener('focus', signedInElsewhere);
  // Only the buttons close it: behind it the page does not work.
  $('again').addEventListener('cancel', event => event.preventDefault());
  $('again-leave').addEventListener('click', () => { showSignIn('You are signed out.'); });
  $('again-sign-in').addEventListener('click', () => window.open('/auth/login?returnTo=' + encodeURIComponent('/#signed-in')));
  $('again-token-form').addEventListener('submit', async event => {
    event.preventDefault();
    try { signedInAgain(await signInWithToken($('again-token').value.trim())); } catch (error) { setText($('again-error'), error.message + '.'); }
  });

  // A person who types or clicks is there: the idle time begins again. A page that only refreshes itself does not count.
  let renewedAt = performance.now();
  const isThere = async () => {
    if (!session || performance.now() - renewedAt < RENEW_MS) return;
    renewedAt = performance.now();
    const before = session;
    const details = await askSession().catch(() => before);
    if (session !== before) return;
    if (!details) sessionEnded();
    else if (keyOf(details) !== keyOf(before)) location.reload();
    else session = details;
  };
  for (const kind of ['pointerdown', 'keydown']) addEventListener(kind, isThere, { passive: true });

  // A link of `landfall open` signs in only after the person has read who that will be.
  const openLink = async (code, confirm) => {
    let response;
    try {
      response = await fetch('/auth/links/open', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code, confirm }) });
    } catch { throw new Unreachable(); }
    if (!response.ok) throw refusalFrom(response.status, await response.text());
    return response.json();
  };
  const ROLES = { member: '', tenant_admin: ', an administrator of the tenant', operator: ', an operator of this server' };
  const askAboutLink = async (code, current) => {
    showSignIn('');
    try {
      const person = await openLink(code, false);
      setText($('link-person'), 'This link signs you in as ' + person.userId + ' of the tenant ' + person.tenantId + ROLES[person.role]
        + (current && keyOf(current) !== keyOf(person) ? '. You are signed in as ' + current.userId + ', and will be signed out.' : '.')
        + ' Go on only if you made the link yourself, or got it from the person who runs this server.');
      for (const id of ['way-provider', 'way-token', 'link-hint']) $(id).hidden = true;
      $('way-link').hidden = false;
      $('link-confirm').onclick = async () => {
        try {
          if (current && keyOf(current) !== keyOf(person)) { session = current; await json('POST', '/auth/logout', {}); session = null; }
          start((await openLink(code, true)).session);
          channel.postMessage('signed-in');
        } catch (error) { showSignIn(error.message + '.'); }
      };
      $('link-cancel').onclick = () => (current ? start(current) : showSignIn('You are not signed in.'));
      $('link-confirm').focus();
    } catch (error) {
      if (current) { start(current); notice(error.message + '.'); }
      else showSignIn(error.message + '.');
    }
  };

  const begin = async () => {
    const given = new URLSearchParams(location.hash.slice(1));
    // The code of a link must not stay in the address bar and the history.
    if (location.hash) history.replaceState(null, '', location.pathname + location.search);
    let details = null;
    try { details = await askSession(); } catch (error) {
      setText($('offline'), error.message || 'The server does not respond.');
      $('offline').hidden = false;
      setTimeout(begin, 3000);
      return;
    }
    $('offline').hidden = true;
    if (given.has('signed-in') && details) { channel.postMessage('signed-in'); window.close(); }
    if (given.has('open')) return askAboutLink(given.get('open'), details);
    const failure = given.has('sign-in-failed') ? FAILURES[given.get('sign-in-failed')] || 'The sign-in failed.' : '';
    if (details) start(details); else showSignIn(failure || 'You are not signed in.');
    if (details && failure) notice(failure);
  };
  addEventListener('hashchange', () => { if (location.hash.startsWith('#open=')) location.reload(); });

  /* ---- requests to the server ---- */

  class Refusal extends Error {
    constructor(status, error) {
      super(error.message);
      Object.assign(this, { status, code: error.code, retryable: error.retryable, details: error.details || {} });
    }
    get isTemporary() {
      return this.retryable && (this.status >= 500 || [408, 429].includes(this.status) || ['UPLOAD_BROKEN', 'BODY_BROKEN', 'UPLOAD_IN_PROGRESS'].includes(this.code));
    }
  }
  class Unreachable extends Error {
    constructor() { super('The server does not respond'); this.code = 'UNREACHABLE'; }
    get isTemporary() { return true; }
  }
  const refusalFrom = (status, text) => {
    try { return new Refusal(status, JSON.parse(text).error); } catch {
      return new Refusal(status, { code: 'HTTP_' + status, message: 'The server returned status ' + status, retryable: status >= 500 });
    }
  };
  const request = async (method, path, body, headers = {}) => {
    for (;;) {
      // A request of a session that has ended waits until the person has signed in again, so no upload is lost.
      if (endedSession) await new Promise(done => waiting.push(done));
      const requestSession = session;
      if (!requestSession) throw new Refusal(401, { code: 'UNAUTHENTICATED', message: 'You are not signed in' });
      let response;
      try {
        response = await fetch(path, {
          method,
          headers: { ...(method === 'GET' ? {} : { 'X-CSRF-Token': requestSession.csrfToken }), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
          body: body === undefined ? undefined : JSON.stringify(body),
        });
      } catch { throw new Unreachable(); }
      if (response.ok) return response;
      const refusal = refusalFrom(response.status, await response.text().catch(() => ''));
      refusal.waitMs = 1000 * Math.min(Number(response.headers.get('Retry-After')) || 0, 60);
      if (refusal.status !== 401 || path === '/auth/logout') throw refusal;
      if (session === requestSession) sessionEnded();
    }
  };
  const json = async (...args) => {
    const response = await request(...args);
    try { return await response.json(); } catch { throw new Unreachable(); }
  };
  const withRetries = async action => {
    for (const wait of [400, 800, 1600, 3200, 6400]) {
      let asked = 0;
      try { return await action(); } catch (error) {
        if (!error.isTemporary) throw error;
        asked = error.waitMs || 0;
      }
      await sleep(asked + wait * (0.8 + 0.4 * Math.random()));
    }
    return action();
  };
  // The idempotency key makes the retries safe: the server creates the object once.
  const create = (path, body) => {
    const key = Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');
    return withRetries(() => json('POST', path, body, { 'Idempotency-Key': key }));
  };

  /* ---- the list of files ---- */

  let shown = PAGE, refreshTimer = null, refreshing = false, refreshAgain = false, failures = 0;
  const rows = new Map();

  const refresh = async () => {
    clearTimeout(refreshTimer);
    if (refreshing) { refreshAgain = true; return; }
    if (!session) return;
    refreshing = true;
    const requestKey = keyOf(session);
    let unfinished = false;
    try {
      const [listing, quota, notifications] = await Promise.all([list(), json('GET', API + '/quota'), json('GET', NOTIFICATIONS + '?unread=true&limit=20')]);
      if (keyOf(session) !== requestKey) return;
      showFiles(listing);
      showQuota(quota);
      showNotifications(notifications);
      showDelays(listing.files);
      unfinished = listing.files.some(file => !TERMINAL.includes(file.status));
      failures = 0;
      $('offline').hidden = true;
    } catch (error) {
      if (session && error.status !== 401) {
        failures += 1;
        setText($('offline'), error instanceof Unreachable
          ? 'The server does not respond. This page keeps trying and continues when the server is back.'
          : error.message);
        $('offline').hidden = false;
      }
    } finally {
      refreshing = false;
      if (refreshAgain) { refreshAgain = false; refresh(); }
      else if (session) refreshTimer = setTimeout(refresh, failures ? Math.min(1000 * failures, 5000) : stream.live ? (unfinished ? 10000 : 60000) : document.hidden ? 15000 : unfinished || uploader.active ? 1000 : 5000);
    }
  };
  document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });

  // While the event stream is open, the server reports changes and the page polls rarely. Otherwise it polls often.
  const stream = { source: null, live: false, lastId: null, key: null, retryTimer: null, failures: 0 };
  let scheduledRefresh = null;
  const scheduleRefresh = () => { scheduledRefresh ??= setTimeout(() => { scheduledRefresh = null; refresh(); }, 200); };
  const closeStream = () => {
    clearTimeout(stream.retryTimer);
    if (stream.source) stream.source.close();
    Object.assign(stream, { source: null, live: false });
  };
  const openStream = () => {
    closeStream();
    const key = keyOf(session);
    // A position in another user's stream is not valid for this one.
    if (stream.key !== key) Object.assign(stream, { key, lastId: null, failures: 0 });
    const retryLater = () => {
      if (keyOf(session) !== key) return;
      closeStream();
      stream.failures += 1;
      stream.retryTimer = setTimeout(openStream, Math.min(1000 * 2 ** stream.failures, 60000) * (0.8 + 0.4 * Math.random()));
      // It also finds out whether the session has ended.
      scheduleRefresh();
    };
    const query = new URLSearchParams(stream.lastId === null ? {} : { after: stream.lastId });
    const source = stream.source = new EventSource(API + '/events?' + query);
    // The browser would reconnect by itself, but without an end to it.
    source.onerror = () => { if (stream.source === source) retryLater(); };
    source.addEventListener('stream:end', () => source.onerror());
    const changed = event => { stream.lastId = event.lastEventId; scheduleRefresh(); };
    source.addEventListener('stream:open', event => {
      Object.assign(stream, { live: true, failures: 0 });
      changed(event);
    });
    for (const type of ['stream:gap', 'stream:reset', 'file:status-changed', 'file:processing-stalled', 'file:cleaned-up', 'batch:cancelled', 'batch:expired', 'notification:created'])
      source.addEventListener(type, changed);
  };

  const list = async () => {
    const files = [];
    let cursor = null;
    do {
      const query = new URLSearchParams({ limit: Math.min(200, shown - files.length) });
      if (cursor) query.set('cursor', cursor);
      if ($('status-filter').value) query.set('status', $('status-filter').value);
      if ($('name-filter').value.trim()) query.set('q', $('name-filter').value.trim());
      const page = await json('GET', API + '/files?' + query);
      for (const file of page.files) file.receivedAt = performance.now();
      files.push(...page.files);
      cursor = page.nextCursor;
    } while (cursor && files.length < shown);
    return { files, more: Boolean(cursor) };
  };

  const showFiles = ({ files, more }) => {
    const parent = $('files');
    const present = new Set(files.map(file => file.fileId));
    for (const [id, row] of rows) if (!present.has(id)) {
      if (row.node.contains(document.activeElement)) $('files-title').focus();
      row.node.remove();
      rows.delete(id);
    }
    let place = parent.firstElementChild;
    for (const file of files) {
      let row = rows.get(file.fileId);
      if (!row) { row = new Row(file); rows.set(file.fileId, row); }
      row.show(file);
      if (row.node === place) place = place.nextElementSibling;
      else parent.insertBefore(row.node, place);
    }
    $('more').hidden = !more || shown >= MAX_SHOWN;
    const filtered = $('status-filter').value || $('name-filter').value.trim();
    $('empty').hidden = files.length > 0;
    if (!files.length && $('empty').dataset.filtered !== String(Boolean(filtered))) {
      $('empty').dataset.filtered = String(Boolean(filtered));
      $('empty').replaceChildren(...(filtered
        ? [el('strong', {}, 'No files match'), 'Change the filter to see other files.']
        : [el('strong', {}, 'No files yet'), 'Drop documents above, or upload them from a terminal: ', el('code', {}, 'landfall upload *.md'),
           el('br'), 'When a file is ready, you can search its text.']));
    }
  };

  // Reasons that delay all files at a stage and not just one.
  const STAGE_DELAYS = ['circuit', 'paused', 'no_workers'];
  const showDelays = files => {
    const delayed = files.filter(file => STAGE_DELAYS.includes(file.waitingFor));
    const reasons = [...new Set(delayed.map(file => file.waitingMessage))];
    setText($('delays'), `${delayed.length === 1 ? 'A file waits' : delayed.length + ' files wait'}. ${reasons.join('. ')}.`);
    $('delays').hidden = !delayed.length;
  };

  const badgeClass = status => RUNNING.includes(status) ? 'running' : status === 'queued' ? 'waiting' : status;
  const waitingText = file => {
    if (!file.waitingFor) return '';
    const message = file.waitingMessage || 'Waiting for: ' + file.waitingFor;
    return file.retryInMs == null ? message : message + countdown(file);
  };
  // Counted from when the answer came, because this machine's clock may be wrong.
  const countdown = file => {
    const seconds = Math.ceil((file.retryInMs - (performance.now() - file.receivedAt)) / 1000);
    if (seconds < 1) return ' (any moment now)';
    return ' (in ' + (seconds < 120 ? seconds + ' s' : Math.ceil(seconds / 60) + ' min') + ')';
  };
  setInterval(() => { if (!document.hidden) for (const row of rows.values()) row.showWaiting(); }, 1000);

  const batchText = batch => {
    if (!batch) return '';
    const missing = batch.summary.neverUploaded;
    return ' (' + batch.status + (missing ? ': ' + missing.toLocaleString('en') + ' of ' + count(batch.summary.total, 'file') + ' never arrived' : '') + ')';
  };

  class Row {
    constructor(file) {
      this.id = file.fileId;
      const details = 'details-' + file.fileId;
      this.badge = el('span', { className: 'badge' });
      this.name = el('button', { type: 'button', className: 'plain name', 'aria-expanded': 'false', 'aria-controls': details, on: { click: () => this.toggle() } });
      this.meta = el('div', { className: 'meta' });
      this.waiting = el('div', { className: 'waiting-for' });
      this.stale = el('div', { className: 'stale', hidden: true });
      this.warning = el('div', { className: 'warning' });
      this.error = el('div', { className: 'error' });
      this.retry = this.button('Retry', () => this.send('POST', '/retry'));
      this.cancel = this.button('Cancel', () => this.send('POST', '/cancel'));
      this.remove = this.button('Delete', () => this.confirmDelete());
      this.remove.addEventListener('blur', () => this.resetDelete());
      this.details = el('div', { className: 'details', id: details, hidden: true });
      this.node = el('li', { className: 'file' },
        el('div', { className: 'row' }, this.badge,
          el('div', {}, this.name, this.meta, this.waiting, this.stale, this.warning, this.error),
          el('div', { className: 'actions' }, this.retry, this.cancel, this.remove)),
        this.details);
    }

    button(text, handler) {
      return el('button', { type: 'button', on: { click: handler } }, text);
    }

    show(file) {
      const before = this.file;
      this.file = file;
      file.receivedAt ??= performance.now();
      const at = file.readyAt || file.failedAt || file.updatedAt;
      const attempt = file.attempt > 0 && (file.inflight ? file.attempt > 1 : file.status === 'failed' || file.status === 'queued')
        ? 'attempt ' + file.attempt + ' of ' + file.maxAttempts + (file.inflight ? '' : ' failed') : null;
      setText(this.name, file.fileName);
      setText(this.badge, file.status);
      this.badge.className = 'badge ' + badgeClass(file.status);
      setText(this.meta, [size(file.size), file.chunkCount ? count(file.chunkCount, 'chunk') : null, attempt, ago(at)].filter(Boolean).join(' · '));
      this.meta.title = fullTime(at);
      this.showWaiting();
      const warned = file.status === 'ready' && file.warningCount > 0;
      setText(this.warning, warned ? '⚠ Not everything in this file could be read: ' + count(file.warningCount, 'warning') : '');
      this.warning.hidden = !warned;
      const stale = file.staleness.stale ? file.staleness.message : '';
      setText(this.stale, stale);
      this.stale.hidden = !stale;
      const error = file.status === 'ready' ? null : file.error;
      this.error.hidden = !error && !this.actionError;
      const problem = this.actionError || error;
      const text = problem ? problem.code + ' ' + problem.message : '';
      if (this.error.dataset.shown !== text) {
        this.error.dataset.shown = text;
        this.error.replaceChildren(...(problem ? [el('code', {}, problem.code), ' ' + problem.message] : []));
      }
      const inProgress = file.status === 'queued' || RUNNING.includes(file.status);
      this.setVisible(this.retry, ['failed', 'cancelled'].includes(file.status));
      this.setVisible(this.cancel, inProgress);
      for (const [button, verb] of [[this.retry, 'Retry'], [this.cancel, 'Cancel'], [this.remove, 'Delete']])
        if (button.getAttribute('aria-label') !== verb + ' ' + file.fileName && !button.classList.contains('confirming')) button.setAttribute('aria-label', verb + ' ' + file.fileName);
      if (before && before.status !== file.status && ['ready', 'failed'].includes(file.status))
        setText($('announcements'), file.fileName + (file.error && file.status === 'failed' ? ' failed: ' + file.error.message : ' is ' + file.status + (warned ? ' with ' + count(file.warningCount, 'warning') : '')));
      if (before && before.updatedAt !== file.updatedAt && !this.details.hidden) this.loadDetails();
    }

    showWaiting() {
      const waiting = waitingText(this.file);
      setText(this.waiting, waiting);
      this.waiting.hidden = !waiting;
    }

    // If a button that has the focus is hidden, the focus moves to the file's name.
    setVisible(button, wanted) {
      if (!wanted && button === document.activeElement) this.name.focus();
      button.hidden = !wanted;
    }

    async send(method, path) {
      this.actionError = null;
      // A disabled button loses the focus, so it is restored afterwards for users of the keyboard.
      const focused = this.node.contains(document.activeElement);
      this.setBusy(true);
      try {
        const response = await request(method, API + '/files/' + this.id + path);
        if (response.status === 204) {
          this.node.remove();
          rows.delete(this.id);
          if (focused) $('files-title').focus();
          setText($('announcements'), this.file.fileName + ' was deleted');
        } else this.show(await response.json());
      } catch (error) {
        if (error.status !== 401) { this.actionError = { code: error.code, message: error.message }; this.show(this.file); }
      } finally {
        this.setBusy(false);
        if (focused && this.node.isConnected && document.activeElement === document.body) this.name.focus();
        refresh();
      }
    }

    setBusy(busy) { for (const button of [this.retry, this.cancel, this.remove]) button.disabled = busy; }

    confirmDelete() {
      if (this.remove.classList.contains('confirming')) {
        this.resetDelete();
        this.send('DELETE', '');
      } else {
        this.remove.classList.add('confirming');
        setText(this.remove, 'Really delete?');
        this.remove.setAttribute('aria-label', 'Really delete ' + this.file.fileName + '? Press again to delete it');
      }
    }

    resetDelete() {
      this.remove.classList.remove('confirming');
      setText(this.remove, 'Delete');
      this.remove.setAttribute('aria-label', 'Delete ' + this.file.fileName);
    }

    toggle() {
      this.details.hidden = !this.details.hidden;
      this.name.setAttribute('aria-expanded', String(!this.details.hidden));
      if (!this.details.hidden) this.loadDetails();
    }

    async loadDetails() {
      let history, warnings, batch = null;
      try {
        if (this.file.batchId) batch = await json('GET', API + '/batches/' + this.file.batchId).catch(() => null);
        history = (await json('GET', API + '/files/' + this.id + '/history?limit=200')).history;
        // A list of files has only their number.
        warnings = this.file.warningCount ? (await json('GET', API + '/files/' + this.id)).warnings : [];
      } catch (error) {
        if (!this.details.children.length) this.details.replaceChildren(el('div', { className: 'error' }, error.message));
        return;
      }
      const file = this.file;
      const facts = [['Id', file.fileId], ['Type', file.contentType || 'not declared'], ['Size', file.size.toLocaleString('en') + ' bytes'], ['Batch', file.batchId ? file.batchId + batchText(batch) : 'none'],
        ['Priority', file.priority], ['Created', fullTime(file.createdAt)]];
      if (file.inflight && file.inflight.worker) facts.push(['Worker', file.inflight.worker]);
      const attempts = Object.entries(file.attempts).map(([stage, number]) => stage + ' ' + number).join(', ');
      if (attempts) facts.push(['Attempts', attempts]);
      if (file.retriedAt) facts.push(['Retried', fullTime(file.retriedAt) + ' by ' + file.retriedBy]);
      if (file.deletionAt) facts.push([file.failedAt ? 'Deleted, unless retried' : 'Deleted, unless uploaded', fullTime(file.deletionAt)]);
      const hasBytes = file.status !== 'registered';
      const original = file.resultType ? 'Download original' : 'Download';
      const focus = this.details.contains(document.activeElement) ? document.activeElement.dataset.action : null;
      const text = this.details.querySelector('pre');
      this.details.replaceChildren(
        el('dl', {}, ...facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])),
        ...(warnings.length ? [el('h3', {}, 'What is missing'),
          el('ul', { className: 'warnings' }, ...warnings.map(warning => el('li', {}, el('code', {}, warning.code), ' ' + warning.message)))] : []),
        el('h3', {}, 'History'),
        el('table', {}, el('thead', {}, el('tr', {}, ...['Time', 'State', 'By', 'Details'].map(name => el('th', { scope: 'col' }, name)))),
          el('tbody', {}, ...history.map(step => el('tr', {},
            el('td', { title: fullTime(step.at) }, new Date(step.at).toLocaleTimeString([], { hour12: false }) + '.' + String(new Date(step.at).getMilliseconds()).padStart(3, '0')),
            el('td', {}, step.to || ''),
            el('td', {}, step.actor ? step.actor.kind + ' ' + step.actor.name : ''),
            el('td', {}, [step.errorCode ? step.errorCode + ': ' + (step.errorMessage || '') : null, step.attempt > 1 ? 'attempt ' + step.attempt : null, step.reason].filter(Boolean).join('; ')))))),
        el('p', { className: 'actions below' },
          file.resultType ? el('button', { type: 'button', 'data-action': 'result', on: { click: event => this.download(event.currentTarget, '/result', 'Download result') } }, 'Download result') : null,
          hasBytes ? el('button', { type: 'button', 'data-action': 'download', on: { click: event => this.download(event.currentTarget, '/download?proxy=true', original) } }, original) : null,
          file.chunkCount ? el('button', { type: 'button', 'data-action': 'text', on: { click: event => this.showText(event.currentTarget) } }, 'Show text') : null));
      if (text) this.details.append(text);
      if (focus) this.details.querySelector('[data-action="' + focus + '"]')?.focus();
    }

    async download(button, path, label) {
      button.disabled = true;
      try {
        const response = await request('GET', API + '/files/' + this.id + path);
        const url = URL.createObjectURL(await response.blob());
        // The result has another extension than the file.
        const named = /filename\*=UTF-8''([^;]+)/.exec(response.headers.get('Content-Disposition') || '');
        el('a', { href: url, download: named ? decodeURIComponent(named[1]) : this.file.fileName }).click();
        setTimeout(() => URL.revokeObjectURL(url), 60000);
        setText(button, label);
      } catch (error) { setText(button, label + ': ' + error.message); }
      button.disabled = false;
    }

    async showText(button) {
      button.disabled = true;
      try {
        const text = await (await request('GET', API + '/files/' + this.id + '/text')).text();
        this.details.querySelector('pre')?.remove();
        this.details.append(el('pre', { tabIndex: 0 }, text.length > 20000 ? text.slice(0, 20000) + '…' : text));
      } catch (error) { setText(button, error.message); }
      button.disabled = false;
    }
  }

  const showQuota = ({ bytes }) => {
    const used = bytes.used + bytes.reserved;
    const share = bytes.limit ? used / bytes.limit : 1;
    const meter = $('quota').querySelector('.gauge');
    setText($('quota-text'), size(used) + ' of ' + size(bytes.limit) + ' used');
    setGauge(meter, used ? Math.max(share, 0.01) : 0);
    meter.classList.toggle('tight', share > 0.8 && share < 0.95);
    meter.classList.toggle('full', share >= 0.95);
    $('quota').hidden = false;
  };

  const showNotifications = ({ notifications, unreadCount }) => {
    const ids = notifications.map(one => one.notificationId).join();
    if ($('notification-list').dataset.shown !== ids) {
      $('notification-list').dataset.shown = ids;
      if ($('notification-list').contains(document.activeElement)) $('notifications-title').focus();
      $('notification-list').replaceChildren(...notifications.map(one => el('li', {},
        el('span', {}, one.message, ' ', el('span', { className: 'meta', title: fullTime(one.createdAt) }, ago(one.createdAt))),
        el('button', { type: 'button', 'aria-label': 'Mark as read: ' + one.message, on: { click: () => markRead('/' + one.notificationId + '/read') } }, 'Mark as read'))));
    }
    setText($('notifications-title'), count(unreadCount, 'unread notification') + (unreadCount > notifications.length ? ', the newest ' + notifications.length + ' are shown' : ''));
    $('notifications').hidden = !unreadCount;
  };
  // An error is shown by the refresh, which meets it again.
  const markRead = path => request('POST', NOTIFICATIONS + path, {}).catch(() => {}).finally(refresh);
  $('read-all').addEventListener('click', () => markRead('/read-all'));

  let filterTimer = null;
  const applyFilter = () => { shown = PAGE; refresh(); };
  $('status-filter').addEventListener('change', applyFilter);
  $('name-filter').addEventListener('input', () => { clearTimeout(filterTimer); filterTimer = setTimeout(applyFilter, 250); });
  $('more').addEventListener('click', () => { shown = Math.min(MAX_SHOWN, shown + PAGE * 2); refresh(); });

  /* ---- uploading ---- */

  const uploader = {
    waiting: [], done: 0, total: 0, bytes: 0, sent: 0, active: 0, failed: [], opening: false,

    // Queues files and uploads them in batches, one batch after the other.
    async add(files) {
      if (!files.length) return;
      if (!this.active && !this.waiting.length && !this.opening && !this.failed.length) Object.assign(this, { done: 0, total: 0, bytes: 0, sent: 0 });
      this.total += files.length;
      const accepted = [];
      for (const file of files) {
        if (file.size) { accepted.push(file); this.bytes += file.size; }
        else this.fail({ file, retry: false }, { code: 'EMPTY', message: 'This file is empty' });
      }
      this.waiting.push(...accepted);
      this.draw();
      if (this.opening) return;
      this.opening = true;
      try {
        while (this.waiting.length) await this.uploadBatch(this.waiting.splice(0, MAX_FILES_PER_BATCH));
      } finally {
        this.opening = false;
        this.draw();
        refresh();
      }
    },

    async uploadBatch(files) {
      let batch;
      try {
        batch = (await create(API + '/batches', { fileCount: files.length })).batchId;
      } catch (error) {
        for (const file of files) this.fail({ file, retry: true }, error);
        return;
      }
      let registered = 0;
      for (let from = 0; from < files.length; from += MAX_FILES_PER_REQUEST) {
        const uploads = await this.register(batch, files.slice(from, from + MAX_FILES_PER_REQUEST));
        registered += uploads.length;
        const worker = async () => { for (let upload; (upload = uploads.shift());) await this.uploadFile(upload); };
        await Promise.all(Array.from({ length: PARALLEL_UPLOADS }, worker));
      }
      // Some files could not be registered. Close the batch, so that it does not wait for them.
      if (registered < files.length) await withRetries(() => request('POST', API + '/batches/' + batch + '/close', {})).catch(() => {});
    },

    // The server registers all files of a list or none: remove the files that it rejects and try again with the rest.
    async register(batch, files) {
      while (files.length) {
        try {
          const declared = files.map(file => ({ fileName: file.name, fileSize: file.size, ...(/^[ -~]+\/[ -~]+$/.test(file.type) ? { contentType: file.type } : {}) }));
          const tickets = await create(API + '/batches/' + batch + '/upload-urls', declared);
          return tickets.map((ticket, index) => ({ ticket, ticketAt: performance.now(), file: files[index], sent: 0 }));
        } catch (error) {
          const { index, maxFileSize, quota } = error.details || {};
          let isRejected = () => true;
          if (error.code === 'TOO_LARGE' && maxFileSize) isRejected = file => file.size > maxFileSize;
          else if (error.code === 'QUOTA_EXCEEDED' && quota) {
            let freeBytes = quota.bytes.free, freeFiles = quota.files.free;
            isRejected = file => {
              if (freeFiles < 1 || file.size > freeBytes) return true;
              freeFiles -= 1; freeBytes -= file.size;
              return false;
            };
          } else if (index !== undefined) isRejected = (_, at) => at === index;
          // The error is about the whole list. Word it for one file.
          const message = file => error.code === 'QUOTA_EXCEEDED' ? 'The quota has no room for this file (' + size(file.size) + ')'
            : index === undefined ? error.message : error.message.replace('File ' + index + ': ', '');
          const rest = [];
          let rejectedCount = 0;
          files.forEach((file, at) => {
            if (isRejected(file, at)) { rejectedCount += 1; this.fail({ file, retry: Boolean(error.isTemporary) || error.status === 401 }, { code: error.code, message: message(file) }); } else rest.push(file);
          });
          if (!rejectedCount) { for (const file of rest) this.fail({ file, retry: false }, error); return []; }
          files = rest;
        }
      }
      return [];
    },

    async uploadFile(upload) {
      this.active += 1;
      const id = upload.ticket.fileId;
      upload.node = el('li', {}, el('span', { className: 'name' }, upload.file.name), upload.percent = el('span', { className: 'meta' }, '0 %'),
        upload.gauge = el('div', { className: 'gauge', role: 'progressbar', 'aria-label': 'Uploading ' + upload.file.name, 'aria-valuemin': 0, 'aria-valuemax': 100 }, el('div')));
      $('upload-list').prepend(upload.node);
      this.draw();
      try {
        await withRetries(async () => {
          // Files wait for their turn longer than a URL is valid. Without this, the bytes would be sent in vain first.
          if (performance.now() - upload.ticketAt > upload.ticket.expiresInMs - URL_RESERVE_MS) await this.renew(upload);
          try { await this.put(upload); } catch (error) {
            if (error.code !== 'UPLOAD_URL_EXPIRED') throw error;
            await this.renew(upload);
            await this.put(upload);
          }
        });
        await withRetries(() => request('POST', API + '/files/' + id + '/confirm', { size: upload.file.size }));
        this.done += 1;
        refresh();
      } catch (error) {
        this.fail({ file: upload.file, retry: true, sent: upload.sent }, error);
        // Its batch would wait for it, so delete the registration.
        withRetries(() => request('DELETE', API + '/files/' + id)).catch(() => {}).finally(refresh);
      }
      upload.node.remove();
      this.active -= 1;
      this.draw();
    },

    async renew(upload) {
      upload.ticket = await json('POST', API + '/files/' + upload.ticket.fileId + '/upload-url', {});
      upload.ticketAt = performance.now();
    },

    put(upload) {
      const progress = bytes => {
        this.sent += bytes - upload.sent;
        upload.sent = bytes;
        const share = bytes / upload.file.size;
        setGauge(upload.gauge, share);
        setText(upload.percent, share < 1 ? Math.floor(share * 100) + ' %' : 'checking');
        this.draw();
      };
      progress(0);
      // Behind a proxy the server may return an http URL although this page was loaded over https.
      const url = new URL(upload.ticket.uploadUrl);
      const address = url.host === location.host ? url.pathname + url.search : url.href;
      return new Promise((done, failed) => {
        const xhr = new XMLHttpRequest();
        xhr.open(upload.ticket.method, address);
        // The browser sets Content-Length itself and does not allow scripts to set it.
        for (const [name, value] of Object.entries(upload.ticket.headers)) if (name.toLowerCase() !== 'content-length') xhr.setRequestHeader(name, value);
        xhr.upload.onprogress = event => progress(Math.min(event.loaded, upload.file.size));
        xhr.onload = () => {
          // An object store refuses what it has already: an earlier attempt stored it, and its answer was lost.
          const isThere = url.host !== location.host && (xhr.status === 409 || xhr.status === 412);
          if ((xhr.status >= 200 && xhr.status < 300) || isThere) { progress(upload.file.size); done(); }
          else failed(refusalFrom(xhr.status, xhr.responseText));
        };
        xhr.onerror = async () => {
          // The event does not say whether the file or the connection failed, so try to read the file.
          try { await upload.file.slice(0, 1).arrayBuffer(); failed(new Unreachable()); }
          catch { failed(Object.assign(new Error('This file can no longer be read'), { code: 'UNREADABLE' })); }
        };
        xhr.send(upload.file);
      });
    },

    fail({ file, retry, sent = 0 }, error) {
      this.bytes -= file.size; this.sent -= sent;
      const entry = { file };
      const again = el('button', { type: 'button', 'aria-label': 'Retry the upload of ' + file.name, on: { click: () => {
        this.removeFailed(entry);
        this.total -= 1;
        this.add([file]);
      } } }, 'Retry');
      entry.node = el('li', {}, el('span', { className: 'name' }, file.name), retry ? again : el('span'),
        el('div', { className: 'error' }, el('code', {}, error.code || 'ERROR'), ' ' + error.message));
      this.failed.push(entry);
      // Do not list thousands of failed files.
      if (this.failed.length <= 100) $('upload-list').append(entry.node);
      this.draw();
    },

    removeFailed(entry) {
      this.failed = this.failed.filter(one => one !== entry);
      entry.node.remove();
    },

    draw() {
      const busy = this.active || this.opening || this.waiting.length;
      $('uploads').hidden = !busy && !this.failed.length;
      const failed = this.failed.length ? ', ' + count(this.failed.length, 'file') + ' not uploaded' : '';
      setText($('uploads-title'), (busy ? 'Uploading: ' : '') + this.done.toLocaleString('en') + ' of ' + count(this.total, 'file') + ' uploaded' + failed);
      setGauge($('uploads-progress'), this.bytes > 0 ? this.sent / this.bytes : 0);
      $('uploads-progress').hidden = !busy;
      $('dismiss').hidden = Boolean(busy);
    },
  };
  $('dismiss').addEventListener('click', () => {
    for (const entry of [...uploader.failed]) uploader.removeFailed(entry);
    uploader.draw();
    $('choose-files').focus();
  });
  addEventListener('beforeunload', event => { if (uploader.active || uploader.waiting.length) event.preventDefault(); });

  $('choose-files').addEventListener('click', () => $('file-input').click());
  $('file-input').addEventListener('change', () => { uploader.add([...$('file-input').files]); $('file-input').value = ''; });

  // Collects all files of a folder.
  const collectFiles = async (entry, files) => {
    if (files.length >= 100000) return;
    if (entry.isFile) return void files.push(await new Promise((done, failed) => entry.file(done, failed)));
    const reader = entry.createReader();
    for (;;) {
      const entries = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (!entries.length) return;
      for (const inner of entries) await collectFiles(inner, files);
    }
  };
  const filesFromDrop = async transfer => {
    const plain = [...transfer.files];
    // Read the entries before the first await: the browser clears the items after that.
    const entries = [...transfer.items].map(item => item.webkitGetAsEntry?.()).filter(Boolean);
    if (!entries.some(entry => entry.isDirectory)) return plain;
    const files = [];
    for (const entry of entries) await collectFiles(entry, files).catch(() => {});
    return files;
  };
  let dragDepth = 0;
  const hasFiles = event => session && [...event.dataTransfer.types].includes('Files');
  addEventListener('dragenter', event => { if (hasFiles(event)) { dragDepth += 1; document.body.classList.add('drag-over'); } });
  addEventListener('dragleave', event => { if (hasFiles(event) && (dragDepth -= 1) <= 0) { dragDepth = 0; document.body.classList.remove('drag-over'); } });
  addEventListener('dragover', event => { event.preventDefault(); });
  addEventListener('drop', async event => {
    event.preventDefault();
    dragDepth = 0;
    document.body.classList.remove('drag-over');
    if (session) uploader.add(await filesFromDrop(event.dataTransfer));
  });

  /* ---- search ---- */

  // Approximates how the server matches words: two words match if one is a prefix of the other or they share a stem.
  const STOP_WORDS = new Set('a about an and are as at be by can did do does for from had has have how i in is it its of on or that the their there this to was were what when where which who why will with you'.split(' '));
  const matcher = query => {
    const words = [...new Set((query.toLowerCase().match(/[\p{L}\p{N}]+/gu) || []))];
    const significant = words.filter(word => !STOP_WORDS.has(word));
    const terms = significant.length ? significant : words;
    const similar = (one, other) => one === other || (Math.min(one.length, other.length) > 3 && (one.startsWith(other) || other.startsWith(one)));
    const stems = terms.map(term => term.slice(0, -2)).filter(stem => stem.length > 3);
    return word => { const low = word.toLowerCase(); return terms.some(term => similar(term, low)) || stems.some(stem => low.startsWith(stem)); };
  };
  const highlighted = (text, matches) => {
    const parts = [];
    let end = 0;
    for (const found of text.matchAll(/[\p{L}\p{N}]+/gu)) {
      if (!matches(found[0])) continue;
      parts.push(text.slice(end, found.index), el('mark', {}, found[0]));
      end = found.index + found[0].length;
    }
    return [...parts, text.slice(end)].filter(part => part !== '');
  };
  const INITIAL_HITS = 4;
  let searchNumber = 0;
  $('more-hits').addEventListener('click', () => {
    for (const hit of $('hits').children) hit.hidden = false;
    $('more-hits').hidden = true;
    $('hits').children[INITIAL_HITS].tabIndex = -1;
    $('hits').children[INITIAL_HITS].focus();
  });
  $('search-form').addEventListener('submit', async event => {
    event.preventDefault();
    const query = $('query').value.trim();
    const number = searchNumber += 1;
    if (!query) { $('results').hidden = true; return; }
    $('results').hidden = false;
    setText($('results-text'), 'Searching…');
    try {
      const { hits, warning } = await json('POST', '/api/v2/search', { query, limit: 20 });
      if (number !== searchNumber) return;
      const matches = matcher(query);
      const found = hits.length ? count(hits.length, 'result') + ', best first' : 'No results. Only files that are ready can be searched.';
      setText($('results-text'), warning ? found + '. ' + warning : found);
      $('hits').replaceChildren(...hits.map(hit => el('li', {},
        el('div', {}, el('span', { className: 'name' }, hit.fileName), ' ',
          el('span', { className: 'location' }, [hit.page ? 'page ' + hit.page : null, hit.heading, hit.matched.includes('words') ? null : 'similar in meaning'].filter(Boolean).map(part => '· ' + part).join(' '))),
        el('p', { title: 'Score ' + hit.score.toFixed(4) }, ...highlighted(hit.snippet, matches)))));
      $('hits').hidden = !hits.length;
      [...$('hits').children].forEach((hit, at) => { hit.hidden = at >= INITIAL_HITS; });
      $('more-hits').hidden = hits.length <= INITIAL_HITS;
    } catch (error) {
      if (number !== searchNumber) return;
      $('hits').hidden = $('more-hits').hidden = true;
      setText($('results-text'), error.message);
    }
  });
  $('query').addEventListener('input', () => { if (!$('query').value) { searchNumber += 1; $('results').hidden = true; } });

  /* ---- API keys ---- */

  const KEYS = '/api/v2/keys';
  const DAY_MS = 86400000;
  const keyState = key => key.revokedAt ? 'revoked ' + ago(key.revokedAt)
    : key.expiresAt && Date.parse(key.expiresAt) <= Date.now() ? 'expired ' + ago(key.expiresAt)
      : key.expiresAt ? 'until ' + new Date(key.expiresAt).toLocaleDateString() : 'does not expire';
  const isUsable = key => !key.revokedAt && !(key.expiresAt && Date.parse(key.expiresAt) <= Date.now());
  const showKeys = async () => {
    const requestKey = keyOf(session);
    try {
      const { keys } = await json('GET', KEYS + '?limit=100');
      if (keyOf(session) !== requestKey) return;
      if ($('key-list').contains(document.activeElement)) $('keys-title').focus();
      $('key-list').replaceChildren(...keys.map(key => el('li', {},
        el('span', {}, el('span', { className: 'name' }, key.name), ' ', el('code', {}, key.hint), ' ',
          el('span', { className: 'meta' }, [key.scopes.join(', '), keyState(key), key.lastUsedAt ? 'last used ' + ago(key.lastUsedAt) : 'never used'].join(' · '))),
        isUsable(key) ? revokeButton(key) : null)));
    } catch (error) { setText($('key-error'), error.message + '.'); }
  };
  // The second click revokes, so that no program stops working by a slip.
  const revokeButton = key => {
    const button = el('button', { type: 'button', 'aria-label': 'Revoke ' + key.name }, 'Revoke');
    button.addEventListener('click', async () => {
      if (!button.classList.contains('confirming')) {
        button.classList.add('confirming');
        setText(button, 'Revoke it now?');
        return;
      }
      button.disabled = true;
      try { await request('DELETE', KEYS + '/' + key.keyId); setText($('key-error'), ''); } catch (error) { setText($('key-error'), error.message + '.'); }
      showKeys();
    });
    button.addEventListener('blur', () => { button.classList.remove('confirming'); setText(button, 'Revoke'); });
    return button;
  };
  const setKeysOpen = open => {
    $('keys').hidden = !open;
    $('open-keys').setAttribute('aria-expanded', String(open));
    if (!open) return forgetKey();
    showKeys();
    $('keys-title').focus();
  };
  $('open-keys').addEventListener('click', () => setKeysOpen($('keys').hidden));
  $('close-keys').addEventListener('click', () => { setKeysOpen(false); $('open-keys').focus(); });
  $('key-form').addEventListener('submit', async event => {
    event.preventDefault();
    const scopes = [...$('key-form').querySelectorAll('input[name=scope]:checked')].map(box => box.value);
    const days = Number($('key-days').value);
    setText($('key-error'), '');
    forgetKey();
    try {
      const created = await json('POST', KEYS, {
        name: $('key-name').value.trim(), scopes,
        ...(days ? { expiresAt: new Date(Date.now() + days * DAY_MS).toISOString() } : {}),
      });
      $('new-key-text').value = created.key;
      $('new-key').hidden = false;
      $('key-name').value = '';
      $('new-key-text').select();
      showKeys();
    } catch (error) { setText($('key-error'), error.message + '.'); }
  });
  $('copy-key').addEventListener('click', async () => {
    $('new-key-text').select();
    // Without permission to write to the clipboard the key is selected, and the person copies it.
    try { await navigator.clipboard.writeText($('new-key-text').value); setText($('copy-key'), 'Copied'); } catch {}
  });

  begin();
})();
