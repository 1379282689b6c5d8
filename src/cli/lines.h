/*
 * Output of many processes on two descriptors. A stream reads one end of a pipe and hands whole lines to a sink; a sink
 * holds what could not be written yet. Whole lines stay whole; a stream is not read while its sink is full, so that a
 * slow reader slows the writers down instead of filling the memory.
 */
#ifndef ITS_CLI_LINES_H
#define ITS_CLI_LINES_H

#include "cli/cli.h"

typedef struct cli_sink {
    int fd;
    bool color;
    bool broken; /* nobody reads it any more: what comes is dropped */
    its_buffer buffer;
    size_t written; /* of `buffer` */
} cli_sink;

typedef struct cli_stream {
    int fd; /* -1 when it has ended */
    cli_sink *sink;
    its_buffer line; /* the start of a line */
    char prefix[48];
    size_t prefix_size;
} cli_stream;

void cli_sink_init(cli_sink *sink, cli_app *app, int fd);
void cli_sink_free(cli_sink *sink);
bool cli_sink_pending(const cli_sink *sink);
/* Writes a piece small enough not to block once poll has said that there is room. */
void cli_sink_write(cli_sink *sink);

void cli_stream_init(cli_stream *stream, cli_app *app, cli_sink *sink, int fd, uint32_t pe, bool prefix);
bool cli_stream_wants(const cli_stream *stream);
void cli_stream_read(cli_stream *stream);
/* Ends the stream; an unfinished last line gets its end. */
void cli_stream_close(cli_stream *stream);

#endif
