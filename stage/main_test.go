package stage_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/stage"
)

func TestMain(m *testing.M) {
	if os.Getenv("SIM_SEEDS") == "" {
		os.Setenv("SIM_SEEDS", tier.Choose("50", "2", "500")) // the full tier runs under the race detector
	}
	goleak.VerifyTestMain(m)
}

// hosts are the two ways to run an engine.
var hosts = map[string]func(context.Context, *stage.Engine) error{
	"goroutines": func(ctx context.Context, e *stage.Engine) error { return e.Run(ctx) },
	"a Group": func(ctx context.Context, e *stage.Engine) error {
		return act.Run(ctx, act.Config{Schedulers: 1, Logger: zap.NewNop()}, e.Setup)
	},
}
