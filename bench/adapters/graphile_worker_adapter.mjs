// graphile-worker: a local queue that fetches in batches, and completions written in batches.
import { barrier, hit, load, main } from './probe.mjs'

const { makeWorkerUtils, run } = load('graphile-worker')
const connectionString = process.env.BENCH_DSN
const concurrentJobs = Number(process.env.BENCH_CONCURRENCY)
const keys = Number(process.env.BENCH_KEYS || 0) // jobs of one named queue run one after the other
const isEach = process.env.BENCH_ACKNOWLEDGE === 'each'
const batching = isEach
  ? { completeJobBatchDelay: -1, failJobBatchDelay: -1 }
  : { completeJobBatchDelay: 0, failJobBatchDelay: 0, localQueue: { size: Number(process.env.BENCH_BATCH) } }

const job = (number) => ({ identifier: 'noop', payload: {}, ...(keys ? { queueName: `key:${number % keys}` } : {}) })

const utils = await makeWorkerUtils({ connectionString })

await main({
  setup: async () => { await utils.migrate() },
  sendMany: async (size) => { await utils.addJobs(Array.from({ length: size }, (_, number) => job(number))) },
  send: async (sent) => { await utils.addJob('noop', { sent }) },
  worker: async () => {
    await barrier()
    const runner = await run({
      taskList: { noop: async ({ sent }) => { hit(sent) } },
      noHandleSignals: true,
      preset: { worker: { connectionString, concurrentJobs, maxPoolSize: Math.max(10, isEach ? concurrentJobs : 0), pollInterval: 1000, ...batching } }
    })
    await runner.promise
  }
})
