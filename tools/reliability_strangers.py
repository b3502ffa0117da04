"""Rows of docs/reliability.md: files and requests from strangers, and the tests that bring them."""

from reliability_rows import CHROMIUM, ONE_LINE, REFUSALS, SAVED, TORCH, Row

ATHERIS = "Linux on x86-64"
PHOTOS = "tests/vision/test_photos_refused.py::"
PICKLE = "tests/data/text/test_vocabulary_pickle.py::"
TEXTS = "tests/data/test_textfiles.py::"
APP = "tests/web/test_app.py::"
NPZ = "tests/data/regions/test_import_npz.py::"
ZIPPED = "tests/data/entities/test_archive.py::"
ZIPS = "tests/test_zips.py::"
BOMBS = "tests/vision/test_bombs.py::"
BAD_JSON = "tests/reliability/test_bad_json.py::"
WUPS = "tests/evaluation/test_wups.py::"

STRANGERS = (
    Row(
        "a malicious pickle, as checkpoint, weights, training state or vocabulary",
        "nothing in it is run",
        "one line with what the pickle asked for",
        (
            f"{TORCH}test_no_pickle_is_run_by_any_reader",
            "tests/models/test_checkpoints.py::test_a_malicious_pickle_is_refused_and_not_run",
            f"{PICKLE}test_nothing_is_called",
        ),
    ),
    Row(
        "a zip bomb, as checkpoint, `.npz`, `annotations.zip` or vocabulary pickle",
        "refused before it unpacks",
        "how it is packed and what the format has, or its size and what it would unpack to",
        (
            f"{TORCH}test_a_zip_bomb_is_refused_before_it_unpacks",
            f"{TORCH}test_parts_that_lie_over_each_other_are_a_bomb",
            f"{TORCH}test_what_torch_takes_for_a_zip_is_checked_as_one",
            f"{TORCH}test_a_bomb_that_only_torch_sees_is_refused",
            f"{ZIPS}test_what_does_not_lie_where_its_end_says_is_refused",
            f"{ZIPS}test_a_record_of_64_bits_that_is_not_there_is_refused",
            f"{NPZ}test_an_npz_bomb_is_refused_before_it_unpacks",
            f"{NPZ}test_what_is_no_archive_or_packed_as_none_is_refused_unread",
            f"{ZIPPED}test_a_bomb_is_refused_unread",
            f"{ZIPPED}test_a_bomb_that_python_would_inflate_whole_is_refused_when_opened",
            f"{PICKLE}test_bombs_do_not_fill_the_memory",
        ),
    ),
    Row(
        "a zip of hundreds of thousands of members, a table of millions of columns",
        "refused before Python lists them",
        "how many it has, and may have",
        (
            f"{ZIPS}test_too_many_members_are_refused_before_python_lists_them",
            f"{NPZ}test_an_archive_of_thousands_of_arrays_is_refused_unread",
            "tests/data/regions/test_import_tsv.py::test_a_header_of_megabytes_is_refused",
            f"{TEXTS}test_a_line_of_a_table_that_is_megabytes_long_is_refused",
        ),
    ),
    Row(
        "weights that are no plain tensors: sparse, quantised, without numbers, or one number said "
        "to be billions",
        "refused before they are used",
        "the file and the tensor's name",
        (
            "tests/vision/backbones/test_vgg.py::test_weights_of_odd_kinds_are_refused",
            "tests/models/test_checkpoints.py::test_what_is_wrong_with_a_checkpoint_is_named",
        ),
    ),
    Row(
        "a pipe (FIFO), or a link to what the kernel makes up (`/proc/kmsg`), in a file's place",
        "never opened, so nothing waits for it",
        ONE_LINE,
        (
            "tests/reliability/test_pipes.py::test_no_reader_waits_for_a_pipe",
            "tests/reliability/test_pipes.py::test_what_the_kernel_makes_up_is_not_opened",
            f"{PHOTOS}test_files_that_cannot_be_photographs",
        ),
    ),
    Row(
        "a device, a pipe or a link is named as an output (`--out /dev/null`), by root",
        "devices and pipes are written to and never replaced, one that nobody reads is refused; a "
        "link stays; models and scores, which are files and folders, are refused there",
        ONE_LINE,
        (
            "tests/test_files.py::test_what_is_no_file_is_written_to_and_never_replaced",
            "tests/test_files.py::test_standard_output_may_be_named",
            "tests/test_files.py::test_a_link_stays_and_what_it_leads_to_is_written",
        ),
    ),
    Row(
        "names that lead out of their folder, in captions, JSON, stores, indexes, ensembles, URLs, "
        "zips",
        "refused; zips are read in memory and never unpacked to disk",
        "the name",
        (
            f"{ZIPPED}test_members_that_lead_out_of_the_folder_are_none_of_ours",
            f"{TEXTS}test_bad_names",
            f"{SAVED}test_a_damaged_folder_is_named",
            f"{REFUSALS}test_another_version_and_damage_are_refused_in_a_line",
            f"{APP}test_files_are_sent_only_while_they_are_photographs",
            "tests/web/test_jobs.py::test_only_folders_that_were_named_at_the_start",
        ),
    ),
    Row(
        "a photograph that decompresses to gigapixels, or has gigabytes",
        "refused from its header, in files and in uploads",
        "how many pixels it has, and may have",
        (
            f"{PHOTOS}test_too_many_pixels_are_refused_from_the_header_in_silence",
            f"{PHOTOS}test_a_file_of_many_bytes_is_not_read",
            f"{APP}test_uploads_are_bounded_and_leave_nothing_on_disk",
        ),
    ),
    Row(
        "a small photograph that takes minutes to decode: a JPEG of thousands of scans or "
        "segments, a TIFF that lists its strips over and over",
        "refused before a pixel is decoded, in files and in uploads",
        "how many scans, segments or strips a photograph has at most",
        (
            f"{BOMBS}test_a_jpeg_of_many_scans_is_refused_before_it_is_decoded",
            f"{BOMBS}test_what_stands_before_the_scans_neither_hides_nor_makes_any",
            f"{BOMBS}test_a_length_that_only_the_guard_would_believe_hides_nothing",
            f"{BOMBS}test_metadata_that_pillow_would_join_for_minutes_is_refused",
            f"{BOMBS}test_a_tiff_that_lists_its_strips_over_and_over_is_refused",
            f"{APP}test_uploads_are_bounded_and_leave_nothing_on_disk",
        ),
    ),
    Row(
        "HTML, SVG and scripts as captions, file names, tags, sentences",
        "shown as the text that they are: on the page, in reports, in figures",
        "the text",
        (
            "tests/web/test_browser.py::test_names_tags_and_sentences_are_text_and_never_markup",
            "tests/search/test_page.py::test_nothing_of_a_user_is_taken_as_html_and_nothing_comes_from_elsewhere",
            "tests/explain/test_page.py::test_nothing_of_a_user_is_taken_as_html_and_nothing_comes_from_elsewhere",
            "tests/explain/test_scene.py::test_svg_says_the_same_and_is_escaped",
        ),
        needs=f"{CHROMIUM}, the first",
    ),
    Row(
        "line ends and terminal codes in file names and in what an error quotes",
        "written out",
        "one line",
        ("tests/test_errors.py::test_a_message_is_one_line_that_no_terminal_obeys",),
    ),
    Row(
        "YAML tags, aliases, deep nesting and thousands of keys in a recipe",
        "refused, in time that does not grow with their square",
        "the tag, and its line",
        (
            "tests/test_config.py::test_recipes_that_are_none_are_named",
            "tests/test_config.py::test_many_keys_take_no_longer_than_few",
        ),
    ),
    Row(
        "gigantic, deeply nested or contradictory JSON",
        "refused by its size, by the memory that its values would take, or when it is parsed",
        ONE_LINE,
        (
            f"{TEXTS}test_json_whose_values_would_not_fit_is_refused_before_they_are_made",
            f"{TEXTS}test_json_lines_that_would_not_fit_are_refused_before_they_are_made",
            f"{TEXTS}test_lines_that_would_not_fit_are_refused_before_they_are_made",
            f"{BAD_JSON}test_json_whose_values_would_not_fit_is_refused_before_they_are_made",
            f"{TEXTS}test_files_that_cannot_be_read",
            f"{TEXTS}test_json_problems_are_one_line",
            f"{SAVED}test_a_gigantic_head_is_refused_unread",
            f"{BAD_JSON}test_gigantic_json_is_refused_unread",
            f"{BAD_JSON}test_json_that_is_something_else_is_one_line",
        ),
    ),
    Row(
        "a WordNet whose synsets are above themselves, lead nowhere, or meet in a trillion ways",
        "refused when it is read, but for the last, which takes no longer than few ways",
        ONE_LINE,
        (
            f"{WUPS}test_synsets_that_lead_nowhere_or_for_ever_are_refused",
            f"{WUPS}test_many_ways_up_take_no_longer_than_few",
            f"{WUPS}test_lines_that_ask_for_more_than_they_hold_are_refused",
            f"{WUPS}test_a_file_without_end_is_refused_unread",
        ),
    ),
    Row(
        "XML with a document type (entity bombs), however it is encoded",
        "refused",
        "the file and line",
        (
            "tests/data/entities/test_annotations.py::test_a_document_type_cannot_hide_in_another_encoding",
        ),
    ),
    Row(
        "captions, queries and questions of a million words",
        "refused before they are read",
        "how many characters it has, and may have",
        (
            f"{TEXTS}test_bad_sentences",
            "tests/models/test_matcher.py::test_a_caption_of_a_million_words_is_refused_before_it_is_read",
            "tests/models/test_reading.py::test_a_million_words_are_refused_before_they_are_read",
            f"{REFUSALS}test_queries_that_say_nothing_are_refused",
        ),
    ),
    Row(
        "a head of a few bytes that asks for a model of gigabytes",
        "refused before memory is taken",
        "which sizes do not fit",
        (
            f"{SAVED}test_a_head_that_asks_for_too_much_is_refused_before_memory_is_taken",
            f"{SAVED}test_with_a_bert_too_it_is_refused_before_memory_is_taken",
            f"{SAVED}test_rows_that_are_not_in_the_file_do_not_ask_for_any_size",
            "tests/models/test_vsrn_captioner.py::test_a_caption_generators_head_is_checked_before_memory_is_taken",
            "tests/vision/objects/test_detector.py::test_folders_that_hold_no_model",
        ),
    ),
    Row(
        "bad captions, questions, entities, vocabularies, WordNets, recipes of every format "
        "(Hypothesis)",
        "read, or refused: no crash, no hang, no write outside the target folder",
        "an answer, or one line",
        ("tests/fuzz/test_texts.py::test_many_bad_texts_are_read_or_refused",),
        "inputs",
    ),
    Row(
        "bad region stores, features, boxes, recipes, checkpoints, models, runs, results, indexes, "
        "photographs (Hypothesis)",
        "the same",
        "an answer, or one line",
        ("tests/fuzz/test_arrays.py::test_many_bad_arrays_are_read_or_refused",),
        "inputs",
    ),
    Row(
        "the same texts, by Atheris",
        "the same",
        "an answer, or one line",
        ("tests/fuzz/test_led_by_coverage.py::test_no_input_that_atheris_finds_breaks_a_reader",),
        "inputs",
        needs=ATHERIS,
    ),
    Row(
        "requests to `serve` that no client would make (Schemathesis, by hand)",
        "answered in words; limits on size, rate and time",
        "a status and one sentence",
        (
            "tests/web/test_schema.py::test_no_request_makes_the_server_fail",
            "tests/web/test_limits.py::test_too_many_requests_are_told_so",
            f"{APP}test_a_bug_inside_is_not_shown",
        ),
    ),
)
