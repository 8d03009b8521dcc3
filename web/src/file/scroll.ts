/** Scrolls a box, and not the page around it, so that a part of it is at this share of its height. */
export const scrollWithin = (box: HTMLElement | null, part: Element | null | undefined, share: number) => {
  if (!box || !part) return;
  box.scrollTop += part.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight * share;
};
