// pg-boss: several fetchers, each with batches; finished jobs stay in its table.
import { setTimeout as sleep } from 'node:timers/promises'
import { barrier, hit, load, main } from './probe.mjs'

const { PgBoss } = load('pg-boss')
const batchSize = Number(process.env.BENCH_BATCH)
const localConcurrency = Number(process.env.BENCH_CONCURRENCY)
const emptyWait = 50 // milliseconds
// Jobs that wait are freed by its supervisor, at the shortest interval that it takes, and found by the poll: nothing notifies of them.
const flows = process.env.BENCH_SHAPE ? { supervise: true, flowIntervalSeconds: 1 } : { supervise: false }
const boss = new PgBoss({ connectionString: process.env.BENCH_DSN, schedule: false, useListenNotify: true, ...flows })
boss.on('error', (error) => console.error(error))

const job = (ref, dependsOn) => ({ ref, name: 'noop', data: {}, ...(dependsOn && { dependsOn }) })
const middle = process.env.BENCH_SHAPE === 'fan'
  ? Array.from({ length: Number(process.env.BENCH_WIDTH) }, (_, number) => `step ${number}`)
  : ['b', 'c', 'd', 'e', 'f']
const shapes = {
  diamond: () => [job('a'), ...middle.map((ref) => job(ref, ['a'])), job('g', middle)],
  fan: () => [...middle.map((ref) => job(ref)), job('last', middle)]
}

const started = async () => {
  await boss.start()
  if (!await boss.getQueue('noop')) await boss.createQueue('noop', { notify: true })
}

// With batches of 1 its work() waits for the next poll after each job; fetch and complete are its calls for single jobs.
const oneByOne = async () => {
  for (;;) {
    const [job] = await boss.fetch('noop')
    if (!job) {
      await sleep(emptyWait)
      continue
    }
    hit(job.data.sent)
    await boss.complete('noop', job.id)
  }
}

if (process.argv[2] !== 'worker') await started()
await main({
  setup: async () => {},
  sendMany: async (size) => { await boss.insert('noop', Array.from({ length: size }, () => ({ data: {} }))) },
  send: async (sent) => { await boss.send('noop', { sent }) },
  flow: async (n) => { for (let number = 0; number < n; number++) await boss.flow(shapes[process.env.BENCH_SHAPE]()) },
  worker: async () => {
    await barrier()
    await started()
    if (process.env.BENCH_ACKNOWLEDGE === 'each') return Promise.all(Array.from({ length: localConcurrency }, oneByOne))
    const options = { batchSize, localConcurrency, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }
    if (process.env.BENCH_SHAPE) options.notifyPollingIntervalSeconds = 0.5
    await boss.work('noop', options, async (jobs) => { for (const job of jobs) hit(job.data.sent) })
  }
})
