package servertest

import "github.com/daimon-go/daimon/shutdown"

// Cut ends a Run at once and drops the remaining tasks.
var Cut = shutdown.Policy{Kind: shutdown.Halt, Drop: true}

// Drain lets a Run end by itself.
var Drain = shutdown.Policy{Time: Timeout, Drop: true}
