package upgrade

// LookOnce has a program whose predecessor says no more look once whether it has ended, and not for 5 s.
func LookOnce() (restore func()) {
	was := looks
	looks = 1
	return func() { looks = was }
}
