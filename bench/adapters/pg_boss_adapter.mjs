// pg-boss: several fetchers, each with batches; finished jobs stay in its table.
import { barrier, hit, load, main } from './probe.mjs'

const { PgBoss } = load('pg-boss')
const batchSize = Number(process.env.BENCH_BATCH)
const localConcurrency = Number(process.env.BENCH_CONCURRENCY)
const boss = new PgBoss({ connectionString: process.env.BENCH_DSN, supervise: false, schedule: false, useListenNotify: true })
boss.on('error', (error) => console.error(error))

const started = async () => {
  await boss.start()
  if (!await boss.getQueue('noop')) await boss.createQueue('noop', { notify: true })
}

if (process.argv[2] !== 'worker') await started()
await main({
  setup: async () => {},
  sendMany: async (size) => { await boss.insert('noop', Array.from({ length: size }, () => ({ data: {} }))) },
  send: async (sent) => { await boss.send('noop', { sent }) },
  worker: async () => {
    await barrier()
    await started()
    const options = { batchSize, localConcurrency, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }
    await boss.work('noop', options, async (jobs) => { for (const job of jobs) hit(job.data.sent) })
  }
})
