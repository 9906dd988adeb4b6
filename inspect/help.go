package inspect

import "strings"

// help says what each count and metric means. Its lines have a name and a text.
var help = func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(meanings) {
		if name, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			all[name] = strings.TrimLeft(text, " ")
		}
	}
	return all
}()

const meanings = `
uptime_seconds_total            Time since the scheduler has started.
idle_seconds_total              Time with nothing to do, by how it was spent.
answer_age_seconds              Age of the other figures of a scheduler that does not answer, 0 if it does.
turn_seconds                    Durations of turns, of one in 64.
wake_seconds                    Times from a wake-up to the turn, of one in 64.

tasks                           Tasks that are alive.
demons                          Demons that keep the scheduler from ending.
held                            Holds that keep the scheduler from ending, such as a closed connection with unsent bytes.
ready                           Tasks in the ready queue, up to 10000.
spawned_total                   Tasks and demons that were spawned.
ended_total                     Tasks and demons that have ended.
failed_total                    Of these, with an error or a panic.
dropped_total                   Of these, closed unfinished by a shutdown.
turns_total                     Turns of tasks and demons.
woken_total                     Wake-ups of tasks and demons.
passes_total                    Passes of the scheduler's loop.
polls_total                     Polls of the kernel that did not wait for an event.
sleeps_total                    Times that the thread had nothing to do and waited.
timers                          Timers that are armed.
timers_total                    Timers that have expired.
posts_total                     Functions posted to the scheduler that have run.
remote_events_total             Wake-ups that came from other threads.
offloads                        Functions that are queued, or running on another goroutine.
offloads_running                Functions that are running on other goroutines, of all schedulers.
offloads_total                  Functions that were given to another goroutine.

connections                     Connections that are open.
connections_lingering           Connections that are closed in stages, to save bytes that are on their way.
connections_accepted_total      Connections that were accepted.
connections_dialled_total       Connections that were made to others.
connections_lingered_total      Connections that were closed in stages.
connections_aborted_total       Connections that were reset by this side.
connections_broken_total        Connections that were broken by the peer, or by the network.
accepts_lost_total              Connections that were closed before they could be accepted.
accepts_full_total              Times that accepting has paused at the limit of connections.
accepts_short_total             Times that accepting has paused for want of descriptors, memory or permission.
datagrams_received_total        Datagrams that were received.
datagrams_sent_total            Datagrams that were sent.
receives_total                  Receive operations that returned bytes.
received_bytes_total            Bytes that were received.
sends_total                     Send operations that sent bytes.
sends_short_total               Of these, of less than all that was queued.
sent_bytes_total                Bytes that were sent.
waits_for_room_total            Times that a task has begun to wait for a peer that reads too slowly.
held_bytes                      Bytes of memory that are held for connections: output queues and input buffers.
held_bytes_max                  The budget for held_bytes, 0 if there is none.
reading_pauses_total            Times that the budget was reached, and connections that held nothing were not read from.
connections_evicted_total       Connections that were aborted because the memory budget was reached.
evicted_bytes_total             Bytes of memory that the evicted connections held.
handshakes                      TLS handshakes that are under way.
handshakes_waiting              Of these, waiting for their peers.
handshakes_failed_total         TLS handshakes that have failed.
handshakes_dropped_total        TLS handshakes that were given up because there were too many.

http_requests_total             HTTP requests whose heads have arrived.
http_responses_1xx_total        HTTP responses with status 100 to 199.
http_responses_2xx_total        HTTP responses with status 200 to 299.
http_responses_3xx_total        HTTP responses with status 300 to 399.
http_responses_4xx_total        HTTP responses with status 400 to 499.
http_responses_5xx_total        HTTP responses with status 500 to 599.
http2_connections_total         Connections of HTTP/2.
http2_floods_of_resets_total    Of these, closed because too many requests were taken back.
http2_floods_of_faults_total    Of these, closed because too many streams had to be reset.
http2_floods_of_settings_total  Of these, closed because of too many SETTINGS.
http2_floods_of_pings_total     Of these, closed because of too many PING.
http2_floods_of_window_updates_total Of these, closed because of too many WINDOW_UPDATE.
http2_floods_of_empty_data_total Of these, closed because of too much DATA without content.
http2_floods_of_others_total    Of these, closed because of too many frames that mean nothing.
http2_floods_of_blocks_total    Of these, closed because a field block was far too large, heads repeated fields, or MaxHeads was reached.
http2_slow_total                Streams and connections of HTTP/2 that ended because the client was too slow.
http_handlers                   Handlers of net/http that are running.
http_handlers_total             Handlers of net/http that were called.
http_handlers_refused_total     Requests that were answered with 503 because too many handlers were running.
accesslog_lines_total           Lines of the access log.
accesslog_lost_total            Of these, lines that could not be written.
websocket_received_total        WebSocket messages that were received.
websocket_sent_total            WebSocket messages that were sent.
websocket_dropped_total         WebSocket messages that were pushed and dropped.

processes                       Processes that are alive.
processes_queued                Processes that are ready to run.
processes_spawned_total         Processes that were spawned.
processes_ended_total           Processes that have ended.
processes_stolen_total          Processes taken from the queue of another scheduler.
process_turns_total             Turns of processes.
process_messages_total          Messages that processes have taken from their mailboxes.
process_messages_dropped_total  Messages to processes that were dropped, or refused by a full mailbox.
process_dead_letters_total      Of these, to processes that had ended.
process_handoffs_total          Processes that ran at once, on the thread of a process that had sent them a message.

topic_messages_total            Messages that came to a Broker: published here or on other machines, and of members that come and go.
topic_delivered_total           Messages passed on to subscriptions, each for each subscription.
topic_dropped_total             Messages dropped since the queue of a subscription was full.
topic_slow_total                Subscriptions ended since their queues were full.
topic_subscriptions             Filters and topics that are subscribed to, each for each subscription.
topic_waiting                   Messages, and beginnings and ends of subscriptions, that wait to be passed on.
topic_unstored                  Messages that wait to be stored by an Engine.
topic_kept                      Topics that have a history, a retained message or members.

coroutines                      Coroutines that have begun and not ended.
coroutines_kept                 Coroutines of the Go runtime that are kept for the next ones.

source_messages_refused_total   Requests and messages that were refused since their source had sent too many.
source_pauses_total             Times that reading from a connection paused since its source had sent too many messages.

stalls_reported_total           Lines in the log about turns that held up a scheduler; a long turn may have two.
stalls_suppressed_total         Turns that held up a scheduler, without a line because there were too many.
stall_seconds                   Durations of turns that held up a scheduler.
watchdog_late_total             Times that the watchdog was late, so that it may have missed stalls.
recordings_written_total        Files with the last events that were written.
recordings_suppressed_total     Files with the last events that were not written because there were too many.
recordings_failed_total         Files with the last events that could not be written.
collected_refused               Figures of sources of the program that are not on this page.

kind_tasks                      Tasks and demons of a kind that are alive.
kind_spawned_total              Tasks and demons of a kind that were spawned.
kind_failed_total               Tasks and demons of a kind that have failed.
kind_turns_total                Turns of tasks and demons of a kind.
kind_woken_total                Wake-ups of tasks and demons of a kind.
kind_turn_seconds               Durations of turns of a kind, of one in 64.
kind_wake_seconds               Times from a wake-up of a kind to the turn, of one in 64.

service_connections             Open connections of a service.
service_connections_max         The limit of connections of a service, 0 if there is none.
service_accepted_total          Connections that a service has accepted.
service_pauses_total            Times that a service has paused accepting at its limit.
service_shortages_total         Times that a service has paused accepting for want of descriptors, memory or permission.
service_refused_total           Connections that a filter of a service has refused.
service_too_many_total          Of these, because their source had too many.
service_too_fast_total          Of these, because their source made them too fast.
service_evicted_total           Idle connections that were closed to make room for others. For memory: connections_evicted_total.
service_gone_total              Connections that ended because the peer, or the way to it, had gone.
service_failed_total            Connections whose action has failed otherwise.
service_peers                   Conversations of a service for datagrams that have a task.
service_packets_received_total  Packets that a service has received.
service_packets_sent_total      Packets that a service has sent.
service_packets_dropped_total   Packets that the kernel has dropped since the buffer of a socket of a service was full (Linux).
service_packets_too_fast_total  Packets that a service has dropped since their source had sent too many.
service_packets_lost_total      Packets to conversations that had no room for them, had ended, or could not begin.
service_packets_late_total      Packets that have come when a service was ending, and were dropped.
service_packets_full_total      Packets that were not sent since too many waited to be sent.
service_packets_refused_total   Packets that the kernel has refused to send.
service_peers_evicted_total     Conversations that were ended to make room for others.
service_panics_total            Panics of the handler of a service for datagrams.

stages_workers                  Tasks that an engine of stages can work on at a time.
stages_running                  Tasks that an engine of stages works on.
stages_claimed_total            Tasks that an engine of stages has claimed.
stages_finished_total           Stages that were finished.
stages_failed_total             Attempts at a stage that have failed.
stages_suspended_total          Tasks that were given back as suspended.
stages_lost_leases_total        Leases that an engine of stages has lost.

client_connections_total        Connections that package client has begun to make.
client_reused_total             Calls that were given a connection that was idle.
client_repeats_total            Calls that were sent again, since their connection was lost without an answer.
client_handed_over_total        Idle connections that were handed to another scheduler, whose calls waited.
client_busy_total               Calls that were refused, since too many waited for a connection.
client_idle_connections         Connections of package client that are idle.

gateway_route_active            Requests of a route of package gateway that are under way.
gateway_route_requests_total    Requests of a route.
gateway_route_failed_total      Of these, answered with a status of 5xx.
gateway_route_retries_total     Requests of a route that were passed to another back end.
gateway_backend_active          Requests of a back end of package gateway that are under way.
gateway_backend_requests_total  Requests that were passed to a back end.
gateway_backend_failed_total    Of these, without an answer or with one that counts as a failure.
gateway_backend_outs_total      Times that a back end was left out because of its health.
gateway_backend_milliseconds_total How long the requests of a back end took together.
`
