/* What streams and the host tell the finder of races. Nothing happens if nobody looks for them. */
#ifndef ITS_SIM_RACE_STREAM_H
#define ITS_SIM_RACE_STREAM_H

#include "sim/stream_parts.h"

/* A stream is made. ITS_ERR_NOMEM leaves no diagnostics. */
its_status its_race_stream_new(its_device *device, its_stream_queue *stream);
/* Work is put into a stream by the host, which has seen what it has seen. */
its_status its_race_enqueue(its_device *device, its_work *work);
/* The first piece of work of a stream may begin: everything that it waited for was before it. */
void its_race_stream_begin(its_device *device, its_stream_queue *stream);
/*
 * Before a copy, a fill or a signal is made. False: nothing orders it with another access, and device->complaints says
 * which.
 */
bool its_race_stream_access(its_device *device, its_stream_queue *stream);
/* The first piece of work of a stream is done. */
void its_race_stream_done(its_device *device, its_stream_queue *stream);
/* The host has waited for a stream (by its number; all streams if NULL), or for an event. */
void its_race_host_waited(its_device *device, const its_stream_queue *stream);
void its_race_host_waited_event(its_device *device, const its_event_state *event);

#endif
