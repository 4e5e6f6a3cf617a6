# SPDX-License-Identifier: Apache-2.0
# What processes are called: by rules, by their unit, by the program, after exec by the next; many
# short ones; and who is not wanted.
. "$ROOT/tests/agent/common.bash"

for name in first second tiny ruled noise; do cp busy "$name-$$"; done
cp generous.yaml agent.yaml
cat >>agent.yaml <<YAML
external_labels: {region: eu-test}
rules:
  - match: {exe: "*/ruled-$$"}
    labels: {service_name: by-rule-$$, version: "7"}
  - match: {name: "noise-*"}
    drop: true
  - match: {name: "envy-*", env: {TEAM: "r?d"}}
    labels: {service_name: by-env-$$}
relabel_configs:
  - {source_labels: [__meta_process_exe], regex: ".*/(second)-.*", target_label: service_name, replacement: "re-\$1-$$"}
YAML
cp busy "envy-$$"
"$ASSAY" agent --check-config --config agent.yaml >/dev/null
start_server server --data store
start_agent agent --config agent.yaml
need_host agent

"./ruled-$$" 1 &
jobs=($!)
"./noise-$$" 1 &
jobs+=($!)
TEAM=red "./envy-$$" 1 &
jobs+=($!)
TEAM=blue "./envy-$$" 0.5 &
jobs+=($!)
"./first-$$" 1.5 "./second-$$" 3.5 & # CPU time goes on over an exec
jobs+=($!)
# A cgroup that is called as a unit is: as root, where there is a hierarchy to make one in.
unit=
for root in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
    if [ -w "$root/cgroup.procs" ] && mkdir "$root/assay-test-$$.service" 2>/dev/null; then
        unit=$root/assay-test-$$.service
        break
    fi
done
if [ -n "$unit" ]; then
    bash -c 'echo $$ >"$1/cgroup.procs" && exec ./busy 1.5' bash "$unit" &
    jobs+=($!)
fi
for _ in $(seq 60); do "./tiny-$$" 0.05; done
for job in "${jobs[@]}"; do wait "$job"; done
status_of agent
stop_agent
[ -z "$unit" ] || rmdir "$unit"

about "$(seconds "{service_name=\"by-rule-$$\",version=\"7\",region=\"eu-test\"}")" 1 agent
about "$(seconds "{service_name=\"by-env-$$\"}")" 1 agent
about "$(seconds "{service_name=\"envy-$$\"}")" 0.5 agent
about "$(seconds "{service_name=\"first-$$\"}")" 1.5 agent
about "$(seconds "{service_name=\"re-second-$$\"}")" 2 agent
about "$(seconds "{service_name=\"tiny-$$\"}")" 3 agent
[ -z "$unit" ] || about "$(seconds "{service_name=\"assay-test-$$\"}")" 1.5 agent
[[ $(services) != *noise-* ]]
