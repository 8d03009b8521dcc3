/** Marks the words of a question in a passage. */
import type { ReactNode } from 'react';

/** Words as short as these are in every text. */
const SHORTEST = 3;

const stem = (word: string) => word.replace(/(ies|es|s|ing|ed|e|y)$/u, '');

export const highlighted = (text: string, question: string): ReactNode[] => {
  const wanted = new Set((question.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter(word => word.length >= SHORTEST).map(stem));
  const parts: ReactNode[] = [];
  let end = 0;
  for (const found of text.matchAll(/[\p{L}\p{N}]+/gu)) {
    if (!wanted.has(stem(found[0].toLowerCase()))) continue;
    parts.push(text.slice(end, found.index), <mark key={found.index}>{found[0]}</mark>);
    end = found.index + found[0].length;
  }
  parts.push(text.slice(end));
  return parts;
};
