package client

// Client bounds several Origins together, and finds the Origins of URLs.
type Client struct {
	// MaxConns bounds the connections of all Origins; 0 means no bound.
	MaxConns int
}
