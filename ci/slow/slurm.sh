#!/usr/bin/env bash
# Runs the array of docs/howto/cluster.md on a Slurm of one node, which the script starts and stops: eight tasks, of which two are cancelled and started
# again. The rows must equal those of one process. Needs Debian's packages slurmctld, slurmd, slurm-client and munge, and root. Not part of
# .ci/run. `PAGEOUT` is the program (a release).
set -euo pipefail
cd "$(dirname "$0")/../.."
for program in munged slurmctld slurmd sbatch; do
    command -v "$program" > /dev/null || { echo "LEFT OUT: there is no $program here" >&2; exit 0; }
done
pageout=$(realpath "${PAGEOUT:-target/release/pageout}")
trace=$PWD/ground-truth/sequences/shift.u32.zst
script=$(sed -n '/^#!\/bin\/sh/,/^```/{/^```/d;p}' docs/howto/cluster.md)
work=$(mktemp -d)
end() {
    scontrol shutdown > /dev/null 2>&1 || true
    [[ -f $work/munge.pid ]] && kill "$(< "$work/munge.pid")"
    sleep 1
    rm -rf "$work"
}
trap end EXIT
cd "$work"
chmod 755 .
host=$(hostname -s)
cat > slurm.conf << END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
END
mkdir state spool
export SLURM_CONF=$work/slurm.conf
(umask 077 && head -c 1024 /dev/urandom > munge.key)
munged --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munge.pid" --log-file="$work/munge.log" --seed-file="$work/munge.seed" 2> /dev/null
slurmctld
slurmd
until sinfo --noheader --format=%t | grep -q idle; do sleep 0.5; done

cp "$trace" shift.u32.zst
printf '%s\n' 'traces = ["shift.u32.zst"]' 'policy = ["lru", "sieve", "classic@6.12"]' 'memory = ["1%..60%/40log"]' > plan.toml
sed -e 's/--array=0-1023/--array=0-7/; s|/1024"|/8"|; s|/shared/results|results|' -e "s|exec pageout|exec $pageout|" <<< "$script" > job.sh
grep -q 'shard "$SLURM_ARRAY_TASK_ID/8"' job.sh
set -x
job=$(sbatch --parsable --output=/dev/null job.sh)
until [[ -n $(squeue --noheader --states=RUNNING --jobs="$job") ]]; do sleep 0.1; done
scancel --state=RUNNING "$job"
until [[ -z $(squeue --noheader --jobs="$job") ]]; do sleep 0.2; done
"$pageout" sweep --status results
sbatch --wait --output=task-%a.txt job.sh
tail -n 1 task-*.txt
"$pageout" sweep plan.toml --into whole --quiet
"$pageout" sweep --collect results --out slurm.csv
"$pageout" sweep --collect whole --out whole.csv
cmp slurm.csv whole.csv
wc -l slurm.csv
