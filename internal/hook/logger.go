package hook

import (
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// DefaultLogger returns what a nil Config.Logger stands for. It samples: the failures that a million clients can cause
// must not drown a server.
func DefaultLogger() *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(os.Stderr), zapcore.WarnLevel)
	return zap.New(zapcore.NewSamplerWithOptions(core, time.Second, 10, 100))
}
