package memory_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/daimon-go/daimon/stage/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestRandom(t *testing.T) { storetest.Random(t, 15, open) }

// open gives a store whose clock is the test's.
func open(*testing.T) storetest.Harness {
	clock := time.Unix(1e9, 0)
	s := memory.New(func() time.Time { return clock })
	return storetest.Harness{
		Store:   s,
		Again:   func() store.Store { return s },
		Advance: func(d time.Duration) { clock = clock.Add(d) },
	}
}

func BenchmarkStore(b *testing.B) {
	enginetest.BenchmarkStore(b, func(*testing.B) store.Store { return memory.New(nil) })
}
