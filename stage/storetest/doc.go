// Package storetest has the suite that every stage.Store passes, and benchmarks to compare them by.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness {
//			clock := time.Unix(1e9, 0)
//			s := memory.New(func() time.Time { return clock })
//			return storetest.Harness{
//				Store:   s,
//				Again:   func() stage.Store { return s },
//				Advance: func(d time.Duration) { clock = clock.Add(d) },
//			}
//		})
//	}
//
// It goes through what package stage promises of a Store sentence by sentence; then through every condition of a task
// with every method, as a table that can be read; then it lets many goroutines ask for the same things; and at last it
// compares random histories with those of a slow and obvious twin. A failure there prints its last operations, and the
// name of its test says the seed.
package storetest
