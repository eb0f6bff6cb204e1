/* Frames of requests and answers: where their numbers stand.

   All of it is defined in `protocol/fields.py`; `tests/native/test_fields.py` compares the two. */

#ifndef OTTLA_FRAMES_H
#define OTTLA_FRAMES_H

/* A request: length, API key, API version, correlation id; then what the client repeats. */
#define LENGTH_BYTES 4
#define KEY_VERSION_AT 4
#define KEY_VERSION_BYTES 4
#define REQUEST_CORRELATION_AT 8
#define FIXED_HEAD 12
/* An answer: length and correlation id. */
#define CORRELATION_AT 4
#define CORRELATION_END 8

/* What `receive` of a lane gives where it has dealt with the request itself. */
#define TAKEN -1

#endif
