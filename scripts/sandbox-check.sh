#!/bin/sh
# Runs the checks of sandbox and git and prints a table: check, level, outcome. The last line is
# `sandbox ok checks=N`; any check that does not hold ends it with an error, and so does a machine on which no level is reached.
# Levels: L0, L1 with namespaces, L1 in the shape of a pod (no namespaces), and, as root, L2.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
log=$(mktemp)
trap 'rm -f "$log" "$log.rows"' EXIT

# The selection of the whole workspace keeps one set of features, so that nothing is built twice.
"$cargo" build --quiet --locked --workspace --bins
"${CARGO_TARGET_DIR:-target}/debug/executor" doctor
run() {
    "$cargo" test --locked --workspace "$@" >>"$log" 2>&1 || failed=1
}
run --lib --bin launcher --test executor --test sandbox --test git --no-fail-fast -- --nocapture
run --test egress memory:: -- --nocapture
run --test reporter -- gate_serves change_against_policy inspector_reaches

# check, test that shows it
other_checks="
15 racing links in file tools;swapped_folder_link_never_leads_outside
9 a check beside another check;neighbor_of_check_is_invisible
26 disk of a check beside another;check_beside_another_keeps_disk_limit
27 kept results on the base;influenced_base_result_is_not_kept
28 deadline over gRPC;deadline_interrupts_call_timeout_ends_command
28 a world that a command ends;killed_namespaces_are_replaced
28 a world in which something is left;command_traces_end_the_namespaces
29 a caller that goes away;abandoned_call_is_killed_and_interrupted
29 a newer fence;newer_fence_cancels_older_calls
3 an executor in another PID namespace;runner_serves_other_pid_namespace
30 a runner that is asked to stop;runner_as_init_stops_on_sigterm
63 connections of one address;excess_connections_of_address_are_closed
30 a runner that goes;lost_runner_closes_workspace
33 a launcher waits in an open workspace, and goes with it;thousand_commands_leak_no_resources
36 folders of this machine as remotes;files_of_this_machine_are_no_remote
39 submodules, files of Git LFS;external_content_is_named_on_open
39 what is put into a submodule;submodule_folder_files_skip_snapshot
40 hostile trees;checkout_omits_hostile_names
42 branches;branch_name_is_legal_with_its_ticket
42 the gate is for reading, of one repository;gate_serves_repository_to_grant_holder
43 protected paths;each_policy_breach_names_its_remedy
43 a refused change is never pushed;change_against_policy_is_never_pushed
44 credentials in a change;credentials_of_many_issuers_are_found
45 packs too large or incomplete;refused_pack_leaves_no_files
45 packs of too many or too large objects, memory;oversized_pack_is_refused_with_bounded_memory
45 packs that are made;pack_above_size_limit_is_refused
45 damaged packs;damaged_pack_is_refused_at_any_byte
45 the quarantine of a pack;inspector_reaches_neither_secrets_nor_network
36 planted configuration of a mirror;planted_configuration_runs_nothing_and_redirects_nothing
36 a credential goes to its address alone;credential_is_sent_to_its_url_only
40 dangerous objects of a remote;dangerous_object_blocks_only_its_branches
46 the same commit again;equal_change_gives_equal_commit
"
grep -ao '^| .* |$' "$log" >"$log.rows" || true
echo "$other_checks" | while IFS=';' read -r check name; do
    [ -n "$check" ] || continue
    if grep -aq "$name \.\.\. ok" "$log"; then outcome=held; else outcome="NOT SHOWN"; fi
    echo "| $check | any | $outcome |"
done >>"$log.rows"
echo "| check | level | outcome |"
echo "|---|---|---|"
sort -k2,2n "$log.rows"
! grep -q 'NOT SHOWN' "$log.rows" || failed=1
levels='L0 L1'
[ "$(id -u)" != 0 ] || levels="$levels L2"
for level in $levels; do
    grep -q "| $level.* | held" "$log.rows" || { echo "sandbox-check: nothing was shown at $level" >&2; failed=1; }
done
if [ -n "${failed:-}" ]; then
    grep -aE 'FAILED|panicked|^error' -A3 "$log" | head -60 >&2
    echo "sandbox-check: at least one check does not hold" >&2
    exit 1
fi
echo "sandbox ok checks=$(wc -l <"$log.rows")"
