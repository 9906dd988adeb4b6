package thread

// upTo returns 0 to n-1, as numbers of n CPUs of which nothing else is known.
func upTo(n int) []int {
	cpus := make([]int, n)
	for cpu := range cpus {
		cpus[cpu] = cpu
	}
	return cpus
}
