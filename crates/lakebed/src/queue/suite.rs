//! What every queue does, each behaviour once, stamped per database; each test has its own. A server
//! that is not there fails its tests, it never passes them silently.

mod backend;
mod books;
mod claims;
mod closings;
mod ends;
mod leases;
mod mysql_only;
mod polite;
mod prunes;
mod runs;
mod scale;
mod shares;
mod sqlite_only;

use backend::{Backend, Mysql, Postgres, Sqlite};

macro_rules! stamp {
    ($($area:ident :: $test:ident),* $(,)?) => {
        stamp!(@ sqlite, Sqlite, $($area::$test),*);
        stamp!(@ postgres, Postgres, $($area::$test),*);
        stamp!(@ mysql, Mysql, $($area::$test),*);
    };
    (@ $name:ident, $backend:ident, $($area:ident :: $test:ident),*) => {
        mod $name {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$area::$test(<super::$backend as super::Backend>::new().await).await;
            })*
        }
    };
}

stamp!(
    runs::a_run_goes_its_whole_way,
    runs::many_open_a_new_place_at_once,
    runs::a_plan_that_lost_seeds_does_not_open,
    runs::a_seeding_that_died_begins_from_nothing,
    runs::keys_are_unique_within_their_scope,
    runs::everything_of_a_request_comes_back,
    runs::of_many_that_create_a_run_one_does,
    runs::one_process_seeds_at_a_time,
    runs::events_tell_the_story_in_order,
    runs::a_retry_is_a_successor,
    runs::one_retry_of_a_family_is_made_at_a_time,
    prunes::a_closed_run_goes_and_the_others_stay,
    prunes::of_a_prune_that_died_nobody_sees_a_part,
    prunes::a_run_is_made_anew_where_one_was_half_pruned,
    prunes::a_family_goes_as_a_whole,
    prunes::a_prune_and_a_retry_at_once_leave_no_orphan,
    claims::each_request_is_claimed_once,
    claims::priorities_come_first_within_a_host,
    claims::what_was_given_back_behind_the_mark_is_found,
    claims::the_short_way_keeps_every_guard,
    claims::a_stage_is_claimed_alone,
    claims::a_resting_lane_wakes,
    ends::a_batch_ends_as_a_whole_or_row_by_row,
    leases::a_zombie_finishes_nothing,
    leases::a_request_that_kills_its_workers_dies,
    leases::a_claim_that_is_held_too_long_ends,
    leases::who_leaves_gives_back_without_a_count,
    leases::a_worker_without_a_row_has_no_claims,
    leases::a_reaper_and_a_finish_meet_once,
    leases::failures_wait_and_then_die,
    leases::a_claim_is_looked_up_by_those_who_ask_again,
    polite::a_host_that_asks_to_wait_is_left_alone,
    polite::places_and_moments_hold_over_all_workers,
    polite::places_come_back_whatever_happens,
    polite::the_deadline_ends_what_is_left,
    polite::a_stopped_run_is_given_up,
    polite::robots_and_moments_are_shared,
    shares::a_lease_has_one_holder_at_a_time,
    shares::of_many_that_want_a_lease_one_gets_it,
    books::follow_ups_enter_with_their_page,
    books::a_closing_waits_for_every_request,
    books::a_lost_row_is_noticed,
    books::silent_endings_are_red,
    books::too_few_and_too_many_dead_are_red,
    books::a_late_finish_is_refused_and_counted,
    books::groups_that_are_short_are_red,
    books::rules_that_nothing_comes_of_are_red,
    books::stages_that_nothing_leads_to_are_red,
    closings::a_refused_pack_is_judged_again,
    closings::lost_responses_are_dead,
    closings::terminals_know_their_answers,
    closings::who_holds_what_is_known,
    closings::a_run_that_is_seeding_is_given_up,
    scale::a_claim_reads_the_ready_index_at_a_million_done_rows,
);
