// Package storetest has the test suite that every store.Store passes, and benchmarks to compare stores.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness {
//			clock := time.Unix(1e9, 0)
//			s := memory.New(func() time.Time { return clock })
//			return storetest.Harness{
//				Store:   s,
//				Again:   func() store.Store { return s },
//				Advance: func(d time.Duration) { clock = clock.Add(d) },
//			}
//		})
//	}
//
// The suite checks each sentence of the documentation of [store.Store]. Two tables have every condition of a task and
// what each method makes of it. Then many goroutines make the same calls at once. Last, random histories are compared
// with the histories of a simple twin, which applies the rules of stage/internal/transition to tasks in a map. A
// failure there prints its last operations, and the name of its test has the seed.
package storetest
