// Package logs has the logger that stands for a nil one, and makes texts of others fit for a log.
package logs

import (
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Default returns what a nil Logger of a Config stands for. It samples: the failures that a million clients can cause
// must not drown a server.
func Default() *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(os.Stderr), zapcore.WarnLevel)
	return zap.New(zapcore.NewSamplerWithOptions(core, time.Second, 10, 100))
}

// Text returns text as UTF-8: each run of other bytes becomes U+FFFD. A path may have such bytes, and so may what an action or a
// peer says of itself.
func Text(text string) string { return strings.ToValidUTF8(text, string(utf8.RuneError)) }

// Valid returns log with messages that are valid UTF-8, as its encoders make fields. The console encoder of zap takes a
// message as it is.
func Valid(log *zap.Logger) *zap.Logger {
	if _, is := log.Core().(textual); is {
		return log
	}
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return textual{c} }))
}

// textual is a Core that checks the messages of another, which writes them.
type textual struct{ zapcore.Core }

func (c textual) With(fields []zapcore.Field) zapcore.Core { return textual{c.Core.With(fields)} }

func (c textual) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	e.Message = Text(e.Message)
	return c.Core.Check(e, to)
}
