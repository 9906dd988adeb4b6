package stage_test

import (
	"testing"
	"time"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/enginetest"
	"github.com/daimon-go/daimon/stage/memory"
)

func TestEngine(t *testing.T) {
	enginetest.Run(t, func(*testing.T) stage.Store { return memory.New(nil) })
}

// TestMinute tells what periodic tasks cost.
func TestMinute(t *testing.T) {
	enginetest.Minute(t, func(*testing.T) stage.Store { return memory.New(nil) }, func() time.Duration { return 0 })
}
