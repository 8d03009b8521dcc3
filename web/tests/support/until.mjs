/** Asks until something is so. Only for what nothing tells of by itself: a server's state, a count of connections. */
export const until = async (what, isSo, ms = 30_000) => {
  const end = Date.now() + ms;
  let last;
  for (;;) {
    try {
      const answer = await isSo();
      if (answer) return answer;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`it did not happen within ${ms / 1000} s: ${what}`, { cause: last });
    await new Promise(done => setTimeout(done, 50));
  }
};
