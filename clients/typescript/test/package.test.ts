import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TestServer } from './server.js'

const run = promisify(execFile)
const PACKAGE = join(import.meta.dirname, '..')
const require = createRequire(import.meta.url)
let server: TestServer
const folder = mkdtempSync(join(tmpdir(), 'landfall-package-'))

beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** The code blocks of the README in a language. */
function examples(language: string): string[] {
  const readme = readFileSync(join(PACKAGE, 'README.md'), 'utf8')
  return [...readme.matchAll(new RegExp('```' + language + '\n([\\s\\S]*?)```', 'g'))].map((match) => match[1]!)
}

describe('the package', () => {
  // UPDATE_DOCUMENTS=1 writes them anew.
  it('has the types of the server', async () => {
    const path = join(folder, 'openapi.json')
    writeFileSync(path, await (await fetch(`${server.url}/api/openapi.json`)).text())
    await run(process.execPath, [join(PACKAGE, 'scripts/generate'), ...(process.env['UPDATE_DOCUMENTS'] ? [] : ['--check']), path])
  })

  it('knows the types of events that the server has', () => {
    const documented = readFileSync(join(PACKAGE, '../../docs/events.md'), 'utf8')
    const types = [...documented.matchAll(/^\| `([a-z]+:[a-z-]+)` \|/gm)].map((match) => match[1]!).filter((type) => !type.startsWith('stream:'))
    const source = readFileSync(join(PACKAGE, 'src/event-types.ts'), 'utf8')
    const known = [...source.matchAll(/'([a-z]+:[a-z-]+)'/g)].map((match) => match[1]!).filter((type) => !type.startsWith('stream:'))
    expect(known.sort()).toEqual(types.sort())
  })

  it('works in a new project: it installs, compiles strictly and runs', async () => {
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: PACKAGE })
    const packed = (JSON.parse(stdout) as { filename: string; files: { path: string }[] }[])[0]!
    const names = packed.files.map((file) => file.path)
    expect(names).toEqual(expect.arrayContaining(['README.md', 'dist/index.js', 'dist/index.d.ts', 'dist/react.js', 'dist/browser.js', 'dist/LICENSE-MIT', 'package.json']))
    expect(names.filter((name) => /^(src|test|scripts)\//.test(name))).toEqual([])

    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', private: true }))
    await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', join(folder, packed.filename)], { cwd: folder })
    const installed = readFileSync(join(folder, 'package-lock.json'), 'utf8')
    // React is not installed for those who do not use it.
    expect(installed).not.toContain('node_modules/react"')

    writeFileSync(join(folder, 'example.ts'), examples('ts')[0]!)
    writeFileSync(join(folder, 'component.tsx'), examples('tsx')[0]!)
    // As a program for Node sees it, and as a bundler does. The declarations are checked as well, and need no types of Node.
    const react = dirname(require.resolve('@types/react/package.json'))
    for (const [module, moduleResolution] of [['NodeNext', 'NodeNext'], ['ESNext', 'bundler']]) {
      const compilerOptions = {
        strict: true,
        exactOptionalPropertyTypes: true,
        skipLibCheck: false,
        target: 'ES2022',
        lib: ['ES2023', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'],
        types: [],
        jsx: 'react-jsx',
        module,
        moduleResolution,
        paths: { react: [join(react, 'index.d.ts')], 'react/jsx-runtime': [join(react, 'jsx-runtime.d.ts')] },
      }
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['example.ts', 'component.tsx'] }))
      await run(process.execPath, [require.resolve('typescript/bin/tsc'), '-p', folder]).catch((error: { stdout: string }) => {
        throw new Error(error.stdout)
      })
    }
    writeFileSync(join(folder, 'report.txt'), 'The harbour was frozen in January.')
    const env = { ...process.env, LANDFALL_URL: server.url, LANDFALL_TOKEN: server.token() }
    const ran = await run(process.execPath, ['example.js'], { cwd: folder, env })
    expect(ran.stdout).toContain('report.txt is ready')
  }, 180_000)
})
