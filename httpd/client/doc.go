// Package client is a client of HTTP/1.1 and HTTP/2 on the schedulers: an [Origin] is a server with the connections to it, a
// [Call] is a request, and a [Response] its answer.
//
//	var api = &client.Origin{Address: "127.0.0.1:8080"}
//
//	call := &client.Call{Origin: api, Target: "/items?page=2"}
//	call.Add("Accept", "application/json")
//	if err := co.Do(call); err != nil { // in a coroutine; an action returns call.Act(t) until it is Done
//		return err
//	}
//	answer := call.Response()
//	defer answer.Close()
//	body := coro.Reader(co, answer)
//
// A Call is Done when the head of the answer has come. The content of both is streamed: [Call.Write] and [Response.Peek] return an
// act.Blocked instead of waiting, and what is not read holds up the origin. [Response.Close] gives the connection back for the next
// Call, or ends the request at once if its answer has not come to its end.
//
// Goroutines use an http.Client with the Transport of package nethttp.
//
// # Connections
//
// Connections belong to a scheduler. Each scheduler keeps the idle ones of an Origin, and the latest is used first. If a Call waits
// because Origin.MaxConns is reached, an idle connection of another scheduler is handed to it, or closed to make room. The schedulers
// whose Calls wait are served in turn. HTTP/1 has one request at a time on a connection, HTTP/2 many. A connection that has ended, or
// on which bytes have come that no request has asked for, is not used again. If a connection that was used before is lost before any
// byte of an answer, the request is sent once more on a new one. It has to be safe (RFC 9110 9.2.2): the method is idempotent or
// Call.Repeatable is set, and the content is Call.Content or none.
//
// # Strict
//
// Answers are read by the rules that package httpd has for requests: RFC 9112 and RFC 9113 without the repairs that they allow. A
// body that is cut short is an error, never an end.
package client
