package daimon_test

import (
	"context"
	"log/slog"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/program"
)

func Example_json() {
	log := zap.New(zapcore.NewSamplerWithOptions(
		zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(os.Stdout), zapcore.InfoLevel),
		time.Second, 10, 100,
	))
	server := program.Server{Addr: "127.0.0.1:7007", Config: act.Config{Logger: log}}
	server.Parse()
	server.Run(server.Listen(server.Addr, echo.Echo))
}

// toSlog is a zapcore.Core that passes each line on to a slog.Handler.
type toSlog struct{ handler slog.Handler }

func (c toSlog) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), level(l))
}

func (c toSlog) With(fields []zapcore.Field) zapcore.Core {
	return toSlog{c.handler.WithAttrs(attributes(fields))}
}

func (c toSlog) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) {
		return to
	}
	return to.AddCore(e, c)
}

func (c toSlog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, level(e.Level), e.Message, e.Caller.PC)
	r.AddAttrs(attributes(fields)...)
	return c.handler.Handle(context.Background(), r)
}

func (c toSlog) Sync() error { return nil }

// level returns -4, 0, 4 and 8 for Debug, Info, Warn and Error, which are -1 to 2 in zap.
func level(l zapcore.Level) slog.Level { return slog.Level(4 * l) }

func attributes(fields []zapcore.Field) (all []slog.Attr) {
	for _, f := range fields {
		encoded := zapcore.NewMapObjectEncoder()
		f.AddTo(encoded)
		for key, value := range encoded.Fields {
			all = append(all, slog.Any(key, value))
		}
	}
	return all
}

// slogLogger returns a Logger that writes, of equal lines, the first ten of a second, and then every hundredth.
func slogLogger(h slog.Handler) *zap.Logger {
	return zap.New(zapcore.NewSamplerWithOptions(toSlog{h}, time.Second, 10, 100))
}

func Example_slog() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{} // the time would differ
		}
		return a
	}})
	log := slogLogger(handler) // for act.Config.Logger
	log.Debug("not enabled")
	log.With(zap.Int("scheduler", 1)).Warn("a turn holds up its scheduler", zap.Duration("for", 63*time.Millisecond))
	// Output: level=WARN msg="a turn holds up its scheduler" scheduler=1 for=63ms
}
