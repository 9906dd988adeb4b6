package service

import "github.com/daimon-go/daimon/act"

// Ending is what becomes of the connections of a service when an order to end is in force. The service itself accepts those
// that have arrived, and no more.
type Ending uint8

const (
	// FinishRequest tells the actions of connections of the order: those of package httpd answer the request that has begun,
	// and end. What an action does is its own business.
	FinishRequest Ending = iota
	// Finish tells them nothing: connections go on until they end by themselves, within the bounds of the order.
	Finish
	// Discard aborts all connections. One whose action has offloaded a function is aborted when that has returned.
	Discard
	// LastOfAll is for a service that is to be there to the last, such as one for metrics: it goes on accepting and serving
	// until nothing else on its scheduler keeps Run from returning. Then it ends as with FinishRequest, and idle connections
	// end at once. If the program is replaced by another one that listens on the same sockets, it ends as with FinishRequest from
	// the beginning.
	LastOfAll
)

// discarded takes the place of the action of a connection that was aborted.
type discarded struct{ act.Child }

// Act ends the task.
func (*discarded) Act(*act.Task) act.Directive { return act.Done }

// Undisturbed reports that the task is not to know of orders.
func (x *session) Undisturbed() bool { return x.config != nil && x.config.atEnd == Finish }
