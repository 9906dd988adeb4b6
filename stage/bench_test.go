package stage_test

import (
	"testing"

	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

func BenchmarkEngine(b *testing.B) {
	enginetest.Benchmark(b, func(*testing.B) store.Store { return memory.New(nil) })
}
