package act

// SetPin lets a test be the system that is asked to bind a thread to a CPU.
func SetPin(f func(cpu int) error) (restore func()) {
	before := pin
	pin = f
	return func() { pin = before }
}
