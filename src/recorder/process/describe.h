/*
 * Describes the recorded process in the file: how it was started, on which host, with which
 * settings, and by what means it is recorded. The functions write to the header of the open file.
 */
#ifndef GM_RECORDER_DESCRIBE_H
#define GM_RECORDER_DESCRIBE_H

/* Describes the process in a file that was just opened. The caller holds the start lock. */
void gm_describe_process(void);

/*
 * Says which unwinder and which Python are in use. Called again when they were found after the file
 * was opened. A file must be open.
 */
void gm_describe_stacks(void);

/* Says which backend is in use; again when that changed. Does nothing while there is no file. */
void gm_describe_backend(void);

/* Describes the settings in force, which an attach changes. A file is open. */
void gm_describe_settings(void);

#endif
