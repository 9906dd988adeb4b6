package service

// SetLastAccepts changes how many connections are accepted under an order.
func SetLastAccepts(n int) (restore func()) {
	before := lastAccepts
	lastAccepts = n
	return func() { lastAccepts = before }
}
