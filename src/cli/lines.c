#include "cli/lines.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/launcher.h"

enum { FULL_SINK = 1 << 20, READ_SIZE = 1 << 16 };

/* -- sinks --------------------------------------------------------------------------------------------------------- */

void cli_sink_init(cli_sink *sink, cli_app *app, int fd) {
    const char *no_color = getenv("NO_COLOR");
    *sink = (cli_sink){.fd = fd, .color = isatty(fd) && !(no_color && *no_color)};
    its_buffer_init(&sink->buffer, app->ctx);
}

void cli_sink_free(cli_sink *sink) {
    its_buffer_free(&sink->buffer);
}

bool cli_sink_pending(const cli_sink *sink) {
    return sink->written < sink->buffer.size;
}

void cli_sink_write(cli_sink *sink) {
    size_t size = sink->buffer.size - sink->written;
    ssize_t done = write(sink->fd, sink->buffer.data + sink->written, size < PIPE_BUF ? size : PIPE_BUF);
    if (done < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (done < 0)
        sink->broken = true;
    else
        sink->written += (size_t)done;
    if (sink->broken || !cli_sink_pending(sink)) sink->buffer.size = sink->written = 0;
}

static void sink_put(cli_sink *sink, const char *data, size_t size) {
    if (sink->written > FULL_SINK) { /* what is written makes room */
        sink->buffer.size -= sink->written;
        memmove(sink->buffer.data, sink->buffer.data + sink->written, sink->buffer.size);
        sink->written = 0;
    }
    if (!sink->broken && size > 0) its_buffer_put(&sink->buffer, data, size);
}

/* -- streams ------------------------------------------------------------------------------------------------------- */

void cli_stream_init(cli_stream *stream, cli_app *app, cli_sink *sink, int fd, uint32_t pe, bool prefix) {
    static const char *const colors[] = {"\033[36m", "\033[33m", "\033[32m", "\033[35m", "\033[34m", "\033[31m"};
    const char *on = sink->color ? colors[pe % 6] : "", *off = sink->color ? "\033[0m" : "";
    *stream = (cli_stream){.fd = fd, .sink = sink};
    its_buffer_init(&stream->line, app->ctx);
    if (prefix)
        stream->prefix_size =
            (size_t)snprintf(stream->prefix, sizeof stream->prefix, "%s[pe %u]%s ", on, (unsigned)pe, off);
}

bool cli_stream_wants(const cli_stream *stream) {
    return stream->fd >= 0 && stream->sink->buffer.size - stream->sink->written < FULL_SINK;
}

/* The line so far, with `more`, which ends it, as one piece of the sink. */
static void end_line(cli_stream *stream, const char *more, size_t size) {
    sink_put(stream->sink, stream->prefix, stream->prefix_size);
    sink_put(stream->sink, stream->line.data, stream->line.size);
    sink_put(stream->sink, more, size);
    stream->line.size = 0;
}

void cli_stream_read(cli_stream *stream) {
    char data[READ_SIZE];
    ssize_t n = read(stream->fd, data, sizeof data);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {
        cli_stream_close(stream);
        return;
    }
    const char *p = data, *end = data + n;
    for (const char *line; (line = memchr(p, '\n', (size_t)(end - p))); p = line + 1)
        end_line(stream, p, (size_t)(line + 1 - p));
    if (p < end) its_buffer_put(&stream->line, p, (size_t)(end - p));
    if (stream->line.size > CLI_LONGEST_LINE) end_line(stream, "\n", 1);
}

void cli_stream_close(cli_stream *stream) {
    if (stream->fd < 0) return;
    if (stream->line.size) end_line(stream, "\n", 1);
    its_buffer_free(&stream->line);
    close(stream->fd);
    stream->fd = -1;
}
