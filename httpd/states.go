package httpd

// ConnState is what a connection is doing: see Server.OnState. The values are the same as in http.ConnState.
type ConnState uint8

const (
	// StateNew is a connection that has been accepted and has passed the filters of its service, such as the
	// handshake of TLS.
	StateNew ConnState = iota
	// StateActive is a connection on which a request has begun to come and is not answered yet.
	StateActive
	// StateIdle is a connection that has answered a request and waits for the next one.
	StateIdle
	// StateHijacked is a connection that has switched to another protocol, or was hijacked. No state follows.
	StateHijacked
	// StateClosed is a connection that is closed, or will be when its last bytes are sent. No state follows.
	StateClosed
)
