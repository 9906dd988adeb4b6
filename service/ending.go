package service

import "github.com/daimon-go/daimon/act"

// Ending says what happens to the open connections of a service when a shutdown is in force. The service itself accepts
// the connections that have arrived, and no more.
type Ending uint8

const (
	// FinishRequest tells the actions of connections to shut down (see [act.Stopper]): connections of package httpd
	// answer the request that has begun, and end. Other actions do as they choose.
	FinishRequest Ending = iota
	// Finish tells the actions of connections nothing: connections go on until they end by themselves, within the bounds
	// of the shutdown's policy.
	Finish
	// Discard aborts all connections when the shutdown is in force. A connection whose action has offloaded a function
	// is aborted when the function has returned.
	Discard
	// LastOfAll is for a service that serves to the last, such as one for metrics: it goes on accepting and serving
	// until nothing else on its scheduler keeps Run from returning. Then it ends as with FinishRequest, and idle
	// connections end at once. If the program is replaced by another one that listens on the same sockets, the service
	// ends as with FinishRequest from the beginning.
	LastOfAll
)

// discarded takes the place of the action of a connection that was aborted.
type discarded struct{ act.Child }

// Act ends the task.
func (*discarded) Act(*act.Task) act.Directive { return act.Done }

// Undisturbed reports whether the task is not to be told of a shutdown.
func (x *session) Undisturbed() bool {
	c := x.config()
	return c != nil && c.AtEnd == Finish
}
