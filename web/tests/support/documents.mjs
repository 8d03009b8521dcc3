/** Small documents, made here so that it is clear what is in them. */
import { crc32, deflateSync } from 'node:zlib';

const escaped = text => text.replace(/[\\()]/g, '\\$&');

/** A PDF with a page for each list of lines. */
export const pdf = pages => {
  const objects = ['<< /Type /Catalog /Pages 2 0 R >>', '', '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'];
  const kids = [];
  for (const lines of pages) {
    const content = `BT /F1 14 Tf 72 740 Td 20 TL ${lines.map(line => `(${escaped(line)}) Tj T*`).join(' ')} ET`;
    objects.push(`<< /Length ${content.length} >>\nstream\n${content}\nendstream`);
    objects.push(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents ${objects.length} 0 R >>`);
    kids.push(`${objects.length} 0 R`);
  }
  objects[1] = `<< /Type /Pages /Kids [${kids.join(' ')}] /Count ${kids.length} >>`;
  let text = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const at = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const table = text.length;
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.map(at => `${String(at).padStart(10, '0')} 00000 n \n`).join('')}`;
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${table}\n%%EOF\n`;
  return Buffer.from(text, 'latin1');
};

/** An image of one colour. */
export const png = (width = 64, height = 48) => {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, check]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, 0x6e)]);
  const rows = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)));
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), chunk('IHDR', head), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))]);
};

/** Many bytes that are slow to send, and that every reader refuses at once. */
export const large = bytes => Buffer.alloc(bytes, 7);

/** A text that no reader takes for what its name says. */
export const broken = (salt = '') => Buffer.from(`%PDF-1.4\nthis is not one ${salt}`);

/** A ZIP archive of texts, stored as they are. */
export const zip = texts => {
  const locals = [];
  const entries = [];
  let offset = 0;
  for (const [name, text] of Object.entries(texts)) {
    const [path, content] = [Buffer.from(name), Buffer.from(text)];
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(content.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(path.length, 22);
    locals.push(Buffer.from('PK\x03\x04', 'latin1'), common, path, content);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    entries.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), common, rest, path);
    offset += 30 + path.length + content.length;
  }
  const directory = Buffer.concat(entries);
  const end = Buffer.alloc(18);
  const files = Object.keys(texts).length;
  end.writeUInt16LE(files, 4);
  end.writeUInt16LE(files, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...locals, directory, Buffer.from('PK\x05\x06', 'latin1'), end]);
};
