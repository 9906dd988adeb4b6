package client

// Client bounds several Origins together, and finds the Origins of URLs.
type Client struct {
	// MaxConns bounds the connections of all Origins on all schedulers; 0 means no bound. For a Call that finds no place an idle
	// connection of another Origin is closed.
	MaxConns int

	places
}
