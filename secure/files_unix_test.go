//go:build unix

package secure_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

func TestHangupReadsTheFilesAgain(t *testing.T) {
	first, second, expired := valid(t), valid(t), issue(t, -2*time.Hour, -time.Hour)
	f := files(t, first)
	r := servertest.Start(t, act.Config{Schedulers: 2}, f.Setup, func(s *act.Scheduler) error {
		s.Install(demon.Stay())
		return nil
	})
	logged := 0
	hangup := func(level zapcore.Level, says string, inForceThen issued) {
		t.Helper()
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		require.Eventually(t, func() bool { return r.Logs.Len() > logged }, servertest.Timeout, time.Millisecond)
		lines := r.Logs.All()[logged:]
		logged++
		require.Len(t, lines, 1)
		require.Equal(t, level, lines[0].Level)
		require.Regexp(t, says, lines[0].Message)
		inForce(t, inForceThen, f)
	}
	second.into(t, f)
	inForce(t, first, f)
	hangup(zapcore.InfoLevel, `^read the certificate in .*cert\.pem again$`, second)
	require.NoError(t, os.Remove(f.Key))
	hangup(zapcore.ErrorLevel, "^the certificate stays as it was$", second)
	expired.into(t, f)
	hangup(zapcore.WarnLevel, `^the new certificate in .*cert\.pem expired on `, expired)
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
}

// A Reload that has begun earlier cannot put an older certificate in the place of a newer one.
func TestTheLastReloadWins(t *testing.T) {
	first, second := valid(t), valid(t)
	f := files(t, first)
	require.NoError(t, os.Remove(f.Key))
	require.NoError(t, syscall.Mkfifo(f.Key, 0o600))
	ended := make(chan error, 2)
	reload := func() { ended <- f.Reload() }
	go reload()
	key, err := os.OpenFile(f.Key, os.O_WRONLY, 0) // when the Reload reads it
	require.NoError(t, err)
	require.NoError(t, os.Remove(f.Key))
	second.into(t, f)
	go reload()
	select {
	case err := <-ended:
		require.Fail(t, "it does not wait for the first one", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	_, err = key.Write(first.key)
	require.NoError(t, errors.Join(err, key.Close()))
	require.NoError(t, errors.Join(<-ended, <-ended))
	inForce(t, second, f)
}
