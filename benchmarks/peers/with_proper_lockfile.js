// Locks with Node's proper-lockfile for a process of the benchmark: `+PATH` takes, `-PATH` gives back, each line is
// answered.
const lockfile = require('proper-lockfile');
const lines = require('readline').createInterface({ input: process.stdin });

// It does not wait unless told how: here as often as the polling design looks.
const options = { realpath: false, retries: { forever: true, factor: 1, minTimeout: 100, maxTimeout: 100 } };
const release = {};

lines.on('line', async (line) => {
  const path = line.slice(1);
  if (line[0] === '+') release[path] = await lockfile.lock(path, options);
  else await release[path]();
  process.stdout.write('ok\n');
});
