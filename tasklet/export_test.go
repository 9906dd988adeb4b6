package tasklet

// Patients is how often somebody is remembered who waits for the phase of t to end.
func Patients(t Tasklet) int {
	sh := &occupied[occupied.hash(t)%uint64(len(occupied))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, o := range sh.in {
		if o.tasklet == t {
			return len(o.patients)
		}
	}
	return 0
}
