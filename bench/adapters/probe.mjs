// What a worker process tells of its handlers, and what every adapter on node needs; the files are those of probe.py.
import fs from 'node:fs'
import path from 'node:path'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'

const folder = process.env.BENCH_PROBES ?? '.'
const own = (ending) => path.join(folder, `${process.pid}.${ending}`)
const counter = Buffer.alloc(24)
const flushEach = 10 // milliseconds: a write for each call would be what is measured
const senders = Number(process.env.BENCH_SENDERS || 1) // at once, in a producer
const lot = 1000 // tasks of one bulk call
let calls = 0
let first = 0
let last = 0
let moments = ''
let file // written in place: a reader never finds it empty

/** Load a package from the bench's own node_modules. */
export const load = createRequire(path.join(process.env.BENCH_NODE_HOME, 'package.json'))

const now = () => (performance.timeOrigin + performance.now()) / 1000

/** Count a handler's call; `sent` is the moment of its enqueue, or nothing. */
export function hit (sent) {
  last = now()
  first ||= last
  calls += 1
  if (sent) moments += `${sent.toFixed(6)} ${last.toFixed(6)}\n`
}

function flush () {
  if (!calls) return
  counter.writeBigUInt64LE(BigInt(calls), 0)
  counter.writeDoubleLE(first, 8)
  counter.writeDoubleLE(last, 16)
  file ??= fs.openSync(own('count'), 'w')
  fs.writeSync(file, counter, 0, counter.length, 0)
  if (moments) fs.appendFileSync(own('moments'), moments)
  moments = ''
}

/** Tell that this process is loaded, and wait for the common start. */
export async function barrier () {
  setInterval(flush, flushEach)
  fs.writeFileSync(own('ready'), '')
  while (!fs.existsSync(path.join(folder, 'go'))) await sleep(5)
}

/** Call `send` with the moment `rate` times a second, from a chance place of the beat; one that is late catches up. */
async function pace (rate, seconds, send) {
  const begun = Number(process.env.BENCH_BEGIN_AT || now()) + Math.random() / rate
  for (let number = 0; number < Math.round(rate * seconds); number++) {
    const wait = begun + number / rate - now()
    if (wait > 0) await sleep(wait * 1000)
    await send(now())
  }
}

/** Call `send` with the sizes of bulk calls until n are through, and tell the seconds. */
async function timed (n, send) {
  const begun = performance.now()
  for (let done = 0; done < n; done += lot) await send(Math.min(lot, n - done))
  return (performance.now() - begun) / 1000
}

/** Run the command that is asked for: setup, enqueue N, worker, trickle RATE SECONDS, flow N. */
export async function main ({ setup, sendMany, send, worker, flow }) {
  const [name, a, b] = process.argv.slice(2)
  if (name === 'worker') return worker()
  if (name === 'setup') await setup()
  if (name === 'enqueue') console.log(JSON.stringify({ seconds: await timed(Number(a), sendMany) }))
  if (name === 'trickle') await Promise.all(Array.from({ length: senders }, () => pace(Number(a) / senders, Number(b), send)))
  if (name === 'flow') await flow(Number(a))
  process.exit(0)
}
