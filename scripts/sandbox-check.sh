#!/bin/sh
# Runs the checks of sandbox and git and prints a table: check, level, outcome. The last line is
# `sandbox ok checks=N`; any check that does not hold ends it with an error, and so does a machine on which no level is reached.
# Levels: L0, L1 with namespaces, L1 in the shape of a pod (no namespaces), and, as root, L2.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
log=$(mktemp)
trap 'rm -f "$log" "$log.rows"' EXIT

"$cargo" build --quiet --locked -p executor -p e2e --bins
"${CARGO_TARGET_DIR:-target}/debug/executor" doctor
run() {
    "$cargo" test --locked -p executor -p git -p reporter -p e2e "$@" >>"$log" 2>&1 || failed=1
}
run --lib --bin launcher --test executor --test runner --test sandbox --test git --test remotes --no-fail-fast -- --nocapture
"$cargo" test --locked -p egress --test memory -- --nocapture >>"$log" 2>&1 || failed=1
run --test reporter -- the_gate_serves a_change_that_breaks_policy the_inspector_reaches

# check, test that shows it
other_checks="
15 racing links in file tools;a_folder_swapped_for_a_link_while_it_is_written_never_leads_out
28 deadline over gRPC;deadlines_cut_the_call_and_time_limits_end_the_command
28 a world that a command ends;a_command_that_ends_its_world_is_told_and_the_next_one_works
28 a world in which something is left;what_a_command_leaves_outside_its_workspace_goes_with_its_world
29 a caller that goes away;a_call_whose_caller_goes_away_is_killed_and_stored_as_interrupted
29 a newer fence;a_newer_fence_cuts_older_calls_and_refuses_older_planners
3 an executor in another PID namespace;an_executor_in_another_pid_namespace_is_served_as_in_the_two_containers_of_a_pod
30 a runner that is asked to stop;a_runner_that_is_the_first_process_stops_within_a_second_of_sigterm_with_its_commands
63 connections of one address;connections_of_one_address_beyond_its_share_are_closed_and_other_addresses_are_served
30 a runner that goes;a_workspace_whose_runner_went_is_gone_and_another_can_be_opened
33 a launcher waits in an open workspace, and goes with it;a_thousand_commands_leave_no_descriptor_mount_or_process_and_one_launcher_waits
36 folders of this machine as remotes;files_of_this_machine_are_no_remote
39 submodules, files of Git LFS;what_lies_elsewhere_is_named_when_a_workspace_opens_and_by_the_tools
39 what is put into a submodule;a_file_that_a_command_puts_into_a_submodules_folder_is_in_no_snapshot
40 hostile trees;hostile_names_in_a_tree_are_left_out_of_a_checkout
42 branches;a_branch_is_legal_and_names_its_ticket
42 the gate is for reading, of one repository;the_gate_serves_its_repository_to_whoever_holds_a_grant
43 protected paths;each_breach_is_named_with_what_to_change
43 a refused change is never pushed;a_change_that_breaks_policy_is_refused_in_words_and_never_pushed
44 credentials in a change;credentials_of_many_issuers_are_found
45 packs too large or incomplete;a_pack_that_is_too_large_incomplete_or_damaged_leaves_nothing_behind
45 packs of too many or too large objects, memory;a_pack_of_too_many_or_too_large_objects_is_refused_within_bounds_of_memory
45 packs that are made;a_pack_is_made_up_to_its_limit_and_not_beyond
45 damaged packs;a_damaged_pack_is_refused_wherever_the_damage_is
45 the quarantine of a pack;the_inspector_reaches_its_mirror_and_neither_planted_secrets_nor_the_network
36 planted configuration of a mirror;planted_configuration_runs_nothing_and_redirects_nothing
36 a credential goes to its address alone;credential_reaches_only_the_address_it_is_for
40 dangerous objects of a remote;dangerous_object_is_named_and_blocks_no_other_branch
46 the same commit again;the_same_change_at_the_same_time_is_the_same_commit
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
