"""Rows of docs/reliability.md: bad days, and the tests that make them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One bad day.

    Args:
        what: goes wrong.
        happens: to what was there and what was being made.
        sees: the user.
        tests: path::name, each of which runs it.
        counts: what is counted where it is repeated ("kills", "inputs"); nothing where it is not,
            and then every test of it runs with `make test`.
        needs: what the machine must have beside what `make test` installs; without it these tests
            skip, and say so.
    """

    what: str
    happens: str
    sees: str
    tests: tuple[str, ...]
    counts: str = ""
    needs: str = ""


MOUNTS, CHROMIUM, CC = "leave to mount (`unshare -rm`)", "chromium", "a C compiler (`cc`)"
GOES_ON = "nothing; the same command goes on"
ONE_LINE = "one line that names the file"
KILLED = "tests/reliability/test_killed.py::"
ROOM = "tests/reliability/test_no_room.py::"
DURABLE = "tests/search/test_durability.py::"
READERS = "tests/search/test_readers_and_writers.py::"
TENDING = "tests/search/test_killed_tending.py::"
GROWING = "tests/search/test_killed_approximate.py::"
NO_ROOM = "tests/search/test_no_room.py::"
STORE = "tests/data/regions/test_store.py::"
TWICE = "tests/reliability/test_two_at_once.py::"
REFUSALS = "tests/search/test_index_refusals.py::"
DAMAGED = "tests/search/test_damaged_files.py::"
LOST = "tests/search/test_damage.py::"
SAVED = "tests/models/test_pretrained.py::"
TRAINER = "tests/training/test_trainer.py::"
VERIFY = "tests/data/regions/test_verify.py::"
TORCH = "tests/test_torchfiles.py::"
CLOCK = "tests/reliability/test_clock.py::"

DAYS = (
    Row(
        "SIGKILL during `extract`",
        "the store is sound after every kill, nothing acknowledged is lost, and the last run ends "
        "in the store that nobody disturbed",
        GOES_ON,
        (f"{KILLED}test_extract_goes_on_to_the_same_store",),
        "kills",
    ),
    Row(
        "SIGKILL of a process that writes a region store",
        "every batch is there whole or not at all",
        "what was acknowledged",
        (f"{STORE}test_sigkill_at_fifty_random_moments",),
        "kills",
    ),
    Row(
        "SIGKILL during `train`",
        "checkpoint and best model are whole after every kill; the run ends in the same weights, "
        "bit for bit, as one that nobody killed",
        GOES_ON,
        (f"{KILLED}test_train_goes_on_to_the_same_weights",),
        "kills",
    ),
    Row(
        "SIGKILL during `index`, while photographs change, go and come",
        "a reader sees whole photographs only; in the end the index gives the answers of one that "
        "nobody killed",
        GOES_ON,
        (f"{DURABLE}test_killed_many_times",),
        "kills",
    ),
    Row(
        "SIGKILL during `index --sentences`, `--compact` and `--from`",
        "photographs give the same answers after every kill, sentences are there once or not at "
        "all, a copy is whole or no index",
        GOES_ON,
        (
            f"{TENDING}test_killed_while_sentences_come",
            f"{TENDING}test_killed_while_room_is_given_back",
            f"{TENDING}test_killed_while_an_index_moves",
        ),
        "kills",
    ),
    Row(
        "SIGKILL while the approximate index of many photographs grows, or is made anew",
        "every batch is there whole or not at all, all that were acknowledged, and searches find "
        "what is near; the next run takes in what was left beside the index",
        GOES_ON,
        (f"{GROWING}test_killed_while_its_index_grows_and_is_made_anew",),
        "kills",
    ),
    Row(
        "SIGKILL during `store import`",
        "as with `extract`",
        GOES_ON,
        (f"{KILLED}test_import_of_features_goes_on_to_the_same_store",),
        "kills",
    ),
    Row(
        "SIGKILL during `import` over an older model",
        "the older model is there or the new one, whole",
        "a model that loads",
        (f"{KILLED}test_import_of_a_checkpoint_leaves_the_old_model_or_the_new",),
        "kills",
    ),
    Row(
        "SIGKILL during `serve`, while it adds a folder and answers",
        "every photograph that it ever showed is in the index, with sound regions",
        "after a new start, all of it",
        (f"{KILLED}test_serve_keeps_what_it_told_of",),
        "kills",
    ),
    Row(
        "SIGKILL during `search`",
        "no file of the index changes",
        "nothing",
        (f"{DURABLE}test_a_search_that_is_killed_harms_nothing",),
    ),
    Row(
        "the disk is full (a small tmpfs): `extract`, `store import`, `import`, `train`, `index` "
        "(also with `--sentences`, `--compact`, `--from`), `serve` while it adds a folder",
        "what was acknowledged stays sound, an older model stays; with room, the same command "
        "ends; `serve` goes on answering",
        "`No space left on device` and which file it was for, exit code 1; the page says the same",
        (
            f"{ROOM}test_a_full_disk_is_said_in_a_line_and_with_room_it_goes_on",
            f"{ROOM}test_a_disk_that_fills_up_under_a_model_leaves_the_old_one",
            f"{NO_ROOM}test_a_full_disk_is_said_and_the_old_index_is_intact",
            f"{NO_ROOM}test_a_disk_that_fills_up_while_sentences_come",
            f"{NO_ROOM}test_a_disk_that_fills_up_while_room_is_given_back",
            f"{NO_ROOM}test_a_disk_that_is_too_small_for_a_copy",
            f"{NO_ROOM}test_a_disk_that_fills_up_while_serve_adds_a_folder",
            "tests/scoring/test_sinks.py::test_nothing_is_left_behind_when_the_disk_is_full",
        ),
        needs=f"{MOUNTS}, but for the last",
    ),
    Row(
        "the folder may only be read (a read-only mount), for the same six",
        "nothing changes; stores, models and indexes in it can be read, searched and served",
        "`Read-only file system`, exit code 2; the page says the same",
        (
            f"{ROOM}test_a_read_only_folder_is_said_in_a_line_and_can_be_read",
            f"{NO_ROOM}test_serve_says_that_an_index_may_only_be_read_and_answers",
        ),
        needs=MOUNTS,
    ),
    Row(
        "a store was cut off, or bits of it flipped",
        "`store verify` finds every flipped bit; a number of regions that cannot be is refused "
        "when it is read",
        ONE_LINE,
        (
            f"{VERIFY}test_every_flipped_bit_is_found",
            f"{VERIFY}test_truncation_is_found",
            f"{STORE}test_a_truncated_array_is_named",
            f"{STORE}test_a_damaged_number_of_regions_is_named_when_it_is_read",
        ),
    ),
    Row(
        "a model, a checkpoint or a training run was cut off, or bits of it flipped",
        "refused before it is used: weights have checksums, as heads and zips keep them",
        ONE_LINE,
        (
            f"{TORCH}test_no_flipped_bit_of_a_model_is_loaded_and_none_that_is_cut_off",
            f"{TORCH}test_a_flipped_bit_of_a_checkpoint_changes_nothing_or_is_refused",
            f"{TORCH}test_a_flipped_weight_of_a_papers_checkpoint_is_named",
            f"{SAVED}test_a_damaged_folder_is_named",
            "tests/models/test_checkpoints.py::test_what_is_wrong_with_a_checkpoint_is_named",
            f"{TRAINER}test_a_damaged_checkpoint_is_named",
            f"{TRAINER}test_a_checkpoint_of_something_else_is_named",
            f"{TRAINER}test_a_damaged_summary_is_named",
        ),
    ),
    Row(
        "an index was cut off, or bits of it flipped",
        "a head, a table or regions that were cut off are refused, and regions that are not "
        "numbers. A search reads no checksums: flipped bits of regions are found by `store "
        "verify INDEX/regions-1`, those of the database where LanceDB cannot read on",
        ONE_LINE,
        (
            f"{DAMAGED}test_files_that_were_cut_off_are_refused_by_name",
            f"{DAMAGED}test_regions_that_are_no_numbers_are_refused_and_never_ranked",
            f"{DAMAGED}test_vectors_that_are_no_numbers_are_refused_and_never_ranked",
            f"{DAMAGED}test_flipped_bits_of_regions_are_found_by_verify",
            f"{DAMAGED}test_flipped_bits_of_the_database_are_refused_or_unnoticed",
            f"{REFUSALS}test_another_version_and_damage_are_refused_in_a_line",
            f"{REFUSALS}test_a_damaged_database_is_refused_in_a_line",
        ),
    ),
    Row(
        "an index lost its regions, their log, or all that its database held, and somebody writes "
        "to it",
        "refused before anything is changed; entries and tags stay, and regions that are missing "
        "are made again when their folder is indexed",
        "one line that names the file, and what to do",
        (
            f"{LOST}test_a_damaged_log_or_state_costs_no_entry",
            f"{LOST}test_regions_that_were_moved_away_are_made_anew_with_entries_and_tags",
            f"{LOST}test_photographs_without_regions_wait_until_their_folder_is_indexed",
            f"{LOST}test_a_database_that_lost_everything_is_not_taken_for_an_empty_one",
            f"{DAMAGED}test_a_milvus_lite_without_its_list_of_files_is_refused_unopened",
            f"{REFUSALS}test_regions_that_are_missing_are_said_and_made_again",
        ),
    ),
    Row(
        "two processes write to one store, run or index",
        "the second is refused, readers are not; the lock ends with its process",
        "the first one's pid",
        (
            f"{TWICE}test_a_second_writer_is_refused_with_the_firsts_pid",
            f"{READERS}test_a_second_writer_is_refused_with_the_firsts_pid_and_readers_are_not",
            f"{READERS}test_searching_while_another_process_writes",
            f"{READERS}test_the_lock_ends_with_its_process",
            f"{STORE}test_a_second_writer_is_refused_and_readers_are_not",
        ),
    ),
    Row(
        "two processes import a model to one place",
        "at every moment a whole model is there, the one or the other; who reads it across the "
        "change of one for the other is refused, and never given parts of both",
        "a model that loads, or one line that names the file",
        (f"{TWICE}test_two_imports_to_one_place_leave_one_whole_model",),
    ),
    Row(
        "the clock jumps, by years and back; photographs are dated 1940, 1970 or 2400",
        "the index is that of a calm clock: nothing of ours asks for the time of day, and LanceDB "
        "and Milvus Lite bear it; a photograph that changed and is dated earlier is seen",
        "nothing",
        (
            f"{CLOCK}test_nothing_asks_for_the_time_of_day",
            f"{CLOCK}test_dates_may_be_of_any_time_and_jump_back",
            f"{CLOCK}test_a_clock_that_jumps_by_years_while_an_index_is_written",
        ),
        "jumps",
        needs=CC,
    ),
    Row(
        "too little memory for scores, for features held in memory, or for what a frozen BERT gave",
        "refused before any is taken",
        "how many bytes, images or captions would fit; that number then does",
        (
            "tests/scoring/test_every_pair.py::test_the_number_that_a_refusal_names_would_do",
            "tests/test_memory.py::test_features_that_would_not_fit_are_refused_with_the_number_that_would",
            "tests/test_memory.py::test_captions_of_a_frozen_bert_that_would_not_fit_are_refused_before_it_reads_any",
        ),
    ),
    Row(
        "memory runs out all the same, in mid-work",
        "the verb ends with a message. The message is what is tested: no test makes memory run out "
        "there, nor looks at what is left",
        "one line that says so and, where the verb has one, which setting needs less; exit code 1",
        (
            "tests/cli/test_failures.py::test_out_of_memory_says_what_needs_less",
            "tests/cli/test_failures.py::test_what_needs_less_is_a_setting_that_the_verb_has",
        ),
    ),
)
